"""Online learning from improved presentations: perceptron, simulated users, regret."""

from penchant.online.feedback import (
    AlphaUser,
    ClickUser,
    ExpectedAlphaUser,
    LabelUser,
    Round,
    User,
    read_rounds,
    rounds_of,
)

# for the estimator
from penchant.online.feedback import discounted as discounted
from penchant.online.feedback import group as group
from penchant.online.perceptron import FeatureMap
from penchant.online.perceptron import learn_differences as learn_differences
from penchant.online.perceptron import learn_graded as learn_graded
from penchant.online.perceptron import learn_logged as learn_logged
from penchant.online.perceptron import learn_pairs as learn_pairs
from penchant.online.perceptron import present_greedily as present_greedily
from penchant.online.perceptron import present_sorted as present_sorted
from penchant.online.perceptron import swap_neighbours as swap_neighbours
from penchant.online.regret import (
    Learner,
    Regret,
    exponentiated_bound,
    learn_stream,
    perceptron_bound,
    running_mean,
    simulate,
)
from penchant.online.regret import feature_norm as feature_norm
from penchant.online.rule import LOSSES as LOSSES
from penchant.online.rule import UPDATES as UPDATES
from penchant.online.rule import Real as Real
from penchant.online.rule import State as State
from penchant.online.rule import UpdateRule as UpdateRule
from penchant.online.rule import check_docs as check_docs
from penchant.online.rule import check_grades as check_grades
from penchant.online.rule import check_order as check_order
from penchant.online.rule import check_queries as check_queries
from penchant.online.rule import check_rows as check_rows
from penchant.online.rule import check_scores as check_scores
from penchant.online.rule import discounts as discounts
from penchant.online.rule import new_state as new_state

__all__ = [
    "AlphaUser",
    "ClickUser",
    "ExpectedAlphaUser",
    "FeatureMap",
    "LabelUser",
    "Learner",
    "Regret",
    "Round",
    "User",
    "exponentiated_bound",
    "learn_stream",
    "perceptron_bound",
    "read_rounds",
    "rounds_of",
    "running_mean",
    "simulate",
]
