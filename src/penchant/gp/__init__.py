"""Gaussian-process inference: one loop, one engine, over items or over users and items."""

from penchant.gp.choices import edges_of_stages, feasible
from penchant.gp.dynamic.prior import TimeGrid as TimeGrid
from penchant.gp.dynamic.prior import check_time, effect_names, timed_rows
from penchant.gp.dynamic.problem import (
    PathHyper,
    PathPosterior,
    PathProblem,
    PathSolution,
    TimedPosterior,
)
from penchant.gp.items.cluster_robust import UNNAMED, People, edges_of
from penchant.gp.items.prior import ItemPrior, LowRankState, factor_prior
from penchant.gp.items.problem import ItemHyper, ItemProblem, ItemSolution, start_at_mode
from penchant.gp.learn import (
    FitState,
    Limits,
    StartingPoint,
    expectation_maximize,
    maximize,
    maximize_evidence,
)
from penchant.gp.loop import (
    Callback,
    Inference,
    Report,
    Settings,
    Solution,
    SweepSummary,
    gradient,
    infer,
    solve,
)
from penchant.gp.posterior import Basis, EffectPosterior, Normal, Posterior, summarize_ranks
from penchant.gp.raters import Answered, foreseen, judge, learn_raters, of_usual_strength
from penchant.gp.rows import (
    ORDER,
    Differences,
    Rows,
    VoteSites,
    as_shown,
    columns,
    match,
    place_among,
    z_of,
)
from penchant.gp.rows import Covariates as Covariates
from penchant.gp.rows import Operator as Operator
from penchant.gp.rows import has_covariates as told
from penchant.gp.rules import RULES, Proposal, Rule, Sites, laplace, mode_slopes, no_slopes
from penchant.gp.update import as_weights, rank_one_update
from penchant.gp.users.blocks import tied_items
from penchant.gp.users.choice import CovarianceChoice, Start, choose, scaled_start, with_word
from penchant.gp.users.nystrom import largest_left, rank_error
from penchant.gp.users.posterior import Kept, UserPosteriors
from penchant.gp.users.problem import (
    LEARNING_VOTES,
    UserHyper,
    UserProblem,
    UserSolution,
    of_utilities,
    restrict,
    select,
)
from penchant.gp.users.sharded import Sweeps, Taught, UserPart, add_seen, add_taught, sites_of
from penchant.gp.users.update import check_newcomers, fold_in, with_newcomers
from penchant.gp.users.update import rank_one_update as rank_one_update_users

__all__ = [
    "LEARNING_VOTES",
    "ORDER",
    "RULES",
    "UNNAMED",
    "Answered",
    "Basis",
    "Callback",
    "CovarianceChoice",
    "Covariates",
    "Differences",
    "EffectPosterior",
    "FitState",
    "Inference",
    "ItemHyper",
    "ItemPrior",
    "ItemProblem",
    "ItemSolution",
    "Kept",
    "Limits",
    "LowRankState",
    "Normal",
    "Operator",
    "PathHyper",
    "PathPosterior",
    "PathProblem",
    "PathSolution",
    "People",
    "Posterior",
    "Proposal",
    "Report",
    "Rows",
    "Rule",
    "Settings",
    "Sites",
    "Solution",
    "Start",
    "StartingPoint",
    "SweepSummary",
    "Sweeps",
    "Taught",
    "TimeGrid",
    "TimedPosterior",
    "UserHyper",
    "UserPart",
    "UserPosteriors",
    "UserProblem",
    "UserSolution",
    "VoteSites",
    "add_seen",
    "add_taught",
    "as_shown",
    "as_weights",
    "check_newcomers",
    "check_time",
    "choose",
    "columns",
    "edges_of",
    "edges_of_stages",
    "effect_names",
    "expectation_maximize",
    "factor_prior",
    "feasible",
    "fold_in",
    "foreseen",
    "gradient",
    "infer",
    "judge",
    "laplace",
    "largest_left",
    "learn_raters",
    "match",
    "maximize",
    "maximize_evidence",
    "mode_slopes",
    "no_slopes",
    "of_usual_strength",
    "of_utilities",
    "place_among",
    "rank_error",
    "rank_one_update",
    "rank_one_update_users",
    "restrict",
    "scaled_start",
    "select",
    "sites_of",
    "solve",
    "start_at_mode",
    "summarize_ranks",
    "tied_items",
    "timed_rows",
    "told",
    "with_newcomers",
    "with_word",
    "z_of",
]
