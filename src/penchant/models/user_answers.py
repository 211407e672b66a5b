"""The answers of many users after a fit: those that join it, and how each was foreseen."""

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import (
    Answered,
    Learned,
    Normal,
    UserPosteriors,
    UserProblem,
    Votes,
    foreseen,
    of_usual_strength,
)
from penchant.kernels import Inputs


def problem_after(learned: Learned[UserProblem], data: Comparisons) -> UserProblem:
    """The same items, settings and users, with newcomers of whom no features are given."""
    posterior: UserPosteriors = learned.posterior
    n_new = data.n_users - len(posterior)
    users = posterior.users
    if n_new and (users.X is not None or users.relations):
        raise DataError(
            f"{n_new} new users answered, and the model was fitted with features of users: "
            "bring them in by fold_in(data, user_features)"
        )
    if n_new:
        users = posterior.with_users(Inputs(index=np.arange(n_new))).users
    by_rater = learned.hyper.likelihood.by_rater
    votes = Votes.as_shown(data, learned.problem.edges.shown, by_rater)
    return learned.problem.over(users, votes)


def foreseen_votes(learned: Learned[UserProblem]) -> Answered:
    """Every answer with its giver, and what the other answers say of it; those of choices are
    left out."""
    problem = problem_after(learned, learned.data)
    votes, sites = problem.edges, learned.sites
    if sites is not None and len(sites.tau) != len(votes):  # some were only folded in
        sites = None
    seen = foreseen(problem, learned.hyper, sites, personal=True)
    cliques = votes.outcomes.cliques
    votes = votes.part(np.arange(len(votes) - (0 if cliques is None else cliques.n_edges)))
    seen = Normal(seen.mean[: len(votes)], seen.var[: len(votes)])
    seen = of_usual_strength(votes.user, seen, votes.count)
    return Answered(votes.user, *seen, votes.outcomes, votes.count, len(problem.users), True)
