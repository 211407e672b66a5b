"""Active learning: the tasks, the counting, and what must come out of them."""

import numpy as np
import pytest

from penchant.ask import CRITERIA, WIN, Joint
from penchant.datasets.folder import data_at
from penchant.datasets.items import load_cora
from penchant.likelihoods import Probit
from penchant.reproduce.active import (
    CHOSEN,
    MADE_UP,
    answers_to_match,
    better_than_chance,
    figure_4,
    learning_curves,
)
from penchant.reproduce.active_tasks import (
    Items,
    Settled,
    cora_queries,
    explore,
    made_up_task,
    sushi_task,
)
from penchant.reproduce.stand_ins import linked_papers, rankings_like_sushi


def test_answers_to_match_looks_for_the_mean_of_random_at_its_end():
    curves = {
        "random": np.array([[0.5, 0.4, 0.3], [0.5, 0.4, 0.1]]),
        "fast": np.array([[0.5, 0.2, 0.1], [0.3, 0.1, 0.1]]),
        "never": np.full((2, 3), 0.5),
    }
    assert answers_to_match(curves) == {"random": 3, "fast": 2, "never": None}


def test_better_than_chance_counts_queries_in_error_area_and_both():
    by_chance = np.tile([0.2, 0.8], (3, 4, 1))
    chosen = np.array([[0.1, 0.9], [0.1, 0.7], [0.3, 0.9]])
    assert better_than_chance(chosen, by_chance).tolist() == [2, 2, 1]


def test_telling_each_answer_ends_where_fitting_them_all_does():
    (query,) = cora_queries(linked_papers(60), 1, n_papers=40)
    settled = Settled(query.task.prior)
    asked = []

    def remember(belief, first, second, answer):
        asked.append((first, second))
        return settled(belief, first, second, answer)

    _, told = explore(query.task, "variance_ratio", 6, np.random.default_rng(0), remember)
    together = settled.fit(*np.array(asked).T)
    np.testing.assert_allclose(told.mean, together.mean, atol=1e-6)
    assert len(set(asked)) == 6
    assert all(query.relevant[a] and not query.relevant[b] for a, b in asked)


def test_a_query_is_judged_on_all_pairs():
    (query,) = cora_queries(linked_papers(60), 1, n_papers=40)
    n = len(query.relevant)
    perfect = Joint(np.where(query.relevant, 1.0, -1.0), 0.01 * np.eye(n), Probit())
    assert query.figures(perfect) == (0.0, 1.0)
    reversed_ = Joint(-perfect.mean, perfect.cov, Probit())
    assert query.figures(reversed_) == (1.0, 0.0)
    nothing = Joint(np.zeros(n), np.eye(n), Probit())
    assert query.figures(nothing) == (0.5, 0.5)


def test_figure_4_has_a_row_for_each_query():
    queries = cora_queries(linked_papers(60), 2, n_papers=40)
    chosen, by_chance = figure_4(queries, 3)
    assert set(chosen) == set(CHOSEN)
    assert by_chance.shape == (2, 3, 2)
    assert all(values.shape == (2, 2) for values in chosen.values())
    assert ((by_chance >= 0) & (by_chance <= 1)).all()


def test_a_best_item_that_is_known_leaves_no_regret():
    task = made_up_task(0, Items(2.0, n_items=6), find_best=True)
    rng = np.random.default_rng(0)
    worst = max(task.judge(Joint(np.eye(6)[i], np.eye(6), Probit())) for i in range(6))
    best = min(task.judge(Joint(np.eye(6)[i], np.eye(6), Probit())) for i in range(6))
    assert best == 0.0 < worst
    judged, _ = explore(task, "thompson", 60, rng)
    assert judged.shape == (60,)
    assert judged[-1] < worst


def test_sushi_questions_are_answered_by_those_who_ranked_both():
    task = sushi_task(rankings_like_sushi(200, n_items=15))
    rng = np.random.default_rng(0)
    first, second = task.pairs[0]
    answers = [task.answer(int(first), int(second), rng) for _ in range(20)]
    assert set(answers) <= {WIN, -WIN}
    assert 0.0 < task.judge(task.prior) <= 1.0


@pytest.mark.slow
def test_choosing_needs_120_answers_for_what_200_random_ones_give():
    tasks = [made_up_task(seed, MADE_UP[0], find_best=False) for seed in range(30)]
    needed = answers_to_match(learning_curves(tasks, 200))
    assert min(needed[name] or 999 for name in CHOSEN) <= 120


@pytest.mark.slow
def test_expected_best_leaves_less_regret_than_random():
    """After 50 answers, pairwise over 30 tasks, in standard errors."""
    tasks = [made_up_task(seed, MADE_UP[0], find_best=True) for seed in range(30)]
    curves = learning_curves(tasks, 50)
    gained = curves["random"][:, -1] - curves["expected_best"][:, -1]
    assert gained.mean() > 2.0 * gained.std(ddof=1) / np.sqrt(30)
    assert set(curves) == set(CRITERIA)


@pytest.mark.slow
def test_figure_4_on_cora_is_won_by_one_criterion_in_eight_of_ten(data_folder):
    with data_at(data_folder):
        queries = cora_queries(load_cora(), 10)
    chosen, by_chance = figure_4(queries, 20)
    assert max(better_than_chance(chosen[name], by_chance)[2] for name in CHOSEN) >= 8
