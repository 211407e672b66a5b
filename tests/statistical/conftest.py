"""What calibrated means, in standard errors: shared by all statistical tests.

What was measured is recorded with each test and printed at the end of the run.
"""

import numpy as np
import pytest
from scipy.special import ndtr

SIGMAS = 4.0
REACH = {0.50: 0.67449, 0.90: 1.64485, 0.95: 1.95996}
"""Half-widths of the central intervals of a standard normal variable."""


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    measured = [r for r in reports if r.when == "call" and r.user_properties]
    if measured:
        terminalreporter.section("measured")
    for report in measured:
        values = "; ".join(f"{name}: {value}" for name, value in report.user_properties)
        terminalreporter.line(f"{report.nodeid.rpartition('/')[2]}  {values}")


@pytest.fixture
def assert_covered(record_property):
    """Intervals at 50, 90 and 95 % hold the truth that often; one z-score a study."""

    def check(z):
        shares = [np.mean(np.abs(z) < reach) for reach in REACH.values()]
        record_property(
            f"within 50, 90, 95 % intervals of {len(z)}", " ".join(f"{s:.1%}" for s in shares)
        )
        for share, reach in REACH.items():
            sigma = np.sqrt(len(z) * share * (1.0 - share))
            hits = np.count_nonzero(np.abs(z) < reach)
            assert abs(hits - len(z) * share) < SIGMAS * sigma, f"{share:.0%}: {hits} of {len(z)}"

    return check


@pytest.fixture
def assert_uniform(record_property):
    """Numbers in [0, 1), one a study, look uniform: by a χ² test over bins, and by their mean."""

    def check(level, n_bins=10):
        bins = np.bincount((np.asarray(level) * n_bins).astype(int), minlength=n_bins)
        expected = len(level) / n_bins
        chi2 = ((bins - expected) ** 2 / expected).sum()
        record_property(f"χ² of {n_bins} bins", f"{chi2:.1f}")
        assert chi2 < (n_bins - 1) + SIGMAS * np.sqrt(2 * (n_bins - 1)), bins
        centre = np.mean(level) - 0.5
        assert abs(centre) < SIGMAS / np.sqrt(12 * len(level)), bins

    return check


@pytest.fixture
def assert_frequencies(record_property):
    """Events happen as often as their probabilities say, among the unlikely and the likely."""

    def check(prob, happened):
        prob, happened = np.asarray(prob), np.asarray(happened)
        for part in (prob < 0.5, prob >= 0.5):
            sigma = np.sqrt((prob[part] * (1 - prob[part])).sum() + 1e-9)
            surplus = happened[part].sum() - prob[part].sum()
            record_property("events beyond the expected, in σ", f"{surplus / sigma:+.2f}")
            assert abs(surplus) < SIGMAS * sigma, f"{surplus:+.1f} events, σ = {sigma:.1f}"

    return check


@pytest.fixture
def level_of():
    """Where a normal variable's cumulative distribution puts a value."""

    def level(value, mean, var):
        return float(np.minimum(ndtr((value - mean) / np.sqrt(var)), 1.0 - 1e-12))

    return level
