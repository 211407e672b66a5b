"""Ray: the results of the local engine, also where a worker dies in a sweep."""

import os
import signal

import numpy as np
import pytest

import penchant as pc
from penchant.engines import Parts, open_engine

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'penchant[cluster]'")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_the_results_of_the_local_engine(vote_files, tmp_path):
    with pc.scan_comparisons(str(vote_files / "part-*.csv"), shards=7) as votes:
        local = pc.MultiUserGP(optimize=None).fit(None, votes)
        there = pc.MultiUserGP(optimize=None, engine="ray").fit(None, votes)
        assert there.log_evidence_ == pytest.approx(local.log_evidence_, abs=1e-8)
        np.testing.assert_allclose(there.predict(users="u3"), local.predict(users="u3"), atol=1e-8)
        there.write_predictions(tmp_path / "all")
        assert len(list((tmp_path / "all").iterdir())) == 8


def test_the_communities_of_the_local_engine(vote_files):
    settings = {"personal": False, "optimize": None, "n_communities": 2}
    with pc.scan_comparisons(str(vote_files / "part-*.csv"), shards=7) as votes:
        local = pc.CommunityGP(**settings).fit(None, votes)
        there = pc.CommunityGP(engine="ray", **settings).fit(None, votes)
        np.testing.assert_allclose(there.membership_, local.membership_, atol=1e-8)


class Numbers:
    """A part that is its own number."""

    nbytes = 8

    def __init__(self, number):
        self.number = number


def die_once(part, state, told):
    """Add to the state; the worker of part 3 kills itself, once, in sweep 2."""
    folder, sweep = told
    total = state.get("total", np.zeros(1)) + part.number + sweep
    if part.number == 3 and sweep == 2 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"total": total}, float(total[0])


def test_a_worker_that_dies_is_replaced(tmp_path):
    parts = Parts(Numbers, ((0, 1), (2, 3), (4, 5), (6, 7)), tmp_path, 1 << 20)
    with open_engine("ray", parts) as engine:
        for sweep in range(4):
            results = engine.sweep(die_once, (tmp_path, sweep))
    assert (tmp_path / "died").exists()
    assert results == [4.0 * number + 6.0 for number in range(8)]
