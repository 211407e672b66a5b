"""Paper 002, Figures 2 and 3: regret of the preference perceptron on two ranking collections.

The paper's Yahoo! collection is not public; LETOR's MQ2008 and a sample of MSLR-WEB stand in.
Utilities are those of the least-squares fit of the labels, as in the paper. The three extensions
that the paper names without printing them have a line each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from time import process_time
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.model_selection import KFold
from sklearn.preprocessing import QuantileTransformer

from experiments import FloatArray, IntArray
from experiments.data import first_queries, graded_documents
from experiments.page import LOG, Claim, Need, Page, spread, standard_error
from penchant.datasets import load_mq2008, load_mslr_sample
from penchant.models import PreferencePerceptron
from penchant.online import (
    AlphaUser,
    ExpectedAlphaUser,
    LabelUser,
    Regret,
    Round,
    exponentiated_bound,
    perceptron_bound,
    rounds_of,
    running_mean,
    simulate,
)
from penchant.plots.style import COLOURS, name_lines, tidy

DATA = ("mq2008", "mslr_sample")

# The batch learner that paper 002 compares its perceptron with.

FEW_EXAMPLES, C_FOR_FEW = 50, 100.0
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
GAP = 1e-4
"""A relative duality gap this small ends the training of an SVM."""


class RetrainedSVM:
    """The paper's baseline: a ranking SVM on pairs φ(x, ȳ) ≻ φ(x, y), trained again at times.

    Trained when the examples have grown by the factor `growth`; C by five-fold cross-validation,
    or 100 below fifty examples.
    """

    k = 5

    def __init__(self, growth: float = 1.1, random_state: int = 0) -> None:
        self.growth = growth
        self.rng = np.random.default_rng(random_state)
        self.differences: list[FloatArray] = []
        self.weights: FloatArray | None = None
        self.n_rounds = self.n_trained = 0

    def present(self, docs: Any) -> IntArray:
        """Sort by score; a random order before the first training."""
        if self.weights is None:
            return self.rng.permutation(len(docs))
        return np.argsort(-(docs @ self.weights), kind="stable")

    def learn(self, docs: Any, presented: Any, feedback: Any) -> Self:
        """Store the pair, and train again if it is time."""
        discount = 1.0 / np.log2(np.arange(2.0, min(self.k, len(docs)) + 2.0))  # Eq. 5
        better, shown = (discount @ docs[order[: self.k]] for order in (feedback, presented))
        if np.any(better != shown):
            self.differences.append(better - shown)
        self.n_rounds += 1
        if self.differences and self.n_rounds >= self.growth * self.n_trained:
            self.n_trained = self.n_rounds
            examples = np.array(self.differences)
            self.weights = hinge_svm(examples, _choose_c(examples))
        return self


def _choose_c(examples: FloatArray) -> float:
    if len(examples) < FEW_EXAMPLES:
        return C_FOR_FEW
    folds = list(KFold(5, shuffle=True, random_state=0).split(examples))

    def accuracy(c: float) -> float:
        right = [examples[test] @ hinge_svm(examples[train], c) > 0 for train, test in folds]
        return float(np.mean(np.concatenate(right)))

    return max(C_GRID, key=accuracy)


def hinge_svm(examples: FloatArray, c: float) -> FloatArray:
    """Weights (d,) that minimise ½‖w‖² + C Σ max(0, 1 − wᵀΔ) over examples Δ (m, d).

    Mehrotra's interior-point method on the dual: w = Σ aΔ with both slacks s = (a, C − a) at
    least 0, and z their multipliers. A step solves one d × d system; about ten steps suffice at
    every C, where coordinate descent needs 10⁵ passes at C = 100.
    """
    m, d = examples.shape
    side = np.array([[1.0], [-1.0]])
    s, z = np.full((2, m), c / 2), np.ones((2, m))
    for _ in range(100):
        w = examples.T @ s[0]
        margin = examples @ w
        loss = c * float(np.maximum(0.0, 1.0 - margin).sum())
        if w @ w + loss - s[0].sum() <= GAP * (0.5 * w @ w + loss):  # the duality gap
            return w
        mu = float(np.mean(s * z))
        residual = margin - 1.0 - (side * z).sum(axis=0)
        curvature = (z / s).sum(axis=0)
        factor = cho_factor(np.eye(d) + (examples.T / curvature) @ examples)
        target, second = 0.0, np.zeros((2, m))
        for _ in ("predict", "correct"):
            pull = (target - second) / s - z
            push = ((side * pull).sum(axis=0) - residual) / curvature
            move = push - (examples @ cho_solve(factor, examples.T @ push)) / curvature
            ds, dz = side * move, pull - side * move * z / s
            length = min(_reach(s, ds), _reach(z, dz))
            target = float(np.mean((s + length * ds) * (z + length * dz))) ** 3 / mu**2
            second = ds * dz
        s, z = s + 0.99 * length * ds, z + 0.99 * length * dz
    raise ArithmeticError(f"the SVM did not converge at C = {c:g} on {m} examples")


def _reach(values: FloatArray, change: FloatArray) -> float:
    """How much of the change keeps all values at least 0, at most all of it."""
    falls = change < 0
    return float(np.min(-values[falls] / change[falls], initial=1.0))


STEADY = -0.25
"""Regret that falls at least like T to this power is on its way to zero."""
RATE = 0.1
"""Tolerance of the exponent −½ of 1/√T."""
CHEAPER = 10
"""So many times less time is significantly less."""
FEWER = 6
"""Permutations on which the SVM is trained more often than the paper's 10 % asks for."""
READ_AT = (10, 30, 100, 300)
"""Rounds at which a table reads the curves, before the last."""
PERCEPTRON, ADAPTIVE, SVM = "perceptron", "perceptron, adaptive", "SVM, 10 %"
OFTEN = {"SVM, 5 %": 1.05, "SVM, 1 %": 1.01}
EXPECTED, CONVEX, EXPONENTIATED = "expected α = 0.1", "logistic loss", "exponentiated"
_ABOUT = (
    "Shivaswamy and Joachims, *Online Learning with Preference Feedback*. The paper's Yahoo! "
    "collection is not public: **stand-ins** are LETOR's MQ2008 as it comes, and a sample of "
    "MSLR-WEB by quantiles (as Yahoo!'s features are). The rival is the paper's: a ranking SVM "
    "with hinge loss, trained again whenever its examples have grown by 10 % (5 %, 1 %), C of "
    f"{', '.join(f'{c:g}' for c in C_GRID)} by five-fold cross-validation (the paper does not "
    "print its grid), 100 below fifty examples."
)


@dataclass(frozen=True, eq=False)
class Collection:
    """Rounds with labels, and the weights of the least-squares fit to them."""

    name: str
    rounds: list[Round]
    n_queries: int
    weights: FloatArray


class Curve(NamedTuple):
    """One line of a figure; `bound` is what theory allows, (T,)."""

    figure: str
    regret: Regret
    bound: FloatArray | None = None

    def mean(self, of: Literal["utility", "dcg"] = "utility") -> FloatArray:
        """Average regret up to each round, (T,), mean over the permutations."""
        return self.regret.running(of)[0]


Lines = Mapping[str, Curve]
"""The lines of one collection by their labels."""


def prepare(name: str, documents: Any, X: FloatArray, n_passes: int = 1) -> Collection:
    """Cut into queries, each coming `n_passes` times, and fit w* to the labels."""
    y = documents.y
    centred = X - X.mean(axis=0)  # the intercept: it moves no ranking
    weights = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    queries = rounds_of(X, y, documents.qid)
    return Collection(name, queries * n_passes, len(queries), weights)


def load_collections(page: Page) -> list[Collection]:
    """MQ2008 as it comes; the MSLR sample by quantiles, ten times and once.

    A quick run takes a few queries of each, once or twice.
    """
    simulated = partial(graded_documents, 40, 20)
    mq2008 = page.load(load_mq2008, simulated).whole()
    mslr = page.load(load_mslr_sample, simulated).whole()
    n_passes = 10
    if page.quick:
        mq2008, mslr, n_passes = first_queries(mq2008, 120), first_queries(mslr, 60), 2
    quantiles = QuantileTransformer(n_quantiles=min(1000, len(mslr)), subsample=None).fit_transform(
        mslr.X
    )
    return [
        prepare(f"{page.called('MQ2008')}, once", mq2008, mq2008.X),
        prepare(f"{page.called('MSLR')}, {n_passes} times", mslr, quantiles, n_passes),
        prepare(f"{page.called('MSLR')}, once", mslr, quantiles),
    ]


def curves(collection: Collection, n_permutations: int) -> Iterator[tuple[str, Curve]]:
    """All lines on one collection, by label."""
    truth, rounds = collection.weights, collection.rounds
    play = partial(simulate, n_permutations=n_permutations, random_state=0)
    own = partial(play, rounds=rounds, weights=truth)
    LOG.info("%s: perceptron", collection.name)
    for alpha in (0.1, 1.0):
        regret = own(PreferencePerceptron(), user=AlphaUser(truth, alpha))
        yield f"α = {alpha:g}", Curve("2", regret, regret.bound(alpha))
    labels = LabelUser()
    yield PERCEPTRON, Curve("3", own(PreferencePerceptron(), user=labels))
    adaptive = PreferencePerceptron(update="adaptive")
    yield ADAPTIVE, Curve("3", own(adaptive, user=labels))
    LOG.info("%s: SVM", collection.name)
    yield SVM, Curve("3", own(RetrainedSVM(), user=labels))
    for label, growth in OFTEN.items():
        few = min(FEWER, n_permutations)
        yield label, Curve("3", own(RetrainedSVM(growth), user=labels, n_permutations=few))
    LOG.info("%s: extensions", collection.name)
    n_rounds = np.arange(1, len(rounds) + 1)
    regret = own(PreferencePerceptron(), user=ExpectedAlphaUser(truth, 0.1))
    norms = regret.feature_norm, regret.weight_norm
    # Eq. 4 in expectation: there is no slack on average.
    yield EXPECTED, Curve("extensions", regret, perceptron_bound(n_rounds, *norms, alpha=0.1))
    regret = own(PreferencePerceptron(loss="logistic"), user=AlphaUser(truth))
    # The slope of the loss lies between ½ and 1 (see perceptron_bound).
    yield CONVEX, Curve("extensions", regret, 2.0 * perceptron_bound(n_rounds, *norms))
    yield EXPONENTIATED, exponentiated(collection, play)


def exponentiated(collection: Collection, play: Callable[..., Regret]) -> Curve:
    """Weights as a convex combination of the features and of their negatives, α = 1.

    The rate is the one at which the bound after the last round is least.
    """
    doubled = [Round(np.hstack([r.docs, -r.docs]), r.grades) for r in collection.rounds]
    truth = np.maximum(0.0, np.concatenate([collection.weights, -collection.weights]))
    n_features, n_rounds = truth.size, len(doubled)
    discount = 1.0 / np.log2(np.arange(2.0, 7.0))
    largest = float(discount.sum()) * max(float(np.abs(r.docs).max()) for r in doubled)
    rate = float(np.sqrt(np.log(n_features) / (2.0 * n_rounds))) / largest
    model = PreferencePerceptron(update="exponentiated", rate=rate)
    regret = play(model, doubled, AlphaUser(truth), weights=truth)
    bound = exponentiated_bound(np.arange(1, n_rounds + 1), largest, n_features, rate)
    return Curve("extensions", regret, float(truth.sum()) * bound)


COSTS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[float], float]]] = {
    "log(1 + exp(−u))": (lambda u: np.logaddexp(0.0, -u), lambda lowest: 1.0),
    "u²": (np.square, lambda lowest: -2.0 * lowest),
}
"""Convex costs of u = U(x, y) − U(x, y*) ≤ 0, each with its steepest slope down to the lowest u."""


def excess_cost(line: Curve, cost: str) -> tuple[FloatArray, FloatArray]:
    """Average cost above that of the best rankings up to each round, and its bound; (T,) both.

    A convex cost rises from u = 0 by at most its steepest slope times the regret.
    """
    value, slope = COSTS[cost]
    u = -line.regret.utility
    excess = running_mean(value(u) - value(np.zeros(1))).mean(axis=0)
    return excess, slope(float(u.min())) * np.asarray(line.bound)


def decay(mean: FloatArray) -> float:
    """Return the slope of log regret against log T from the tenth round on: −½ is 1/√T."""
    rounds = np.unique(np.geomspace(10, mean.size, 50).astype(int))
    return float(np.polyfit(np.log(rounds), np.log(mean[rounds - 1]), 1)[0])


def final(line: Curve, of: Literal["utility", "dcg"] = "utility") -> FloatArray:
    """Average regret after the last round, (permutations,)."""
    return np.asarray(running_mean(getattr(line.regret, of))[:, -1])


def seconds(line: Curve) -> float:
    """Processor time inside the learner, a run."""
    return float(line.regret.seconds.sum(axis=1).mean())


def ratio(line: Curve, rival: Curve, of: Literal["utility", "dcg"] = "utility") -> FloatArray:
    """Final regret of a line as a multiple of its rival's mean, over the permutations of both."""
    ours, theirs = final(line, of), final(rival, of)
    shared = min(len(ours), len(theirs))
    return 1.0 + (ours[:shared] - theirs[:shared]) / theirs[:shared].mean()


def curve_rows(name: str, lines: Lines) -> tuple[list[str], list[list[str]]]:
    """Head and rows: the average utility regret along each curve."""
    rows = [
        [
            *(line.figure, name, label, str(len(line.regret.utility))),
            *(f"{line.mean()[t - 1]:.3f}" if t <= line.mean().size else "" for t in READ_AT),
            *(spread(final(line), 4), spread(final(line, "dcg"))),
        ]
        for label, line in lines.items()
    ]
    read = [f"T = {t}" for t in READ_AT]
    return ["figure", "collection", "line", "runs", *read, "last T", "DCG*, last T"], rows


def bound_rows(name: str, lines: Lines) -> tuple[list[str], list[list[str]]]:
    """Head and rows: how fast each curve falls, what theory allows, and time."""
    rows = []
    for label, line in lines.items():
        allowed = ["", ""]
        if line.bound is not None:
            allowed = [f"{line.bound[-1]:.3g}", f"{line.bound[-1] / line.mean()[-1]:.0f}"]
        rows.append([name, label, f"{decay(line.mean()):.2f}", *allowed, f"{seconds(line):.3f}"])
    return ["collection", "line", "decay", "bound", "bound / regret", "seconds a run"], rows


def draw(collections: Mapping[str, Lines]) -> Any:
    """Both figures and the extensions: a column per collection, regret against time."""
    from matplotlib.figure import Figure

    panels: list[tuple[str, Literal["utility", "dcg"]]] = [
        ("2", "utility"),
        ("3", "utility"),
        ("3", "dcg"),
        ("extensions", "utility"),
    ]
    figure = Figure(figsize=(3.9 * len(collections), 7.8), layout="constrained")
    axes = figure.subplots(len(panels), len(collections), squeeze=False)
    for row, (part, of) in zip(axes, panels, strict=True):
        for axis, (name, lines) in zip(row, collections.items(), strict=True):
            shown = {label: line for label, line in lines.items() if line.figure == part}
            for (label, line), colour in zip(shown.items(), COLOURS, strict=False):
                _draw_line(axis, label, line, of, colour)
            title = f"Figure {part}: {name}" if part in "23" else f"Extensions: {name}"
            dashed = "" if part == "3" else ", dashed: bound"
            axis.set(xscale="log", title=title + dashed, xlabel="rounds")
            axis.set_yscale("linear" if part == "3" else "log")
            name_lines(tidy(axis))
        row[0].set_ylabel("average utility regret" if of == "utility" else "average DCG* regret")
    return figure


def _draw_line(
    axis: Any, label: str, line: Curve, of: Literal["utility", "dcg"], colour: str
) -> None:
    mean, deviation = line.regret.running(of)
    rounds = np.arange(1, mean.size + 1)
    axis.plot(rounds, mean, color=colour, linewidth=1.2, label=label)
    low, high = mean - deviation, mean + deviation
    axis.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
    if line.bound is not None:
        axis.plot(rounds, line.bound, "--", color=colour, linewidth=0.8)


def compiled_seconds(collection: Collection) -> float:
    """Return the processor time of `partial_fit` over all rounds: Figure 3's perceptron at once."""
    docs, grades = (np.concatenate(part) for part in zip(*collection.rounds, strict=True))
    qid = np.repeat(np.arange(len(collection.rounds)), [len(r.docs) for r in collection.rounds])
    times = []
    for _ in range(4):  # the first may have to compile
        begin = process_time()
        PreferencePerceptron().partial_fit(docs, grades, qid)
        times.append(process_time() - begin)
    return min(times)


INFORMED = ("α = 0.1", "α = 1")


def claims(collections: Mapping[str, Lines]) -> list[Claim]:
    """The paper's claims over all collections."""

    def each(describe: Callable[[Lines], str]) -> str:
        return "; ".join(f"{name}: {describe(lines)}" for name, lines in collections.items())

    def needs(*of: Callable[[Lines], Sequence[Need]]) -> tuple[Need, ...]:
        return tuple(
            need._replace(name=f"{name}: {need.name}")
            for name, lines in collections.items()
            for part in of
            for need in part(lines)
        )

    def falls(*labels: str) -> Callable[[Lines], list[Need]]:
        return lambda lines: [
            Need(f"exponent of T, {label}", decay(lines[label].mean()), "≤", STEADY)
            for label in labels
        ]

    def within(*labels: str) -> Callable[[Lines], list[Need]]:
        return lambda lines: [
            Need(f"largest regret / bound, {label}", _largest_share(lines[label]), "≤", 1.0)
            for label in labels
        ]

    def loose(*labels: str) -> Callable[[Lines], str]:
        return lambda lines: ", ".join(
            f"{label}: {mean:.3f} against {bound:.3g} ({bound / mean:.0f} ×)"
            for label in labels
            for mean, bound in [(lines[label].mean()[-1], np.asarray(lines[label].bound)[-1])]
        )

    def slopes(*labels: str) -> Callable[[Lines], str]:
        return lambda lines: ", ".join(f"T^{decay(lines[label].mean()):.2f}" for label in labels)

    stand_ins = "Yahoo! is not public; stand-ins"
    ours = "the paper prints neither algorithm nor bound; the bound is ours"
    return [
        Claim(
            "noise-free α-informative feedback: the average regret approaches zero",
            each(slopes(*INFORMED)),
            needs(falls(*INFORMED)),
            f"{stand_ins}. Required: T^{STEADY} or faster from the tenth round to the last",
        ),
        Claim(
            "… at the rate 1/√T",
            each(slopes(*INFORMED)),
            needs(
                lambda lines: [
                    Need(f"exponent of T, {label}", decay(lines[label].mean()), "≤", RATE - 0.5)
                    for label in INFORMED
                ]
            ),
            "the theorem promises it of the bound; the regret starts far below and has not come "
            f"to it. Required: T^{RATE - 0.5} or faster",
        ),
        Claim(
            "regret stays within the bound of Theorem 1",
            each(loose(*INFORMED)) + " after the last round",
            needs(within(*INFORMED)),
            "at every round. The bound is loose: R and ‖w*‖ are the worst case of every round",
        ),
        Claim(
            "α = 1 has less regret than α = 0.1, by much less than a factor of ten",
            each(lambda lines: f"1/{1 / ratio(*_pair(lines, 'α = 1', 'α = 0.1')).mean():.2f}"),
            needs(
                lambda lines: [
                    Need(
                        "ratio + 2 s.e.", _upper(ratio(*_pair(lines, "α = 1", "α = 0.1"))), "<", 1
                    ),
                    Need(
                        "α = 0.1 over α = 1",
                        final(lines["α = 0.1"]).mean() / final(lines["α = 1"]).mean(),
                        "<",
                        np.sqrt(10.0),
                    ),
                ]
            ),
            "average regrets after the last round; required: below √10, half of ten in logarithms",
        ),
        Claim(
            "with relevance labels the utility regret converges to a value above zero",
            each(
                lambda lines: f"{final(lines[PERCEPTRON]).mean():.3f}, {slopes(PERCEPTRON)(lines)}"
            ),
            needs(
                lambda lines: [Need("exponent of T", decay(lines[PERCEPTRON].mean()), ">", STEADY)]
            ),
            f"required: slower than the T^{STEADY} that counts as falling to zero",
        ),
        Claim(
            "with relevance labels the perceptron has less regret than the retrained SVM",
            each(
                lambda lines: (
                    f"{spread(ratio(*_pair(lines, PERCEPTRON, SVM)), 2)} × (lower at "
                    f"{_percent_lower(*_pair(lines, PERCEPTRON, SVM)):.0f} % of the rounds), with "
                    f"adaptive steps {ratio(*_pair(lines, ADAPTIVE, SVM)).mean():.2f} ×"
                )
            ),
            needs(
                lambda lines: [
                    Need(
                        f"ratio of {_BOTH[of]} regrets + 2 s.e.",
                        _upper(ratio(*_pair(lines, PERCEPTRON, SVM), of)),
                        "<",
                        1.0,
                    )
                    for of in _BOTH
                ]
            ),
            "after the last round, below 1 by two standard errors on every collection",
        ),
        Claim(
            "the SVM is never better than the perceptron when retrained at 5 % or 1 %",
            each(
                lambda lines: ", ".join(
                    f"{label}: {spread(ratio(lines[PERCEPTRON], lines[label]), 2)} ×"
                    for label in OFTEN
                )
            ),
            needs(
                lambda lines: [
                    Need(
                        f"perceptron over {label}",
                        ratio(lines[PERCEPTRON], lines[label]).mean(),
                        "≤",
                        1.0,
                    )
                    for label in OFTEN
                ]
            ),
            f"average utility regret after the last round; {FEWER} permutations",
        ),
        Claim(
            "the perceptron needs significantly less time than the SVM",
            each(lambda lines: f"1/{seconds(lines[SVM]) / seconds(lines[PERCEPTRON]):.0f}"),
            needs(
                lambda lines: [
                    Need(
                        "SVM's time over the perceptron's",
                        seconds(lines[SVM]) / seconds(lines[PERCEPTRON]),
                        "≥",
                        CHEAPER,
                    )
                ]
            ),
            f"processor time inside the learners; the paper: 1/40 with reading files; required: "
            f"1/{CHEAPER}",
        ),
        Claim(
            "extension: feedback that is α-informative only in expectation has a similar bound",
            each(loose(EXPECTED)) + "; " + each(slopes(EXPECTED)),
            needs(within(EXPECTED), falls(EXPECTED)),
            "`ExpectedAlphaUser(weights, 0.1)`, Eq. 4 without slack, mean over the permutations",
        ),
        *(
            Claim(
                f"extension: any convex loss of the utility difference can be minimised, {how}",
                each(
                    lambda lines, label=label: ", ".join(  # type: ignore[misc]
                        f"{cost}: {_ends(lines[label], cost)}" for cost in COSTS
                    )
                ),
                needs(
                    lambda lines, label=label: [  # type: ignore[misc]
                        need for cost in COSTS for need in _cost_needs(lines[label], cost)
                    ]
                ),
                f"`PreferencePerceptron({option})`, α = 1; cost above the best rankings' at round "
                f"10, the last, and allowed; {ours}",
            )
            for label, how, option in (
                (CONVEX, "additive update", 'loss="logistic"'),
                (EXPONENTIATED, "exponentiated update", 'update="exponentiated"'),
            )
        ),
    ]


_BOTH: dict[Literal["utility", "dcg"], str] = {"utility": "utility", "dcg": "DCG*"}


def _pair(lines: Lines, first: str, second: str) -> tuple[Curve, Curve]:
    return lines[first], lines[second]


def _upper(values: FloatArray) -> float:
    return float(values.mean()) + 2.0 * standard_error(values)


def _largest_share(line: Curve) -> float:
    return float(np.max(line.mean() / np.asarray(line.bound)))


def _percent_lower(line: Curve, rival: Curve) -> float:
    """Percent of the rounds from the tenth on at which a curve lies below its rival."""
    return 100.0 * float(np.mean(line.mean()[9:] < rival.mean()[9:]))


def _ends(line: Curve, cost: str) -> str:
    excess, bound = excess_cost(line, cost)
    return f"{excess[9]:.3g}, {excess[-1]:.3g}, {bound[-1]:.3g}"


def _cost_needs(line: Curve, cost: str) -> list[Need]:
    excess, bound = excess_cost(line, cost)
    return [
        Need(f"{cost}: largest cost / bound", float(np.max(excess / bound)), "≤", 1.0),
        Need(f"{cost}: exponent of T", decay(excess), "≤", STEADY),
    ]


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """The page of figures 2 and 3; `quick`: few queries, 2 permutations of the paper's 20."""
    PreferencePerceptron().learn(np.eye(2), [0, 1], [1, 0])  # compile before time is taken
    page = Page("Online learning with preference feedback (paper 002)", _ABOUT, quick, out)
    n_permutations = 2 if quick else 20
    with page.part(f"Figures 2 and 3, and the extensions: {n_permutations} permutations (seed 0)"):
        *collections, unrepeated = load_collections(page)
        page.say(
            "How often a query comes: "
            + "; ".join(
                f"{c.name}: {c.n_queries} queries in {len(c.rounds)} rounds, "
                f"{100 * (1 - c.n_queries / len(c.rounds)):.0f} % of the rounds repeat one"
                for c in collections
            )
            + ". The paper permutes its queries and does not say that any comes again."
        )
        found = {each.name: dict(curves(each, n_permutations)) for each in collections}
        page.say(
            "Average utility regret up to round T (Eq. 1, with Eq. 5's logarithm to base 2), mean "
            "(± standard error) over the permutations; SVM, p %: trained again at p % more "
            "examples; adaptive steps are ours."
        )
        for make_rows in (curve_rows, bound_rows):
            tables = [make_rows(name, lines) for name, lines in found.items()]
            page.table(tables[0][0], [row for _, rows in tables for row in rows])
        page.say(
            "Decay is the slope of log regret in log T from round 10 on, −0.5 for 1/√T. Bound: "
            "Theorem 1; for the logistic loss twice that; for the exponentiated update "
            "`exponentiated_bound` times ‖w*‖₁. Seconds are processor time inside the learner."
        )
        page.say(
            "In one compiled pass over the labels the perceptron needs "
            + ", ".join(f"{1e3 * compiled_seconds(c):.1f} ms on {c.name}" for c in collections)
            + "."
        )
        play = partial(
            simulate,
            rounds=unrepeated.rounds,
            user=LabelUser(),
            weights=unrepeated.weights,
            n_permutations=n_permutations,
            random_state=0,
        )
        once = Curve("3", play(PreferencePerceptron())), Curve("3", play(RetrainedSVM()))
        page.say(
            f"Without repeats ({unrepeated.name}, {len(unrepeated.rounds)} rounds) the "
            f"perceptron's utility regret is {spread(ratio(*once), 2)} × the SVM's."
        )
        page.figure(draw(found), "perceptron", "Regret against time: figures 2, 3, extensions.")
        for claim in claims(found):
            page.claim(claim)
    return page.text()
