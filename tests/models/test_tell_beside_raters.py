"""`tell` beside raters: reliabilities stay as learned, and `relearn` equals a refit."""

import numpy as np
import pytest

import penchant as pc


@pytest.mark.parametrize("raters", ["lapse", "noise"])
def test_reliabilities_stay_until_relearned(raters):
    data = pc.datasets.simulate_study(8, 5, 1, n_answers=20, random_state=1).comparisons
    train, more = data.split(0.25, random_state=0)
    whole = pc.PreferenceGP(raters=raters, random_state=0).fit(None, data)
    told = pc.PreferenceGP(raters=raters, random_state=0).fit(None, train)
    before = told.likelihood_
    told = told.tell(more)
    assert told.likelihood_ == before
    assert np.abs(told.predict() - whole.predict()).max() > 1e-4  # in that it differs from a refit
    again = pc.PreferenceGP(raters=raters, random_state=0).fit(None, train)
    again = again.tell(more, relearn=0.0)
    assert again.predict() == pytest.approx(whole.predict(), abs=1e-3)
    assert again.likelihood_ != before
