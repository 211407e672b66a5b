"""What active learning is tried on: linked papers, sushi, and made-up items."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penchant.ask import LOSS, WIN, Belief, Joint, Pool, all_pairs, choose
from penchant.data import Comparisons
from penchant.datasets.items import Cora
from penchant.datasets.people import Sushi
from penchant.kernels import RBF, Independent, Inputs, Linear, RegularizedLaplacian, undirected
from penchant.likelihoods import Probit
from penchant.metrics import auc
from penchant.models import PreferenceGP
from penchant.numerics.linalg import pivoted_cholesky
from penchant.numerics.types import BoolArray, FloatArray, IntArray

Learn = Callable[[Belief, int, int, int], Belief]


@dataclass(frozen=True, eq=False)
class Task:
    """Something to find out: a prior, the questions (k, 2), who answers, and how it is judged."""

    prior: Joint
    pairs: IntArray
    answer: Callable[[int, int, np.random.Generator], int]
    judge: Callable[[Belief], float]
    asks_again: bool = True


def explore(
    task: Task, criterion: str, n_answers: int, rng: np.random.Generator, learn: Learn | None = None
) -> tuple[FloatArray, Belief]:
    """Ask one question after another: the judgement after each, and what is believed at last."""
    belief: Belief = task.prior
    learn = learn or _absorb
    pool = Pool(task.pairs, np.zeros(len(belief)))
    judged = np.empty(n_answers)
    for n in range(n_answers):
        first, second = map(int, choose(belief, pool, 1, criterion, 0.0, rng)[0])
        belief = learn(belief, first, second, task.answer(first, second, rng))
        judged[n] = task.judge(belief)
        if task.asks_again:  # but not at once
            pool = Pool(task.pairs, np.zeros(len(belief)))
            pool.avoid(np.array([[first, second]]))
    return judged, belief


def _absorb(belief: Belief, first: int, second: int, answer: int) -> Belief:
    return Joint.of(belief).answered(first, second, answer)


class Settled:
    """Learns as a PreferenceGP that is told each answer: expectation propagation throughout.

    Any prior covariance is a linear kernel on the rows of its factor.
    """

    def __init__(self, prior: Joint) -> None:
        self.X = pivoted_cholesky(prior.cov).in_given_order()
        self.model: PreferenceGP | None = None

    def __call__(self, belief: Belief, first: int, second: int, answer: int) -> Belief:
        winner, loser = (first, second) if answer == WIN else (second, first)
        if self.model is None:
            return self.fit([winner], [loser])
        return Joint.of(self.model.tell([(winner, loser)], polish=True).posterior_)

    def fit(self, winner: Iterable[int], loser: Iterable[int]) -> Belief:
        """Learn from all answers at once."""
        data = Comparisons.from_pairs(list(winner), list(loser), items=range(len(self.X)))
        self.model = PreferenceGP(Linear(1.0), optimize=None).fit(self.X, data)
        return Joint.of(self.model.posterior_)


@dataclass(frozen=True, eq=False)
class CoraQuery:
    """A topic and a thousand papers: `task` asks for relevant ≻ irrelevant pairs among them."""

    task: Task
    relevant: BoolArray

    def figures(self, belief: Belief) -> tuple[float, float]:
        """Share of all relevant–irrelevant pairs predicted wrongly, and AUC of the predictions."""
        mean, var = belief.difference(self.task.pairs[:, 0], self.task.pairs[:, 1])
        z = mean / np.sqrt(1.0 + var)  # relevant papers stand first
        both = np.concatenate([z, -z])
        return float(np.mean(z < 0) + 0.5 * np.mean(z == 0)), auc(both, np.repeat([1, 0], len(z)))


def cora_queries(cora: Cora, n_queries: int, n_papers: int = 1_000) -> list[CoraQuery]:
    """Topics in turn, each with its own random papers.

    The prior: words (rows of unit length, RBF) and links (regularised Laplacian over all of
    Cora, scaled to equal variances, twice the weight). Unscaled, papers at the fringe have the
    largest variances and every criterion wastes its questions on them.
    """
    words = cora.features.toarray()
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-12)
    links = undirected(((cora.citations + cora.citations.T) > 0).astype(float))
    every = Inputs(words, {"cites": links}, np.arange(len(words)))
    graph = RegularizedLaplacian("cites", iota=10.0)(every)
    scale = np.sqrt(np.diagonal(graph))
    K = RBF(1.0)(every) + 2.0 * graph / np.outer(scale, scale)
    topics = np.unique(cora.labels)
    queries = []
    for number in range(n_queries):
        rng = np.random.default_rng([0, number])
        papers = rng.choice(len(words), n_papers, replace=False)
        relevant = cora.labels[papers] == topics[number % len(topics)]
        queries.append(_query(K[np.ix_(papers, papers)], relevant))
    return queries


def _query(K: FloatArray, relevant: BoolArray) -> CoraQuery:
    yes, no = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    pairs = np.array([np.repeat(yes, len(no)), np.tile(no, len(yes))]).T

    def judge(belief: Belief) -> float:
        return 1.0 - auc(belief.mean, relevant)

    task = Task(
        Joint(np.zeros(len(K)), K, Probit()), pairs, lambda *_: WIN, judge, asks_again=False
    )
    return CoraQuery(task, relevant)


def sushi_task(sushi: Sushi) -> Task:
    """Which kinds people prefer: a question is answered by somebody who ranked both.

    The prior is learned from the first half of the people; the second half answers, and its
    comparisons judge: the share that the order of the means gets wrong.
    """
    n, half = len(sushi.item_names), len(sushi.rankings) // 2
    teachers = Comparisons.from_rankings(sushi.rankings[:half].tolist(), items=range(n))
    X = sushi.item_features
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = RBF(float(np.sqrt(X.shape[1]))) + Independent()
    learned = PreferenceGP(kernel).fit(X, teachers).kernel_
    above, below = np.triu_indices(sushi.rankings.shape[1], 1)
    wins = np.zeros((n, n))
    np.add.at(wins, (sushi.rankings[half:, above], sushi.rankings[half:, below]), 1.0)
    pairs = all_pairs(n)
    met = wins[pairs[:, 0], pairs[:, 1]] + wins[pairs[:, 1], pairs[:, 0]] > 0

    def answer(first: int, second: int, rng: np.random.Generator) -> int:
        share = wins[first, second] / (wins[first, second] + wins[second, first])
        return WIN if rng.random() < share else LOSS

    def judge(belief: Belief) -> float:
        mean = belief.mean
        return float((wins * (mean[:, None] <= mean)).sum() / wins.sum())

    return Task(Joint.prior(learned, Inputs(X), Probit()), pairs[met], answer, judge)


class Items(NamedTuple):
    """Made-up items: the spread of their utilities in units of the noise, and their features.

    With features utilities are a smooth function of them, without they are independent.
    """

    spread: float
    n_features: int = 0
    n_items: int = 50

    def __str__(self) -> str:
        kind = f"{self.n_features} features" if self.n_features else "independent"
        return f"{self.n_items} items ({kind}, spread {self.spread:g})"

    def covariance(self, rng: np.random.Generator) -> FloatArray:
        """(n, n) prior covariance, at random places in the cube of the features."""
        if not self.n_features:
            return self.spread**2 * np.eye(self.n_items)
        X = rng.uniform(-1.0, 1.0, (self.n_items, self.n_features))
        return RBF(0.5, self.spread**2)(X)


def made_up_task(seed: int, items: Items, find_best: bool) -> Task:
    """Probit answers about utilities drawn from the prior.

    Judged by simple regret (the best utility less that of the item believed best), or by the
    share of pairs in the wrong order.
    """
    rng = np.random.default_rng([3, seed])
    prior = Joint(np.zeros(items.n_items), items.covariance(rng), Probit())
    truth = prior.sample(1, rng)[0]
    pairs = all_pairs(len(prior))
    first_is_better = truth[pairs[:, 0]] > truth[pairs[:, 1]]

    def answer(first: int, second: int, rng: np.random.Generator) -> int:
        return int(Probit().draw(truth[[first]] - truth[[second]], rng)[0])

    def regret(belief: Belief) -> float:
        return float(truth.max() - truth[belief.mean.argmax()])

    def error(belief: Belief) -> float:
        believed = belief.mean[pairs[:, 0]] > belief.mean[pairs[:, 1]]
        return float(np.mean(believed != first_is_better))

    return Task(prior, pairs, answer, regret if find_best else error)
