"""Whether what a model file says fits together: one check per kind, before a value is made of it.

A file may be valid and yet tell of a user that is not there, or of a factor that is none; a model
made of it would answer, and wrongly. `docs/model_files.md` says what every field means.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.communities import Found
from penchant.data import Comparisons, Rankings, Table
from penchant.gp import (
    RULES,
    Basis,
    Calendar,
    EffectPosterior,
    Kept,
    Learned,
    Meetings,
    Posterior,
    Report,
    Sites,
    UserPosteriors,
    VoteSites,
)
from penchant.kernels import Inputs, Kernel, Relation
from penchant.likelihoods import Likelihood
from penchant.models.community_soundness import speaks_of
from penchant.models.features import FeatureColumns
from penchant.models.fields import CHECKS, Fields, check, is_whole
from penchant.models.schema import kind_called
from penchant.models.validation import check_parameters


def check_kind(kind: str, values: Mapping[str, Any]) -> None:
    """The fields of one value; a DataError names the kind and the field."""
    if kind in CHECKS:
        CHECKS[kind](Fields(kind, values))


def check_made(kind: str, value: Any) -> None:
    """What can be seen only of the value itself: a learned model's sites and comparisons."""
    if isinstance(value, Learned) and value.sites is not None:
        m = len(value.problem.edges)
        Fields(kind, vars(value)).need(
            "sites", len(value.sites.tau) == m, f"must be one for each of {m} comparisons"
        )


def check_estimator(model: Any, state: Mapping[str, Any]) -> None:
    """The parameters and the state of an estimator: a model of utilities has one of its kind."""
    check_parameters(model, getattr(model, "constraints", {}))
    fields = Fields(type(model).__name__, state)
    for name, value in state.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and name != "cv_error_":
            fields.array(name, value.shape, "f")
    if "state_" in state:
        learned: Any = getattr(state["state_"], "learned", None)
        fields.need("state_", isinstance(learned, Learned | Found), "must be a fitted model")
        known = type(learned if isinstance(learned, Found) else learned.posterior)
        wanted = {"PreferenceGP": Posterior, "MultiUserGP": UserPosteriors, "CommunityGP": Found}
        mine = issubclass(known, wanted.get(type(model).__name__, ()))
        fields.need("state_", mine, "belongs to another model")


@check("comparisons")
def _comparisons(fields: Fields) -> None:
    items, users = fields.names("items"), fields.names("users")
    winner = fields.index("winner", len(items))
    m = len(winner)
    loser = fields.index("loser", len(items), m)
    fields.need("loser", not (winner == loser).any(), "must not be the winner")
    count = fields.array("count", (m,), "iu")
    fields.need("count", bool((count >= 1).all()), "must be at least 1 each")
    tie = fields.array("tie", (m,), "b")
    columns = [winner, loser, tie]
    if fields.has("user"):
        columns.insert(0, fields.index("user", len(users), m))
    if fields.has("margin"):
        columns.append(fields.array("margin", (m,), "f"))
    if fields.has("first"):
        columns.append(fields.array("first", (m,), "iu"))
        fields.need("first", bool((np.abs(columns[-1]) <= 1).all()), "must be −1, 0 or 1")
    if fields.has("time"):
        columns.append(fields.array("time", (m,), "f"))
    if fields.has("both_bad"):
        columns.append(fields.array("both_bad", (m,), "b"))
        fields.need("both_bad", not (columns[-1] & ~tie).any(), "must be ties")
    if fields.has("covariates"):
        names = fields.made("covariate_names", tuple)
        columns += list(fields.array("covariates", (m, len(names)), "f").T)
    fields.need("winner", _ascends(columns), "must stand in distinct, sorted rows")
    if fields.values.get("rankings") is not None:
        _check_rankings_fit(fields, len(items), len(users))


def _check_rankings_fit(fields: Fields, n_items: int, n_users: int) -> None:
    """Rankings are of these items and users, and their pairs are among the rows."""
    orders = fields.made("rankings", Rankings)
    fields.need("rankings", orders.item.max(initial=-1) < n_items, "must rank known items")
    fields.need("rankings", (orders.user is None) != fields.has("user"), "must tell users alike")
    if orders.user is not None:
        fields.need("rankings", orders.user.max(initial=-1) < n_users, "must be of known users")
    fields.need("rankings", orders == orders.merge(), "must be distinct and sorted")
    columns: dict[str, Any] = {name: fields.values.get(name) for name in vars(orders.pairs())}
    rows, broken = Table(**columns), orders.pairs()
    if rows.first is not None:
        broken = replace(broken, first=np.zeros_like(broken.winner))
    at = rows.locate(broken)
    told = (at >= 0).all() and (rows.count[at] >= broken.count).all()
    fields.need("rankings", bool(told), "must be among the comparisons")


@check("rankings")
def _rankings(fields: Fields) -> None:
    start = fields.index("start", None)
    fields.need("start", len(start) > 1 and start[0] == 0, "must begin at 0")
    size = np.diff(start)
    fields.need("start", bool((size >= 3).all()), "must leave three items to each")
    n, r = int(start[-1]), len(size)
    item, place = fields.index("item", None, n), fields.index("place", None, n)
    order = np.repeat(np.arange(r), size)
    distinct = len(np.unique(np.stack([order, item]), axis=1).T) == n
    fields.need("item", distinct, "must name an item once in an order")
    step = np.diff(place)
    inside = np.diff(order) == 0
    rises = ((step[inside] == 0) | (step[inside] == 1)).all() and not place[start[:-1]].any()
    fields.need("place", bool(rises) and bool((place[start[1:] - 1] > 0).all()), "must rise from 0")
    count = fields.array("count", (r,), "iu")
    fields.need("count", bool((count >= 1).all()), "must be at least 1 each")
    fields.array("tied", (r,), "b")
    if fields.has("user"):
        fields.index("user", None, r)


def _ascends(columns: list[np.ndarray[Any, Any]]) -> bool:
    """Whether rows, read column by column, rise strictly."""
    open_rows = np.ones(max(0, len(columns[0]) - 1), dtype=bool)
    for column in columns:
        step = column[1:].astype(float) - column[:-1]
        if (open_rows & (step < 0)).any():
            return False
        open_rows &= step == 0
    return not open_rows.any()


@check("inputs")
def _inputs(fields: Fields) -> None:
    X = fields.features("X") if fields.has("X") else None
    relations = fields.made("relations", Mapping)
    sizes = {fields.is_a("relations", graph, Relation).n_items for graph in relations.values()}
    fields.need("relations", len(sizes) < 2, f"cover {sorted(sizes)} items, not the same")
    if fields.has("index"):
        n = None if X is None else X.shape[0]
        fields.index("index", min(sizes, default=None), n)


@check("relation")
def _relation(fields: Fields) -> None:
    weights = fields.graph("weights")
    fields.need("weights", bool((weights.data >= 0).all()), "must not be negative")
    fields.need("weights", not weights.diagonal().any(), "must not relate an item to itself")
    if fields.has("walk_laplacian"):
        shape = fields.graph("walk_laplacian").shape
        fields.need("walk_laplacian", shape == weights.shape, "must be as large as `weights`")
    fields.made("kind", str)


@check("feature columns")
def _feature_columns(fields: Fields) -> None:
    n, names = fields.whole("n_columns"), fields.made("names", tuple)
    fields.need("names", len(names) in (0, n), f"must be {n} or none")
    if fields.has("scaling"):
        kind = kind_called("scaling")  # a class may be renamed, a kind never is
        center = kind.taken(fields.made("scaling", kind.cls))["center"]
        fields.need("scaling", len(center) == n, f"must be of {n} columns")


@check("scaling")
def _scaling(fields: Fields) -> None:
    scale = fields.array("scale", (len(fields.array("center", (None,), "f")),), "f")
    fields.need("scale", bool((scale > 0).all()), "must be positive")


@check("sites")
def _sites(fields: Fields) -> None:
    fields.array("nu", (len(fields.array("tau", (None,), "f")),), "f")


@check("report")
def _report(fields: Fields) -> None:
    for name in ("n_sweeps", "rank", "skipped", "n_evaluations"):
        fields.whole(name)
    for name in ("change", "tolerance", "step", "jitter", "residual"):
        fields.number(name, low=0.0)
    fields.made("converged", bool)
    fields.made("space", str)
    fields.made("optimizer", str)
    if fields.has("n_people"):
        fields.whole("n_people")
        fields.number("widened", low=1.0)


@check("basis")
def _basis(fields: Fields) -> None:
    r = len(fields.lower("lower"))
    first = fields.index("first", None, r)
    if fields.has("second"):
        fields.index("second", None, r)
    else:
        fields.need("first", len(np.unique(first)) == r, "must hold different pivots")


@check("posterior")
def _posterior(fields: Fields) -> None:
    fields.made("kernel", Kernel)
    fields.made("likelihood", Likelihood)
    n = _same_features(fields, "universe", "target")
    basis = fields.made("basis", Basis)
    r = _pivots_among(fields, "basis", basis, n)
    fields.array("coefficients", (r,), "f")
    fields.lower("lower", r)
    if fields.has("widening"):
        fields.array("widening", (r, None), "f")
    _check_effects(fields, r)


@check("posterior of paths")
def _path_posterior(fields: Fields) -> None:
    _posterior(fields)
    n = len(fields.made("universe", Inputs))
    fields.made("constants", Kernel)
    for name in ("variance", "timescale"):
        fields.need(name, fields.number(name) > 0.0, "must be positive")
    fields.made("calendar", Calendar)
    meetings = fields.made("meetings", Meetings)
    m, q = meetings.covariates.shape
    inside = not m or max(int(meetings.winner.max()), int(meetings.loser.max())) < n
    fields.need("meetings", inside, f"must be between the {n} items that there are")
    fits = len(fields.made("sites", Sites).tau) == m
    fields.need("sites", fits, f"must be one for each of {m} comparisons")
    fields.array("effect_mean", (q,), "f")
    fields.array("effect_var", (q,), "f")


@check("calendar")
def _calendar(fields: Fields) -> None:
    fields.number("origin")
    fields.need("length", fields.number("length") > 0.0, "must be positive")


@check("meetings")
def _meetings(fields: Fields) -> None:
    winner = fields.index("winner", None)
    m = len(winner)
    loser = fields.index("loser", None, m)
    fields.need("loser", not (winner == loser).any(), "must not be the winner")
    fields.array("period", (m,), "iu")
    fields.array("covariates", (m, None), "f")
    fields.need("count", bool((fields.array("count", (m,), "f") > 0).all()), "must be positive")
    for name, kinds in (("tie", "b"), ("margin", "f")):
        if fields.has(name):
            fields.array(name, (m,), kinds)


def _check_effects(fields: Fields, r: int) -> None:
    if fields.has("effects"):
        fits = len(fields.made("effects", EffectPosterior).coupling) == r
        fields.need("effects", fits, f"must belong to {r} weights")


@check("effects")
def _effects(fields: Fields) -> None:
    names = fields.names("names")
    q = len(names)
    fields.need("names", all(isinstance(name, str) for name in names), "must be text")
    sd = fields.array("prior_sd", (q,), "f")
    fields.need("prior_sd", bool((sd > 0).all()), "must be positive")
    fields.array("scaled_mean", (q,), "f")
    fields.lower("lower", q)
    fields.array("coupling", (None, q), "f")


def _same_features(fields: Fields, universe: str, target: str) -> int:
    known, seen = fields.made(universe, Inputs), fields.made(target, Inputs)
    widths = [None if inputs.X is None else inputs.X.shape[1] for inputs in (known, seen)]
    fields.need(target, widths[0] == widths[1], f"must have the features of `{universe}`")
    return len(known)


def _pivots_among(fields: Fields, name: str, basis: Basis, n: int) -> int:
    """How many pivots there are, all of them among n."""
    for pivots in (basis.first, basis.second):
        inside = pivots is None or not len(pivots) or int(pivots.max()) < n
        fields.need(name, inside, f"must hold pivots among the {n} that there are")
    return len(basis.first)


@check("posterior of users")
def _user_posteriors(fields: Fields) -> None:
    fields.made("kernel", Kernel)
    fields.made("user_kernel", Kernel)
    fields.made("likelihood", Likelihood)
    sharing = fields.number("sharing")
    fields.need("sharing", 0.0 < sharing < 1.0, "must lie strictly between 0 and 1")
    n, n_users = _same_features(fields, "items", "target"), len(fields.made("users", Inputs))
    r = _pivots_among(fields, "item_basis", fields.made("item_basis", Basis), n)
    r_u = _pivots_among(fields, "user_basis", fields.made("user_basis", Basis), n_users)
    _check_effects(fields, r_u * r)
    fields.array("shared_mean", (r_u, r), "f")
    fields.lower("shared_lower", r_u * r)
    sites = fields.made("sites", VoteSites)
    for column, bound in ((sites.user, n_users), (sites.winner, n), (sites.loser, n)):
        inside = not len(column) or int(column.max()) < bound
        fields.need("sites", inside, f"must hold positions below {bound}")
    fields.need(
        "n_fitted",
        fields.whole("n_fitted") <= n_users,
        f"must be at most {n_users}, the users there are",
    )
    if fields.has("kept"):
        kept = fields.made("kept", Kept)
        sizes = len(kept.user_entropy), len(kept.item_entropy)
        fields.need("kept", sizes == (n_users, n), "must know every user and item")


@check("sites of users")
def _vote_sites(fields: Fields) -> None:
    winner = fields.index("winner", None)
    m = len(winner)
    loser = fields.index("loser", None, m)
    fields.need("loser", not (winner == loser).any(), "must not be the winner")
    fields.index("user", None, m)
    fields.array("weight", (m,), "f")
    fields.array("shift", (m,), "f")


@check("kept")
def _kept(fields: Fields) -> None:
    for name, entropy in (("users", "user_entropy"), ("items", "item_entropy")):
        places = fields.index(name, len(fields.array(entropy, (None,), "f")))
        fields.need(name, len(np.unique(places)) == len(places), "must hold different positions")
    fields.whole("n_comparisons")


@check("learned")
def _learned(fields: Fields) -> None:
    data = fields.made("data", Comparisons)
    known = fields.made("posterior", Posterior, UserPosteriors)
    items = known.universe if isinstance(known, Posterior) else known.items
    speaks_of(fields, "posterior", items, data)
    if isinstance(known, UserPosteriors):
        fits = data.user is not None and len(known.users) == data.n_users
        fields.need("posterior", fits, f"must be of the {data.n_users} users of `data`")
    if fields.has("sites"):
        fields.made("sites", Sites)
    fields.made("log_evidence", float, int)  # NaN where an early version did not say
    fields.made("report", Report)
    fields.whole("n_unsettled")
    if fields.has("n_elsewhere"):
        fields.whole("n_elsewhere")
    fields.need("rule", fields.made("rule", str) in RULES, f"must be one of {', '.join(RULES)}")
    if fields.has("max_rank"):
        fields.whole("max_rank", 1)


@check("fitted")
def _fitted(fields: Fields) -> None:
    learned = fields.made("learned", Learned, Found)
    fields.made("columns", FeatureColumns)
    fields.made("user_columns", FeatureColumns)
    fields.whole("n_learned")
    n = learned.data.n_items
    for pair in fields.made("told", tuple):
        right = isinstance(pair, tuple) and len(pair) == 2
        right = right and all(is_whole(item) and 0 <= item < n for item in pair)
        fields.need("told", right, f"must be pairs of positions below {n}")


@check("FreeCovariance")
def _free_covariance(fields: Fields) -> None:
    fields.lower("factor")


@check("LowRankCovariance")
def _low_rank_covariance(fields: Fields) -> None:
    fields.array("directions", (None, None), "f")
    fields.number("variance", low=np.finfo(float).tiny)
