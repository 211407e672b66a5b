"""Which comparison to ask for next, and learning from its answer at once."""

from penchant.ask.answers import as_answers, one_user, rng_for, without_last
from penchant.ask.belief import LOSS, TIE, WIN, Belief, Joint, Part
from penchant.ask.choose import Pool, Rules, all_pairs, ask, choose, grow, grow_sets
from penchant.ask.criteria import CRITERIA, Criterion, criterion
from penchant.ask.plan import (
    Budget,
    Plan,
    Range,
    SmallGain,
    StudyDesign,
    TopSettled,
    Verdict,
    answers_left,
    plan,
)

__all__ = [
    "CRITERIA",
    "LOSS",
    "TIE",
    "WIN",
    "Belief",
    "Budget",
    "Criterion",
    "Joint",
    "Part",
    "Plan",
    "Pool",
    "Range",
    "Rules",
    "SmallGain",
    "StudyDesign",
    "TopSettled",
    "Verdict",
    "all_pairs",
    "answers_left",
    "as_answers",
    "ask",
    "choose",
    "criterion",
    "grow",
    "grow_sets",
    "one_user",
    "plan",
    "rng_for",
    "without_last",
]
