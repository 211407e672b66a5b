"""Whether ties say that items are close, or nothing about them: the evidence tells."""

from collections.abc import Callable
from typing import Any, TypeVar

from penchant.errors import DataWarning, warn
from penchant.gp import ItemHyper, ItemProblem, Solution, UserHyper, UserProblem, solve
from penchant.likelihoods import Abstain, Probit

WORTHWHILE = 1.0
"""Gain in log evidence before ties mean nothing: mostly they are said of what is close."""

HyperT = TypeVar("HyperT", ItemHyper, UserHyper)


def with_ties_understood(
    problem: ItemProblem | UserProblem,
    start: HyperT,
    close: Solution[HyperT, Any],
    learn: Callable[[Any, HyperT], Solution[HyperT, Any]],
) -> tuple[HyperT, Solution[HyperT, Any]]:
    """The given solution, whose ties mean close items, or a likelier one whose ties mean nothing.

    With the hyperparameters from which it was learned.

    Ties of people who cannot judge or do not care come at any difference. Taken for closeness
    they draw utilities together, and predictions are worse than without them.
    """
    rate = _share_of_ties(problem)
    if not 0.0 < rate < 1.0:
        return start, close
    other = start._replace(likelihood=Abstain(Probit(), rate))
    few: Any = problem.while_learning()  # where comparisons are very many, some of them tell
    is_sample = few.edges is not problem.edges
    unrelated = learn(few if is_sample else problem, other)
    known = solve(few, close.hyper) if is_sample else close
    gain = unrelated.log_evidence - known.log_evidence
    if gain <= WORTHWHILE:
        return start, close
    if is_sample:
        unrelated = learn(problem, other)
    warn(
        f"ties come at any difference here (log evidence {gain:.1f} higher): they are taken for "
        "abstentions, which say nothing about closeness; likelihood=Ties() insists on closeness",
        DataWarning,
    )
    return other, unrelated


def _share_of_ties(problem: ItemProblem | UserProblem) -> float:
    """Among single pairs: a choice out of several items is no tie, and stands behind them."""
    tie = problem.edges.outcomes.tie
    if tie is None:
        return 0.0
    count = problem.edges.count[: len(tie)]
    return float(count[tie].sum() / count.sum())
