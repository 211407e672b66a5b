"""CommunityGP on scanned comparisons: communities of some users, then everybody chooses."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penchant.communities import (
    CrowdPart,
    Finding,
    Found,
    Members,
    Mixture,
    SearchReport,
    Step,
    Views,
    add_members,
    answers_of_all,
    choose_communities,
    fit_community,
    keys_of,
    memberships,
    settle_parts,
)
from penchant.data import BucketFiles
from penchant.engines import Journal, Parts, State, open_engine, tree
from penchant.io import write_parquet
from penchant.models.sharded import Shards
from penchant.numerics.types import FloatArray, IntArray


def learn_communities(shards: Shards, finding: Finding) -> tuple[Found, "CommunityShards"]:
    """The communities of the first users, settled with everybody's answers.

    finding: of the first users; personal taste is not looked for.
    """
    data, grouping = shards.data, finding.grouping()
    answers, hyper = answers_of_all(data.everybody), grouping.hyper
    crowd = replace(grouping.allocation.crowd, answers=answers)
    sizes = grouping.membership.sum(axis=0)
    told = Views.by(grouping.posteriors, sizes, answers)
    keys = keys_of(answers, data.n_items)
    where = CommunityShards(data.files, keys, data.groups, data.max_memory, told)
    parts = replace(where.parts, kept=data.is_kept)
    task = told.table.tobytes() + told.log_weights.tobytes()
    with open_engine(shards.engine, parts, shards.address, task) as engine:
        journal = Journal(engine.folder if parts.kept else None)

        def ask(views: Views) -> Members:
            members: Members
            (members,) = journal.recall(
                (Members,), lambda: (tree(engine.look(choose_communities, views), add_members),)
            )
            return members

        settled = settle_parts(crowd.model(hyper.theta), told, data.n_users, ask)
    order = np.argsort(-settled.members.sizes, kind="stable")
    told = Views(settled.told.table[:, order], settled.told.log_weights[order])
    mixture = Mixture(answers, finding.items, hyper, max_rank=finding.max_rank).precise()
    posteriors = tuple(
        fit_community(mixture, settled.members.counts[c], hyper.theta).posterior for c in order
    )
    step = Step("all users, without personal taste", len(order), settled.objective)
    found = Found(
        data=finding.data,
        sampled=finding.data,
        hyper=hyper,
        start=finding.start,
        membership=memberships(CrowdPart.of(0, finding.data, keys), told),
        posteriors=posteriors,
        report=SearchReport.of((*grouping.trace, step)),
        max_rank=finding.max_rank,
        n_elsewhere=data.n_comparisons - finding.data.n_comparisons,
        all_sizes=settled.members.sizes[order],
    )
    return found, replace(where, told=told)


@dataclass(frozen=True)
class CommunityShards:
    """Where the users of scanned comparisons are, and what their memberships follow from."""

    files: BucketFiles
    keys: IntArray
    groups: tuple[tuple[int, ...], ...]
    max_memory: int
    told: Views

    @property
    def parts(self) -> Parts:
        """For an engine."""
        load = partial(_part, self.files, self.keys)
        return Parts(load, self.groups, self.files.folder, self.max_memory)

    def write(self, folder: Path, engine: str, address: str | None) -> None:
        """Write everybody's memberships, a file a bucket."""
        folder.mkdir(parents=True, exist_ok=True)
        with open_engine(engine, self.parts, address) as opened:
            opened.look(_write_memberships, (self.told, folder))


def _part(files: BucketFiles, keys: IntArray, number: int) -> CrowdPart:
    return CrowdPart.of(number, files.load(number), keys)


def _write_memberships(
    part: CrowdPart, state: State, told: tuple[Views, Path]
) -> tuple[State, None]:
    views, folder = told
    shares: FloatArray = memberships(part, views)
    n_users, K = shares.shape
    columns: dict[str, Any] = {
        "user": np.repeat(np.arange(n_users), K),
        "community": np.tile(np.arange(K), n_users),
        "membership": shares.ravel(),
    }
    path = folder / f"part-{part.number:05d}.parquet"
    path.unlink(missing_ok=True)
    if n_users:
        write_parquet(path, columns, {"user": part.data.users})
    return state, None
