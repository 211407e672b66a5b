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
from penchant.online.feedback import discounted as discounted
from penchant.online.feedback import group as group
from penchant.online.perceptron import FeatureMap
from penchant.online.perceptron import discounts as discounts
from penchant.online.perceptron import learn as learn
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
from penchant.online.rule import UpdateRule as UpdateRule
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
