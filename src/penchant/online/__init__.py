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
from penchant.online.perceptron import FeatureMap
from penchant.online.regret import (
    Learner,
    Regret,
    exponentiated_bound,
    learn_stream,
    perceptron_bound,
    running_mean,
    simulate,
)

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
