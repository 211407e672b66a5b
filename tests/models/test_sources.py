"""One scale for all parts of a prior, and what features say about relations."""

import numpy as np
import pytest
from scipy import sparse

import penchant as pc
from penchant.kernels import RBF, Independent, Inputs, Linear, RegularizedLaplacian, as_relations
from penchant.models import (
    balanced_kernel,
    default_kernel,
    difference_variance,
    graph_feature_agreement,
    relation_weight,
    shares,
    source_name,
    typical_variance,
)

DIFFERENCE, MOST_WEIGHT = 2.0, 30.0  # a source's first variance of a difference; bound of weights
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


def cosines(X):
    """Dense, around the mean; nothing with itself."""
    C = X - X.mean(axis=0)
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    return np.where(np.eye(len(C), dtype=bool), np.nan, C @ C.T)


def test_a_typical_difference_is_the_median_one(papers):
    *_, links, _ = papers
    links = links.copy()
    links[:5], links[:, :5] = 0.0, 0.0  # a few stand alone
    items = Inputs(None, as_relations({"r": links}, N), np.arange(N))
    kernel = RegularizedLaplacian("r", 2.0, 9.0)
    K = kernel(items)
    pairs = [K[i, i] + K[j, j] - 2 * K[i, j] for i in range(N) for j in range(i)]
    assert typical_variance(kernel, items) == pytest.approx(np.median(pairs))
    assert typical_variance(kernel, items) < 0.5 * difference_variance(kernel, items)


def test_agreement_against_a_dense_computation(papers):
    _, words, links, _ = papers
    linked, degree = links > 0, round(links.sum() / N)
    expected, rng = [], np.random.default_rng(0)
    for _ in range(2):
        order = rng.permutation(words.shape[1])
        halves = [cosines(words[:, half]) for half in np.array_split(order, 2)]
        for hidden, known in (halves, halves[::-1]):
            least = np.sort(np.nan_to_num(known, nan=-2.0), axis=1)[:, -degree, None]
            near = known >= least - 1e-9
            per_item = [hidden[i, near[i]].mean() for i in range(N)]
            found = np.array([hidden[linked].mean(), np.mean(per_item)])
            expected.append((found - np.nanmean(hidden)) / np.nanstd(hidden))
    found = graph_feature_agreement(words, relation(links))
    assert found[:2] == pytest.approx(tuple(np.mean(expected, axis=0)))
    assert found.error == pytest.approx(np.sqrt(2.0 / links.sum() + 1.0 / (N * degree)))


def test_links_that_foresee_features_weigh_much_and_others_little(papers):
    _, words, links, shuffled = papers
    assert relation_weight(words, relation(links)) > 1.0
    assert relation_weight(words, relation(shuffled)) == 1.0 / MOST_WEIGHT
    assert relation_weight(words, relation(np.zeros((N, N)))) == 1.0 / MOST_WEIGHT


def test_features_without_order_judge_nobody(papers):
    """Few columns count as much as a relation; of many there is little to expect."""
    _, words, links, _ = papers
    rng = np.random.default_rng(8)
    few = [relation_weight(rng.random((N, 4)), relation(links)) for _ in range(20)]
    assert np.exp(np.mean(np.log(few))) == pytest.approx(1.0, abs=0.3)
    assert relation_weight(rng.permuted(words, axis=0), relation(links)) > 2.0
    assert relation_weight(np.ones((N, 2)), relation(links)) == 1.0


def test_one_feature_foresees_itself(papers):
    topic, _, links, _ = papers
    X = (topic == 0).astype(float)[:, None]
    found = graph_feature_agreement(X, relation(links))
    assert found.features > found.links > 0.0


def test_links_of_different_weights_count_as_much_as_they_weigh(papers):
    _, words, links, shuffled = papers
    both = graph_feature_agreement(words, relation(links + 1e-6 * shuffled))
    assert both.links == pytest.approx(
        graph_feature_agreement(words, relation(links)).links, abs=1e-4
    )


def test_sparse_features_say_the_same_as_dense_ones(papers):
    _, words, links, _ = papers
    thin = sparse.csr_array(words)
    found, expected = (tuple(graph_feature_agreement(X, relation(links))) for X in (thin, words))
    assert found == pytest.approx(expected)


def test_a_sample_of_items_foresees_as_all_do(papers, monkeypatch):
    _, words, links, _ = papers
    many = sparse.csr_array(np.tile(words, (8, 1)))
    every = as_relations({"r": sparse.block_diag([links] * 8).tocsr()}, 8 * N)["r"]
    sampled = graph_feature_agreement(many, every)
    monkeypatch.setattr("penchant.models.graph_agreement.COMPARED_ITEMS", (8 * N, 8 * N))
    assert sampled[:2] == pytest.approx(graph_feature_agreement(many, every)[:2], abs=0.1)


def test_the_sources_begin_with_one_variance_each_divided_by_weight(papers):
    _, words, links, shuffled = papers
    items = Inputs(words, as_relations({"a": links, "b": shuffled}, N), np.arange(N))
    kernel = balanced_kernel(items, None)
    features, a, b = kernel.parts
    known = difference_variance(features, items)
    weight = relation_weight(words, items.relations["a"])
    assert typical_variance(a, items) == pytest.approx(weight * known)
    assert typical_variance(b, items) == pytest.approx(known / MOST_WEIGHT)
    total = known * (1.0 + weight + 1.0 / MOST_WEIGHT)
    assert total == pytest.approx(3 * DIFFERENCE)
    found = shares(kernel, kernel, items)
    assert list(found) == ["features", "a", "b"]
    assert sum(share.prior for share in found.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("given", ["features", "a relation", "two relations"])
def test_sources_begin_at_the_same_scale(papers, given):
    _, words, links, shuffled = papers
    graphs = {"features": {}, "a relation": {"r": links}}.get(given, {"a": links, "b": shuffled})
    X, measure = (None, typical_variance) if graphs else (words, difference_variance)
    items = Inputs(X, as_relations(graphs, N), np.arange(N))
    for part in balanced_kernel(items, None).parts[: max(1, len(graphs))]:
        assert measure(part, items) == pytest.approx(DIFFERENCE)


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
    kernels = {"alone": None, "balanced": None, "unit variances": default_kernel(items)}
    errors = {name: [] for name in kernels}
    for seed in range(5):
        known = few_pairs(topic, seed)
        for name, kernel in kernels.items():
            graphs = None if name == "alone" else {"r": shuffled}
            f = pc.PreferenceGP(kernel).fit(words, known, graphs).predict()
            errors[name].append(np.mean(f[topic == 0][:, None] < f[topic != 0]))
    alone, balanced, unit = map(np.mean, errors.values())
    assert balanced < alone + 0.002  # both are nearly zero
    assert unit > alone + 0.01


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
    moved = tuple(graph_feature_agreement(X[order], relation(links[np.ix_(order, order)])))
    assert moved == pytest.approx(tuple(graph_feature_agreement(X, relation(links))), abs=1e-12)


def test_links_predict_nearly_as_alone_where_features_say_nothing(rng):
    """Two groups of linked items, features that are noise, and fewer answers than features."""
    n, good = 120, np.arange(120) < 60
    same = good[:, None] == good
    links = np.triu(same & (rng.random((n, n)) < 0.1), 1).astype(float)
    X = rng.standard_normal((n, 30))
    pairs = np.column_stack([rng.choice(60, 460), 60 + rng.choice(60, 460)])
    data = pc.Comparisons.from_pairs(*pairs[:60].T, items=range(n))
    gp = pc.PreferenceGP().fit(X, data, {"links": links + links.T})
    alone = pc.PreferenceGP().fit(None, data, {"links": links + links.T})
    assert gp.shares_["links"].posterior > 0.5
    got, best = (np.log(m.predict_proba(pairs[60:])).mean() for m in (gp, alone))
    assert got > best - 0.02


def test_items_vary_more_where_features_say_little_of_grades():
    """Exact answers about two grades: with the learned features the log-likelihood is −.41."""
    rng = np.random.default_rng(0)
    grade = rng.integers(2, size=60)
    X = rng.standard_normal((60, 12)) + 0.5 * grade[:, None] * (rng.random(12) < 0.3)
    first, second = rng.integers(60, size=(2, 3_000))
    gap = grade[first] - grade[second]
    first, second, gap = (each[gap != 0] for each in (first, second, gap))
    pair = np.where(gap > 0, [first, second], [second, first])
    model = pc.PreferenceGP().fit(X, pc.Comparisons.from_pairs(*pair[:, :60], items=range(60)))
    own = model.shares_["item effects"]
    assert own.posterior > own.prior
    assert np.log(model.predict_proba(pair[:, 60:].T)).mean() > -0.15
