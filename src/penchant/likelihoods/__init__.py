"""How an answer depends on a utility difference: one file per likelihood, all behind one base."""

from difflib import get_close_matches
from functools import cache
from inspect import signature

from penchant.errors import DataError
from penchant.likelihoods.base import Expected, Likelihood, LogProb, Outcomes, Tilted
from penchant.likelihoods.binary import Logit, Probit
from penchant.likelihoods.choices import ChoiceGroup, Cliques
from penchant.likelihoods.gaussian import Gaussian
from penchant.likelihoods.raters import Lapse, Raters
from penchant.likelihoods.ties import Abstain, Ties
from penchant.numerics.types import FloatArray, IntArray


def known_likelihoods() -> dict[str, type[Likelihood]]:
    """Every likelihood that needs no argument, by its name in lower case, found by itself.

    >>> known_likelihoods()["probit"] is Probit, "lapse" in known_likelihoods()
    (True, False)
    """
    return {cls.__name__.lower(): cls for cls in Likelihood.__subclasses__() if not _needs(cls)}


@cache
def _needs(cls: type[Likelihood]) -> bool:
    """Whether making one takes an argument."""
    parameters = signature(cls).parameters.values()
    return any(parameter.default is parameter.empty for parameter in parameters)


def get(
    likelihood: str | Likelihood,
    margin: FloatArray | None = None,
    count: IntArray | None = None,
) -> Likelihood:
    """The likelihood of that name, with its default parameters, in the units of the margins that
    it is to explain; an instance passes through.

    >>> get("probit")
    Probit()
    """
    if isinstance(likelihood, Likelihood):
        return likelihood
    by_name = known_likelihoods()
    if likelihood in by_name:
        found = by_name[likelihood]()
        return found if margin is None or count is None else found.in_units_of(margin, count)
    close = get_close_matches(str(likelihood), by_name, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"likelihood is {likelihood!r}: it must be one of {sorted(by_name)} or an instance such "
        f"as Ties(threshold=0.3){hint}"
    )


__all__ = [
    "Abstain",
    "ChoiceGroup",
    "Cliques",
    "Expected",
    "Gaussian",
    "Lapse",
    "Likelihood",
    "LogProb",
    "Logit",
    "Outcomes",
    "Probit",
    "Raters",
    "Ties",
    "Tilted",
    "get",
    "known_likelihoods",
]
