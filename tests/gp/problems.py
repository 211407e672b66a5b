"""Problems of one utility an item, and checks against dense algebra, that several tests share."""

import numpy as np

from penchant.gp import ItemHyper, ItemProblem, Rows, Settings, solve
from penchant.kernels import Inputs
from penchant.likelihoods import Probit

PROBIT = Probit()


def item_problem(data, X=None, rule="ep", tolerance=1e-10, rank=None, max_sweeps=200):
    """Comparisons of pooled users; X: features of the items, or items as the engine has them."""
    items = X if isinstance(X, Inputs) else Inputs(X, index=np.arange(data.n_items))
    return ItemProblem(items, Rows.pooled(data), Settings(rule, tolerance, max_sweeps), rank)


def solved(data, kernel, likelihood=PROBIT, X=None, **how):
    """The problem of some comparisons, its solution and posterior."""
    problem = item_problem(data, X, **how)
    solution = solve(problem, ItemHyper(kernel, likelihood))
    return problem, solution, problem.posterior(solution)


def dense_rows(winner, loser, n):
    """A (m, n) with rows e_winner − e_loser."""
    A = np.zeros((len(winner), n))
    A[np.arange(len(A)), winner] += 1.0
    A[np.arange(len(A)), loser] -= 1.0
    return A


def assert_posterior(found, mean, cov, atol):
    """The posterior has these means and this covariance."""
    np.testing.assert_allclose(found.mean, mean, atol=atol)
    np.testing.assert_allclose(found.covariance(), cov, atol=atol)


def dense_posterior(problem, solution, A, K):
    """Mean and covariance of points with prior N(0, K), given the solution's sites along rows A."""
    edges, sites = problem.edges, solution.inference.sites
    cov = np.linalg.inv(np.linalg.inv(K) + (A.T * edges.count * sites.tau) @ A)
    return cov @ A.T @ (edges.count * sites.nu), cov


def assert_state(problem, solution, A, K, atol=1e-9):
    """All that the loop needs of a state is that of dense algebra: see `dense_posterior`."""
    mean, cov = dense_posterior(problem, solution, A, K)
    edges, sites, state = problem.edges, solution.inference.sites, solution.inference.state
    np.testing.assert_allclose(state.mean, A @ mean, atol=atol)
    np.testing.assert_allclose(state.var, np.diag(A @ cov @ A.T), atol=atol)
    log_det = np.linalg.slogdet(np.eye(len(K)) + K @ (A.T * edges.count * sites.tau) @ A)[1]
    np.testing.assert_allclose(state.log_det, log_det, atol=1e-8)
    np.testing.assert_allclose(state.quadratic, edges.count * sites.nu @ A @ mean, atol=1e-8)
    y = np.linspace(-1.0, 2.0, len(A))
    np.testing.assert_allclose(state.covariance_times(y), A @ cov @ A.T @ y, atol=1e-9)
