"""One scale for all parts of a prior, and what features say about relations."""

import numpy as np
import pytest
from scipy import sparse

import penchant as pc
from penchant.kernels import RBF, Independent, Inputs, Linear, RegularizedLaplacian, as_relations
from penchant.models.defaults import DIFFERENCE, arbitrated_kernel, default_kernel
from penchant.models.sources import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    alikeness,
    difference_variance,
    relation_weight,
    shares,
    source_name,
)

N = 90


@pytest.fixture(scope="module")
def papers():
    """Words that follow one of three topics, links within topics, and the same links anywhere."""
    rng = np.random.default_rng(4)
    topic = rng.integers(3, size=N)
    words = (rng.random((N, 200)) < (0.03 + 0.3 * (rng.random((3, 200)) < 0.2))[topic]).astype(
        float
    )
    same = topic[:, None] == topic
    links = np.triu(rng.random((N, N)) < np.where(same, 0.15, 0.003), 1).astype(float)
    links += links.T
    order = rng.permutation(N)
    return topic, words, links, links[np.ix_(order, order)]


def relation(graph):
    return as_relations({"r": graph}, len(graph))["r"]


def test_the_variance_of_a_random_difference_is_that_of_all_pairs(rng):
    X = rng.standard_normal((20, 3))
    kernel = RBF(1.3, 2.0) + Linear(0.5)
    K = kernel(X)
    pairs = [K[i, i] + K[j, j] - 2 * K[i, j] for i in range(20) for j in range(20) if i != j]
    found = difference_variance(kernel, Inputs(X, index=np.arange(20)))
    assert found == pytest.approx(np.mean(pairs))


def test_a_sample_of_items_stands_for_all(rng):
    items = Inputs(rng.standard_normal((3000, 4)), index=np.arange(3000))
    kernel = RBF(2.0)
    expected = np.mean(2.0 - 2.0 * kernel.paired(items, items.take(rng.permutation(3000))))
    assert difference_variance(kernel, items) == pytest.approx(expected, rel=0.1)


def test_one_item_has_no_difference():
    assert difference_variance(Independent(), Inputs(index=np.arange(1))) == 0.0


def test_alikeness_against_a_dense_computation(papers):
    _, words, links, _ = papers
    C = words - words.mean(axis=0)
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    cosine = (C @ C.T)[np.triu_indices(N, 1)]
    linked = links[np.triu_indices(N, 1)] > 0
    expected = (cosine[linked].mean() - cosine.mean()) / cosine.std()
    assert alikeness(words, relation(links)) == pytest.approx(expected)


def test_links_that_features_vouch_for_weigh_much_and_others_little(papers):
    _, words, links, shuffled = papers
    assert relation_weight(words, relation(links)) > 10.0 * LEAST_WEIGHT
    assert relation_weight(words, relation(shuffled)) == LEAST_WEIGHT
    assert relation_weight(words, relation(np.zeros((N, N)))) == LEAST_WEIGHT
    assert relation_weight(np.ones((N, 2)), relation(links)) == LEAST_WEIGHT
    same = (words @ words.T >= words.sum(axis=1)).astype(float)
    np.fill_diagonal(same, 0.0)
    assert relation_weight(words, relation(np.maximum(same, same.T))) <= MOST_WEIGHT


def test_sparse_features_say_the_same_as_dense_ones(papers):
    _, words, links, _ = papers
    thin = sparse.csr_array(words)
    assert alikeness(thin, relation(links)) == pytest.approx(alikeness(words, relation(links)))


def test_the_sources_begin_with_one_variance_of_a_difference(papers):
    _, words, links, shuffled = papers
    items = Inputs(words, as_relations({"a": links, "b": shuffled}, N), np.arange(N))
    kernel = arbitrated_kernel(items, None)
    assert difference_variance(kernel, items) == pytest.approx(DIFFERENCE)
    found = shares(kernel, kernel, items)
    assert list(found) == ["features", "a", "b"]
    assert sum(share.prior for share in found.values()) == pytest.approx(1.0)
    assert found["b"].prior == pytest.approx(LEAST_WEIGHT * found["features"].prior)
    weight = relation_weight(words, items.relations["a"])
    assert found["a"].prior == pytest.approx(weight * found["features"].prior)


@pytest.mark.parametrize("given", ["features", "relations"])
def test_a_single_source_begins_with_all_of_it(papers, given):
    _, words, links, _ = papers
    X, graphs = (words, {}) if given == "features" else (None, {"r": links})
    items = Inputs(X, as_relations(graphs, N), np.arange(N))
    kernel = arbitrated_kernel(items, None)
    assert difference_variance(kernel, items) == pytest.approx(DIFFERENCE)


def test_relations_without_features_begin_alike(papers):
    _, _, links, shuffled = papers
    items = Inputs(None, as_relations({"a": links, "b": shuffled}, N), np.arange(N))
    found = shares(*[arbitrated_kernel(items, None)] * 2, items)
    assert found["a"].prior == pytest.approx(0.5)


def few_pairs(topic, seed, n_pairs=10):
    rng = np.random.default_rng(seed)
    winner = rng.choice(np.flatnonzero(topic == 0), n_pairs)
    loser = rng.choice(np.flatnonzero(topic != 0), n_pairs)
    return pc.Comparisons.from_pairs(winner, loser, items=range(N))


@pytest.mark.filterwarnings("ignore")
def test_a_useless_relation_does_not_ruin_good_features(papers):
    """Mean error over draws of ten answers, with the links against without them."""
    topic, words, _, shuffled = papers
    items = Inputs(words, as_relations({"r": shuffled}, N), np.arange(N))
    kernels = {"alone": None, "arbitrated": None, "unit variances": default_kernel(items)}
    errors = {name: [] for name in kernels}
    for seed in range(8):
        known = few_pairs(topic, seed)
        for name, kernel in kernels.items():
            graphs = None if name == "alone" else {"r": shuffled}
            f = pc.PreferenceGP(kernel).fit(words, known, graphs).predict()
            errors[name].append(np.mean(f[topic == 0][:, None] < f[topic != 0]))
    alone, arbitrated, unit = map(np.mean, errors.values())
    assert arbitrated < 1.1 * alone
    assert unit > 1.1 * alone


def test_shares_are_told_and_kept(papers, tmp_path):
    topic, words, links, _ = papers
    gp = pc.PreferenceGP().fit(sparse.csr_array(words), few_pairs(topic, 0), {"cites": links})
    assert list(gp.shares_) == ["features", "cites"]
    for column in zip(*gp.shares_.values(), strict=True):
        assert sum(column) == pytest.approx(1.0)
    assert gp.report_.shares == gp.shares_
    gp.save(tmp_path / "model.penchant")
    assert pc.load(tmp_path / "model.penchant").shares_ == gp.shares_
    gp.tell([(0, 1)])
    assert gp.report_.shares == gp.shares_


def test_a_kernel_made_by_hand_keeps_its_parameters(papers):
    topic, words, links, _ = papers
    kernel = RBF(9.0) + RegularizedLaplacian("cites", 2.0, 3.0) + Independent(0.1)
    gp = pc.PreferenceGP(kernel, optimize=None).fit(words, few_pairs(topic, 1), {"cites": links})
    assert gp.kernel_ == kernel
    told = gp.shares_
    assert list(told) == ["features", "cites", "item effects"]
    assert all(share.prior == share.posterior for share in told.values())


def test_parts_of_a_kind_are_numbered():
    items = Inputs(np.arange(5.0)[:, None], index=np.arange(5))
    kernel = RBF() + Linear() + 2.0 * Independent()
    assert list(shares(kernel, kernel, items)) == [
        "features",
        "features 2",
        "Constant × item effects",
    ]
    assert source_name(RegularizedLaplacian("cites")) == "cites"


def test_the_order_of_items_says_nothing():
    rng = np.random.default_rng(5)
    X, links = rng.normal(size=(9, 3)), rng.random((9, 9))
    links = links + links.T
    order = rng.permutation(9)
    moved = alikeness(X[order], relation(links[np.ix_(order, order)]))
    assert moved == pytest.approx(alikeness(X, relation(links)), abs=1e-12)
