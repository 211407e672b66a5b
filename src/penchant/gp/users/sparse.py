"""Sparse-EP: predict from a few users and items (paper 003, section 3).

`summarize` is the default. What users share is learned from everybody, so its posterior holds
everybody's information. It is kept along ℓ_u directions of users' features and at ℓ_x items; beyond
them the prior's conditional predicts. ℓ_u users keep the sites of their own answers, and with them
their own deviation. With all users and items the posterior is that of EP.

`restrict` is the rule that the paper prints (Eqs. 22, 23). It keeps the users and items whose
answers removed most entropy, and predicts from their sites alone. A site's precision grows with
surprise, so these are the users whose answers contradict the prediction.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag, qr, svd

from penchant.data import WholeAnswers
from penchant.errors import DataError
from penchant.gp.learn import FitState
from penchant.gp.posterior import EffectPosterior
from penchant.gp.users.posterior import ActiveSet, UserPosteriors
from penchant.gp.users.problem import UserProblem, UserSolution
from penchant.numerics import linalg
from penchant.numerics.types import FloatArray, IntArray


def summarize(
    problem: UserProblem, solution: UserSolution, n_users: int, n_items: int
) -> UserPosteriors:
    """The posterior of what users share in n_users × n_items numbers, and n_users users' own sites.

    Users are chosen by the information that their answers were expected to bring, items by how
    well the prior's conditional given them repeats the shared means.
    """
    whole = problem.posterior(solution)
    by_user, by_item = _information(problem, _expected(problem, solution))
    mean, factor = whole.shared_mean, whole.covariances.known_factor
    # the directions Q, (r_u, ℓ_u), that carry most of the shared means: W = Q V + rest
    Q = svd(linalg.multiply(mean, factor.T))[0][:, :n_users]
    phi = linalg.multiply(whole.user_features(np.arange(whole.n_fitted)), Q)
    V = linalg.multiply(Q.T, mean)
    weighted = linalg.multiply(qr(phi, mode="economic")[1], V)  # errors count as people have them
    items = _explaining(weighted, factor, n_items)
    P = qr(factor[items].T, mode="economic")[0]  # (r, ℓ_x): V is known along the items' features
    users = np.argsort(-by_user, kind="stable")[:n_users]
    rows = np.flatnonzero(np.isin(whole.sites.user, users))
    effects, lower = _projected(whole, Q, P)
    return whole.changed(
        user_basis=replace(whole.user_basis, rotation=Q),
        shared_mean=linalg.multiply(linalg.multiply(V, P), P.T),
        shared_lower=lower,
        sites=whole.sites.take(rows),
        effects=effects,
        kept=ActiveSet(users, items, by_user, by_item, np.arange(len(rows))),
    )


def _projected(
    whole: UserPosteriors, Q: FloatArray, P: FloatArray
) -> tuple[EffectPosterior | None, FloatArray]:
    """The posterior of effects b and of V where only QᵀWP is known: V is as a priori beyond P.

    With T = blockdiag(I, I ⊗ P) and C the covariance of (b, QᵀWP), the precision of (b, V) is
    I + T (C⁻¹ − I) Tᵀ.
    """
    effects, q = whole.effects, 0
    joint = whole.shared_lower
    if effects is not None:
        q = len(effects.lower)
        top = np.hstack([effects.lower, np.zeros((q, len(joint)))])
        joint = np.vstack([top, np.hstack([effects.coupling, joint])])
    half = linalg.solve_lower(joint, block_diag(np.eye(q), np.kron(Q, P)))
    known = linalg.cholesky(linalg.gram(half)).lower
    inverse = linalg.gram(linalg.solve_lower(known, np.eye(len(known))))
    T = block_diag(np.eye(q), np.kron(np.eye(Q.shape[1]), P))
    precision = linalg.multiply(linalg.multiply(T, inverse - np.eye(len(inverse))), T.T)
    lower = linalg.cholesky(precision + np.eye(len(precision))).lower
    if effects is not None:
        effects = replace(effects, lower=lower[:q, :q], coupling=lower[q:, :q])
    return effects, linalg.trailing_block(lower, q)


def _explaining(A: FloatArray, factor: FloatArray, n_items: int) -> IntArray:
    """The items given which the prior's conditional best repeats the means A Φᵀ, one at a time.

    A: (k, r) weights; factor: Φ (n, r). Errors are those of utilities less the average item's.
    """
    centred = factor - factor.mean(axis=0)
    H = linalg.gram(centred)  # the squared error of weights a is a H aᵀ
    left, rest, chosen = A.copy(), factor.copy(), np.zeros(0, dtype=np.intp)
    for _ in range(min(n_items, len(factor))):
        length = np.sqrt(np.einsum("nr,nr->n", rest, rest))
        open_items = length > 1e-9 * length.max(initial=0.0)
        open_items[chosen] = False
        if not open_items.any():  # the others follow from those chosen
            more = np.setdiff1d(np.arange(len(factor)), chosen)
            return np.append(chosen, more[: n_items - len(chosen)])
        E = rest / np.where(open_items, length, np.inf)[:, None]
        a, b = linalg.multiply(left, E.T), linalg.multiply(linalg.multiply(left, H), E.T)
        h = np.einsum("nr,nr->n", linalg.multiply(E, H), E)
        gain = np.einsum("kn,kn->n", a, 2.0 * b) - h * np.einsum("kn,kn->n", a, a)
        best = int(np.argmax(np.where(open_items, gain, -np.inf)))
        left = left - np.outer(a[:, best], E[best])
        rest = rest - np.outer(linalg.multiply(rest, E[best]), E[best])
        chosen = np.append(chosen, best)
    return chosen


def _expected(problem: UserProblem, solution: UserSolution) -> FloatArray:
    """(m,) information that each answer was expected to bring, ½ log(1 + c τ̄ v) nats.

    v is the prior variance of its difference. τ̄ is the mean precision of the sites: that of the
    answer's own site is known only afterwards, and grows with surprise.
    """
    count, tau = problem.edges.count, solution.inference.sites.tau
    typical = max(float(np.average(tau, weights=count)), 0.0)
    return 0.5 * np.log1p(count * typical * _prior_var(problem, solution))


def _prior_var(problem: UserProblem, solution: UserSolution) -> FloatArray:
    """(m,) variance of each row's difference before any answer."""
    nothing = np.zeros(len(problem.edges))
    return solution.prior.refresh(nothing, nothing).var


def _information(problem: UserProblem, by_row: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over the rows of each user (U,) and of each item (n,)."""
    votes, n = problem.edges, len(problem.items)
    by_user: FloatArray = np.bincount(votes.user, by_row, len(problem.users)).astype(np.float64)
    by_item = np.bincount(votes.winner, by_row, n) + np.bincount(votes.loser, by_row, n)
    return by_user, by_item.astype(np.float64)


def restrict(
    problem: UserProblem, solution: UserSolution, n_users: int, n_items: int
) -> UserPosteriors:
    """The posterior given the sites of the ℓ_u users and ℓ_x items that removed most entropy alone.

    A comparison's entropy is that of its difference, ½ log(Σ_old/Σ_new) (Eq. 22, put right), added
    up over the sweeps: ½ log of the prior variance over the final one. Unlike the paper's, which
    looks at each utility's own variance, it does not depend on a user's arbitrary zero point.
    """
    votes, inference = problem.edges, solution.inference
    removed = 0.5 * np.log(_prior_var(problem, solution) / inference.state.var)
    by_user, by_item = _information(problem, removed)
    users = np.argsort(-by_user, kind="stable")[:n_users]
    items = np.argsort(-by_item, kind="stable")[:n_items]
    theirs = np.isin(votes.user, users)
    rows = np.flatnonzero(theirs & np.isin(votes.winner, items) & np.isin(votes.loser, items))
    if not len(rows):
        raise DataError(
            f"sparse=({n_users}, {n_items}) keeps no comparison: the {len(users)} users kept never "
            f"compared two of the {len(items)} items kept; keep more users or more items"
        )
    few = votes.part(rows)
    sites = replace(inference.sites, tau=inference.sites.tau[rows], nu=inference.sites.nu[rows])
    few_problem = replace(problem, edges=few)
    arranged = few_problem.arranged(solution.prior.tied)
    prior = replace(solution.prior, arranged=arranged, shown=few.shown)
    state = prior.refresh(few.count * sites.tau, few.count * sites.nu)
    restricted = replace(inference, state=state, sites=sites)
    posterior = few_problem.posterior(solution._replace(prior=prior, inference=restricted))
    place = np.searchsorted(np.flatnonzero(theirs), rows)  # among the answers of the users kept
    return posterior.changed(kept=ActiveSet(users, items, by_user, by_item, place))


def without_other_users(learned: FitState[UserProblem]) -> FitState[UserProblem]:
    """The same fit without the answers of users who were neither kept nor folded in."""
    data, posterior = learned.data, learned.posterior
    said = WholeAnswers.of(data)
    stays = np.isin(said.user, posterior.kept.users) | (said.user >= posterior.n_fitted)
    few = data.with_counts(np.where(stays, said.count, 0))
    dropped = data.n_comparisons - few.n_comparisons
    return replace(learned, data=few, n_elsewhere=learned.n_elsewhere + dropped)


SPARSE_RULES = {"summary": summarize, "printed": restrict}
"""How Sparse-EP keeps users and items, by name."""
