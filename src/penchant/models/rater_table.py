"""The table that `raters_` is: how reliable everybody who answered is."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.errors import UntoldError
from penchant.gp import Answered, judge
from penchant.likelihoods import Gaussian, Likelihood, Raters
from penchant.models.row_table import RowTable

LEVEL = 0.95
MEASURED = {
    "lapse": "Reliability is the share of a person's answers that are not given at random.",
    "noise": "Reliability is how sharply a person tells items apart, 1 being usual.",
}
OWN = (
    "Everybody is held against what the model expects of them, so that a taste of their own does "
    "not count against them; somebody to whom all items are the same does."
)
COMMON = (
    "Everybody is held against the ranking of all together, so that a taste of one's own counts "
    "as unreliable; MultiUserGP tells the two apart."
)
WEIGHED = "Answers of unreliable people count less in the ranking."
EQUAL = "The ranking itself takes all people's answers alike."


class Rater(NamedTuple):
    """One row: who, how many answers, and how reliable, with the interval that holds it."""

    user: Any
    answers: int
    reliability: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class RaterTable(RowTable[Rater]):
    """Raters from the least reliable to the most.

    With kind "lapse" reliability is the share of answers that are not given at random; with
    "noise" it is how sharply items are told apart, 1 being usual. about: what it means in the
    model at hand. Rows by position, columns by name; prints as a table.

    >>> print(RaterTable((Rater("ann", 30, 0.97, 0.9, 0.99),), "lapse"))
    user  answers  reliability  95 % interval
    ann        30         0.97  [0.90, 0.99]
    """

    kind: str
    level: float = LEVEL
    about: str = ""

    row_type = Rater
    left = (0, 3)

    def _cells(self) -> list[list[str]]:
        header = ["user", "answers", "reliability", f"{100 * self.level:.3g} % interval"]
        return [header] + [
            [
                str(row.user),
                str(row.answers),
                f"{row.reliability:.2f}",
                f"[{row.low:.2f}, {row.high:.2f}]",
            ]
            for row in self.rows
        ]


def rater_table(
    answered: Answered, likelihood: Likelihood, data: Comparisons, level: float = LEVEL
) -> RaterTable:
    """Judge everybody who answered."""
    if isinstance(likelihood, Gaussian):
        raise UntoldError(
            "raters_ judges people by answers that are right or wrong, and likelihood='gaussian' "
            "has margins: fit with 'probit', 'logit' or 'ties' to judge raters"
        )
    judged = judge(answered, likelihood)
    low, high = judged.quantile(0.5 * (1.0 - level)), judged.quantile(0.5 * (1.0 + level))
    reliability, kind = judged.mean, "noise"
    if not isinstance(likelihood, Raters) or likelihood.kind == "lapse":
        reliability, low, high, kind = 1.0 - reliability, 1.0 - high, 1.0 - low, "lapse"
    pairs = data.single_pairs()
    answers = np.bincount(np.asarray(pairs.user), pairs.count, answered.n_raters)
    order = np.argsort(reliability, kind="stable")
    rows = tuple(
        Rater(
            data.users[u],
            round(float(answers[u])),
            float(reliability[u]),
            float(low[u]),
            float(high[u]),
        )
        for u in order
        if answers[u]
    )
    held_against = OWN if answered.personal else COMMON
    used = WEIGHED if isinstance(likelihood, Raters) else EQUAL
    return RaterTable(rows, kind, level, f"{MEASURED[kind]} {held_against} {used}")


def check_named(data: Comparisons, what: str) -> None:
    """Raters must be told apart to be judged."""
    if data.user is None:
        raise UntoldError(
            f"{what} needs to know who gave each answer, and these comparisons do not say: give "
            "user=… for each, or leave it out"
        )
