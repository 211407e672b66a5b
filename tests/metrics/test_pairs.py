import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss as sklearn_log_loss

from penchant.errors import DataError
from penchant.metrics import calibration, log_loss, pair_error

probabilities = arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))


def test_pair_error_counts_a_guess_half():
    assert pair_error([0.5]) == 0.5
    assert pair_error([0.51, 0.49, 0.5, 1.0]) == pytest.approx(1.5 / 4)


@given(probabilities)
def test_swapping_every_pair_turns_right_into_wrong(p):
    assert pair_error(p) + pair_error(1.0 - p) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "metric", [pair_error, log_loss, lambda p, c: calibration(p, counts=c).error]
)
def test_a_count_is_the_row_repeated(metric):
    rng = np.random.default_rng(0)
    p, counts = rng.random(20), rng.integers(0, 4, 20)
    assert metric(p, counts) == pytest.approx(metric(np.repeat(p, counts), None))


def test_log_loss_agrees_with_sklearn():
    p = np.random.default_rng(1).random(50)
    expected = sklearn_log_loss(np.ones(50), np.column_stack([1 - p, p]), labels=[0, 1])
    assert log_loss(p) == pytest.approx(expected)


def test_log_loss_is_infinite_only_for_an_observed_impossibility():
    assert log_loss([0.0, 1.0]) == np.inf
    assert log_loss([0.0, 1.0], counts=[0, 3]) == 0.0


def test_calibration_against_a_loop():
    rng = np.random.default_rng(2)
    p, y = rng.random(300), rng.integers(0, 2, 300)
    result = calibration(p, y, n_bins=7)
    error = 0.0
    for b in range(7):
        inside = (p >= b / 7) & (p < (b + 1) / 7)
        assert result.count[b] == inside.sum()
        np.testing.assert_allclose(result.predicted[b], p[inside].mean())
        np.testing.assert_allclose(result.observed[b], y[inside].mean())
        error += inside.mean() * abs(p[inside].mean() - y[inside].mean())
    assert result.error == pytest.approx(error)
    np.testing.assert_allclose(result.centre, (np.arange(7) + 0.5) / 7)


@given(probabilities, st.integers(1, 12))
def test_oriented_calibration_is_symmetric(p, n_bins):
    result = calibration(p, n_bins=n_bins)
    assert result.count.sum() == 2 * p.size
    # p = 1/2 sits on an edge when the bins are even in number; its twin cannot be elsewhere.
    if not np.any(p == 0.5):
        np.testing.assert_allclose(result.count, result.count[::-1])
        np.testing.assert_allclose(result.observed, 1.0 - result.observed[::-1])


def test_calibrated_predictions_have_little_error():
    rng = np.random.default_rng(3)
    n = 20_000
    p = rng.random(n)
    oriented = np.where(rng.random(n) < p, p, 1.0 - p)  # the winner named first
    result = calibration(oriented)
    sigma = np.sqrt(result.predicted * (1 - result.predicted) / result.count)
    assert np.all(np.abs(result.observed - result.predicted) < 4 * sigma)
    assert calibration(np.clip(oriented * 1.2 - 0.1, 0, 1)).error > 3 * result.error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_error([0.2, 1.5]), r"p of row 1 is 1.5.*within 0 and 1"),
        (lambda: pair_error([np.nan]), r"p of row 0 is nan"),
        (lambda: pair_error([]), r"shape \(0,\).*non-empty"),
        (lambda: pair_error([[0.5]]), r"shape \(1, 1\)"),
        (lambda: log_loss([0.5, 0.5], counts=[1]), r"counts has 1 entries: it must have 2"),
        (lambda: log_loss([0.5], counts=[0]), "not all zero"),
        (lambda: calibration([0.5], n_bins=0), "at least one bin"),
        (lambda: calibration([0.5], [1, 0]), "outcome has 2 entries"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()
