"""Which comparison to ask for next, and learning from its answer at once."""

from penchant.ask.answers import as_answers, remember, restore, rng_for, without_last
from penchant.ask.belief import Belief, Part
from penchant.ask.choose import ask, choose
from penchant.ask.criteria import CRITERIA, Criterion, criterion
from penchant.ask.joint import LOSS, TIE, WIN, Joint
from penchant.ask.rules import Pool, Rules, all_pairs

__all__ = [
    "CRITERIA",
    "LOSS",
    "TIE",
    "WIN",
    "Belief",
    "Criterion",
    "Joint",
    "Part",
    "Pool",
    "Rules",
    "all_pairs",
    "as_answers",
    "ask",
    "choose",
    "criterion",
    "remember",
    "restore",
    "rng_for",
    "without_last",
]
