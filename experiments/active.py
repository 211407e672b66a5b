"""Paper 000, section 5 and figure 4: does choosing the questions pay?

The paper's TREC collection is not public; Cora stands in, with a topic for a query and its papers
for what is relevant. Learning curves of every criterion follow, on Cora, on sushi and on made-up
items of which the best, or the whole order, is to be found.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from experiments import BoolArray, FloatArray, IntArray
from experiments.data import linked_papers, rankings_like_sushi
from experiments.page import Claim, Need, Page, spread
from experiments.xpgp import (
    CO_CITED,
    LAPLACIAN,
    attribute_kernel,
    co_citation,
    direct_links,
    graph_kernels,
)
from penchant.ask import CRITERIA, LOSS, WIN, Belief, Joint, Pool, all_pairs, choose
from penchant.data import Comparisons
from penchant.datasets import Cora, Sushi, load_cora, load_sushi_b
from penchant.kernels import RBF, Independent, Inputs, Linear, RegularizedLaplacian
from penchant.likelihoods import Probit
from penchant.metrics import auc
from penchant.models import PreferenceGP
from penchant.plots import plot_learning
from penchant.plots.style import BLUE, COLOURS, legend_beside, tidy

# What active learning is tried on: linked papers, sushi, and made-up items.

DATA = ("cora", "sushi")
Learn = Callable[[Belief, int, int, int], Belief]
Fit = Callable[[Comparisons], PreferenceGP]


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
    learn = learn or _rank_one_update
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


def _rank_one_update(belief: Belief, first: int, second: int, answer: int) -> Belief:
    return Joint.of(belief).answered(first, second, answer)


def fit_under(prior: Joint) -> Fit:
    """Fits a PreferenceGP under a prior that stays: any covariance is a linear kernel on the rows
    of its factor."""
    values, vectors = np.linalg.eigh(prior.cov)
    kept = values > 1e-13 * values[-1]  # the others are zero to rounding
    X = vectors[:, kept] * np.sqrt(values[kept])
    return lambda data: PreferenceGP(Linear(1.0), optimize=None).fit(X, data)


class RefittingLearner:
    """A PreferenceGP after each answer: expectation propagation throughout.

    fit : fits it to all answers. learns : whether that learns hyperparameters; else the model
    reconverges after each answer, which gives the same.
    """

    def __init__(self, fit: Fit, n_items: int, learns: bool = False) -> None:
        self._fit, self.n_items, self.learns = fit, n_items, learns
        self.forget()

    def forget(self) -> None:
        """Start again, without any answer."""
        self.model: PreferenceGP | None = None
        self.known: list[tuple[int, int]] = []

    def __call__(self, belief: Belief, first: int, second: int, answer: int) -> Belief:
        self.known.append((first, second) if answer == WIN else (second, first))
        if self.model is None or self.learns:
            return self.fit(*zip(*self.known, strict=True))
        return Joint.of(self.model.tell(self.known[-1:], reconverge=True).posterior_)

    def fit(self, winner: Iterable[int], loser: Iterable[int]) -> Belief:
        """Learn from all answers at once."""
        data = Comparisons.from_pairs(list(winner), list(loser), items=range(self.n_items))
        self.model = self._fit(data)
        return Joint.of(self.model.posterior_)


@dataclass(frozen=True, eq=False)
class CoraQuery:
    """A topic and a thousand papers: `task` asks for relevant ≻ irrelevant pairs among them.

    fit, learns : see `RefittingLearner`.
    """

    task: Task
    relevant: BoolArray
    fit: Fit
    learns: bool

    def learner(self) -> RefittingLearner:
        """One without any answer."""
        return RefittingLearner(self.fit, len(self.relevant), self.learns)

    def figures(self, belief: Belief) -> tuple[float, float]:
        """Share of all relevant–irrelevant pairs predicted wrongly, and AUC of the predictions."""
        mean, var = belief.difference(self.task.pairs[:, 0], self.task.pairs[:, 1])
        z = mean / np.sqrt(1.0 + var)  # relevant papers stand first
        both = np.concatenate([z, -z])
        return float(np.mean(z < 0) + 0.5 * np.mean(z == 0)), auc(both, np.repeat([1, 0], len(z)))


def cora_queries(
    cora: Cora, n_queries: int, n_papers: int = 1_000, learned: bool = False
) -> list[CoraQuery]:
    """Topics in turn, each with its own random papers.

    learned : whether the prior is the paper's (`_paper_prior`), or is set by hand (`_set_prior`).
    """
    prior = _paper_prior(cora) if learned else _set_prior(cora)
    topics = np.unique(cora.labels)
    queries = []
    for number in range(n_queries):
        rng = np.random.default_rng([0, number])
        papers = rng.choice(len(cora.labels), n_papers, replace=False)
        relevant = cora.labels[papers] == topics[number % len(topics)]
        queries.append(_query(*prior(papers), relevant, learned))
    return queries


Prior = Callable[[IntArray], tuple[Joint, Fit]]
"""Of some papers: what is believed before any answer, and how a model is fitted to answers."""


def _paper_prior(cora: Cora) -> Prior:
    """XPGP as in the paper: attributes and the co-citation graph, both at variance one before any
    answer; their parameters are learned from the known pairs, anew after each one."""
    words, graph = cora.features.toarray().astype(float), co_citation(cora.citations)

    def prior(papers: IntArray) -> tuple[Joint, Fit]:
        X, relations = words[papers], {CO_CITED: graph.take(papers)}
        X = X[:, X.std(axis=0) > 0.0]
        kernel = attribute_kernel(X) + graph_kernels(CO_CITED, relations[CO_CITED])[LAPLACIAN]
        every = Inputs(X, relations, np.arange(len(X)))
        start = Joint(np.zeros(len(X)), kernel(every), Probit())
        return start, lambda data: PreferenceGP(kernel).fit(X, data, relations)

    return prior


def _set_prior(cora: Cora) -> Prior:
    """Words (rows of unit length, RBF) and direct links (regularised Laplacian over all of
    Cora, scaled to equal variances, twice the weight), all of it set by hand.

    Unscaled, papers at the fringe have the largest variances and every criterion wastes its
    questions on them.
    """
    words = cora.features.toarray()
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-12)
    every = Inputs(words, {"cites": direct_links(cora.citations)}, np.arange(len(words)))
    graph = RegularizedLaplacian("cites", iota=10.0)(every)
    scale = np.sqrt(np.diagonal(graph))
    K = RBF(1.0)(every) + 2.0 * graph / np.outer(scale, scale)

    def prior(papers: IntArray) -> tuple[Joint, Fit]:
        start = Joint(np.zeros(len(papers)), K[np.ix_(papers, papers)], Probit())
        return start, fit_under(start)

    return prior


def _query(prior: Joint, fit: Fit, relevant: BoolArray, learns: bool) -> CoraQuery:
    yes, no = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    pairs = np.array([np.repeat(yes, len(no)), np.tile(no, len(yes))]).T

    def judge(belief: Belief) -> float:
        return 1.0 - auc(belief.mean, relevant)

    task = Task(prior, pairs, lambda *_: WIN, judge, asks_again=False)
    return CoraQuery(task, relevant, fit, learns)


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

    return Task(Joint(np.zeros(len(X)), learned(Inputs(X)), Probit()), pairs[met], answer, judge)


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


Curves = dict[str, FloatArray]
CHOSEN = tuple(name for name in CRITERIA if name != "random")
MADE_UP = (Items(2.0, n_features=2), Items(3.0), Items(2.0), Items(1.0))
"""Made-up items; the first are the ones drawn."""
N_PAIRS = 10

_ABOUT = (
    "Kersting and Xu, *Learning Preferences with Hidden Common Cause Relations*, section 5. "
    "Criteria differ in what they are for: `variance_ratio` (the "
    "paper's) and `information_gain` look for the whole order, `expected_best` and `thompson` for "
    "the best item."
)
_ABOUT_FIGURE_4 = (
    "Data: {what}, in place of TREC. A query is a topic and a random subset of papers; {n} pairs "
    "of a relevant and an irrelevant paper are known, chosen one after another by each criterion, "
    "or drawn at random {draws} times. Error: share of all such pairs predicted wrongly; AUC: of "
    "the predicted probabilities; random: mean ± standard deviation of the draws."
)
_PAPER_PRIOR = (
    "The prior is the paper's XPGP: an RBF on the words (Eq. 1) and the regularised Laplacian (Eq. "
    "2) of the graph that joins two papers which some paper cites. Both start at variance one. "
    "Their parameters are **learned** by evidence from the known pairs, anew after each pair."
)
_SET_PRIOR = (
    "The same with a prior that is **set by hand** and is ours: words (RBF of lengthscale 1 on "
    "rows of unit length) and direct links (regularised Laplacian, iota = 10, scaled to equal "
    "variances, twice the weight of the words); nothing is learned but the utilities. No verdict "
    "rests on it."
)


class Sizes(NamedTuple):
    """How much is run."""

    queries: int
    others: int
    papers: int
    draws: int
    seeds: int
    answers: int


FULL, QUICK = Sizes(10, 20, 1_000, 20, 30, 300), Sizes(3, 2, 200, 5, 4, 60)


def figure_4(queries: list[CoraQuery], n_draws: int) -> tuple[dict[str, FloatArray], FloatArray]:
    """Error and AUC: (queries, 2) of each criterion, and (queries, draws, 2) of random pairs."""
    chosen: dict[str, list[tuple[float, float]]] = {name: [] for name in CHOSEN}
    by_chance = np.empty((len(queries), n_draws, 2))
    for q, query in enumerate(queries):
        learner = query.learner()
        for draw in range(n_draws):
            rng = np.random.default_rng([1, q, draw])
            winner, loser = rng.choice(query.task.pairs, N_PAIRS, replace=False).T
            by_chance[q, draw] = query.figures(learner.fit(winner, loser))
        for name in chosen:
            learner.forget()
            rng = np.random.default_rng([2, q])
            _, belief = explore(query.task, name, N_PAIRS, rng, learner)
            chosen[name].append(query.figures(belief))
    return {name: np.array(values) for name, values in chosen.items()}, by_chance


def better_than_chance(chosen: FloatArray, by_chance: FloatArray) -> IntArray:
    """In how many queries the mean of random is beaten: (3,) in error, in AUC, in both."""
    mean = by_chance.mean(axis=1)
    error, area = chosen[:, 0] < mean[:, 0], chosen[:, 1] > mean[:, 1]
    return np.array([error.sum(), area.sum(), (error & area).sum()])


def learning_curves(tasks: list[Task], n_answers: int) -> Curves:
    """Every criterion on every task: (tasks, answers) judgements."""
    return {
        name: np.array(
            [
                explore(task, name, n_answers, np.random.default_rng([4, number]))[0]
                for number, task in enumerate(tasks)
            ]
        )
        for name in CRITERIA
    }


def answers_to_match(curves: Curves) -> dict[str, int | None]:
    """How many answers each criterion needs for the mean that random has at the end.

    >>> answers_to_match({"random": np.array([[0.4, 0.2]]), "active": np.array([[0.1, 0.1]])})
    {'random': 2, 'active': 1}
    """
    target = curves["random"].mean(axis=0)[-1]
    reached = {name: np.flatnonzero(runs.mean(axis=0) <= target) for name, runs in curves.items()}
    return {name: int(when[0]) + 1 if len(when) else None for name, when in reached.items()}


def report_figure_4(page: Page, queries: list[CoraQuery], n_draws: int, file: str) -> None:
    """The table, the drawing and, under the paper's prior, what became of its claims."""
    chosen, by_chance = figure_4(queries, n_draws)
    mean, deviation = by_chance.mean(axis=1), by_chance.std(axis=1, ddof=1)
    page.say(_ABOUT_FIGURE_4.format(what=page.called("Cora"), n=N_PAIRS, draws=n_draws))
    head = ["query", "random, error", "AUC"]
    head += [title for name in CHOSEN for title in (f"{name}, error", "AUC")]
    rows = []
    for q in range(len(queries)):
        cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(mean[q], deviation[q], strict=True)]
        cells += [f"{value:.3f}" for name in CHOSEN for value in chosen[name][q]]
        rows.append([str(q + 1), *cells])
    wins = {name: better_than_chance(chosen[name], by_chance) for name in CHOSEN}
    counted = [
        cell
        for error, area, both in wins.values()
        for cell in (f"{error}", f"{area} ({both} in both)")
    ]
    averages = [mean, *(chosen[name] for name in CHOSEN)]
    averaged = [f"{value:.3f}" for each in averages for value in each.mean(axis=0)]
    rows += [["mean", *averaged], ["better than random", "", "", *counted]]
    page.table(head, rows)
    caption = f"Figure 4, on {page.called('Cora')}"
    page.figure(drawn_figure_4(chosen, by_chance), file, caption)
    if queries[0].learns:
        for claim in claims(chosen, by_chance):
            page.claim(claim)


def claims(chosen: Mapping[str, FloatArray], by_chance: FloatArray) -> list[Claim]:
    """What became of the paper's claims: from error and AUC of each query."""
    error, area, both = better_than_chance(chosen["variance_ratio"], by_chance)
    n = len(by_chance)
    (random_error, random_area), (error_here, area_here), (gain_error, gain_area) = (
        by_chance.mean(axis=(0, 1)),
        chosen["variance_ratio"].mean(axis=0),
        chosen["information_gain"].mean(axis=0),
    )
    other = "another collection than the paper's; its graph, its criterion as printed"
    return [
        Claim(
            "pairs chosen by the ratio of variance and squared difference beat the mean of random "
            "pairs in 9 of 10 queries (figure 4)",
            f"{error} in error, {area} in AUC, {both} in both, of {n}",
            (
                Need("queries won in error", int(error), "≥", 0.9 * n),
                Need("queries won in AUC", int(area), "≥", 0.9 * n),
            ),
            other,
        ),
        Claim(
            "choosing pairs improves predictions faster than collecting them at random",
            f"after {N_PAIRS} pairs, mean of {n} queries: error {error_here:.3f} against "
            f"{random_error:.3f}, AUC {area_here:.3f} against {random_area:.3f}",
            (
                Need("error", float(error_here), "<", float(random_error)),
                Need("AUC", float(area_here), ">", float(random_area)),
            ),
            other,
        ),
        Claim(
            "mutual information is likely to do better than the ratio of variances (section 8)",
            f"after {N_PAIRS} pairs, mean of {n} queries: error {gain_error:.3f} against "
            f"{error_here:.3f}, AUC {gain_area:.3f} against {area_here:.3f}",
            (
                Need("error", float(gain_error), "<", float(error_here)),
                Need("AUC", float(gain_area), ">", float(area_here)),
            ),
            f"`information_gain` against `variance_ratio`; {other}",
        ),
    ]


def report_other_queries(page: Page, queries: list[CoraQuery], n_draws: int) -> None:
    """What a criterion that did well on the first queries does on others."""
    chosen, by_chance = figure_4(queries, n_draws)
    rows = [["random", *(f"{value:.3f}" for value in by_chance.mean(axis=(0, 1))), "", "", ""]]
    for name in CHOSEN:
        means = [f"{value:.3f}" for value in chosen[name].mean(axis=0)]
        wins = better_than_chance(chosen[name], by_chance)
        rows.append([name, *means, *(f"{won} of {len(queries)}" for won in wins)])
    page.say(
        "A coin would win 8 of 10 queries with probability 0.05, and four criteria were tried: "
        "the same on queries that nobody has looked at."
    )
    better = [f"better than random in {what}" for what in ("error", "AUC", "both")]
    page.table(["criterion", "error", "AUC", *better], rows)


def report_curves(page: Page, name: str, curves: Curves, measure: str) -> None:
    """Mean ± standard error on the way, and the drawing."""
    n_runs, length = curves["random"].shape
    at = [length // 10, length // 4, length // 2, length]
    rows = [[which, *(spread(runs[:, n - 1]) for n in at)] for which, runs in curves.items()]
    page.say(f"{measure[:1].upper()}{measure[1:]}, mean ± standard error of {n_runs} runs.")
    page.table(["criterion", *(f"{n} answers" for n in at)], rows)
    page.figure(drawn_curves(curves, measure), f"active_{name}", f"{measure}, with 95 % bands")


def drawn_figure_4(chosen: Mapping[str, FloatArray], by_chance: FloatArray) -> Any:
    """Error and AUC of each query: random draws with their deviation, and two criteria."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained")
    queries = np.arange(1, len(by_chance) + 1)
    for column, (ax, what) in enumerate(zip(figure.subplots(1, 2), ("error", "AUC"), strict=True)):
        mean, deviation = (f(by_chance[:, :, column], axis=1) for f in (np.mean, np.std))
        ax.errorbar(
            queries, mean, deviation, fmt="o", color=BLUE, markersize=4, capsize=2, label="random"
        )
        for name, colour, mark in zip(
            ("variance_ratio", "thompson"), COLOURS[1:], "s^", strict=False
        ):
            ax.plot(queries, chosen[name][:, column], mark, color=colour, markersize=4, label=name)
        ax.set(xlabel="query", ylabel=what, xticks=queries)
        tidy(ax)
    legend_beside(ax)
    return figure


def drawn_curves(curves: Curves, measure: str) -> Any:
    """One line for each criterion."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    plot_learning(curves, figure.subplots(), measure)
    return figure


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """Figure 4 and the learning curves as Markdown; with a folder `out`, drawn there too.

    `quick` takes fewer queries, papers, draws, seeds and answers, and simulated data for those
    that are not there.
    """
    sizes = QUICK if quick else FULL
    page = Page("Choosing what to compare (paper 000, figure 4)", _ABOUT, quick, out)
    with page.part(f"Figure 4: {sizes.queries} queries, {sizes.papers} papers each"):
        cora = page.load(load_cora, linked_papers)
        page.say(_PAPER_PRIOR)
        learned = cora_queries(cora, sizes.queries, sizes.papers, learned=True)
        report_figure_4(page, learned, sizes.draws, "active_figure_4")
    with page.part(f"The same {sizes.queries} queries, a prior set by hand"):
        page.say(_SET_PRIOR)
        drawn = cora_queries(cora, sizes.queries + sizes.others, sizes.papers)
        queries, others = drawn[: sizes.queries], drawn[sizes.queries :]
        report_figure_4(page, queries, sizes.draws, "active_figure_4_by_hand")
    with page.part(f"{sizes.others} other queries, the prior set by hand"):
        report_other_queries(page, others, sizes.draws)
    with page.part("Learning curves on linked papers, the prior set by hand"):
        curves = learning_curves([query.task for query in queries], 30)
        report_curves(page, "cora", curves, "1 − AUC of the mean utilities")
    with page.part("Learning curves on people's rankings"):
        task = sushi_task(page.load(load_sushi_b, lambda: rankings_like_sushi(n_items=40)))
        page.say(f"Data: {page.called('sushi')}.")
        curves = learning_curves([task] * sizes.seeds, sizes.answers)
        report_curves(page, "sushi", curves, "share of people's choices predicted wrongly")
    seeds = range(sizes.seeds)
    with page.part(f"The best of {MADE_UP[0]}"):
        tasks = [made_up_task(seed, MADE_UP[0], find_best=True) for seed in seeds]
        report_curves(page, "best", learning_curves(tasks, 100), "simple regret")
    for items in MADE_UP:
        with page.part(f"The order of {items}"):
            tasks = [made_up_task(seed, items, find_best=False) for seed in seeds]
            order = learning_curves(tasks, 200)
            if items == MADE_UP[0]:
                report_curves(page, "order", order, "pair error")
            needed = [f"{name} {n or 'more'}" for name, n in answers_to_match(order).items()]
            page.say(f"Answers until the pair error of random at 200: {', '.join(needed)}.")
    return page.text()
