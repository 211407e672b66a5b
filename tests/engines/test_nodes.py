"""Whole machines of a cluster die in a sweep: the fit ends with the same result."""

import threading
import time

import numpy as np
import pytest

import penchant as pc
from penchant.gp import Sweeps

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'penchant[cluster]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def few_buckets():
    """All 64 buckets: with eight a fit may end before its node dies."""


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def votes(vote_files):
    with pc.scan_comparisons(str(vote_files / "part-*.csv"), shards=8) as votes:
        yield votes


@pytest.fixture(scope="module")
def expected(votes):
    return pc.MultiUserGP(optimize=None).fit(None, votes)


@pytest.mark.parametrize("seed", range(10))
def test_a_node_that_dies_in_a_sweep(cluster, votes, expected, seed, monkeypatch):
    """Killed are its raylet and workers, a random moment after a random sweep was handed out."""
    rng = np.random.default_rng(seed)
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    at_sweep, after = rng.integers(1, 5), rng.uniform(0.0, 0.3)
    killed, propose = [], Sweeps.propose

    def kill():
        time.sleep(after)
        cluster.remove_node(node, allow_graceful=False)
        killed.append(seed)

    def counted(self, step):
        counted.sweep += 1
        if counted.sweep == at_sweep:
            threading.Thread(target=kill).start()
        return propose(self, step)

    counted.sweep = 0
    monkeypatch.setattr(Sweeps, "propose", counted)
    model = pc.MultiUserGP(optimize=None, engine="ray").fit(None, votes)
    assert killed == [seed]
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, abs=1e-8)
    np.testing.assert_allclose(model.predict(users="u3"), expected.predict(users="u3"), atol=1e-8)
