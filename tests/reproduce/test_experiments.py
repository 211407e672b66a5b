"""Every experiment in small, on simulated data; in quick form as a whole where time allows."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.reproduce import communities, label_noise, ohsumed, results, sparse_ep, xpgp
from penchant.reproduce.community_trials import draw_synthetic, sushi_trial
from penchant.reproduce.stand_ins import graded_documents, linked_papers, rankings_like_sushi

SECONDS = ("xpgp", "perceptron")
"""Experiments whose quick form takes a few seconds without data."""


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))


def check(name, folder):
    page = results.produce(name, quick=True, out=folder)
    assert "**Simulated data**" in page or "Left out" in page
    claims = results.claims_of(page)
    assert claims
    assert {claim[2] for claim in claims} <= {
        "confirmed",
        "not confirmed",
        "cannot be tested here",
    }
    assert all(figure.stat().st_size < 600_000 for figure in folder.glob("*.png"))
    assert list(folder.glob("*.png"))


@pytest.mark.parametrize("name", SECONDS)
def test_quick_without_data(name, no_data, tmp_path):
    check(name, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(results.EXPERIMENTS) - set(SECONDS)))
def test_quick_without_data_takes_longer(name, no_data, tmp_path):
    check(name, tmp_path / "out")


def test_a_full_run_without_data_says_what_to_get(no_data):
    with pytest.raises(DataError, match="LETOR"):
        xpgp.run()


def test_pairs_of_a_query_are_all_pairs_of_different_grades():
    query = ohsumed.draw_queries(graded_documents().whole(), 1, 50)[0]
    better, worse = query.pairs.T
    assert np.all(query.y[better] > query.y[worse])
    assert len(query.pairs) == np.sum(query.y[:, None] > query.y)
    assert query.X.std(axis=0) == pytest.approx(np.ones(query.X.shape[1]))


def test_graphs_of_a_query_are_cosines():
    query = ohsumed.draw_queries(graded_documents().whole(), 1, 50)[0]
    graphs = query.graphs()
    dense, near = (graphs[name].weights.toarray() for name in ("dense", "kNN"))
    i, j = 3, int(dense[3].argmax())
    cosine = query.X[i] @ query.X[j] / np.linalg.norm(query.X[i]) / np.linalg.norm(query.X[j])
    assert dense[i, j] == pytest.approx(cosine)
    assert near[i, j] == dense[i, j]
    linked = (near > 0).sum(axis=1)
    assert linked.min() >= ohsumed.NEIGHBOURS
    assert np.all((near == 0) | (near == dense))


def test_every_noise_level_has_every_method():
    parts = graded_documents(8, 12)
    table = label_noise.noise_table(parts.train, parts.test, n_repeats=2)
    assert list(table) == list(label_noise.NOISE)
    assert all(set(errors) == set(label_noise.PRINTED) for errors in table.values())
    head, rows = label_noise.noise_rows(table, with_paper=True)
    assert all(len(row) == len(head) for row in rows)
    assert len(label_noise.claims({"simulated": table})) == 2


def test_kpcrank_against_its_best_rival():
    ahead = {"KPCRank": np.array([0.1, 0.11]), "RLS": np.array([0.3, 0.3])}
    assert label_noise.against_best(ahead)[0] == -1
    assert label_noise.against_best({**ahead, "KPCR": np.array([0.1, 0.11])})[0] == 0
    assert label_noise.against_best({**ahead, "KPCR": np.array([0.01, 0.02])})[0] == 1


def test_the_figure_of_many_users_has_all_methods():
    sushi = rankings_like_sushi(30)
    curves = {
        learned: sparse_ep.figure_points(sushi, (12, 30), learned) for learned in (True, False)
    }
    for points in curves.values():
        assert {len(line) for line in points.values()} == {2}
        assert points["EP"][1].accuracy > points["Sparse-EP"][1].accuracy
    sparse = sparse_ep.claims((12, 60), curves)[0]
    assert sparse.holds is False


@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
def test_communities_are_compared_with_everybodys_own():
    sushi = rankings_like_sushi(20)
    found = communities.compare(
        lambda seed: sushi_trial(seed, 20, sushi=sushi), range(1), quick=True
    )
    assert list(found) == [communities.FULL, communities.MIXTURE, communities.PERSONAL]
    assert all(0.5 < timed.accuracy <= 1.0 for each in found.values() for timed in each)
    claims = communities._real_claims({"sushi, 60 % of the pairs": found})
    assert len(claims) == 3


def test_the_synthetic_set_is_the_papers():
    trial = draw_synthetic(0)
    assert np.bincount(trial.communities).tolist() == [15] * 4
    assert len(trial.test) == round(0.4 * 60 * 45)


def test_linked_papers_cite_within_their_topic():
    cora = linked_papers()
    citing, cited = cora.citations.nonzero()
    assert np.mean(cora.labels[citing] == cora.labels[cited]) > 0.6
    assert not np.any(citing == cited)
