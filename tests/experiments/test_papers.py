"""Every experiment of a paper in small, on simulated data; in quick form where time allows."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import active, communities, kpcrank, perceptron, sparse_ep, xpgp
from experiments import page as results
from experiments.data import graded_documents, linked_papers, rankings_like_sushi
from penchant.ask import CRITERIA, WIN, Joint
from penchant.data import Comparisons
from penchant.datasets import load_cora
from penchant.errors import DataError
from penchant.io import GradedDocuments
from penchant.likelihoods import Probit
from penchant.online import Round

SECONDS = ("xpgp", "perceptron")
"""Experiments whose quick form takes a few seconds without data."""


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    monkeypatch.setattr(results, "RESOLUTION", 40)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SECONDS else pytest.mark.slow)
        for name in results.EXPERIMENTS
    ],
)
def test_quick_without_data(name, no_data, tmp_path):
    folder = tmp_path / "out"
    page = results.produce(name, quick=True, out=folder)
    assert "**Simulated data**" in page or "Left out" in page
    claims = results.claims_of(page)
    assert claims
    assert {claim[2] for claim in claims} <= {"confirmed", "not confirmed", "cannot be tested here"}
    assert all(figure.stat().st_size < 600_000 for figure in folder.glob("*.png"))
    assert list(folder.glob("*.png"))


def test_a_full_run_without_data_says_what_to_get(no_data):
    with pytest.raises(DataError, match="LETOR"):
        xpgp.run()


def test_pairs_of_a_query_are_all_pairs_of_different_grades():
    query = xpgp.draw_queries(graded_documents().whole(), 1, 50)[0]
    better, worse = query.pairs.T
    assert np.all(query.y[better] > query.y[worse])
    assert len(query.pairs) == np.sum(query.y[:, None] > query.y)
    assert query.X.std(axis=0) == pytest.approx(np.ones(query.X.shape[1]))


def test_graphs_of_a_query_are_cosines():
    query = xpgp.draw_queries(graded_documents().whole(), 1, 50)[0]
    graphs = query.graphs()
    dense, near = (graphs[name].weights.toarray() for name in ("dense", "kNN"))
    i, j = 3, int(dense[3].argmax())
    cosine = query.X[i] @ query.X[j] / np.linalg.norm(query.X[i]) / np.linalg.norm(query.X[j])
    assert dense[i, j] == pytest.approx(cosine)
    assert near[i, j] == dense[i, j]
    linked = (near > 0).sum(axis=1)
    assert linked.min() >= xpgp.NEIGHBOURS
    assert np.all((near == 0) | (near == dense))


def test_every_noise_level_has_every_method():
    parts = graded_documents(8, 8)
    table = kpcrank.noise_table(parts.train, parts.test, n_repeats=2)
    assert list(table) == list(kpcrank.NOISE)
    assert all(set(errors) == set(kpcrank.PRINTED) for errors in table.values())
    head, rows = kpcrank.noise_rows(table, with_paper=True)
    assert all(len(row) == len(head) for row in rows)
    assert len(kpcrank.claims({"simulated": table})) == 2


def test_kpcrank_against_its_best_rival():
    ahead = {"KPCRank": np.array([0.1, 0.11]), "RLS": np.array([0.3, 0.3])}
    assert kpcrank.against_best(ahead)[0] == -1
    assert kpcrank.against_best({**ahead, "KPCR": np.array([0.1, 0.11])})[0] == 0
    assert kpcrank.against_best({**ahead, "KPCR": np.array([0.01, 0.02])})[0] == 1


def test_the_figure_of_many_users_has_all_methods():
    sushi = rankings_like_sushi(20)
    curves = {
        learned: sparse_ep.figure_points(sushi, (8, 20), learned) for learned in (True, False)
    }
    for points in curves.values():
        assert {len(line) for line in points.values()} == {2}
        assert points["EP"][1].accuracy > points["Sparse-EP"][1].accuracy
    sparse = sparse_ep.claims((12, 60), curves)[0]
    assert sparse.holds is False


def sushi_of(n_users, n_communities):
    """Simulated sushi rankings, as a set of which the paper found so many communities."""
    draw = partial(communities.sushi_trial, n_users=n_users, sushi=rankings_like_sushi(n_users))
    printed, _ = communities.PRINTED["sushi"]
    return communities.DataSet("sushi, 60 users", draw, range(2), printed, n_communities)


@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
def test_communities_are_compared_with_everybodys_own():
    data = sushi_of(12, 8)
    found = communities.compare(data, 0.1, quick=True)
    assert list(found)[:3] == list(data.printed)  # the rows of Table 1, and others after them
    assert all(0.5 < timed.accuracy <= 1.0 for each in found.values() for timed in each)
    assert all(np.isnan(timed.n_communities) for timed in found[communities.FULL])
    claims = {claim.paper: claim for claim in communities.table_1_claims([data], [found])}
    number = np.mean([timed.n_communities for timed in found[communities.MIXTURE]])
    count = claims["8 communities on sushi, 7 on cars, λ tuned by hand"]
    assert [str(need) for need in count.needs] == [
        f"sushi, 60 users {number:.4g} ≥ 7",
        f"sushi, 60 users {number:.4g} ≤ 9",
    ]


@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
def test_the_concentration_is_tuned_to_the_papers_number():
    numbers = communities.tune_concentration(sushi_of(30, 2), quick=True)
    taken = list(numbers)[-1]
    assert taken < 1.0 < numbers[1.0]
    assert abs(numbers[taken] - 2) == min(abs(number - 2) for number in numbers.values())
    assert list(communities.tune_concentration(sushi_of(30, 99), quick=True)) == [1.0]


def test_shares_of_wins_are_of_the_communities_answers():
    data = Comparisons.from_pairs([0, 0, 2], [1, 2, 1], user=[0, 0, 1], items=range(3))
    shares = communities.win_shares(data, SimpleNamespace(membership_=np.eye(2)))
    np.testing.assert_array_equal(shares, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def test_the_synthetic_set_is_the_papers():
    trial = communities.draw_synthetic(0)
    assert np.bincount(trial.communities).tolist() == [15] * 4
    assert len(trial.test) == round(0.4 * 60 * 45)


def test_linked_papers_cite_within_their_topic():
    cora = linked_papers()
    citing, cited = cora.citations.nonzero()
    assert np.mean(cora.labels[citing] == cora.labels[cited]) > 0.6
    assert not np.any(citing == cited)


def test_answers_to_match_looks_for_the_mean_of_random_at_its_end():
    curves = {
        "random": np.array([[0.5, 0.4, 0.3], [0.5, 0.4, 0.1]]),
        "fast": np.array([[0.5, 0.2, 0.1], [0.3, 0.1, 0.1]]),
        "never": np.full((2, 3), 0.5),
    }
    assert active.answers_to_match(curves) == {"random": 3, "fast": 2, "never": None}


def test_better_than_chance_counts_queries_in_error_area_and_both():
    by_chance = np.tile([0.2, 0.8], (3, 4, 1))
    chosen = np.array([[0.1, 0.9], [0.1, 0.7], [0.3, 0.9]])
    assert active.better_than_chance(chosen, by_chance).tolist() == [2, 2, 1]


def test_telling_each_answer_ends_where_fitting_them_all_does():
    (query,) = active.cora_queries(linked_papers(60), 1, n_papers=40)
    learner = active.RefittingLearner(query.task.prior)
    asked = []

    def remember(belief, first, second, answer):
        asked.append((first, second))
        return learner(belief, first, second, answer)

    _, told = active.explore(query.task, "variance_ratio", 6, np.random.default_rng(0), remember)
    together = learner.fit(*np.array(asked).T)
    np.testing.assert_allclose(told.mean, together.mean, atol=1e-6)
    assert len(set(asked)) == 6
    assert all(query.relevant[a] and not query.relevant[b] for a, b in asked)


def test_a_query_is_judged_on_all_pairs():
    (query,) = active.cora_queries(linked_papers(60), 1, n_papers=40)
    n = len(query.relevant)
    perfect = Joint(np.where(query.relevant, 1.0, -1.0), 0.01 * np.eye(n), Probit())
    assert query.figures(perfect) == (0.0, 1.0)
    reversed_ = Joint(-perfect.mean, perfect.cov, Probit())
    assert query.figures(reversed_) == (1.0, 0.0)
    nothing = Joint(np.zeros(n), np.eye(n), Probit())
    assert query.figures(nothing) == (0.5, 0.5)


def test_figure_4_has_a_row_for_each_query():
    queries = active.cora_queries(linked_papers(60), 2, n_papers=40)
    chosen, by_chance = active.figure_4(queries, 3)
    assert set(chosen) == set(active.CHOSEN)
    assert by_chance.shape == (2, 3, 2)
    assert all(values.shape == (2, 2) for values in chosen.values())
    assert ((by_chance >= 0) & (by_chance <= 1)).all()


def test_a_best_item_that_is_known_leaves_no_regret():
    task = active.made_up_task(0, active.Items(2.0, n_items=6), find_best=True)
    rng = np.random.default_rng(0)
    worst = max(task.judge(Joint(np.eye(6)[i], np.eye(6), Probit())) for i in range(6))
    best = min(task.judge(Joint(np.eye(6)[i], np.eye(6), Probit())) for i in range(6))
    assert best == 0.0 < worst
    judged, _ = active.explore(task, "thompson", 60, rng)
    assert judged.shape == (60,)
    assert judged[-1] < worst


def test_sushi_questions_are_answered_by_those_who_ranked_both():
    task = active.sushi_task(rankings_like_sushi(200, n_items=15))
    rng = np.random.default_rng(0)
    first, second = task.pairs[0]
    answers = [task.answer(int(first), int(second), rng) for _ in range(20)]
    assert set(answers) <= {WIN, -WIN}
    assert 0.0 < task.judge(task.prior) <= 1.0


@pytest.mark.slow
def test_choosing_needs_120_answers_for_what_200_random_ones_give():
    tasks = [active.made_up_task(seed, active.MADE_UP[0], find_best=False) for seed in range(30)]
    needed = active.answers_to_match(active.learning_curves(tasks, 200))
    assert min(needed[name] or 999 for name in active.CHOSEN) <= 120


@pytest.mark.slow
def test_expected_best_leaves_less_regret_than_random():
    """After 50 answers, pairwise over 30 tasks, in standard errors."""
    tasks = [active.made_up_task(seed, active.MADE_UP[0], find_best=True) for seed in range(30)]
    curves = active.learning_curves(tasks, 50)
    gained = curves["random"][:, -1] - curves["expected_best"][:, -1]
    assert gained.mean() > 2.0 * gained.std(ddof=1) / np.sqrt(30)
    assert set(curves) == set(CRITERIA)


@pytest.mark.slow
def test_figure_4_on_cora_is_won_by_one_criterion_in_eight_of_ten(data_folder, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(data_folder))
    queries = active.cora_queries(load_cora(), 10)
    chosen, by_chance = active.figure_4(queries, 20)
    assert max(active.better_than_chance(chosen[name], by_chance)[2] for name in active.CHOSEN) >= 8


def test_kpcrank_learns_the_sinc_from_score_differences():
    draws = [kpcrank.draw_sinc(seed) for seed in range(2)]
    errors = [d.error(kpcrank.fit_kpcrank(d, d.clean).predict(d.test)) for d in draws]
    assert np.mean(errors) <= 0.025


def test_the_draw_is_the_papers():
    draw = kpcrank.draw_sinc(0)
    assert len(draw.train) == 1000
    assert len(draw.test) == 338
    assert draw.clean.n_comparisons == draw.flipped.n_comparisons == 379
    assert len(draw.test_pairs[0]) == 48
    values = np.sinc(draw.train[:, 0])
    assert np.all(values[draw.clean.winner] > values[draw.clean.loser])
    assert 5 <= np.sum(values[draw.flipped.winner] < values[draw.flipped.loser]) <= 35


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
def test_errors_of_the_paper():
    errors = {name: values.mean() for name, values in kpcrank.sinc_experiment(20).items()}
    assert errors["KPCRank, score differences"] <= 0.025
    assert errors["probit GP, directions"] <= 0.035
    assert errors["probit GP, directions, 5 % flipped"] <= 0.07
    assert errors["probit GP with a lapse rate, 5 % flipped"] < 0.05


def test_the_svm_is_trained_when_examples_have_grown_by_a_tenth():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(4)
    svm, trained = perceptron.RetrainedSVM(), []
    for t in range(1, 41):
        docs = rng.standard_normal((10, 4))
        before = svm.weights
        svm.learn(docs, svm.present(docs), np.argsort(-(docs @ weights)))
        if svm.weights is not before:
            trained.append(t)
    assert trained[:10] == list(range(1, 11))
    assert trained[10:] == [11, 13, 15, 17, 19, 21, 24, 27, 30, 33, 37]
    assert np.corrcoef(svm.weights, weights)[0, 1] > 0.9


def test_the_svm_begins_with_a_random_order():
    svm = perceptron.RetrainedSVM()
    orders = {tuple(svm.present(np.eye(6))) for _ in range(20)}
    assert len(orders) > 10
    assert all(sorted(order) == list(range(6)) for order in orders)


def test_decay_reads_the_exponent():
    assert perceptron.decay(3.0 / np.sqrt(np.arange(1, 1001))) == pytest.approx(-0.5, abs=1e-12)


def test_a_round_without_improvement_teaches_the_svm_nothing():
    svm = perceptron.RetrainedSVM()
    round_ = Round(np.eye(3))
    svm.learn(round_.docs, np.arange(3), np.arange(3))
    assert svm.weights is None


def test_the_report_of_a_small_collection():
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(15), 8)
    X = rng.standard_normal((qid.size, 3))
    taste = np.array([1.0, -0.5, 0.0])
    y = np.clip(np.round(X @ taste + 0.3 * rng.standard_normal(qid.size) + 1), 0, 4)
    collection = perceptron.prepare("toy", GradedDocuments(X, y, qid), X, n_passes=2)
    assert len(collection.rounds) == 30
    assert np.corrcoef(collection.weights, taste)[0, 1] > 0.95
    lines = list(perceptron.curves(collection, n_permutations=2))
    rows = perceptron.table(lines).splitlines()
    assert len(rows) == 2 + 5
    assert all(row.count("|") == 10 for row in rows)
    found = perceptron.outcome("toy", lines)
    assert found.within_bound
    assert found.full_to_weak > 0.1
    assert perceptron.claims([found])[1].found == f"toy: {found.full_to_weak:.2f} ×"
    assert len(perceptron.draw(lines).axes) == 3
