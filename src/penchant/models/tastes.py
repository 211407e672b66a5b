"""How tastes for items go together, learned from many users: one way for every model of people."""

from penchant.gp import (
    CovarianceChoice,
    Guess,
    Start,
    UserHyper,
    UserProblem,
    UserSolution,
    Watch,
    choose,
    maximize,
    scaled_start,
    with_word,
)
from penchant.kernels import Independent, Kernel
from penchant.models.defaults import (
    FREE_ITEMS,
    LOW_RANK_ITEMS,
    free_start,
    learned_covariances,
)
from penchant.numerics.random import RandomState, as_rng


def learn_tastes(
    problem: UserProblem,
    start: UserHyper,
    kernel: Kernel | str | None,
    n_restarts: int = 0,
    random_state: RandomState = None,
    watch: Watch | None = None,
) -> UserSolution:
    """The climb of the evidence, after the choice of an item covariance where none is given.

    start: with the kernel that is given, or with that of the features.
    """
    begin: Guess | None = None
    word = ""
    if not isinstance(kernel, Kernel):
        choice = _chosen(problem, start, kernel, watch)
        start, begin = choice.start, Guess(choice.theta)
        word = choice.word + not_tried(problem, kernel)
    rng = as_rng(random_state)
    return with_word(maximize(problem, start, n_restarts, rng, begin, watch), word)


def not_tried(problem: UserProblem, kernel: str | None) -> str:
    """Which candidates the number of items rules out, in words."""
    n, most = len(problem.items), LOW_RANK_ITEMS[1]
    if kernel is not None or n <= FREE_ITEMS:
        return ""
    directions = f"few directions of taste (up to {most}) and " if n > most else ""
    return f"; {n:,} items are too many for {directions}a free covariance (up to {FREE_ITEMS})"


def _chosen(
    problem: UserProblem, start: UserHyper, kernel: str | None, watch: Watch | None
) -> CovarianceChoice:
    """The item covariance: free as asked for, else the candidate that predicts best."""
    items, simplest = problem.items, start._replace(kernel=Independent())
    n, is_known = len(items), items.X is not None or bool(items.relations)
    if kernel == "free":
        return scaled_start(problem, simplest, lambda known: free_start(known, n), watch)
    featured: dict[str, Start] = {"features": lambda _: start} if is_known else {}
    fallback = "features" if is_known else "independent"
    others = {**featured, **learned_covariances(problem.edges.item_order(n))}
    return choose(problem, simplest, others, fallback, watch)
