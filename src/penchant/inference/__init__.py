"""One inference loop over edges: sites, Gaussian algebra, evidence, posterior."""

from penchant.inference.edges import Edges
from penchant.inference.engine import Inference, Settings, infer
from penchant.inference.evidence import (
    Hyperparameters,
    Problem,
    Solution,
    gradient,
    posterior_of,
    solve,
)
from penchant.inference.gaussian import Basis, Prior, factor_prior
from penchant.inference.learning import expectation_maximize, maximize
from penchant.inference.posterior import Normal, Posterior
from penchant.inference.rules import RULES
from penchant.inference.sites import Report, Sites

__all__ = [
    "RULES",
    "Basis",
    "Edges",
    "Hyperparameters",
    "Inference",
    "Normal",
    "Posterior",
    "Prior",
    "Problem",
    "Report",
    "Settings",
    "Sites",
    "Solution",
    "expectation_maximize",
    "factor_prior",
    "gradient",
    "infer",
    "maximize",
    "posterior_of",
    "solve",
]
