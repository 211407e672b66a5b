"""Fits to scanned comparisons: hyperparameters from some users, then sweeps over all shards.

First MultiUserGP, then CommunityGP.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

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
from penchant.engines import Engine, Journal, Parts, State, Work, open_engine, tree
from penchant.errors import DataError
from penchant.gp import (
    LEARNING_VOTES,
    Callback,
    FitState,
    Rows,
    SharedInformation,
    Sites,
    Sweeps,
    SweepSummary,
    UserPart,
    UserPosteriors,
    UserProblem,
    UserSites,
    UserSolution,
    add_information,
    add_summaries,
    sites_of,
    tied_items,
)
from penchant.io import write_parquet
from penchant.kernels import Inputs
from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.types import FloatArray, IntArray


def first_users(data: ShardedComparisons) -> Comparisons:
    """The comparisons of the users of the first buckets: hyperparameters are learned from them,
    and the model knows them."""
    return data.buckets(data.first_buckets(LEARNING_VOTES))


def check_all_here(n_elsewhere: int) -> None:
    """Raise where most of what was learned is not here, so that it cannot be learned again."""
    if n_elsewhere:
        raise DataError(
            f"{n_elsewhere:,} comparisons of other users are not in this model, so that it cannot "
            "look at them again: fold_in new users, or fit again"
        )


def whereabouts(estimator: object, instead: str) -> Any:
    """Where the users of scanned comparisons are; instead: what other models are asked for."""
    found = vars(estimator).get("_elsewhere")
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
    problem: UserProblem,
    some: Comparisons,
    solution: UserSolution,
    watch: Callback | None,
) -> tuple[FitState[UserProblem], "ShardStore"]:
    """Sweep all users under the hyperparameters of a solution for some; what is known then of
    those, and where the others are."""
    hyper = solution.hyper
    arrow = solution.prior.without_users()
    load = partial(_user_part, data.files, tied_items(arrow.item_covariance))
    folder = data.files.folder / f"sites-{token_hex(8)}"
    folder.mkdir()
    parts = Parts(load, data.groups, data.files.folder, data.max_memory, data.is_kept)
    task = repr((hyper.likelihood, arrow.sharing, problem.settings)).encode()
    task += arrow.item_factor.tobytes()
    with open_engine(engine, parts, address, task) as opened:
        sweep, look = _summed(opened, Journal(opened.folder if parts.kept else None))
        swept = Sweeps(arrow, hyper.likelihood, problem.settings, sweep, look).run(watch)
        opened.look(_save_sites, folder)
    elsewhere = ShardStore(data.files, folder, data.groups, data.max_memory)
    sites = elsewhere.sites(data.first_buckets(LEARNING_VOTES))
    before = solution.inference.report
    report = replace(
        swept.report,
        **{name: getattr(before, name) for name in ("rank", "residual", "space", "optimizer")},
        n_evaluations=before.n_evaluations,
    )
    posterior = replace(
        problem.posterior(solution),
        shared_mean=swept.mean,
        shared_lower=swept.shared.lower,
        sites=UserSites.of(problem.edges, sites),
    )
    known = (some, problem, hyper, posterior, sites, swept.log_evidence, report)
    n_elsewhere = data.n_comparisons - some.n_comparisons
    return FitState(*known, n_elsewhere=n_elsewhere), elsewhere


def _summed(engine: Engine, journal: Journal) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An engine's sweep and look, with results added up in the tree of the parts."""

    def sweep(work: Work, told: Any) -> tuple[SweepSummary, SharedInformation]:
        def swept() -> tuple[SweepSummary, SharedInformation]:
            seen, known = zip(*engine.sweep(work, told), strict=True)
            return tree(seen, add_summaries), tree(known, add_information)

        seen, known = journal.recall((SweepSummary, SharedInformation), swept, engine.skip_sweep)
        return seen, known

    def look(work: Work, told: Any) -> SharedInformation:
        known: SharedInformation
        (known,) = journal.recall(
            (SharedInformation,), lambda: (tree(engine.look(work, told), add_information),)
        )
        return known

    return sweep, look


def _user_part(files: BucketFiles, tied: IntArray, number: int) -> UserPart:
    return UserPart.of(number, files.load(number), tied)


def _save_sites(part: UserPart, state: State, folder: Path) -> tuple[State, None]:
    sites = sites_of(part, state, 0.0)
    write_arrays(folder / f"{part.number:05d}.npz", {"tau": sites.tau, "nu": sites.nu})
    return state, None


@dataclass(frozen=True)
class ShardStore:
    """Where the users of scanned comparisons are, and the sites that a fit found for them."""

    files: BucketFiles
    folder: Path
    groups: tuple[tuple[int, ...], ...]
    max_memory: int

    @property
    def n_buckets(self) -> int:
        """How many buckets users are in."""
        return self.groups[-1][-1] + 1

    def sites(self, numbers: Sequence[int]) -> Sites:
        """The sites of some buckets' answers, one bucket after the other."""
        found = [self._sites(number) for number in numbers]
        tau, nu = (np.concatenate([getattr(s, name) for s in found]) for name in ("tau", "nu"))
        return Sites(tau, nu)

    def _sites(self, number: int) -> Sites:
        path = self.folder / f"{number:05d}.npz"
        known = read_arrays(
            path,
            "the folder of scanned comparisons must stay as long as the model is asked about their "
            "users; fit again",
        )
        return Sites(known["tau"], known["nu"])

    def learned(self, learned: FitState[UserProblem], users: Any) -> FitState[UserProblem]:
        """What is known of these users."""
        asked = [users] if isinstance(users, str | int | float) else list(users)
        parts, sites = [], []
        for number in sorted({bucket_of(name, self.n_buckets) for name in asked}):
            data, every = self.files.load(number), self._sites(number)
            known = set(data.users).intersection(asked)
            part, rows = picked_users(data, [name for name in data.users if name in known])
            parts.append(part)
            sites.append(Sites(every.tau[rows], every.nu[rows]))
        some = side_by_side(parts, self.files.items)
        if lost := set(asked).difference(some.users):
            raise DataError(
                f"{min(lost, key=str)!r} made none of the scanned comparisons: check the name"
            )
        tau, nu = (np.concatenate([getattr(s, name) for s in sites]) for name in ("tau", "nu"))
        posterior = _of_users(learned.posterior, some, Sites(tau, nu))
        problem = learned.problem.over(posterior.users, Rows.by_user(some.bare()))
        total = learned.data.n_comparisons + learned.n_elsewhere
        return replace(
            learned,
            data=some,
            problem=problem,
            posterior=posterior,
            sites=Sites(tau, nu),
            n_elsewhere=total - some.n_comparisons,
        )

    def write(
        self, posterior: UserPosteriors, folder: Path, engine: str, address: str | None
    ) -> None:
        """Write everybody's utilities, a file a bucket."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = Parts(self.settled, self.groups, self.files.folder, 0)
        nobodys = replace(posterior, sites=posterior.sites.take(np.zeros(0, dtype=np.intp)))
        with open_engine(engine, parts, address) as opened:
            opened.look(_write_utilities, (nobodys, folder))

    def settled(self, number: int) -> "SettledUsers":
        """The users of one bucket with their sites."""
        return SettledUsers(number, self.files.load(number), self._sites(number))


@dataclass(frozen=True)
class SettledUsers:
    """Users with the sites that a fit found for their answers; number: of the bucket."""

    number: int
    data: Comparisons
    sites: Sites

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return 8 * 6 * len(self.data)


def _of_users(posterior: UserPosteriors, data: Comparisons, sites: Sites) -> UserPosteriors:
    """The posterior of other users, whom what is shared knows of too."""
    users = Inputs(index=np.arange(data.n_users))
    voted = UserSites.of(Rows.by_user(data.bare()), sites)
    return replace(posterior, users=users, sites=voted, n_fitted=data.n_users)


def _write_utilities(
    part: SettledUsers, state: State, told: tuple[UserPosteriors, Path]
) -> tuple[State, None]:
    posterior, folder = told
    data = part.data
    known = _of_users(posterior, data, part.sites)
    mean, var = known.utilities(np.arange(data.n_users), relative=True)
    columns = {
        "user": np.repeat(np.arange(data.n_users), data.n_items),
        "item": np.tile(np.arange(data.n_items), data.n_users),
        "mean": mean.ravel(),
        "sd": np.sqrt(var).ravel(),
    }
    names = {"user": data.users, "item": data.items}
    path = folder / f"part-{part.number:05d}.parquet"
    path.unlink(missing_ok=True)
    if data.n_users:
        write_parquet(path, columns, names)
    return state, None


def learn_communities(
    data: ShardedComparisons, engine: str, address: str | None, fitter: MixtureFitter
) -> tuple[FittedMixture, "CommunityShards"]:
    """The communities of the first users, settled with everybody's answers.

    fitter: of the first users; personal taste is not looked for.
    """
    result = fitter.search()
    answers, hyper = pooled_answers(data.everybody), result.hyper
    mixture = replace(result.allocation.mixture, answers=answers)
    sizes = result.membership.sum(axis=0)
    told = ComponentTables.by(result.posteriors, sizes, answers)
    keys = answer_keys(answers, data.n_items)
    where = CommunityShards(data.files, keys, data.groups, data.max_memory, told)
    parts = replace(where.parts, kept=data.is_kept)
    task = told.table.tobytes() + told.log_weights.tobytes()
    with open_engine(engine, parts, address, task) as opened:
        journal = Journal(opened.folder if parts.kept else None)

        def ask(views: ComponentTables) -> Members:
            members: Members
            (members,) = journal.recall(
                (Members,), lambda: (tree(opened.look(choose_communities, views), add_members),)
            )
            return members

        settled = converge_parts(mixture.model(hyper.theta), told, data.n_users, ask)
    order = np.argsort(-settled.members.sizes, kind="stable")
    told = ComponentTables(settled.told.table[:, order], settled.told.log_weights[order])
    mixture = replace(fitter.mixture, answers=answers).precise()
    posteriors = tuple(
        fit_community(mixture, settled.members.counts[c], hyper.theta).posterior for c in order
    )
    step = Step("all users, without personal taste", len(order), settled.objective)
    found = FittedMixture(
        data=fitter.data,
        sampled=fitter.data,
        hyper=hyper,
        start=fitter.mixture.hyper,
        membership=memberships(MixturePart.of(0, fitter.data, keys), told),
        posteriors=posteriors,
        report=SearchReport.of((*result.trace, step)),
        max_rank=fitter.mixture.max_rank,
        n_elsewhere=data.n_comparisons - fitter.data.n_comparisons,
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
    told: ComponentTables

    @property
    def parts(self) -> Parts:
        """For an engine."""
        load = partial(_community_part, self.files, self.keys)
        return Parts(load, self.groups, self.files.folder, self.max_memory)

    def write(self, folder: Path, engine: str, address: str | None) -> None:
        """Write everybody's memberships, a file a bucket."""
        folder.mkdir(parents=True, exist_ok=True)
        with open_engine(engine, self.parts, address) as opened:
            opened.look(_write_memberships, (self.told, folder))


def _community_part(files: BucketFiles, keys: IntArray, number: int) -> MixturePart:
    return MixturePart.of(number, files.load(number), keys)


def _write_memberships(
    part: MixturePart, state: State, told: tuple[ComponentTables, Path]
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
