"""Sparse-EP: keep the users and items that taught most, predict from them alone (paper 003 § 3).

A comparison's worth is the entropy that inference took from its difference, ½ log(Σ_old/Σ_new)
(Eq. 22, put right) added up over the sweeps. The sum telescopes: it is ½ log of the prior
variance over the final one. Unlike the paper's, which looks at each utility's own variance, it is
blind to a user's arbitrary zero point.
"""

from dataclasses import replace

import numpy as np

from penchant.errors import DataError
from penchant.gp.users.arrangement import tied_items
from penchant.gp.users.problem import UserProblem, UserSolution, of_utilities, over
from penchant.gp.users.votes import Kept, Votes
from penchant.numerics.types import FloatArray, IntArray


def select(problem: UserProblem, solution: UserSolution, n_users: int, n_items: int) -> Kept:
    """The ℓ_u users and ℓ_x items whose comparisons removed most entropy (Eq. 23)."""
    state, votes = solution.inference.state, problem.edges
    nothing = np.zeros(len(votes))
    before = solution.prior.refresh(nothing, nothing).var
    removed = 0.5 * np.log(before / state.var)
    user_entropy: FloatArray = np.zeros(len(problem.users))
    item_entropy: FloatArray = np.zeros(len(problem.items))
    np.add.at(user_entropy, votes.user, removed)
    np.add.at(item_entropy, votes.winner, removed)
    np.add.at(item_entropy, votes.loser, removed)
    users = np.argsort(-user_entropy, kind="stable")[:n_users]
    items = np.argsort(-item_entropy, kind="stable")[:n_items]
    rows = _rows(votes, users, items)
    if not len(rows):
        raise DataError(
            f"sparse=({n_users}, {n_items}) keeps no comparison: the {len(users)} users kept never "
            f"compared two of the {len(items)} items kept; keep more users or more items"
        )
    return Kept(users, items, user_entropy, item_entropy, len(rows))


def restrict(
    problem: UserProblem, solution: UserSolution, kept: Kept
) -> tuple[UserProblem, UserSolution]:
    """The posterior given the kept users' sites on the kept items, and nothing else."""
    votes, inference = problem.edges, solution.inference
    rows = _rows(votes, kept.users, kept.items)
    few = votes.part(rows)
    sites = replace(inference.sites, tau=inference.sites.tau[rows], nu=inference.sites.nu[rows])
    few_problem = replace(problem, edges=few, arrangements={})
    tied = tied_items(of_utilities(solution)[0].arrow.item_covariance)
    prior = over(solution.prior, few_problem.arranged(tied), few.shown)
    state = prior.refresh(few.count * sites.tau, few.count * sites.nu)
    restricted = replace(inference, state=state, sites=sites)
    return few_problem, solution._replace(prior=prior, inference=restricted)


def _rows(votes: Votes, users: IntArray, items: IntArray) -> IntArray:
    kept = np.isin(votes.user, users) & np.isin(votes.winner, items) & np.isin(votes.loser, items)
    return np.flatnonzero(kept)
