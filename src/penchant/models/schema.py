"""What may stand in a model file: kinds of values by their names there, not by their classes.

`docs/model_files.md` says what every field means. A kind's name and fields are for ever: to
change what a class looks like inside, change how a kind is turned into it and back; to change a
kind, raise `VERSION` and write a migration (see `models.migrate`).
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from penchant.errors import DataError
from penchant.kernels import Kernel, known_kernels
from penchant.likelihoods import Likelihood
from penchant.models.saved import restored_form, saved_form
from penchant.numerics.dispatch import hosted

FORMAT = "penchant model"
VERSION = 2

ESTIMATORS = {
    "CommunityGP": "penchant.models.community_gp",
    "KPCRank": "penchant.models.kpc_rank",
    "MultiUserGP": "penchant.models.multi_user_gp",
    "PreferenceGP": "penchant.models.preference_gp",
    "PreferencePerceptron": "penchant.models.preference_perceptron",
    "RankRLS": "penchant.models.rank_rls",
    "RankSVM": "penchant.models.rank_svm",
}
"""Every estimator and the module that defines it; a module is imported when first needed."""


class Kind(NamedTuple):
    """A kind of value: the class that it becomes, and its fields in the file.

    where: module and class. fields: their names in the file. attributes: those of the class,
    where they are called something else.
    """

    where: str
    fields: tuple[str, ...]
    attributes: Mapping[str, str] = {}

    @property
    def cls(self) -> type:
        """The class as it is called now."""
        module, _, name = self.where.partition(":")
        found: type = getattr(import_module(module), name)
        return found

    def taken(self, value: Any) -> dict[str, Any]:
        """The fields of a value."""
        value = saved_form(value)
        taken = {name: getattr(value, self.attributes.get(name, name)) for name in self.fields}
        return hosted(taken)

    def made(self, values: Mapping[str, Any]) -> Any:
        """The value of these fields."""
        # a file may be older than a field: the class knows what is meant then
        there = [name for name in self.fields if name in values]
        named = {self.attributes.get(name, name): values[name] for name in there}
        return restored_form(self.cls(**named))


KINDS: dict[str, Kind] = {
    "comparisons": Kind(
        "penchant.data:Comparisons",
        (
            "winner",
            "loser",
            "count",
            "user",
            "tie",
            "margin",
            "items",
            "users",
            "first",
            "time",
            "covariates",
            "covariate_names",
            "both_bad",
            "source",
            "rankings",
        ),
    ),
    "rankings": Kind("penchant.data:Rankings", ("item", "place", "start", "count", "user", "tied")),
    "inputs": Kind("penchant.kernels:Inputs", ("X", "relations", "index")),
    "relation": Kind("penchant.kernels:Relation", ("weights", "kind", "walk_laplacian")),
    "feature columns": Kind(
        "penchant.models.features:FeatureColumns", ("n_columns", "scaling", "names")
    ),
    "scaling": Kind("penchant.models.defaults:Scaling", ("center", "scale")),
    "sites": Kind("penchant.gp:Sites", ("tau", "nu")),
    "report": Kind(
        "penchant.gp:Report",
        (
            "converged",
            "n_sweeps",
            "change",
            "tolerance",
            "step",
            "jitter",
            "rank",
            "residual",
            "skipped",
            "space",
            "n_evaluations",
            "optimizer",
            "n_people",
            "widened",
        ),
    ),
    "basis": Kind("penchant.gp:Basis", ("first", "second", "lower")),
    "posterior": Kind(
        "penchant.gp:Posterior",
        (
            "kernel",
            "likelihood",
            "universe",
            "target",
            "basis",
            "coefficients",
            "lower",
            "widening",
            "effects",
        ),
    ),
    "effects": Kind(
        "penchant.gp:EffectPosterior",
        ("names", "prior_sd", "scaled_mean", "lower", "coupling"),
        {"prior_sd": "sd"},
    ),
    "posterior of paths": Kind(
        "penchant.gp:PathPosterior",
        (
            "kernel",
            "likelihood",
            "universe",
            "target",
            "basis",
            "coefficients",
            "lower",
            "widening",
            "effects",
            "constants",
            "variance",
            "timescale",
            "calendar",
            "meetings",
            "sites",
            "effect_mean",
            "effect_var",
        ),
    ),
    "calendar": Kind("penchant.gp:Calendar", ("origin", "length")),
    "meetings": Kind(
        "penchant.gp:Meetings",
        ("winner", "loser", "period", "covariates", "count", "tie", "margin"),
    ),
    "posterior of users": Kind(
        "penchant.gp:UserPosteriors",
        (
            "kernel",
            "user_kernel",
            "likelihood",
            "sharing",
            "items",
            "users",
            "target",
            "item_basis",
            "user_basis",
            "shared_mean",
            "shared_lower",
            "sites",
            "n_fitted",
            "kept",
            "effects",
        ),
    ),
    "sites of users": Kind("penchant.gp:VoteSites", ("user", "winner", "loser", "weight", "shift")),
    "kept": Kind(
        "penchant.gp:Kept",
        ("users", "items", "user_entropy", "item_entropy", "n_comparisons"),
    ),
    "learned": Kind(
        "penchant.models.saved:SavedLearned",
        (
            "data",
            "posterior",
            "sites",
            "log_evidence",
            "report",
            "n_unsettled",
            "rule",
            "max_rank",
            "n_elsewhere",
        ),
    ),
    "communities": Kind(
        "penchant.models.saved:SavedCommunities",
        (
            "data",
            "sampled",
            "kernel",
            "likelihood",
            "start",
            "chains",
            "draws",
            "membership",
            "posteriors",
            "report",
            "max_rank",
            "user_features",
            "personal",
            "communal_share",
            "n_elsewhere",
            "all_sizes",
        ),
    ),
    "chain": Kind(
        "penchant.communities.chains:Chain", ("state", "n_communities", "log_joint", "draws")
    ),
    "chain state": Kind(
        "penchant.communities.chains:ChainState",
        (
            "assignment",
            "utilities",
            "tau",
            "nu",
            "thetas",
            "theta",
            "log_evidence",
            "concentration",
            "log_joint",
            "seed",
            "sweep",
            "n_moves",
        ),
    ),
    "draws": Kind("penchant.communities.chains:Draws", ("kept", "likelihood", "n_communities")),
    "draw": Kind(
        "penchant.communities.chains:Draw",
        ("sizes", "utilities", "likelihood_thetas", "is_supported", "chain", "labels"),
    ),
    "search": Kind(
        "penchant.communities.search:SearchReport",
        ("converged", "steps", "n_communities", "log_evidence"),
    ),
    "diagnostics": Kind(
        "penchant.communities.chains:Diagnostics",
        (
            "n_communities",
            "log_joint",
            "n_warmup",
            "effective_size",
            "rhat",
            "agreement",
            "split_rate",
            "merge_rate",
            "completed",
        ),
    ),
    "fitted": Kind(
        "penchant.models.state:Fitted",
        ("learned", "columns", "user_columns", "n_learned", "told"),
    ),
}
"""Every kind but kernels and likelihoods, which go by their public names and arguments."""


@cache
def _kinds_by_class() -> dict[type, str]:
    return {kind.cls: name for name, kind in KINDS.items()}


def parts() -> dict[str, Kind]:
    """Kernels and likelihoods by name: their fields are the arguments that make them."""
    found: dict[str, type] = {
        **known_kernels(),
        **{cls.__name__: cls for cls in Likelihood.__subclasses__()},
    }
    return {
        name: Kind(
            f"{cls.__module__}:{name}",
            tuple(field.name for field in fields(cls) if field.init),  # type: ignore[arg-type]
        )
        for name, cls in found.items()
    }


def kind_of(value: Any) -> tuple[str, Kind] | None:
    """The kind that a value is saved as, if it may be saved."""
    if isinstance(value, Kernel | Likelihood):
        name = type(value).__name__
        return name, parts()[name]
    found = _kinds_by_class().get(type(saved_form(value)))
    return None if found is None else (found, KINDS[found])


def kind_called(name: str) -> Kind:
    """The kind of that name."""
    found = KINDS.get(name) or parts().get(name)
    if found is None:
        raise DataError(f"the file holds a {name!r}, which this penchant does not know")
    return found


@cache
def estimator_classes() -> dict[str, type]:
    """Estimators by name."""
    return {name: getattr(import_module(where), name) for name, where in ESTIMATORS.items()}
