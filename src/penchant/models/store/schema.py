"""What may stand in a model file: kinds of values by their names there, their shapes and ranges.

The types of fields are the annotations of their classes. `docs/model_files.md` says what every
field means. To change a kind, raise `VERSION`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Self, get_type_hints

import numpy as np
from scipy import sparse

from penchant import gp
from penchant.communities import FittedMixture
from penchant.data import Comparisons, Table
from penchant.errors import DataError
from penchant.kernels import Inputs, Kernel, Relation, known_kernels
from penchant.kernels.inputs import Features
from penchant.likelihoods import Likelihood
from penchant.models.store.checks import (
    TINY,
    Array,
    Declaration,
    FieldCheck,
    Nested,
    Number,
    Sizes,
    has_type,
    refuse,
)
from penchant.numerics.dispatch import on_cpu
from penchant.numerics.types import FloatArray, IntArray

FORMAT = "penchant model"
VERSION = 8

ESTIMATORS = (
    "CommunityGP",
    "KPCRank",
    "MultiUserGP",
    "PreferenceGP",
    "PreferencePerceptron",
    "RankRLS",
    "RankSVM",
)
"""Every estimator by its public name; its module is imported when first needed."""

STATES: dict[str, tuple[type, ...]] = {
    "PreferenceGP": (gp.ItemProblem, gp.PathProblem),
    "MultiUserGP": (gp.UserProblem,),
    "CommunityGP": (FittedMixture,),
}
"""The problem that a model of utilities solves, or the mixture that it fits."""

REBUILD_FLOPS = 1e9
"""Of one refresh: about a tenth of a second on one core. A posterior that takes more is stored."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of value: its class (module and name), and shapes, ranges and conditions of fields.

    form: the class whose fields are stored in place of those of `where`; it has `of(value)` and
    `restored()`. omitted: fields that are not stored; a read value has their defaults.
    """

    where: str
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    rules: Callable[[Any], "Conditions"] = lambda value: iter(())
    form: Any = None
    omitted: tuple[str, ...] = ()

    @cached_property
    def cls(self) -> type:
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What is stored, with its types; Any of kernels and likelihoods, which check theirs."""
        cls: Any = self.form or self.cls
        if issubclass(cls, Kernel | Likelihood):
            return {each.name: Any for each in fields(cls) if each.init}
        names = [f.name for f in fields(cls) if f.init] if is_dataclass(cls) else cls._fields
        hints = get_type_hints(cls)
        return {name: hints[name] for name in names if name not in self.omitted}

    def taken(self, value: Any) -> dict[str, Any]:
        """The fields of a value, in this machine's memory."""
        stored = value if self.form is None else self.form.of(value)
        return on_cpu({name: getattr(stored, name) for name in self.hints})

    def checked(self, name: str, values: Mapping[str, Any], sizes_of: Any) -> Sizes:
        """Check every field; return the lengths of the axes. sizes_of: those of nested values."""
        for part, hint in self.hints.items():
            if part not in values:
                refuse(name, part, "is missing")
            if not has_type(values[part], hint):
                refuse(name, part, f"is a {type(values[part]).__name__} and must be {hint}")
        check = FieldCheck(name, sizes_of)
        for part, declaration in self.declared.items():
            if values[part] is not None:
                check.field(part, values[part], declaration)
        stored = SimpleNamespace(**values)
        for part, holds, words in self.rules(stored):
            if not holds:
                refuse(name, part, words)
        return check.sizes

    def made(self, values: Mapping[str, Any]) -> Any:
        stored = {name: values[name] for name in self.hints}
        return self.cls(**stored) if self.form is None else self.form(**stored).restored()


@dataclass(frozen=True)
class StoredInputs:
    """Inputs; n_first: how many they are where they are the first of the universe, in its order."""

    X: Features | None
    relations: Mapping[str, Relation]
    index: IntArray | None
    n_first: int | None

    @classmethod
    def of(cls, inputs: Inputs) -> Self:
        index, n = inputs.index, len(inputs)
        if index is not None and np.array_equal(index, np.arange(n)):
            return cls(inputs.X, inputs.relations, None, n)
        return cls(inputs.X, inputs.relations, index, None)

    def restored(self) -> Inputs:
        index = self.index if self.n_first is None else np.arange(self.n_first)
        return Inputs(self.X, self.relations, index)


@dataclass(frozen=True)
class StoredLearned:
    """What a file holds of a `FitState`: data, hyperparameters, sites, settings; the posterior
    where one refresh of the sites would be slow."""

    data: Comparisons
    hyper: gp.ItemHyper | gp.UserHyper | gp.PathHyper
    items: Inputs
    users: Inputs | None
    calendar: gp.TimeGrid | None
    effect_names: tuple[str, ...]
    effect_sd: FloatArray | None
    sites: gp.Sites | None
    posterior: gp.Posterior | gp.UserPosteriors | None
    log_evidence: float
    report: gp.Report
    n_pending_sites: int
    rule: str
    max_rank: int | None
    n_elsewhere: int

    @classmethod
    def of(cls, learned: gp.FitState[Any]) -> Self:
        problem = learned.problem
        is_of_users = isinstance(problem, gp.UserProblem)
        if is_of_users and learned.posterior.kept is not None:
            learned = gp.without_other_users(learned)
        # paths read theirs off the data
        shown = None if isinstance(problem, gp.PathProblem) else problem.edges.shown
        return cls(
            items=problem.items if is_of_users else problem.universe,
            users=problem.users if is_of_users else None,
            calendar=getattr(problem, "calendar", None),
            effect_names=() if shown is None else shown.names,
            effect_sd=None if shown is None else shown.sd,
            posterior=None if _is_rebuilt(learned) else learned.posterior,
            rule=problem.settings.rule,
            max_rank=problem.max_user_rank if is_of_users else problem.max_rank,
            **{name: getattr(learned, name) for name in _AS_THEY_ARE},
        )

    def restored(self) -> gp.FitState[Any]:
        """With the problem that the data pose, and the posterior.

        Of items it is not complete: what their answers count depends on the estimator, which
        calls `rebuilt`.
        """
        settings, shown, by_rater = gp.Settings(self.rule), None, self.hyper.likelihood.by_rater
        # order and covariates count only where their effects were learned
        data = self.data if self.effect_names else self.data.bare()
        if self.effect_names:
            none = np.zeros((len(self.effect_names), 0))
            shown = gp.Covariates(self.effect_names, none, np.asarray(self.effect_sd))
        problem: gp.ItemProblem | gp.UserProblem | gp.PathProblem
        if self.calendar is not None:
            rows = gp.timed_rows(self.data, self.calendar)
            problem = gp.PathProblem(self.items, rows, self.calendar, settings)
        elif self.users is not None:
            votes = gp.Rows.by_user(data, shown, by_rater)
            problem = gp.UserProblem.of(self.items, self.users, votes, settings, self.max_rank)
        else:
            edges = gp.Rows.pooled(data, shown, by_rater)
            problem = gp.ItemProblem(self.items, edges, settings, self.max_rank)
        same = {name: getattr(self, name) for name in _AS_THEY_ARE}
        learned: gp.FitState[Any] = gp.FitState(problem=problem, posterior=self.posterior, **same)
        return learned if isinstance(problem, gp.ItemProblem) else rebuilt(learned, problem)


_AS_THEY_ARE = (
    "data",
    "hyper",
    "sites",
    "log_evidence",
    "report",
    "n_pending_sites",
    "n_elsewhere",
)
"""Fields of `FitState` that are stored as they are."""


def _is_rebuilt(learned: gp.FitState[Any]) -> bool:
    """Whether one refresh of the sites gives the posterior in about a tenth of a second."""
    problem, posterior = learned.problem, learned.posterior
    if isinstance(problem, gp.PathProblem):
        return True  # paths have no rank-one updates
    if learned.sites is None or learned.n_pending_sites or learned.n_elsewhere:
        return False
    if isinstance(problem, gp.ItemProblem):
        return bool(3.3 * len(problem.universe) * len(posterior.lower) ** 2 < REBUILD_FLOPS)
    if posterior.kept is not None or posterior.n_fitted < len(posterior):
        return False
    shared, rank = len(posterior.shared_lower), posterior.shared_mean.shape[1]
    return bool(shared**3 + (len(problem.items) + len(problem.edges)) * rank**2 < REBUILD_FLOPS)


def rebuilt(learned: gp.FitState[Any], problem: Any) -> gp.FitState[Any]:
    """The same with the problem that its data pose, and the posterior that its sites give."""
    m, sites, posterior = len(problem.edges), learned.sites, learned.posterior
    if sites is not None and len(sites.tau) != m:
        refuse("learned", "sites", f"must be one for each of {m} comparisons")
    if posterior is None:
        if sites is None:
            refuse("learned", "posterior", "is missing, and so are the sites that give it")
        prior, count = problem.prior(learned.hyper), problem.edges.count
        state = prior.refresh(count * sites.tau, count * sites.nu)
        inference = gp.Inference(state, sites, learned.log_evidence, learned.report)
        posterior = problem.posterior(gp.Solution(learned.hyper, prior, inference))
    elif isinstance(problem, gp.UserProblem):
        posterior = problem.with_effects(posterior)
    return replace(learned, problem=problem, posterior=posterior)


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


def _is_graph(weights: Any) -> bool:
    """Whether weights are symmetric and not negative, and no item is related to itself."""
    is_positive = (weights.data >= 0).all() and not weights.diagonal().any()
    return bool(is_positive and _is_symmetric(weights))


def _is_symmetric(matrix: sparse.csr_array) -> bool:
    gap = np.abs((matrix - matrix.T).data).max(initial=0.0)
    return bool(gap <= 1e-9 * np.abs(matrix.data).max(initial=0.0))


_POSITIVE = Number(low=TINY)
_SHARE = Number(low=TINY, high=1.0)
_USERS_AND_ITEMS = Nested({"users": "users", "items": "items"})


# Conditions on all fields of a value: the field that is blamed, whether it holds, what it must be

Conditions = Iterator[tuple[str, Any, str]]


def _comparisons(v: Any) -> Conditions:
    yield "loser", (v.winner != v.loser).all(), "must not be the winner"
    yield "both_bad", v.both_bad is None or not (v.both_bad & ~v.tie).any(), "must be ties"
    yield "winner", _ascends(v), "must stand in distinct, sorted rows"
    if v.rankings is not None:
        alike = (v.rankings.user is None) == (v.user is None)
        yield "rankings", alike, "must have users where comparisons have"
        yield "rankings", _holds_pairs(v), "must be among the comparisons"


def _rankings(v: Any) -> Conditions:
    yield "start", len(v.start) == len(v.count) + 1, "must be one a ranking"
    yield "place", _are_orders(v), "must rise from 0 in each order of three items or more"


def _relation(v: Any) -> Conditions:
    yield "weights", _is_graph(v.weights), "must be a symmetric graph"
    walk = v.walk_laplacian
    yield "walk_laplacian", walk is None or _is_symmetric(walk), "must be symmetric"


def _feature_columns(v: Any) -> Conditions:
    yield "names", len(v.names) in (0, v.n_columns), "must be all or none"


def _basis(v: Any) -> Conditions:
    is_set = v.second is not None or len(np.unique(v.first)) == len(v.first)
    yield "first", is_set, "must hold different pivots"


def _calibration(v: Any) -> Conditions:
    yield "weights", abs(sum(v.weights) - 1.0) < 1e-9, "must add up to one"


def _posterior(v: Any) -> Conditions:
    alike = (v.target.X is None) == (v.universe.X is None)
    yield "target", alike, "must have the features of the items"


def _posterior_of_users(v: Any) -> Conditions:
    (rank, r), rotation = v.shared_mean.shape, v.user_basis.rotation
    columns, rest = divmod(len(v.shared_lower) - r, max(1, rank - 1))
    fits = rest == 0 and (columns == 0 if rank == 1 else 0 < columns <= r)
    yield "shared_lower", fits, "must belong to the weights of `shared_mean`"
    fits = rank == len(v.user_basis.lower) if rotation is None else rank == rotation.shape[1]
    yield "user_basis", fits, "must have a direction for each row of `shared_mean`"
    yield "n_fitted", v.n_fitted <= len(v.users), "must be at most all users"
    alike = (v.target.X is None) == (v.items.X is None)
    yield "target", alike, "must have the features of the items"


def _inputs(v: Any) -> Conditions:
    inside = all((v.n_first or 0) <= each.weights.shape[0] for each in v.relations.values())
    yield "n_first", inside, "must be at most the nodes of each relation"


def _sites_of_users(v: Any) -> Conditions:
    yield "loser", (v.winner != v.loser).all(), "must not be the winner"


def _learned(v: Any) -> Conditions:
    yield "rule", v.rule in gp.RULES, f"must be one of {', '.join(gp.RULES)}"
    of_users = isinstance(v.hyper, gp.UserHyper) == (v.users is not None)
    of_paths = isinstance(v.hyper, gp.PathHyper) == (v.calendar is not None)
    words = "must be of users where there are users, of paths where there is a calendar"
    yield "hyper", of_users and of_paths, words
    named = v.users is None or v.data.user is not None
    yield "data", named, "must say who made each comparison"
    complete = bool(v.effect_names) == (v.effect_sd is not None)
    yield "effect_sd", complete, "must be there for every effect"


def _communities(v: Any) -> Conditions:
    alike = v.start.theta.shape == v.hyper.theta.shape
    yield "start", alike, "must have the parameters of `hyper`"
    total = np.abs(v.membership.sum(axis=1) - 1.0).max(initial=0.0)
    yield "membership", total < 1e-6, "must have rows that sum to one"
    yield "all_sizes", v.all_sizes is None or v.all_sizes.sum() > 0, "must not all be zero"
    alike = (v.draws is None) == hasattr(v.report, "steps")
    yield "report", alike, "must be of the search, or of the chains that were run"


def _draws(v: Any) -> Conditions:
    yield "kept", len(v.kept) > 0, "must hold at least one"


def _draw(v: Any) -> Conditions:
    yield "sizes", len(v.sizes) > 0, "must hold at least one"


def _fitted(v: Any) -> Conditions:
    inside = all(max(pair) < v.learned.data.n_items for pair in v.last_pairs)
    yield "last_pairs", inside, "must be pairs of positions of items"


KINDS: dict[str, Kind] = {
    "comparisons": Kind(
        "penchant.data:Comparisons",
        {
            "items": Array("items", distinct=True),
            "users": Array("users", distinct=True),
            "winner": Array("m", below="items"),
            "loser": Array("m", below="items"),
            "count": Array("m", low=1),
            "user": Array("m", below="users"),
            "tie": Array("m"),
            "margin": Array("m"),
            "first": Array("m", low=-1, high=1),
            "time": Array("m"),
            "covariate_names": Array("covariates", distinct=True),
            "covariates": Array("m covariates"),
            "both_bad": Array("m"),
            "rankings": _USERS_AND_ITEMS,
        },
        _comparisons,
    ),
    "rankings": Kind(
        "penchant.data:Rankings",
        {
            "start": Array("_", low=0),
            "item": Array("entries", below="items"),
            "place": Array("entries", low=0),
            "count": Array("orders", low=1),
            "user": Array("orders", below="users"),
            "tied": Array("orders"),
        },
        _rankings,
    ),
    "inputs": Kind(
        "penchant.kernels:Inputs",
        {
            "X": Array("n d"),
            "relations": Nested({"items": "universe"}),
            "index": Array("n", below="universe"),
            "n_first": Number(low=0, size="n"),
        },
        _inputs,
        StoredInputs,
    ),
    "relation": Kind(
        "penchant.kernels:Relation",
        {"weights": Array("items items"), "walk_laplacian": Array("items items")},
        _relation,
    ),
    "feature columns": Kind(
        "penchant.models.features:FeatureColumns",
        {
            "n_columns": Number(size="d"),
            "scaling": Nested({"d": "d"}),
            "names": Array("names", distinct=True),
        },
        _feature_columns,
    ),
    "scaling": Kind(
        "penchant.models.features:Scaling", {"center": Array("d"), "scale": Array("d", low=TINY)}
    ),
    "item hyperparameters": Kind("penchant.gp:ItemHyper"),
    "user hyperparameters": Kind("penchant.gp:UserHyper", {"sharing": _SHARE}),
    "path hyperparameters": Kind(
        "penchant.gp:PathHyper", {"variance": _POSITIVE, "timescale": _POSITIVE}
    ),
    "sites": Kind("penchant.gp:Sites", {"tau": Array("m"), "nu": Array("m")}),
    "report": Kind("penchant.gp:Report"),
    "basis": Kind(
        "penchant.gp:Basis",
        {
            "first": Array("r", below="items"),
            "second": Array("r", below="items"),
            "lower": Array("r r", lower=True),
            "rotation": Array("r _"),
        },
        _basis,
    ),
    "posterior": Kind(
        "penchant.gp:Posterior",
        {
            "universe": Nested({"n": "items", "d": "d"}),
            "target": Nested({"d": "d"}),
            "basis": Nested({"r": "r", "items": "items"}),
            "coefficients": Array("r"),
            "lower": Array("r r", lower=True),
            "widening": Array("r _"),
            "effects": Nested({"r": "r"}),
        },
        _posterior,
    ),
    "effects": Kind(
        "penchant.gp:EffectPosterior",
        {
            "names": Array("q", distinct=True),
            "sd": Array("q", low=TINY),
            "scaled_mean": Array("q"),
            "lower": Array("q q", lower=True),
            "coupling": Array("r q"),
        },
    ),
    "calibration": Kind(
        "penchant.gp:Recalibration",
        {"slopes": Array("k", low=TINY), "weights": Array("k", low=0.0, high=1.0)},
        _calibration,
    ),
    "calendar": Kind("penchant.gp:TimeGrid", {"length": _POSITIVE}),
    "posterior of users": Kind(
        "penchant.gp:UserPosteriors",
        {
            "sharing": _SHARE,
            "items": Nested({"n": "items", "d": "d"}),
            "users": Nested({"n": "users"}),
            "target": Nested({"d": "d"}),
            "item_basis": Nested({"r": "r", "items": "items"}),
            "user_basis": Nested({"items": "users"}),
            "shared_mean": Array("r_users r"),
            "shared_lower": Array("shared shared", lower=True),
            "sites": _USERS_AND_ITEMS,
            "kept": _USERS_AND_ITEMS,
            "effects": Nested({"r": "shared"}),
        },
        _posterior_of_users,
    ),
    "sites of users": Kind(
        "penchant.gp:UserSites",
        {
            "user": Array("m", below="users"),
            "winner": Array("m", below="items"),
            "loser": Array("m", below="items"),
            "weight": Array("m"),
            "shift": Array("m"),
        },
        _sites_of_users,
        omitted=("z",),  # the rows have it
    ),
    "kept": Kind(
        "penchant.gp:ActiveSet",
        {
            "user_entropy": Array("_"),
            "item_entropy": Array("items"),
            "users": Array("_", below="users", distinct=True),
            "items": Array("_", below="items", distinct=True),
            "rows": Array("_", low=0),
        },
    ),
    "learned": Kind(
        "penchant.gp:FitState",
        {
            "data": _USERS_AND_ITEMS,
            "items": Nested({"n": "items", "d": "d"}),
            "users": Nested({"n": "users"}),
            "effect_names": Array("effects", distinct=True),
            "effect_sd": Array("effects", low=TINY),
            "posterior": Nested({"items": "items", "users": "users", "d": "d"}),
            "max_rank": Number(low=1),
        },
        _learned,
        StoredLearned,
    ),
    "communities": Kind(
        "penchant.communities:FittedMixture",
        {
            "data": _USERS_AND_ITEMS,
            "sampled": Nested({"items": "items"}),
            "posteriors": Nested({"items": "items"}, length="communities"),
            "membership": Array("users communities", low=0.0),
            "chains": Nested({"items": "items"}),
            "draws": Nested({"communities": "communities"}),
            "max_rank": Number(low=1),
            "user_features": Array("users _"),
            "communal_share": Number(low=0, high=1),
            "all_sizes": Array("communities", low=0.0),
        },
        _communities,
        omitted=("support",),  # computed when somebody asks
    ),
    "search": Kind(
        "penchant.communities:SearchReport",
        {name: Array("steps") for name in ("steps", "n_communities", "log_evidence")},
    ),
    "chain": Kind(
        "penchant.communities:Chain",
        {
            "state": Nested({"items": "items"}),
            "log_joint": Array("sweeps"),
            "n_communities": Array("sweeps", low=0),
            "draws": Nested({"items": "items"}),
        },
    ),
    "chain state": Kind(
        "penchant.communities:ChainState",
        {
            "utilities": Array("communities items"),
            "assignment": Array("_", below="communities"),
            "tau": Array("communities m"),
            "nu": Array("communities m"),
            "theta": Array("p"),
            "thetas": Array("communities p"),
            "log_evidence": Array("communities"),
            "concentration": _POSITIVE,
        },
    ),
    "draws": Kind(
        "penchant.communities:Draws",
        {
            "n_communities": Number(low=1, size="communities"),
            "kept": Nested({"reported": "communities"}),
        },
        _draws,
    ),
    "draw": Kind(
        "penchant.communities:Draw",
        {
            "sizes": Array("communities", low=1),
            "utilities": Array("communities items"),
            "likelihood_thetas": Array("communities _"),
            "is_supported": Array("communities"),
            "labels": Array("communities", below="reported"),
        },
        _draw,
    ),
    "diagnostics": Kind("penchant.communities:Diagnostics"),
    "fitted": Kind("penchant.models.base:Fitted", rules=_fitted),
}
"""Every kind but kernels and likelihoods, which go by their public names and arguments."""

COVARIANCES: dict[str, dict[str, Declaration]] = {
    "FreeCovariance": {"factor": Array("n n", lower=True)},
    "LowRankCovariance": {"directions": Array("_ _"), "variance": _POSITIVE},
}
"""Shapes of kernels that hold arrays; the arguments of others are checked by themselves."""


@cache
def _kinds_by_class() -> dict[type, str]:
    return {kind.cls: name for name, kind in KINDS.items()}


@cache
def _function(cls: type) -> Kind:
    """The kind of a kernel or likelihood: its fields are the arguments that make it."""
    return Kind(f"{cls.__module__}:{cls.__name__}", COVARIANCES.get(cls.__name__, {}))


def _functions() -> dict[str, type]:
    """Kernels and likelihoods by name, those registered since included."""
    likelihoods = {cls.__name__: cls for cls in Likelihood.__subclasses__()}
    return {**known_kernels(), **likelihoods}


def kind_of(value: Any) -> tuple[str, Kind] | None:
    """The kind that a value is saved as, if it may be saved."""
    cls, name = type(value), type(value).__name__
    if _functions().get(name) is cls:
        return name, _function(cls)  # type: ignore[arg-type]  # classes are hashable
    found = _kinds_by_class().get(cls)
    return None if found is None else (found, KINDS[found])


def kind_called(name: str) -> Kind:
    if name in KINDS:
        return KINDS[name]
    if name not in _functions():
        raise DataError(f"the file holds a {name!r}, which this penchant does not know")
    return _function(_functions()[name])


def estimator_class(name: str) -> type | None:
    """The estimator of that name; the modules of the others are not imported."""
    return getattr(import_module("penchant.models"), name) if name in ESTIMATORS else None


@cache
def estimator_classes() -> dict[str, type]:
    """Estimators by name."""
    return {name: getattr(import_module("penchant.models"), name) for name in ESTIMATORS}
