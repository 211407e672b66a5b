"""How an answer depends on a utility difference: one file per likelihood, all behind one base."""

from difflib import get_close_matches

from penchant.errors import DataError
from penchant.likelihoods.base import Expected, Likelihood, LogProb, Outcomes, Tilted
from penchant.likelihoods.gaussian import Gaussian
from penchant.likelihoods.lapse import Lapse
from penchant.likelihoods.logit import Logit
from penchant.likelihoods.probit import Probit
from penchant.likelihoods.ties import Ties

_BY_NAME: dict[str, Likelihood] = {
    "probit": Probit(),
    "logit": Logit(),
    "gaussian": Gaussian(),
    "ties": Ties(),
}


def get(likelihood: str | Likelihood) -> Likelihood:
    """The likelihood of that name, with its default parameters; an instance passes through.

    >>> get("probit")
    Probit()
    """
    if isinstance(likelihood, Likelihood):
        return likelihood
    if likelihood in _BY_NAME:
        return _BY_NAME[likelihood]
    close = get_close_matches(str(likelihood), _BY_NAME, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"likelihood is {likelihood!r}: it must be one of {sorted(_BY_NAME)} or an instance such "
        f"as Ties(threshold=0.3){hint}"
    )


__all__ = [
    "Expected",
    "Gaussian",
    "Lapse",
    "Likelihood",
    "LogProb",
    "Logit",
    "Outcomes",
    "Probit",
    "Ties",
    "Tilted",
    "get",
]
