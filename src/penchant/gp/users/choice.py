"""Which covariance between items suits many users: chosen by answers that it was not learned from.

Evidence favours covariances of many parameters that predict worse. So half of the users, or as many
as suffice, teach each candidate its parameters, and others judge: the log density of each of
their answers when it alone is left out, which the cavities of its sites give at no cost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penchant.gp.learn import Watch, maximize
from penchant.gp.rules import cavity
from penchant.gp.solve import solve
from penchant.gp.users.problem import UserHyper, UserProblem, UserSolution
from penchant.kernels import FreeCovariance
from penchant.numerics.types import BoolArray, FloatArray, IntArray

TEACHING_VOTES = 5_000
"""Most answers of the users who teach, and of those who judge."""
FEWEST_USERS = 8
"""With fewer there is nobody to judge by."""

Start = Callable[[UserHyper], UserHyper]
"""From what the simplest candidate learned to where another one starts."""


@dataclass(frozen=True)
class CovarianceChoice:
    """The candidate chosen: where it started (its prior's centre), and where it had come to.

    scores: mean log density of the judges' answers, each left out, by candidate.
    """

    name: str
    start: UserHyper
    theta: FloatArray
    scores: Mapping[str, float]

    @property
    def word(self) -> str:
        """What was chosen, and why."""
        if len(self.scores) < 2:
            return f"item covariance: {self.name}"
        every = ", ".join(f"{name} {score:.4f}" for name, score in self.scores.items())
        return f"item covariance: {self.name} (answers left out: {every})"


def choose(
    problem: UserProblem,
    simplest: UserHyper,
    others: Mapping[str, Start],
    fallback: str,
    watch: Watch | None = None,
) -> CovarianceChoice:
    """The candidate that predicts best; `simplest`, called "independent", is the first of them.

    fallback: the one where users are too few to judge. Choices are judged by the pairs that they
    decide: a choice shares its edges with others, so that no cavity is without it alone.
    """
    problem = replace(problem, edges=problem.edges.as_pairs(), arrangements={}).few_items()
    teachers, judges = _split(problem)
    if not len(judges) or not others:
        start = others[fallback](simplest) if fallback in others else simplest
        return CovarianceChoice(fallback, start, start.theta, {})
    taught, both = _of(problem, teachers), _of(problem, np.concatenate([teachers, judges]))
    taught, both = taught.roughly(), both.roughly()
    is_judged = np.isin(both.edges.user, judges)
    learned = maximize(taught, simplest, watch=watch).hyper
    starts, ends = {"independent": simplest}, {"independent": learned}
    for name, begin in others.items():
        starts[name] = begin(learned)
        ends[name] = maximize(taught, starts[name], watch=watch).hyper
    scores = {name: left_out(both, hyper, is_judged) for name, hyper in ends.items()}
    best = max(scores, key=lambda name: scores[name])
    start, theta = _seen_from(starts[best], ends[best])
    return CovarianceChoice(best, start, theta, scores)


def _seen_from(start: UserHyper, end: UserHyper) -> tuple[UserHyper, FloatArray]:
    """The start, and the theta of the end, both in the frame of the latter where one is free."""
    if isinstance(start.kernel, FreeCovariance) and isinstance(end.kernel, FreeCovariance):
        start = start._replace(kernel=start.kernel.around(end.kernel))
        end = end._replace(kernel=end.kernel.around(end.kernel))
    return start, end.theta


def scaled_start(
    problem: UserProblem, simplest: UserHyper, start: Start, watch: Watch | None = None
) -> CovarianceChoice:
    """One candidate, asked for by name: where it starts is learned from some users."""
    problem = problem.few_items()
    taught = _of(problem, _split(problem)[0]).roughly()
    begun = start(maximize(taught, simplest, watch=watch).hyper)
    return CovarianceChoice("free", begun, begun.theta, {})


def with_word(solution: UserSolution, word: str) -> UserSolution:
    """The solution with a word in its report on what was chosen."""
    report = solution.inference.report
    said = "; ".join(part for part in (word, report.optimizer) if part)
    inference = replace(solution.inference, report=replace(report, optimizer=said))
    return solution._replace(inference=inference)


def left_out(problem: UserProblem, hyper: UserHyper, asked: BoolArray) -> float:
    """Mean log density of the answers `asked`, (m,) truth values, each without its own site."""
    inference = solve(problem, hyper).inference
    cav = cavity(inference.state.mean, inference.state.var, inference.sites)
    log_z = hyper.likelihood.tilted(cav.mean, cav.var, problem.edges.outcomes)[0]
    weight = problem.edges.count * asked
    return float(np.sum(weight * log_z) / np.sum(weight))


def _split(problem: UserProblem) -> tuple[IntArray, IntArray]:
    """Users who teach and users who judge; where they are too few all teach."""
    users, votes = np.unique(problem.edges.user, return_counts=True)
    if len(users) < FEWEST_USERS:
        return users, users[:0]
    order = np.random.default_rng(0).permutation(len(users))
    half = np.array_split(order, 2)
    teachers, judges = (users[part[_within(votes[part])]] for part in half)
    return teachers, judges


def _within(votes: IntArray) -> BoolArray:
    """The first ones whose answers together are not too many, at least one."""
    inside = np.cumsum(votes) <= TEACHING_VOTES
    inside[0] = True
    return inside


def _of(problem: UserProblem, users: IntArray) -> UserProblem:
    """The answers of some users."""
    rows = np.flatnonzero(np.isin(problem.edges.user, users))
    return replace(problem, edges=problem.edges.part(rows), arrangements={})
