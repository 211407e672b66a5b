"""EP against a long MCMC run (numbers made by make_mcmc_reference.py beside this file)."""

import json
from pathlib import Path

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF


def test_ep_agrees_with_a_long_chain():
    reference = json.loads(Path(__file__).with_name("mcmc_reference.json").read_text())
    data = pc.Comparisons.from_pairs(
        reference["winner"], reference["loser"], items=range(len(reference["mean"]))
    )
    gp = pc.PreferenceGP(RBF(1.2, 2.0), optimize=None).fit(np.array(reference["X"]), data)
    mean, std = gp.belief().mean, np.sqrt(gp.belief().var)
    sd = np.array(reference["sd"])
    noise = 4 * np.array(reference["standard_error"])
    assert np.all(np.abs(mean - reference["mean"]) < 0.02 * sd + noise)
    np.testing.assert_allclose(std, sd, rtol=0.02)
    assert gp.log_evidence_ == pytest.approx(reference["log_evidence"], abs=0.02)
