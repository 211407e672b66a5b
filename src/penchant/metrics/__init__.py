"""How good predictions, rankings, groupings and rounds of questions are: functions of arrays."""

from penchant.metrics.pairs import Calibration, calibration, log_loss, pair_error
from penchant.metrics.ranking import (
    adjusted_rand,
    auc,
    dcg,
    disagreement_error,
    kendall_tau,
    mean_average_precision,
    ndcg,
    regret,
)

__all__ = [
    "Calibration",
    "adjusted_rand",
    "auc",
    "calibration",
    "dcg",
    "disagreement_error",
    "kendall_tau",
    "log_loss",
    "mean_average_precision",
    "ndcg",
    "pair_error",
    "regret",
]
