"""Fits to scanned comparisons: hyperparameters from some users, then sweeps over all shards.

First MultiUserGP, then CommunityGP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from penchant import gp
from penchant.communities import (
    ComponentTables,
    FittedMixture,
    Members,
    MixtureFitter,
    MixturePart,
    SearchReport,
    Step,
    add_members,
    answer_keys,
    choose_communities,
    converge_parts,
    fit_community,
    memberships,
    pooled_answers,
)
from penchant.data import (
    BucketFiles,
    Comparisons,
    ShardedComparisons,
    bucket_of,
    picked_users,
    side_by_side,
)
from penchant.engines import Parts, State, open_engine
from penchant.errors import DataError
from penchant.gp import LEARNING_VOTES
from penchant.io import write_parquet
from penchant.kernels import Inputs
from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.types import FloatArray, IntArray


def first_users(data: ShardedComparisons) -> Comparisons:
    """The comparisons of the users of the first buckets, from which hyperparameters are learned."""
    return data.buckets(data.first_buckets(LEARNING_VOTES))


def check_all_here(n_elsewhere: int) -> None:
    """Raise where the model was fitted to comparisons that it does not hold."""
    if n_elsewhere:
        raise DataError(
            f"{n_elsewhere:,} comparisons of other users are not in this model, so that inference "
            "cannot converge again: fold_in new users, or fit again"
        )


def shards_of(estimator: object, instead: str) -> Any:
    """The shards that an estimator was fitted to; instead: what other models can do."""
    found = vars(estimator).get("_shards")
    if found is None:
        raise DataError(
            "this model was not fitted to scanned comparisons in this session: fit it to what "
            f"pc.scan_comparisons returns; {instead}"
        )
    return found


def learn_shards(
    data: ShardedComparisons,
    engine: str,
    address: str | None,
    problem: gp.UserProblem,
    some: Comparisons,
    solution: gp.UserSolution,
    watch: gp.Callback | None,
) -> tuple[gp.FitState[gp.UserProblem], "UserShards"]:
    """Sweep all users under the hyperparameters of a solution for some.

    Return the state of those, and where the others are.
    """
    hyper = solution.hyper
    arrow = solution.prior.without_users()
    size = problem.edges.choice_size
    load = partial(_user_part, data.files, arrow.tied, size)
    folder = data.files.folder / f"sites-{token_hex(8)}"
    folder.mkdir()
    parts = Parts(load, data.groups, data.files.folder, data.max_memory, data.is_kept)
    task = repr((hyper.likelihood, arrow.sharing, problem.settings)).encode()
    task += arrow.item_factor.tobytes()
    with open_engine(engine, parts, address, task) as opened:
        sweeps = gp.Sweeps(arrow, hyper.likelihood, problem.settings, opened.added)
        report = sweeps.run(watch)
        opened.look(_save_sites, folder)
    shards = UserShards(data.files, folder, data.groups, size)
    sites = _joined([shards.sites(number) for number in data.first_buckets(LEARNING_VOTES)])
    same = ("rank", "residual", "space", "optimizer", "n_evaluations")
    before = solution.inference.report
    report = replace(report, **{name: getattr(before, name) for name in same})
    posterior = replace(
        problem.posterior(solution),
        shared_mean=sweeps.mean,
        shared_lower=sweeps.shared.lower,
        sites=gp.UserSites.of(problem.edges, sites),
    )
    known = (some, problem, hyper, posterior, sites, sweeps.log_evidence, report)
    n_elsewhere = data.n_comparisons - some.n_comparisons
    return gp.FitState(*known, n_elsewhere=n_elsewhere), shards


def _user_part(files: BucketFiles, tied: IntArray, size: int, number: int) -> gp.UserPart:
    return gp.UserPart.of(number, files.load(number), tied, size)


def _save_sites(part: gp.UserPart, state: State, folder: Path) -> tuple[State, None]:
    sites = gp.sites_of(part, state, 0.0)
    write_arrays(folder / f"{part.number:05d}.npz", {"tau": sites.tau, "nu": sites.nu})
    return state, None


def _joined(parts: Sequence[gp.Sites]) -> gp.Sites:
    """Sites one after the other."""
    tau, nu = (np.concatenate([getattr(part, name) for part in parts]) for name in ("tau", "nu"))
    return gp.Sites(tau, nu)


@dataclass(frozen=True)
class UserShards:
    """Where the users of scanned comparisons are, and the converged sites of their answers;
    choice_size: see `gp.Rows`."""

    files: BucketFiles
    folder: Path
    groups: tuple[tuple[int, ...], ...]
    choice_size: int

    def sites(self, number: int) -> gp.Sites:
        """The sites of one bucket's answers."""
        advice = (
            "the folder of scanned comparisons must stay as long as the model is asked about their "
            "users; fit again"
        )
        arrays = read_arrays(self.folder / f"{number:05d}.npz", advice)
        return gp.Sites(arrays["tau"], arrays["nu"])

    def state_of(
        self, learned: gp.FitState[gp.UserProblem], users: Any
    ) -> gp.FitState[gp.UserProblem]:
        """The state of a model with these users, by name."""
        asked = [users] if isinstance(users, str | int | float) else list(users)
        n_buckets = self.groups[-1][-1] + 1
        parts, sites = [], []
        for number in sorted({bucket_of(name, n_buckets) for name in asked}):
            data, every = self.files.load(number), self.sites(number)
            known = set(data.users).intersection(asked)
            part, rows = picked_users(data, [name for name in data.users if name in known])
            parts.append(part)
            sites.append(gp.Sites(every.tau[rows], every.nu[rows]))
        some = side_by_side(parts, self.files.items)
        if lost := set(asked).difference(some.users):
            raise DataError(
                f"{min(lost, key=str)!r} made none of the scanned comparisons: check the name"
            )
        votes = gp.Rows.by_user(some.bare(), choice_size=self.choice_size)
        posterior = _of_users(learned.posterior, votes, _joined(sites), some.n_users)
        total = learned.data.n_comparisons + learned.n_elsewhere
        return replace(
            learned,
            data=some,
            problem=learned.problem.over(posterior.users, votes),
            posterior=posterior,
            sites=_joined(sites),
            n_elsewhere=total - some.n_comparisons,
        )

    def write(
        self, posterior: gp.UserPosteriors, folder: Path, engine: str, address: str | None
    ) -> None:
        """Write the utilities of all users, a file a bucket."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = Parts(self._bucket, self.groups, self.files.folder, 0)
        shared = replace(posterior, sites=posterior.sites.take(np.zeros(0, dtype=np.intp)))
        with open_engine(engine, parts, address) as opened:
            opened.look(_write_utilities, (shared, folder))

    def _bucket(self, number: int) -> "UserBucket":
        data = self.files.load(number)
        return UserBucket(number, data, self.sites(number), self.choice_size)


@dataclass(frozen=True)
class UserBucket:
    """The comparisons of one bucket's users, and their sites; choice_size: see `gp.Rows`."""

    number: int
    data: Comparisons
    sites: gp.Sites
    choice_size: int

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return 8 * 6 * len(self.data)


def _of_users(
    posterior: gp.UserPosteriors, votes: gp.Rows, sites: gp.Sites, n_users: int
) -> gp.UserPosteriors:
    """The posterior of other users, given what users share."""
    users, voted = Inputs(index=np.arange(n_users)), gp.UserSites.of(votes, sites)
    return replace(posterior, users=users, sites=voted, n_fitted=n_users)


def _write_utilities(
    part: UserBucket, state: State, broadcast: tuple[gp.UserPosteriors, Path]
) -> tuple[State, None]:
    posterior, folder = broadcast
    data = part.data
    votes = gp.Rows.by_user(data.bare(), choice_size=part.choice_size)
    mean, var = _of_users(posterior, votes, part.sites, data.n_users).utilities(
        np.arange(data.n_users), relative=True
    )
    columns = {
        "user": np.repeat(np.arange(data.n_users), data.n_items),
        "item": np.tile(np.arange(data.n_items), data.n_users),
        "mean": mean.ravel(),
        "sd": np.sqrt(var).ravel(),
    }
    _write_part(folder, part.number, columns, {"user": data.users, "item": data.items})
    return state, None


def _write_part(folder: Path, number: int, columns: dict[str, Any], names: dict[str, Any]) -> None:
    """Write one bucket's file, or remove an earlier one where the bucket has no users."""
    path = folder / f"part-{number:05d}.parquet"
    path.unlink(missing_ok=True)
    if names["user"]:
        write_parquet(path, columns, names)


def learn_communities(
    data: ShardedComparisons, engine: str, address: str | None, fitter: MixtureFitter
) -> tuple[FittedMixture, "CommunityShards"]:
    """Search communities among the first users, then converge with the answers of all.

    fitter: of the first users; without personal taste.
    """
    result = fitter.search()
    answers, hyper = pooled_answers(data.pooled), result.hyper
    mixture = replace(result.allocation.mixture, answers=answers)
    sizes = result.membership.sum(axis=0)
    tables = ComponentTables.by(result.posteriors, sizes, answers)
    keys = answer_keys(answers, data.n_items)
    load = partial(_community_part, data.files, keys)
    parts = Parts(load, data.groups, data.files.folder, data.max_memory)
    task = tables.table.tobytes() + tables.log_weights.tobytes()
    with open_engine(engine, replace(parts, kept=data.is_kept), address, task) as opened:

        def ask(tables: ComponentTables) -> Members:
            members: Members
            (members,) = opened.added(choose_communities, tables, {Members: add_members})
            return members

        settled = converge_parts(mixture.model(hyper.theta), tables, ask)
    order = np.argsort(-settled.sizes, kind="stable")
    tables = ComponentTables(settled.given.table[:, order], settled.given.log_weights[order])
    mixture = replace(fitter.mixture, answers=answers).precise()
    posteriors = tuple(
        fit_community(mixture, settled.counts[c], hyper.theta).posterior for c in order
    )
    step = Step("all users, without personal taste", len(order), settled.objective)
    found = FittedMixture(
        data=fitter.data,
        sampled=fitter.data,
        hyper=hyper,
        start=fitter.mixture.hyper,
        membership=memberships(MixturePart.of(0, fitter.data, keys), tables),
        posteriors=posteriors,
        report=SearchReport.of((*result.trace, step)),
        max_rank=fitter.mixture.max_rank,
        n_elsewhere=data.n_comparisons - fitter.data.n_comparisons,
        all_sizes=settled.sizes[order],
    )
    return found, CommunityShards(parts, tables)


@dataclass(frozen=True)
class CommunityShards:
    """The shards of scanned comparisons, and the tables from which memberships follow."""

    parts: Parts
    tables: ComponentTables

    def write(self, folder: Path, engine: str, address: str | None) -> None:
        """Write the memberships of all users, a file a bucket."""
        folder.mkdir(parents=True, exist_ok=True)
        with open_engine(engine, self.parts, address) as opened:
            opened.look(_write_memberships, (self.tables, folder))


def _community_part(files: BucketFiles, keys: IntArray, number: int) -> MixturePart:
    return MixturePart.of(number, files.load(number), keys)


def _write_memberships(
    part: MixturePart, state: State, broadcast: tuple[ComponentTables, Path]
) -> tuple[State, None]:
    tables, folder = broadcast
    shares: FloatArray = memberships(part, tables)
    n_users, K = shares.shape
    columns = {
        "user": np.repeat(np.arange(n_users), K),
        "community": np.tile(np.arange(K), n_users),
        "membership": shares.ravel(),
    }
    _write_part(folder, part.number, columns, {"user": part.data.users})
    return state, None
