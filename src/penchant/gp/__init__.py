"""Gaussian-process inference: one loop, one engine, over items or over users and items.

The names about users are loaded when first used: most fits of one ranking need none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penchant.gp.calibration import CLEAR_GAIN as CLEAR_GAIN
from penchant.gp.calibration import POWER as POWER
from penchant.gp.calibration import calibrate as calibrate
from penchant.gp.calibration import predicts_left_out as predicts_left_out
from penchant.gp.choices import clique_edges as clique_edges
from penchant.gp.choices import edges_of_stages as edges_of_stages
from penchant.gp.choices import feasible as feasible
from penchant.gp.dynamic.prior import TimeGrid as TimeGrid
from penchant.gp.dynamic.prior import check_time as check_time
from penchant.gp.dynamic.prior import timed_rows as timed_rows
from penchant.gp.dynamic.problem import PathHyper as PathHyper
from penchant.gp.dynamic.problem import PathPosterior as PathPosterior
from penchant.gp.dynamic.problem import PathProblem as PathProblem
from penchant.gp.effects import ORDER as ORDER
from penchant.gp.effects import Covariates as Covariates
from penchant.gp.effects import as_shown as as_shown
from penchant.gp.effects import z_of as z_of
from penchant.gp.items.cluster_robust import UNNAMED as UNNAMED
from penchant.gp.items.cluster_robust import People as People
from penchant.gp.items.cluster_robust import edges_of as edges_of
from penchant.gp.items.prior import ItemPrior as ItemPrior
from penchant.gp.items.prior import LowRankState as LowRankState
from penchant.gp.items.prior import factor_prior as factor_prior
from penchant.gp.items.problem import ItemHyper as ItemHyper
from penchant.gp.items.problem import ItemProblem as ItemProblem
from penchant.gp.items.problem import ItemSolution as ItemSolution
from penchant.gp.items.problem import start_at_mode as start_at_mode
from penchant.gp.learn import FitState as FitState
from penchant.gp.learn import Limits as Limits
from penchant.gp.learn import StartingPoint as StartingPoint
from penchant.gp.learn import expectation_maximize as expectation_maximize
from penchant.gp.learn import maximize as maximize
from penchant.gp.learn import maximize_evidence as maximize_evidence
from penchant.gp.loop import Solution as Solution
from penchant.gp.loop import gradient as gradient
from penchant.gp.loop import infer as infer
from penchant.gp.loop import solve as solve
from penchant.gp.posterior import AS_IT_IS as AS_IT_IS
from penchant.gp.posterior import Basis as Basis
from penchant.gp.posterior import EffectPosterior as EffectPosterior
from penchant.gp.posterior import Normal as Normal
from penchant.gp.posterior import Posterior as Posterior
from penchant.gp.posterior import Recalibration as Recalibration
from penchant.gp.posterior import summarize_ranks as summarize_ranks
from penchant.gp.protocol import Callback as Callback
from penchant.gp.protocol import Inference as Inference
from penchant.gp.protocol import Report as Report
from penchant.gp.protocol import Settings as Settings
from penchant.gp.protocol import SweepSummary as SweepSummary
from penchant.gp.raters import RaterAnswers as RaterAnswers
from penchant.gp.raters import at_typical_scale as at_typical_scale
from penchant.gp.raters import learn_raters as learn_raters
from penchant.gp.raters import leave_one_out as leave_one_out
from penchant.gp.raters import rater_levels as rater_levels
from penchant.gp.rows import Differences as Differences
from penchant.gp.rows import Operator as Operator
from penchant.gp.rows import Rows as Rows
from penchant.gp.rows import has_covariates as has_covariates
from penchant.gp.rows import match as match
from penchant.gp.rules import RULES as RULES
from penchant.gp.rules import Proposal as Proposal
from penchant.gp.rules import Rule as Rule
from penchant.gp.rules import Sites as Sites
from penchant.gp.rules import laplace as laplace
from penchant.gp.rules import mode_slopes as mode_slopes
from penchant.gp.rules import no_slopes as no_slopes
from penchant.gp.update import as_weights as as_weights
from penchant.gp.update import rank_one_update as rank_one_update

if TYPE_CHECKING:
    from penchant.gp.users.arrowhead import ArrowPrior as ArrowPrior
    from penchant.gp.users.arrowhead import SharedPrior as SharedPrior
    from penchant.gp.users.arrowhead import SharedSize as SharedSize
    from penchant.gp.users.arrowhead import UserFactor as UserFactor
    from penchant.gp.users.arrowhead import factor_users as factor_users
    from penchant.gp.users.blocks import Arrangement as Arrangement
    from penchant.gp.users.blocks import PairBlock as PairBlock
    from penchant.gp.users.blocks import arrange as arrange
    from penchant.gp.users.blocks import tied_items as tied_items
    from penchant.gp.users.posterior import ActiveSet as ActiveSet
    from penchant.gp.users.posterior import UserPosteriors as UserPosteriors
    from penchant.gp.users.posterior import UserSites as UserSites
    from penchant.gp.users.problem import LEARNING as LEARNING
    from penchant.gp.users.problem import LEARNING_VOTES as LEARNING_VOTES
    from penchant.gp.users.problem import NOTICEABLE as NOTICEABLE
    from penchant.gp.users.problem import CovarianceChoice as CovarianceChoice
    from penchant.gp.users.problem import Start as Start
    from penchant.gp.users.problem import UserHyper as UserHyper
    from penchant.gp.users.problem import UserProblem as UserProblem
    from penchant.gp.users.problem import UserSolution as UserSolution
    from penchant.gp.users.problem import choose_covariance as choose_covariance
    from penchant.gp.users.problem import rank_error as rank_error
    from penchant.gp.users.problem import scaled_start as scaled_start
    from penchant.gp.users.sharded import Sweeps as Sweeps
    from penchant.gp.users.sharded import UserPart as UserPart
    from penchant.gp.users.sharded import sites_of as sites_of
    from penchant.gp.users.sparse import SPARSE_RULES as SPARSE_RULES
    from penchant.gp.users.sparse import without_other_users as without_other_users
    from penchant.gp.users.update import check_newcomers as check_newcomers
    from penchant.gp.users.update import fold_in as fold_in
    from penchant.gp.users.update import rank_one_update_users as rank_one_update_users
    from penchant.gp.users.update import with_newcomers as with_newcomers

_OF_USERS = {
    "arrowhead": "ArrowPrior SharedPrior SharedSize UserFactor factor_users",
    "blocks": "Arrangement PairBlock arrange tied_items",
    "posterior": "ActiveSet UserPosteriors UserSites",
    "problem": "LEARNING LEARNING_VOTES NOTICEABLE CovarianceChoice Start UserHyper UserProblem "
    "UserSolution choose_covariance rank_error scaled_start",
    "sharded": "Sweeps UserPart sites_of",
    "sparse": "SPARSE_RULES without_other_users",
    "update": "check_newcomers fold_in rank_one_update_users with_newcomers",
}
_MODULE = {name: module for module, names in _OF_USERS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'penchant.gp' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"penchant.gp.users.{_MODULE[name]}"), name)
    return found
