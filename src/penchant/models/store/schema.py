"""What may stand in a model file: kinds of values by their names there, and their fields.

`docs/model_files.md` says what every field means. To change a kind, raise `VERSION`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from penchant.communities import FittedMixture
from penchant.data import Table
from penchant.errors import DataError
from penchant.gp import (
    RULES,
    Covariates,
    FitState,
    Inference,
    ItemHyper,
    ItemProblem,
    PathHyper,
    PathProblem,
    Rows,
    Settings,
    Solution,
    UserHyper,
    UserProblem,
    timed_rows,
)
from penchant.kernels import Kernel, known_kernels
from penchant.likelihoods import Likelihood
from penchant.models.store.checks import (
    TINY,
    Anything,
    Array,
    Condition,
    Declaration,
    Features,
    Names,
    Nested,
    Scalar,
    refuse,
)
from penchant.numerics.dispatch import hosted

FORMAT = "penchant model"
VERSION = 3

ESTIMATORS = {
    "CommunityGP": "penchant.models.community_gp",
    "KPCRank": "penchant.models.rankers",
    "MultiUserGP": "penchant.models.multi_user_gp",
    "PreferenceGP": "penchant.models.preference_gp",
    "PreferencePerceptron": "penchant.models.preference_perceptron",
    "RankRLS": "penchant.models.rankers",
    "RankSVM": "penchant.models.rankers",
}
"""Every estimator and the module that defines it; a module is imported when first needed."""

STATES = {
    "PreferenceGP": ("item hyperparameters", "path hyperparameters"),
    "MultiUserGP": ("user hyperparameters",),
    "CommunityGP": ("communities",),
}
"""The kinds of the hyperparameters, or of all that a model of utilities learns."""

REBUILD_FLOPS = 1e10
"""Of one refresh: about a second on one core. A posterior that takes more is stored."""


class Kind(NamedTuple):
    """A kind of value: where its class is (module and name), what its fields must be.

    Fields are those of the class, unless `save` takes others of a value and `restore` makes it
    of them.
    """

    where: str
    declared: Mapping[str, Declaration]
    rules: tuple[Condition, ...] = ()
    save: Callable[[Any], dict[str, Any]] | None = None
    restore: Callable[..., Any] | None = None

    @property
    def cls(self) -> type:
        """The class."""
        module, _, name = self.where.partition(":")
        found: type = getattr(import_module(module), name)
        return found

    def taken(self, value: Any) -> dict[str, Any]:
        """The fields of a value, in this machine's memory."""
        if self.save is not None:
            return hosted(self.save(value))
        return hosted({name: getattr(value, name) for name in self.declared})

    def made(self, values: Mapping[str, Any]) -> Any:
        """The value of these fields."""
        make = self.cls if self.restore is None else self.restore
        return make(**{name: values[name] for name in self.declared})


def _learned_fields(learned: FitState[Any]) -> dict[str, Any]:
    """Data, hyperparameters, sites and settings; the posterior where a refresh would be slow."""
    problem = learned.problem
    is_of_users = isinstance(problem, UserProblem)
    # paths read theirs off the data
    shown = None if isinstance(problem, PathProblem) else problem.edges.shown
    names = ("data", "hyper", "sites", "log_evidence", "report", "n_unsettled", "n_elsewhere")
    return {name: getattr(learned, name) for name in names} | {
        "items": problem.items if is_of_users else problem.universe,
        "users": problem.users if is_of_users else None,
        "calendar": getattr(problem, "calendar", None),
        "effect_names": () if shown is None else shown.names,
        "effect_sd": None if shown is None else shown.sd,
        "rule": problem.settings.rule,
        "max_rank": problem.max_user_rank if is_of_users else problem.max_rank,
        "posterior": None if _is_rebuilt(learned) else learned.posterior,
    }


def _is_rebuilt(learned: FitState[Any]) -> bool:
    """Whether one refresh of the sites gives the posterior in about a second."""
    problem, posterior = learned.problem, learned.posterior
    if isinstance(problem, PathProblem):
        return True  # answers are always settled there
    if learned.sites is None or learned.n_unsettled or learned.n_elsewhere:
        return False
    if isinstance(problem, ItemProblem):
        return bool(3.3 * len(problem.universe) * len(posterior.lower) ** 2 < REBUILD_FLOPS)
    if posterior.kept is not None or posterior.n_fitted < len(posterior):
        return False
    shared, rank = len(posterior.shared_lower), posterior.shared_mean.shape[1]
    return bool(shared**3 + (len(problem.items) + len(problem.edges)) * rank**2 < REBUILD_FLOPS)


def rebuilt(learned: FitState[Any], problem: Any) -> FitState[Any]:
    """What a file holds, with the problem that its data pose, and the posterior of its sites."""
    m, sites, posterior = len(problem.edges), learned.sites, learned.posterior
    if sites is not None and len(sites.tau) != m:
        refuse("learned", "sites", f"must be one for each of {m} comparisons")
    if posterior is None:
        if sites is None:
            refuse("learned", "posterior", "is missing, and so are the sites that give it")
        prior, count = problem.prior(learned.hyper), problem.edges.count
        state = prior.refresh(count * sites.tau, count * sites.nu)
        inference = Inference(state, sites, learned.log_evidence, learned.report)
        posterior = problem.posterior(Solution(learned.hyper, prior, inference))
    return replace(learned, problem=problem, posterior=posterior)


def _learned_of(
    *,
    hyper: Any,
    items: Any,
    users: Any,
    calendar: Any,
    effect_names: tuple[str, ...],
    effect_sd: Any,
    rule: str,
    max_rank: int | None,
    **rest: Any,
) -> FitState[Any]:
    data, settings, shown = rest["data"], Settings(rule), None
    # what data tell of how they were made counts only where effects of it were learned
    seen = data if effect_names else data.bare()
    if effect_names:
        shown = Covariates(effect_names, np.zeros((len(effect_names), 0)), effect_sd)
    by_rater = hyper.likelihood.by_rater
    problem: ItemProblem | UserProblem | PathProblem
    if isinstance(hyper, PathHyper):
        problem = PathProblem(items, timed_rows(data, calendar), calendar, settings)
    elif isinstance(hyper, UserHyper):
        votes = Rows.by_user(seen, shown, by_rater)
        problem = UserProblem.of(items, users, votes, settings, max_rank)
    else:  # what answers count depends on the estimator, which completes it by `rebuilt`
        problem = ItemProblem(items, Rows.pooled(seen, shown, by_rater), settings, max_rank)
        return FitState(problem=problem, hyper=hyper, **rest)
    return rebuilt(FitState(problem=problem, hyper=hyper, **rest), problem)


def _communities_fields(found: FittedMixture) -> dict[str, Any]:
    """All but the verdict, which is worked out when somebody asks."""
    kept = {name: value for name, value in vars(found).items() if name in _COMMUNITIES}
    kernel, likelihood = found.hyper
    return kept | {"kernel": kernel, "likelihood": likelihood, "start": found.start.theta}


def _communities_of(
    *, kernel: Kernel, likelihood: Likelihood, start: Any, **rest: Any
) -> FittedMixture:
    hyper = ItemHyper(kernel, likelihood)
    return FittedMixture(hyper=hyper, start=hyper.at(np.asarray(start)), **rest)


def _ascends(data: Any) -> bool:
    """Whether rows, read column by column, rise strictly."""
    names = ("user", "winner", "loser", "tie", "margin", "first", "time", "both_bad")
    columns = [getattr(data, name) for name in names]
    columns += [] if data.covariates is None else list(data.covariates.T)
    open_rows = np.ones(max(0, len(data.winner) - 1), dtype=bool)
    for column in columns:
        if column is not None:
            step = column[1:].astype(float) - column[:-1]
            if (open_rows & (step < 0)).any():
                return False
            open_rows &= step == 0
    return not open_rows.any()


def _holds_pairs(data: Any) -> bool:
    """Whether the pairs that rankings hold are among the rows."""
    orders = data.rankings
    if orders is None:
        return True
    broken = orders.pairs()
    rows = Table(**{name: getattr(data, name) for name in vars(broken)})
    if rows.first is not None:
        broken = replace(broken, first=np.zeros_like(broken.winner))
    at = rows.locate(broken)
    return bool((at >= 0).all() and (rows.count[at] >= broken.count).all())


def _are_orders(orders: Any) -> bool:
    """Whether orders have three distinct items each or more, in places that rise from 0."""
    start, place = orders.start, orders.place
    size = np.diff(start)
    if len(start) < 2 or start[0] != 0 or size.min() < 3 or len(place) != start[-1]:
        return False
    order = np.repeat(np.arange(len(size)), size)
    step = np.diff(place)[np.diff(order) == 0]
    rises = np.isin(step, (0, 1)).all() and not place[start[:-1]].any()
    distinct = len(np.unique(np.stack([order, orders.item]), axis=1).T) == len(place)
    return bool(rises and distinct and (place[start[1:] - 1] > 0).all())


def _are_positions(told: Any, n: int) -> bool:
    return all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and all(type(item) is int and 0 <= item < n for item in pair)
        for pair in told
    )


def _are_counts(numbers: tuple[Any, ...]) -> bool:
    return all(type(number) is int and number >= 0 for number in numbers)


def _column(kinds: str, **range_: Any) -> Array:
    """A column of comparisons, there or not."""
    return Array(kinds, ("m",), optional=True, **range_)


_NOT_ITSELF = Condition(
    "loser", lambda v: not (v.winner == v.loser).any(), "must not be the winner"
)
_SAME_FEATURES = "must have the features of the items"

KINDS: dict[str, Kind] = {
    "comparisons": Kind(
        "penchant.data:Comparisons",
        {
            "items": Names("items"),
            "users": Names("users"),
            "winner": Array("iu", ("m",), below="items"),
            "loser": Array("iu", ("m",), below="items"),
            "count": Array("iu", ("m",), low=1),
            "user": _column("iu", below="users"),
            "tie": Array("b", ("m",)),
            "margin": _column("f"),
            "first": _column("iu", low=-1, high=1),
            "time": _column("f"),
            "covariate_names": Names("covariates"),
            "covariates": Array("f", ("m", "covariates"), optional=True),
            "both_bad": _column("b"),
            "source": Scalar(str),
            "rankings": Nested("rankings", {"items": "items", "users": "users"}, optional=True),
        },
        (
            _NOT_ITSELF,
            Condition(
                "both_bad",
                lambda v: v.both_bad is None or not (v.both_bad & ~v.tie).any(),
                "must be ties",
            ),
            Condition("winner", _ascends, "must stand in distinct, sorted rows"),
            Condition(
                "rankings",
                lambda v: v.rankings is None or (v.rankings.user is None) == (v.user is None),
                "must tell users alike",
            ),
            Condition("rankings", _holds_pairs, "must be among the comparisons"),
        ),
    ),
    "rankings": Kind(
        "penchant.data:Rankings",
        {
            "start": Array("iu", ("",), low=0),
            "item": Array("iu", ("entries",), below="items"),
            "place": Array("iu", ("entries",), low=0),
            "count": Array("iu", ("orders",), low=1),
            "user": Array("iu", ("orders",), below="users", optional=True),
            "tied": Array("b", ("orders",)),
        },
        (
            Condition("start", lambda v: len(v.start) == len(v.count) + 1, "must be one a ranking"),
            Condition(
                "place", _are_orders, "must rise from 0 in each order of three items or more"
            ),
        ),
    ),
    "inputs": Kind(
        "penchant.kernels:Inputs",
        {
            "X": Features(("n", "d"), optional=True),
            "relations": Nested("relation", {"items": "universe"}, many=""),
            "index": Array("iu", ("n",), below="universe", optional=True),
        },
    ),
    "relation": Kind(
        "penchant.kernels:Relation",
        {
            "weights": Features(("items", "items"), graph="weights"),
            "kind": Scalar(str),
            "walk_laplacian": Features(("items", "items"), optional=True, graph="laplacian"),
        },
    ),
    "feature columns": Kind(
        "penchant.models.features:FeatureColumns",
        {
            "n_columns": Scalar(int, low=0, dimension="d"),
            "scaling": Nested("scaling", {"d": "d"}, optional=True),
            "names": Names("names"),
        },
        (Condition("names", lambda v: len(v.names) in (0, v.n_columns), "must be all or none"),),
    ),
    "scaling": Kind(
        "penchant.models.features:Scaling",
        {"center": Array("f", ("d",)), "scale": Array("f", ("d",), low=TINY)},
    ),
    "item hyperparameters": Kind(
        "penchant.gp:ItemHyper", {"kernel": Nested("kernel"), "likelihood": Nested("likelihood")}
    ),
    "user hyperparameters": Kind(
        "penchant.gp:UserHyper",
        {
            "kernel": Nested("kernel"),
            "user_kernel": Nested("kernel"),
            "sharing": Scalar(float, low=TINY, high=1.0 - 1e-16),
            "likelihood": Nested("likelihood"),
        },
    ),
    "path hyperparameters": Kind(
        "penchant.gp:PathHyper",
        {
            "kernel": Nested("kernel"),
            "variance": Scalar(float, low=TINY),
            "timescale": Scalar(float, low=TINY),
            "likelihood": Nested("likelihood"),
        },
    ),
    "sites": Kind("penchant.gp:Sites", {"tau": Array("f", ("m",)), "nu": Array("f", ("m",))}),
    "report": Kind(
        "penchant.gp:Report",
        {
            "converged": Scalar(bool),
            "n_sweeps": Scalar(int, low=0),
            "change": Scalar(float, low=0),
            "tolerance": Scalar(float, low=0),
            "step": Scalar(float, low=0),
            "jitter": Scalar(float, low=0),
            "rank": Scalar(int, low=0),
            "residual": Scalar(float, low=0),
            "skipped": Scalar(int, low=0),
            "space": Scalar(str),
            "n_evaluations": Scalar(int, low=0),
            "optimizer": Scalar(str),
            "n_people": Scalar(int, low=0, optional=True),
            "widened": Scalar(float, low=1, optional=True),
        },
    ),
    "basis": Kind(
        "penchant.gp:Basis",
        {
            "first": Array("iu", ("r",), below="items"),
            "second": Array("iu", ("r",), below="items", optional=True),
            "lower": Array("f", ("r", "r"), lower=True),
        },
        (
            Condition(
                "first",
                lambda v: v.second is not None or len(np.unique(v.first)) == len(v.first),
                "must hold different pivots",
            ),
        ),
    ),
    "posterior": Kind(
        "penchant.gp:Posterior",
        {
            "kernel": Nested("kernel"),
            "likelihood": Nested("likelihood"),
            "universe": Nested("inputs", {"n": "items", "d": "d"}),
            "target": Nested("inputs", {"d": "d"}),
            "basis": Nested("basis", {"r": "r", "items": "items"}),
            "coefficients": Array("f", ("r",)),
            "lower": Array("f", ("r", "r"), lower=True),
            "widening": Array("f", ("r", ""), optional=True),
            "effects": Nested("effects", {"r": "r"}, optional=True),
        },
        (
            Condition(
                "target",
                lambda v: (v.target.X is None) == (v.universe.X is None),
                _SAME_FEATURES,
            ),
        ),
    ),
    "effects": Kind(
        "penchant.gp:EffectPosterior",
        {
            "names": Names("q"),
            "sd": Array("f", ("q",), low=TINY),
            "scaled_mean": Array("f", ("q",)),
            "lower": Array("f", ("q", "q"), lower=True),
            "coupling": Array("f", ("r", "q")),
        },
    ),
    "calendar": Kind(
        "penchant.gp:TimeGrid", {"origin": Scalar(float), "length": Scalar(float, low=TINY)}
    ),
    "posterior of users": Kind(
        "penchant.gp:UserPosteriors",
        {
            "kernel": Nested("kernel"),
            "user_kernel": Nested("kernel"),
            "likelihood": Nested("likelihood"),
            "sharing": Scalar(float, low=TINY, high=1.0 - 1e-16),
            "items": Nested("inputs", {"n": "items", "d": "d"}),
            "users": Nested("inputs", {"n": "users"}),
            "target": Nested("inputs", {"d": "d"}),
            "item_basis": Nested("basis", {"r": "r", "items": "items"}),
            "user_basis": Nested("basis", {"r": "r_users", "items": "users"}),
            "shared_mean": Array("f", ("r_users", "r")),
            "shared_lower": Array("f", ("shared", "shared"), lower=True),
            "sites": Nested("sites of users", {"users": "users", "items": "items"}),
            "n_fitted": Scalar(int, low=0),
            "kept": Nested("kept", {"users": "users", "items": "items"}, optional=True),
            "effects": Nested("effects", {"r": "shared"}, optional=True),
        },
        (
            Condition(
                "shared_lower",
                lambda v: len(v.shared_lower) == v.shared_mean.size,
                "must belong to the weights of `shared_mean`",
            ),
            Condition(
                "n_fitted", lambda v: v.n_fitted <= len(v.users), "must be at most all users"
            ),
            Condition(
                "target", lambda v: (v.target.X is None) == (v.items.X is None), _SAME_FEATURES
            ),
        ),
    ),
    "sites of users": Kind(
        "penchant.gp:VoteSites",
        {
            "user": Array("iu", ("m",), below="users"),
            "winner": Array("iu", ("m",), below="items"),
            "loser": Array("iu", ("m",), below="items"),
            "weight": Array("f", ("m",)),
            "shift": Array("f", ("m",)),
        },
        (_NOT_ITSELF,),
    ),
    "kept": Kind(
        "penchant.gp:Kept",
        {
            "user_entropy": Array("f", ("users",)),
            "item_entropy": Array("f", ("items",)),
            "users": Array("iu", ("",), below="users", distinct=True),
            "items": Array("iu", ("",), below="items", distinct=True),
            "n_comparisons": Scalar(int, low=0),
        },
    ),
    "learned": Kind(
        "penchant.gp:FitState",
        {
            "data": Nested("comparisons", {"items": "items", "users": "users"}),
            "hyper": Nested("item hyperparameters or user hyperparameters or path hyperparameters"),
            "items": Nested("inputs", {"n": "items", "d": "d"}),
            "users": Nested("inputs", {"n": "users"}, optional=True),
            "calendar": Nested("calendar", optional=True),
            "effect_names": Names("effects"),
            "effect_sd": Array("f", ("effects",), low=TINY, optional=True),
            "sites": Nested("sites", optional=True),
            "posterior": Nested(
                "posterior or posterior of users",
                {"items": "items", "users": "users", "d": "d"},
                optional=True,
            ),
            "log_evidence": Scalar(float),
            "report": Nested("report"),
            "n_unsettled": Scalar(int, low=0),
            "rule": Scalar(str),
            "max_rank": Scalar(int, low=1, optional=True),
            "n_elsewhere": Scalar(int, low=0),
        },
        (
            Condition("rule", lambda v: v.rule in RULES, f"must be one of {', '.join(RULES)}"),
            Condition(
                "users",
                lambda v: (v.users is not None) == hasattr(v.hyper, "user_kernel"),
                "must be there in a model of users, and in no other",
            ),
            Condition(
                "data",
                lambda v: v.users is None or v.data.user is not None,
                "must say who made each comparison",
            ),
            Condition(
                "calendar",
                lambda v: (v.calendar is not None) == hasattr(v.hyper, "timescale"),
                "must be there where utilities drift, and nowhere else",
            ),
            Condition(
                "effect_sd",
                lambda v: bool(v.effect_names) == (v.effect_sd is not None),
                "must be there for every effect",
            ),
        ),
        _learned_fields,
        _learned_of,
    ),
    "communities": Kind(
        "penchant.communities:FittedMixture",
        {
            "data": Nested("comparisons", {"items": "items", "users": "users"}),
            "sampled": Nested("comparisons", {"items": "items"}),
            "kernel": Nested("kernel"),
            "likelihood": Nested("likelihood"),
            "start": Array("f", ("",)),
            "posteriors": Nested("posterior", {"items": "items"}, many="communities"),
            "membership": Array("f", ("users", "communities"), low=0.0),
            "chains": Nested("chain", {"items": "items"}, many=""),
            "draws": Nested("draws", {"communities": "communities"}, optional=True),
            "report": Nested("diagnostics or search"),
            "max_rank": Scalar(int, low=1, optional=True),
            "user_features": Array("f", ("users", ""), optional=True),
            "personal": Nested("learned", optional=True),
            "communal_share": Scalar(float, low=0, high=1),
            "n_elsewhere": Scalar(int, low=0),
            "all_sizes": Array("f", ("communities",), low=0.0, optional=True),
        },
        (
            Condition(
                "start",
                lambda v: len(v.start) == len(v.kernel.theta) + len(v.likelihood.theta),
                "must be the parameters of kernel and likelihood",
            ),
            Condition(
                "membership",
                lambda v: np.abs(v.membership.sum(axis=1) - 1.0).max(initial=0.0) < 1e-6,
                "must have rows that sum to one",
            ),
            Condition(
                "all_sizes",
                lambda v: v.all_sizes is None or v.all_sizes.sum() > 0,
                "must not all be zero",
            ),
            Condition(
                "report",
                lambda v: (v.draws is None) == hasattr(v.report, "steps"),
                "must be of the search, or of the chains that were run",
            ),
        ),
        _communities_fields,
        _communities_of,
    ),
    "search": Kind(
        "penchant.communities:SearchReport",
        {
            "converged": Scalar(bool),
            "steps": Nested("str", many="steps"),
            "n_communities": Nested("int", many="steps"),
            "log_evidence": Nested("float", many="steps"),
        },
    ),
    "chain": Kind(
        "penchant.communities:Chain",
        {
            "state": Nested("chain state", {"items": "items"}),
            "log_joint": Array("f", ("sweeps",)),
            "n_communities": Array("iu", ("sweeps",), low=0),
            "draws": Nested("draw", {"items": "items"}, many=""),
        },
    ),
    "chain state": Kind(
        "penchant.communities:ChainState",
        {
            "utilities": Array("f", ("communities", "items")),
            "assignment": Array("iu", ("",), below="communities"),
            "tau": Array("f", ("communities", "m")),
            "nu": Array("f", ("communities", "m")),
            "theta": Array("f", ("p",)),
            "thetas": Array("f", ("communities", "p")),
            "log_evidence": Array("f", ("communities",)),
            "concentration": Scalar(float, low=TINY),
            "log_joint": Scalar(float),
            "seed": Nested("int", many=""),
            "sweep": Scalar(int, low=0),
            "n_moves": Nested("int", many="moves"),
        },
        (
            Condition("seed", lambda v: _are_counts(v.seed), "must be whole numbers of at least 0"),
            Condition(
                "n_moves",
                lambda v: len(v.n_moves) == 4 and _are_counts(v.n_moves),
                "must be four whole numbers of at least 0",
            ),
        ),
    ),
    "draws": Kind(
        "penchant.communities:Draws",
        {
            "n_communities": Scalar(int, low=1, dimension="communities"),
            "kept": Nested("draw", {"reported": "communities"}, many="kept"),
            "likelihood": Nested("likelihood"),
        },
        (Condition("kept", lambda v: len(v.kept) > 0, "must hold at least one"),),
    ),
    "draw": Kind(
        "penchant.communities:Draw",
        {
            "sizes": Array("iu", ("communities",), low=1),
            "utilities": Array("f", ("communities", "items")),
            "likelihood_thetas": Array("f", ("communities", "")),
            "is_supported": Array("b", ("communities",)),
            "chain": Scalar(int, low=0),
            "labels": Array("iu", ("communities",), below="reported"),
        },
        (Condition("sizes", lambda v: len(v.sizes) > 0, "must hold at least one"),),
    ),
    "diagnostics": Kind(
        "penchant.communities:Diagnostics",
        {
            "n_communities": Nested("ndarray", many=""),
            "log_joint": Nested("ndarray", many=""),
            "n_warmup": Scalar(int, low=0),
            "effective_size": Scalar(float),
            "rhat": Scalar(float),
            "agreement": Scalar(float),
            "split_rate": Scalar(float),
            "merge_rate": Scalar(float),
            "completed": Scalar(bool),
        },
    ),
    "fitted": Kind(
        "penchant.models.base:Fitted",
        {
            "learned": Nested("learned or communities"),
            "columns": Nested("feature columns"),
            "user_columns": Nested("feature columns"),
            "n_learned": Scalar(int, low=0),
            "told": Nested("tuple", many=""),
        },
        (
            Condition(
                "told",
                lambda v: _are_positions(v.told, v.learned.data.n_items),
                "must be pairs of positions of items",
            ),
        ),
    ),
}
"""Every kind but kernels and likelihoods, which go by their public names and arguments."""

_COMMUNITIES = frozenset(KINDS["communities"].declared)

COVARIANCES: dict[str, dict[str, Declaration]] = {
    "FreeCovariance": {"factor": Array("f", ("n", "n"), lower=True)},
    "LowRankCovariance": {
        "directions": Array("f", ("", "")),
        "variance": Scalar(float, low=TINY),
    },
}
"""What kernels that hold arrays declare; the arguments of others are checked by themselves."""


@cache
def _kinds_by_class() -> dict[type, str]:
    return {kind.cls: name for name, kind in KINDS.items()}


def functions() -> dict[str, Kind]:
    """Kernels and likelihoods by name: their fields are the arguments that make them."""
    found: dict[str, type] = {
        **known_kernels(),
        **{cls.__name__: cls for cls in Likelihood.__subclasses__()},
    }
    return {
        name: Kind(
            f"{cls.__module__}:{name}",
            COVARIANCES.get(name)
            or {field.name: Anything() for field in fields(cls) if field.init},  # type: ignore[arg-type]
        )
        for name, cls in found.items()
    }


def kind_of(value: Any) -> tuple[str, Kind] | None:
    """The kind that a value is saved as, if it may be saved."""
    if isinstance(value, Kernel | Likelihood):
        name = type(value).__name__
        return name, functions()[name]
    found = _kinds_by_class().get(type(value))
    return None if found is None else (found, KINDS[found])


def kind_called(name: str) -> Kind:
    """The kind of that name."""
    found = KINDS.get(name) or functions().get(name)
    if found is None:
        raise DataError(f"the file holds a {name!r}, which this penchant does not know")
    return found


@cache
def estimator_classes() -> dict[str, type]:
    """Estimators by name."""
    return {name: getattr(import_module(where), name) for name, where in ESTIMATORS.items()}
