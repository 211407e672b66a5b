"""Model files of earlier versions, brought to the present one: tree in, tree out.

A migration knows nothing of today's classes, only of what files looked like before and after; it
stays as it is for ever.
"""

from collections.abc import Callable, Mapping
from typing import Any

Tree = Any
"""What JSON holds."""

_KINDS_OF_1 = {
    "Basis": "basis",
    "Chain": "chain",
    "ChainState": "chain state",
    "Comparisons": "comparisons",
    "Diagnostics": "diagnostics",
    "Draw": "draw",
    "Draws": "draws",
    "FeatureColumns": "feature columns",
    "Inputs": "inputs",
    "Kept": "kept",
    "Posterior": "posterior",
    "Relation": "relation",
    "Report": "report",
    "Scaling": "scaling",
    "Sites": "sites",
    "UserPosteriors": "posterior of users",
    "VoteSites": "sites of users",
}
"""Version 1 wrote the names of classes; those of kernels and likelihoods are public, and stay."""

_NOTHING: Tree = {"$tuple": []}


def from_version_1(tree: Tree) -> Tree:
    """Classes become kinds, and an estimator's many attributes one state."""
    defined: dict[int, Tree] = {}
    after = _converted(tree, defined)
    present: set[int] = set()
    _numbers(after, present)
    return _complete(after, defined, present)


def _converted(tree: Tree, defined: dict[int, Tree]) -> Tree:
    if isinstance(tree, list):
        return [_converted(part, defined) for part in tree]
    if not isinstance(tree, dict):
        return tree
    tree = {key: _converted(part, defined) for key, part in tree.items()}
    if "$class" in tree:
        defined[tree["number"]] = kind = _kind(tree)
        return kind
    if "$estimator" in tree and tree["$estimator"] in _STATES_OF_1:
        return _STATES_OF_1[tree["$estimator"]](tree)
    return tree


def _numbers(tree: Tree, present: set[int]) -> None:
    """Which objects are defined in a tree."""
    if isinstance(tree, dict | list):
        if isinstance(tree, dict) and "$kind" in tree:
            present.add(tree["number"])
        for part in tree.values() if isinstance(tree, dict) else tree:
            _numbers(part, present)


def _complete(tree: Tree, defined: dict[int, Tree], present: set[int]) -> Tree:
    """The tree with objects whose definition stood in an attribute that is no more."""
    if isinstance(tree, list):
        return [_complete(part, defined, present) for part in tree]
    if not isinstance(tree, dict):
        return tree
    number = tree.get("$same")
    if number is not None and number not in present:
        _numbers(defined[number], present)
        return _complete(defined[number], defined, present)
    return {key: _complete(part, defined, present) for key, part in tree.items()}


def _kind(tree: Tree) -> Tree:
    name, fields = tree["$class"], dict(tree["fields"])
    if name == "UserPosteriors":
        fields["kernel"], fields["kept"] = fields.pop("item_kernel"), None
    if name == "Comparisons":
        fields |= {"first": None, "time": None, "covariates": None}
        fields |= {"covariate_names": _NOTHING, "source": ""}
    if name == "FeatureColumns":
        fields["names"] = _NOTHING
    return {"$kind": _KINDS_OF_1.get(name, name), "number": tree["number"], "fields": fields}


class _Numbers:
    """Numbers for objects that version 1 did not have: below zero, where none of its own are."""

    def __init__(self) -> None:
        self.last = 0

    def made(self, kind: str, fields: Tree) -> Tree:
        """A new object of some kind."""
        self.last -= 1
        return {"$kind": kind, "number": self.last, "fields": fields}


def _params(tree: Tree, renamed: Mapping[str, str], new: Mapping[str, Tree]) -> Tree:
    given = {renamed.get(key, key): part for key, part in tree["params"].items()}
    return {**given, **new}


def _with_state(tree: Tree, params: Tree, fitted: Tree) -> Tree:
    state = {} if fitted is None else {"state_": fitted}
    return {"$estimator": tree["$estimator"], "params": params, "state": state}


def _fitted(new: _Numbers, learned: Tree, columns: Tree, user_columns: Tree, old: Tree) -> Tree:
    return new.made(
        "fitted",
        {
            "learned": learned,
            "columns": columns,
            "user_columns": user_columns,
            "n_learned": old["n_learned_"],
            "told": _NOTHING,
        },
    )


def _columns(new: _Numbers, n_columns: int, scaling: Tree, names: Tree = _NOTHING) -> Tree:
    fields = {"n_columns": n_columns, "scaling": scaling, "names": names}
    return new.made("feature columns", fields)


def _preference_gp(tree: Tree) -> Tree:
    params, old = _params(tree, {"rank": "max_rank"}, {}), tree["state"]
    if "posterior_" not in old:
        return _with_state(tree, params, None)
    new = _Numbers()
    learned = new.made(
        "learned",
        {
            "data": old["comparisons_"],
            "posterior": old["posterior_"],
            "sites": old["sites_"],
            "log_evidence": old["log_evidence_"],
            "report": old["report_"],
            "n_unsettled": old["n_unsettled_"],
            "rule": params["inference"],
            "max_rank": params["max_rank"],
        },
    )
    columns = _columns(new, old["n_features_in_"], old["scaling_"])
    return _with_state(tree, params, _fitted(new, learned, columns, _columns(new, 0, None), old))


def _multi_user_gp(tree: Tree) -> Tree:
    params = _params(tree, {"item_kernel": "kernel"}, {"n_restarts": 0})
    old = tree["state"]
    if "posterior_" not in old:
        return _with_state(tree, params, None)
    new = _Numbers()
    posterior = old["posterior_"]
    if "kept_" in old:
        posterior["fields"]["kept"] = old["kept_"]
    learned = new.made(
        "learned",
        {
            "data": old["comparisons_"],
            "posterior": posterior,
            "sites": None,
            "log_evidence": old["log_evidence_"],
            "report": old["report_"],
            "n_unsettled": old["n_unsettled_"],
            "rule": params["inference"],
            "max_rank": None,
        },
    )
    columns = (old["item_columns_"], old["user_columns_"])
    return _with_state(tree, params, _fitted(new, learned, *columns, old))


def _community_gp(tree: Tree) -> Tree:
    new_params = {"inference": "mcmc", "n_communities": None}
    params, old = _params(tree, {"rank": "max_rank"}, new_params), tree["state"]
    if "draws_" not in old:
        return _with_state(tree, params, None)
    new = _Numbers()
    communities = new.made(
        "communities",
        {
            "data": old["comparisons_"],
            "sampled": old["sampled_"],
            "kernel": old["kernel_"],
            "likelihood": old["likelihood_"],
            "start": old["start_theta_"],
            "chains": old["chains_"],
            "draws": old["draws_"],
            "membership": old["membership_"],
            "posteriors": old["posteriors_"],
            "report": old["diagnostics_"],
            "max_rank": params["max_rank"],
            "user_features": old["user_features_"],
            "personal": _personal(new, old),
            "communal_share": old["communal_share_"],
        },
    )
    columns = old["item_columns_"]
    columns["fields"]["names"] = old["item_feature_names_"]
    names = old["user_feature_names_"]
    user_columns = _columns(new, len(names["$tuple"]), None, names)
    return _with_state(tree, params, _fitted(new, communities, columns, user_columns, old))


def _personal(new: _Numbers, old: Tree) -> Tree:
    """Version 1 kept the posterior of personal taste, and nothing of how it was found."""
    if old["personal_"] is None:
        return None
    unknown = {
        "converged": True,
        "n_sweeps": 0,
        "change": 0.0,
        "tolerance": 1e-7,
        "step": 1.0,
        "jitter": 0.0,
        "rank": 0,
        "residual": 0.0,
        "skipped": 0,
        "space": "users × items",
        "n_evaluations": 0,
        "optimizer": "",
    }
    return new.made(
        "learned",
        {
            "data": old["comparisons_"],
            "posterior": old["personal_"],
            "sites": None,
            "log_evidence": {"$float": "nan"},
            "report": new.made("report", unknown),
            "n_unsettled": old["n_unsettled_"],
            "rule": "ep",
            "max_rank": None,
        },
    )


_STATES_OF_1: dict[str, Callable[[Tree], Tree]] = {
    "PreferenceGP": _preference_gp,
    "MultiUserGP": _multi_user_gp,
    "CommunityGP": _community_gp,
}

MIGRATIONS: dict[int, Callable[[Tree], Tree]] = {1: from_version_1}
"""From a version to the next."""
