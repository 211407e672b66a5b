"""The arrow against a dense solve on users × items."""

import numpy as np
import pytest

from penchant.errors import NumericalError
from penchant.gp import Settings, infer
from penchant.gp.users.arrowhead import ArrowPrior, eliminate
from penchant.gp.users.blocks import arrange
from penchant.likelihoods import Logit, Outcomes, Probit

N_USERS, N_ITEMS, SHARING = 7, 6, 0.4
PRECISE = 1e-8


def make_prior(study, user_rank, item_rank, rng):
    user_factor = rng.standard_normal((N_USERS, user_rank))
    item_factor = 1.5 * rng.standard_normal((N_ITEMS, item_rank))
    votes = study.votes
    blocks = arrange(votes.user, votes.winner, votes.loser, N_ITEMS)
    K_user = SHARING * user_factor @ user_factor.T + (1.0 - SHARING) * np.eye(N_USERS)
    K = np.kron(K_user, item_factor @ item_factor.T)
    return ArrowPrior(user_factor, item_factor, SHARING, blocks), K


@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
@pytest.mark.parametrize(("user_rank", "item_rank"), [(1, 6), (3, 6), (2, 3), (7, 9)])
def test_equals_dense_inference(study, dense_infer, rng, rule, user_rank, item_rank):
    prior, K = make_prior(study, user_rank, item_rank, rng)
    settings = Settings(rule, 1e-11, 1000)
    votes = study.votes
    arrow = infer(prior.refresh, Probit(), Outcomes(), votes.count, settings)
    dense = dense_infer(K, votes, N_ITEMS, Probit(), settings)
    assert arrow.report.converged
    np.testing.assert_allclose(arrow.state.mean, dense.state.mean, atol=PRECISE)
    np.testing.assert_allclose(arrow.state.var, dense.state.var, atol=PRECISE)
    assert arrow.log_evidence == pytest.approx(dense.log_evidence, abs=PRECISE)


def test_one_sweep_of_arbitrary_sites_is_exact(study, rng):
    prior, K = make_prior(study, 2, 4, rng)
    votes = study.votes
    weight, shift = rng.random(len(votes)), rng.standard_normal(len(votes))
    state = prior.refresh(weight, shift)
    A = np.zeros((len(votes), len(K)))
    rows = np.arange(len(votes))
    A[rows, votes.user * N_ITEMS + votes.winner] = 1.0
    A[rows, votes.user * N_ITEMS + votes.loser] = -1.0
    L, b = A.T @ (weight[:, None] * A), A.T @ shift
    covariance = np.linalg.solve(np.eye(len(K)) + K @ L, K)
    np.testing.assert_allclose(state.mean, A @ covariance @ b, atol=1e-11)
    np.testing.assert_allclose(state.var, np.diagonal(A @ covariance @ A.T), atol=1e-11)
    assert state.quadratic == pytest.approx(b @ covariance @ b, abs=1e-10)
    assert state.log_det == pytest.approx(np.linalg.slogdet(np.eye(len(K)) + K @ L)[1], abs=1e-10)
    alpha = (b - L @ covariance @ b).reshape(N_USERS, N_ITEMS)
    for block, residual in zip(prior.blocks, state.response.residual, strict=True):
        expected = np.take_along_axis(alpha[block.users], block.items, axis=1)
        np.testing.assert_allclose(residual, expected, atol=1e-11)


def test_counts_equal_repeated_rows(study, rng):
    prior, _ = make_prior(study, 1, 6, rng)
    votes = study.votes
    again = np.repeat(np.arange(len(votes)), votes.count.astype(int))
    blocks = arrange(votes.user[again], votes.winner[again], votes.loser[again], N_ITEMS)
    repeated = ArrowPrior(prior.user_factor, prior.item_factor, SHARING, blocks)
    settings = Settings(tolerance=1e-11, max_sweeps=1000)
    once = infer(prior.refresh, Logit(), Outcomes(), votes.count, settings)
    each = infer(repeated.refresh, Logit(), Outcomes(), np.ones(len(again)), settings)
    np.testing.assert_allclose(each.state.mean, once.state.mean[again], atol=PRECISE)
    assert each.log_evidence == pytest.approx(once.log_evidence, abs=PRECISE)


def test_two_items_that_the_prior_holds_equal(study, rng):
    prior, _ = make_prior(study, 1, 6, rng)
    twins = prior.item_factor.copy()
    twins[4] = twins[0]
    same = ArrowPrior(prior.user_factor, twins, SHARING, prior.blocks)
    votes = study.votes
    inference = infer(same.refresh, Probit(), Outcomes(), votes.count, Settings())
    between_twins = (np.minimum(votes.winner, votes.loser) == 0) & (
        np.maximum(votes.winner, votes.loser) == 4
    )
    assert between_twins.any()
    assert np.isfinite(inference.log_evidence)
    np.testing.assert_allclose(inference.state.mean[between_twins], 0.0, atol=1e-6)


def test_a_precision_that_is_not_positive_definite_is_an_error():
    L = -2.0 * np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    with pytest.raises(NumericalError, match="positive definite"):
        eliminate(L, np.eye(2)[None])


def test_the_order_of_users_does_not_matter(study, rng):
    prior, _ = make_prior(study, 2, 6, rng)
    votes = study.votes
    new_name = rng.permutation(N_USERS)
    blocks = arrange(new_name[votes.user], votes.winner, votes.loser, N_ITEMS)
    factor = np.empty_like(prior.user_factor)
    factor[new_name] = prior.user_factor
    renamed = ArrowPrior(factor, prior.item_factor, SHARING, blocks)
    weight, shift = rng.random(len(votes)), rng.standard_normal(len(votes))
    a, b = prior.refresh(weight, shift), renamed.refresh(weight, shift)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-11)
    np.testing.assert_allclose(a.var, b.var, atol=1e-11)
