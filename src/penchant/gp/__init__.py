"""Gaussian-process inference: one loop, one engine, over items or over users and items."""

from penchant.gp.items.edges import Edges
from penchant.gp.items.problem import ItemHyper, ItemProblem
from penchant.gp.learn import expectation_maximize, maximize
from penchant.gp.loop import Inference, Settings, infer
from penchant.gp.model import Solution
from penchant.gp.posterior import Basis, EffectPosterior, Normal, Posterior
from penchant.gp.rules import RULES, Rule
from penchant.gp.sites import Report, Sites
from penchant.gp.solve import gradient, solve
from penchant.gp.update import Learned
from penchant.gp.users.problem import UserHyper, UserProblem

__all__ = [
    "RULES",
    "Basis",
    "Edges",
    "EffectPosterior",
    "Inference",
    "ItemHyper",
    "ItemProblem",
    "Learned",
    "Normal",
    "Posterior",
    "Report",
    "Rule",
    "Settings",
    "Sites",
    "Solution",
    "UserHyper",
    "UserProblem",
    "expectation_maximize",
    "gradient",
    "infer",
    "maximize",
    "solve",
]
