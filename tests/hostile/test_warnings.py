"""A warning names the line that called the package, from however deep inside it comes."""

import warnings

import numpy as np
import pytest

import penchant as pc
from penchant import kernels

APART = pc.Comparisons.from_pairs(["tea", "red"], ["milk", "blue"])
VOTES = pc.Comparisons.from_pairs(
    ["tea", "tea", "milk"], ["milk", "water", "water"], user=["ann", "bob", "ann"]
)
TWO_CAMPS = pc.Comparisons.from_pairs(
    ["tea"] * 6 + ["milk"] * 6, ["milk"] * 6 + ["tea"] * 6, user=list("aaabbbcccddd")
)
MANY_APART = pc.Comparisons.from_pairs(["tea"] * 9 + ["red"] * 9, ["milk"] * 9 + ["blue"] * 9)
SELF_LOOP = np.array([[1.0, 1.0], [1.0, 0.0]])


def rows_with_a_fault(folder):
    path = folder / "votes.csv"
    path.write_text("winner,loser\ntea,milk\ntea,tea\n", encoding="utf-8")
    return path


SAID = {
    "items that nothing links": lambda _: pc.PreferenceGP(optimize=None).fit(None, APART),
    "features of people": lambda _: pc.MultiUserGP(max_user_rank=1, optimize=None).fit(
        None, TWO_CAMPS, user_features=np.array([[0.0], [0.1], [3.0], [3.1]])
    ),
    "constant features": lambda _: pc.PreferenceGP(optimize=None).fit(np.ones((3, 1)), VOTES),
    "self-loops": lambda _: kernels.undirected(SELF_LOOP),
    "chains that are short": lambda _: pc.CommunityGP(
        inference="mcmc", n_sweeps=2, personal=False, progress=False
    ).fit(None, VOTES),
    "an optimiser that is stopped": lambda _: pc.RankSVM(max_iter=1, tol=1e-12).fit(
        np.arange(12.0).reshape(4, 3) ** 2, [3, 1, 2, 0], qid=[1, 1, 1, 1]
    ),
    "rows left out": lambda folder: pc.read_comparisons(rows_with_a_fault(folder), skip_bad=True),
    "several fits": lambda _: pc.evaluate([pc.PreferenceGP(optimize=None)], MANY_APART, folds=2),
}


@pytest.mark.parametrize("case", SAID.values(), ids=SAID)
def test_a_warning_names_the_caller(case, tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        case(tmp_path)
    assert told
    assert {each.filename for each in told} == {__file__}
