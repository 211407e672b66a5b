"""The pieces of the paper's experiment that are not the perceptron itself."""

import numpy as np
import pytest

from penchant.io import GradedDocuments
from penchant.online import Round
from penchant.reproduce.perceptron import (
    RetrainedSVM,
    claims,
    curves,
    decay,
    draw,
    outcome,
    prepare,
    table,
)


def test_the_svm_is_trained_when_examples_have_grown_by_a_tenth():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(4)
    svm, trained = RetrainedSVM(), []
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
    svm = RetrainedSVM()
    orders = {tuple(svm.present(np.eye(6))) for _ in range(20)}
    assert len(orders) > 10
    assert all(sorted(order) == list(range(6)) for order in orders)


def test_decay_reads_the_exponent():
    assert decay(3.0 / np.sqrt(np.arange(1, 1001))) == pytest.approx(-0.5, abs=1e-12)


def test_a_round_without_improvement_teaches_the_svm_nothing():
    svm = RetrainedSVM()
    round_ = Round(np.eye(3))
    svm.learn(round_.docs, np.arange(3), np.arange(3))
    assert svm.weights is None


def test_the_report_of_a_small_collection():
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(15), 8)
    X = rng.standard_normal((qid.size, 3))
    taste = np.array([1.0, -0.5, 0.0])
    y = np.clip(np.round(X @ taste + 0.3 * rng.standard_normal(qid.size) + 1), 0, 4)
    collection = prepare("toy", GradedDocuments(X, y, qid), X, n_passes=2)
    assert len(collection.rounds) == 30
    assert np.corrcoef(collection.weights, taste)[0, 1] > 0.95
    lines = list(curves(collection, n_permutations=2))
    rows = table(lines).splitlines()
    assert len(rows) == 2 + 5
    assert all(row.count("|") == 10 for row in rows)
    found = outcome("toy", lines)
    assert found.within_bound
    assert found.full_to_weak > 0.1
    assert claims([found])[1].found == f"toy: {found.full_to_weak:.2f} ×"
    assert len(draw(lines).axes) == 3
