"""Likelihoods: how an answer depends on a utility difference g."""

from penchant.likelihoods.base import WINS as WINS
from penchant.likelihoods.base import (
    Expected,
    Likelihood,
    LogProb,
    Outcomes,
    Tilted,
    get,
    known_likelihoods,
)
from penchant.likelihoods.base import Parameter as Parameter
from penchant.likelihoods.choices import ChoiceGroup, Cliques
from penchant.likelihoods.gaussian import Gaussian
from penchant.likelihoods.logit import Logit
from penchant.likelihoods.probit import Probit
from penchant.likelihoods.raters import Lapse, Raters
from penchant.likelihoods.ties import Abstain, Ties

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
