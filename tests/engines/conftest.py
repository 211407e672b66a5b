"""Votes of people with tastes of their own, in two files."""

import numpy as np
import pytest

import penchant as pc

N_BUCKETS = 8


@pytest.fixture(scope="module", autouse=True)
def few_buckets():
    """Eight buckets in place of 64: an eighth of the files and calls of a sweep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penchant.data.shards.N_BUCKETS", N_BUCKETS)
        yield


@pytest.fixture(scope="session")
def vote_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    rng = np.random.default_rng(0)
    n_users, n_items, m = 150, 7, 1500
    utility = rng.normal(size=n_items) + rng.normal(size=(n_users, n_items))
    user, a = rng.integers(n_users, size=m), rng.integers(n_items, size=m)
    b = (a + 1 + rng.integers(n_items - 1, size=m)) % n_items
    first = utility[user, a] - utility[user, b] + rng.normal(size=m) > 0
    lines = [
        f"item {w},item {x},u{u}"
        for w, x, u in zip(np.where(first, a, b), np.where(first, b, a), user, strict=True)
    ]
    for name, some in (("whole", lines), ("part-a", lines[:500]), ("part-b", lines[500:])):
        (folder / f"{name}.csv").write_text("winner,loser,user\n" + "\n".join(some) + "\n")
    return folder


@pytest.fixture(scope="session")
def whole(vote_files):
    return pc.read_comparisons(vote_files / "whole.csv")


@pytest.fixture(scope="session")
def in_memory(whole):
    return pc.MultiUserGP(optimize=None).fit(None, whole)
