"""Which covariance between items suits many users: chosen by answers that it was not learned from.

Evidence favours covariances of many parameters that predict worse. So users are halved. Each half
in turn teaches every candidate its parameters, and the other half judges: by the log density of
each of their answers when it alone is left out, which the cavities of its sites give at no cost.
A candidate is preferred to a simpler one only where its gain exceeds the standard error of the
gain over users. Halves are drawn by content, so that names and order decide nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penchant.gp.learn import StartingPoint, maximize_evidence
from penchant.gp.loop import Callback, solve
from penchant.gp.rows import Rows
from penchant.gp.rules import cavity
from penchant.gp.users.problem import UserHyper, UserProblem, UserSolution
from penchant.kernels import FreeCovariance
from penchant.numerics.types import BoolArray, FloatArray, IntArray

TEACHING_VOTES = 5_000
"""Most answers of each half of the users."""
FEWEST_USERS = 8
"""With fewer there is nobody to judge by."""

Start = Callable[[UserHyper], UserHyper]
"""From what the simplest candidate learned to where another one starts."""


@dataclass(frozen=True)
class CovarianceChoice:
    """The candidate chosen: where it started (its prior's centre), and where it had come to.

    scores: mean log density of answers that are left out, by candidate.
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
    callback: Callback | None = None,
) -> CovarianceChoice:
    """The candidate that predicts best; `simplest`, called "independent", is one of them.

    others: from simple to rich. fallback: the one that any other must beat, and that is taken
    where users are too few to judge. Choices are judged by the pairs that they decide: a choice
    shares its edges with others, so that no cavity is without it alone.
    """
    problem = replace(problem, edges=problem.edges.as_pairs(), arrangements={}).few_items()
    halves = _halves(problem.edges)
    if len(halves) < 2 or not others:
        start = others[fallback](simplest) if fallback in others else simplest
        return CovarianceChoice(fallback, start, start.theta, {})
    both = _of(problem, np.concatenate(halves)).roughly()
    starts: dict[str, UserHyper] = {}
    ends: dict[str, UserHyper] = {}
    density = {name: np.zeros(len(both.edges)) for name in ("independent", *others)}
    for teachers, judges in (halves, halves[::-1]):
        taught, is_judged = _of(problem, teachers).roughly(), np.isin(both.edges.user, judges)
        for name in density:
            if name not in starts:
                known = ends.get("independent", simplest)
                starts[name] = others[name](known) if name in others else simplest
            begin = StartingPoint(ends[name].theta) if name in ends else None
            ends[name] = maximize_evidence(
                taught, starts[name], begin=begin, callback=callback
            ).hyper
            density[name][is_judged] = left_out(both, ends[name])[is_judged]
    order = sorted(density, key=lambda name: name != fallback)
    best = _simplest_of_the_best({name: density[name] for name in order}, both.edges)
    weight = both.edges.count
    scores = {name: float(np.average(each, weights=weight)) for name, each in density.items()}
    start, theta = _seen_from(starts[best], ends[best])
    return CovarianceChoice(best, start, theta, scores)


def _simplest_of_the_best(density: Mapping[str, FloatArray], votes: Rows) -> str:
    """The first candidate that the best one does not beat by more than a standard error.

    density: (m,) log density of each answer, by candidate, from simple to rich. The error is that
    of the mean over users, whose answers go together.
    """
    total = {name: float(np.sum(votes.count * each)) for name, each in density.items()}
    best = max(total, key=lambda name: total[name])
    share = np.bincount(votes.user, votes.count) / votes.count.sum()
    for name, each in density.items():
        gain = density[best] - each
        of_user = np.bincount(votes.user, votes.count * gain) / votes.count.sum()
        error = float(np.sqrt(np.sum((of_user - share * of_user.sum()) ** 2)))
        if of_user.sum() <= error:
            return name
    return best


def _seen_from(start: UserHyper, end: UserHyper) -> tuple[UserHyper, FloatArray]:
    """The start, and the theta of the end, both in the frame of the latter where one is free."""
    if isinstance(start.kernel, FreeCovariance) and isinstance(end.kernel, FreeCovariance):
        start = start._replace(kernel=start.kernel.around(end.kernel))
        end = end._replace(kernel=end.kernel.around(end.kernel))
    return start, end.theta


def scaled_start(
    problem: UserProblem, simplest: UserHyper, start: Start, callback: Callback | None = None
) -> CovarianceChoice:
    """One candidate, asked for by name: where it starts is learned from some users."""
    problem = problem.few_items()
    taught = _of(problem, _halves(problem.edges)[0]).roughly()
    begun = start(maximize_evidence(taught, simplest, callback=callback).hyper)
    return CovarianceChoice("free", begun, begun.theta, {})


def with_word(solution: UserSolution, word: str) -> UserSolution:
    """The solution with a word in its report on what was chosen."""
    report = solution.inference.report
    said = "; ".join(part for part in (word, report.optimizer) if part)
    inference = replace(solution.inference, report=replace(report, optimizer=said))
    return solution._replace(inference=inference)


def left_out(problem: UserProblem, hyper: UserHyper) -> FloatArray:
    """(m,) log density of each answer without its own site."""
    inference = solve(problem, hyper).inference
    cav = cavity(inference.state.mean, inference.state.var, inference.sites)
    log_z: FloatArray = hyper.likelihood.tilted(cav.mean, cav.var, problem.edges.outcomes)[0]
    return log_z


def _halves(votes: Rows) -> list[IntArray]:
    """The users in two halves, each with not too many answers; one part where users are few."""
    users, n_votes = np.unique(votes.user, return_counts=True)
    if len(users) < FEWEST_USERS:
        return [users]
    order = np.argsort(votes.content.user[users], kind="stable")
    return [users[part[_within(n_votes[part])]] for part in (order[::2], order[1::2])]


def _within(votes: IntArray) -> BoolArray:
    """The first ones whose answers together are not too many, at least one."""
    inside: BoolArray = np.cumsum(votes) <= TEACHING_VOTES
    inside[0] = True
    return inside


def _of(problem: UserProblem, users: IntArray) -> UserProblem:
    """The answers of some users."""
    rows = np.flatnonzero(np.isin(problem.edges.user, users))
    return replace(problem, edges=problem.edges.part(rows), arrangements={})
