"""One inference loop over edges: sites, Gaussian algebra, evidence, posterior."""

from penchant.gp.evidence import (
    Hyperparameters,
    Problem,
    Solution,
    gradient,
    posterior_of,
    solve,
)
from penchant.gp.items.edges import Edges
from penchant.gp.items.prior import Basis, Prior, factor_prior
from penchant.gp.learn import expectation_maximize, maximize
from penchant.gp.loop import Inference, Settings, infer
from penchant.gp.posterior import Normal, Posterior
from penchant.gp.rules import RULES
from penchant.gp.sites import Report, Sites

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
