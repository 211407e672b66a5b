"""Paper 002, Figures 2 and 3: regret of the preference perceptron on two ranking collections.

The paper's Yahoo! collection is not public; LETOR's MQ2008 and a sample of MSLR-WEB stand in.
Utilities are those of the least-squares fit of the labels, as in the paper. The baseline is a
ranking SVM that is trained again whenever its examples have grown by a tenth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
from sklearn.preprocessing import QuantileTransformer

from penchant.data import load_mq2008, load_mslr_sample
from penchant.data.folder import data_at
from penchant.models.preference_perceptron import PreferencePerceptron
from penchant.models.rank_svm import RankSVM
from penchant.numerics.types import FloatArray, IntArray
from penchant.online import AlphaUser, LabelUser, Learner, Regret, Round, rounds_of, simulate
from penchant.online.rule import discounts

GROWTH = 1.1
FEW_EXAMPLES, C_FOR_FEW = 50, 100.0
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)


class RetrainedSVM:
    """The paper's baseline: a ranking SVM on pairs φ(x, ȳ) ≻ φ(x, y), trained again at times.

    Trained when the examples have grown by a tenth; C by five-fold cross-validation, or 100
    below fifty examples.
    """

    k = 5

    def __init__(self, random_state: int = 0) -> None:
        self.rng = np.random.default_rng(random_state)
        self.improved: list[FloatArray] = []
        self.presented: list[FloatArray] = []
        self.weights: FloatArray | None = None
        self.n_rounds = self.n_trained = 0

    def present(self, docs: Any) -> IntArray:
        """Sort by score; a random order before the first training."""
        if self.weights is None:
            return self.rng.permutation(len(docs))
        return np.argsort(-(docs @ self.weights), kind="stable")

    def learn(self, docs: Any, presented: Any, feedback: Any) -> Self:
        """Store the pair, and train again if it is time."""
        discount = discounts(min(self.k, len(docs)))
        better, shown = (discount @ docs[order[: self.k]] for order in (feedback, presented))
        if np.any(better != shown):
            self.improved.append(better)
            self.presented.append(shown)
        self.n_rounds += 1
        if self.improved and self.n_rounds >= GROWTH * self.n_trained:
            self.n_trained = self.n_rounds
            pairs = np.stack([self.improved, self.presented], axis=1)
            self.weights = _train(pairs, self._choose_c(pairs))
        return self

    def _choose_c(self, pairs: FloatArray) -> float:
        if len(pairs) < FEW_EXAMPLES:
            return C_FOR_FEW
        folds = list(KFold(5, shuffle=True, random_state=0).split(pairs))

        def accuracy(c: float) -> float:
            differences = pairs[:, 0] - pairs[:, 1]
            right = [differences[test] @ _train(pairs[train], c) > 0 for train, test in folds]
            return float(np.mean(np.concatenate(right)))

        return max(C_GRID, key=accuracy)


def _train(pairs: FloatArray, c: float) -> FloatArray:
    """Weights from (m, 2, d): in each pair the first is better."""
    m = len(pairs)
    model = RankSVM("linear", C=c)
    model.fit(pairs.reshape(2 * m, -1), np.tile([1.0, 0.0], m), qid=np.repeat(np.arange(m), 2))
    return np.asarray(model.coef_, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Collection:
    """Rounds with labels, and the weights of the least-squares fit to them."""

    name: str
    rounds: list[Round]
    weights: FloatArray


class Curve(NamedTuple):
    """One line of a figure."""

    figure: str
    collection: str
    label: str
    regret: Regret
    alpha: float | None


def prepare(name: str, documents: Any, X: FloatArray, n_passes: int = 1) -> Collection:
    """Cut into queries, each coming `n_passes` times, and fit w* to the labels."""
    y = documents.y
    centred = X - X.mean(axis=0)  # the intercept: it moves no ranking
    weights = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    return Collection(name, rounds_of(X, y, documents.qid) * n_passes, weights)


def load_collections() -> list[Collection]:
    """MQ2008 as it comes; the MSLR sample by quantiles (as Yahoo!'s features are) and whitened."""
    mq2008, mslr = load_mq2008().whole(), load_mslr_sample().whole()
    quantiles = QuantileTransformer(n_quantiles=1000, subsample=None).fit_transform(mslr.X)
    white = PCA(whiten=True).fit_transform(quantiles)
    return [
        prepare("MQ2008", mq2008, mq2008.X),
        prepare("MSLR", mslr, quantiles, n_passes=10),
        prepare("MSLR, whitened", mslr, white, n_passes=10),
    ]


def curves(collection: Collection, n_permutations: int) -> Iterator[Curve]:
    """All lines of both figures on one collection."""
    learners: list[tuple[str, Learner]] = [
        ("perceptron", PreferencePerceptron()),
        ("perceptron, adaptive", PreferencePerceptron(update="adaptive")),
        ("retrained SVM", RetrainedSVM()),
    ]
    play = partial(
        simulate, weights=collection.weights, n_permutations=n_permutations, random_state=0
    )
    for alpha in (0.1, 1.0):
        user = AlphaUser(collection.weights, alpha)
        regret = play(PreferencePerceptron(), collection.rounds, user)
        yield Curve("2", collection.name, f"α = {alpha:g}", regret, alpha)
    for label, learner in learners:
        regret = play(learner, collection.rounds, LabelUser())
        yield Curve("3", collection.name, label, regret, None)


def decay(mean: FloatArray) -> float:
    """Return the slope of log regret against log T from the tenth round on: −½ is 1/√T."""
    rounds = np.unique(np.geomspace(10, mean.size, 50).astype(int))
    return float(np.polyfit(np.log(rounds), np.log(mean[rounds - 1]), 1)[0])


def table(lines: Sequence[Curve]) -> str:
    """Return the figures' numbers in Markdown."""
    rows = [
        "| figure | collection | line | rounds | utility regret | DCG* regret | decay "
        "| Theorem 1 | seconds a run |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        utility, utility_sd = line.regret.running("utility")
        dcg, dcg_sd = line.regret.running("dcg")
        bound = "" if line.alpha is None else f"{line.regret.bound(line.alpha)[-1]:.1f}"
        rows.append(
            f"| {line.figure} | {line.collection} | {line.label} | {utility.size} "
            f"| {utility[-1]:.4f} ± {utility_sd[-1]:.4f} | {dcg[-1]:.3f} ± {dcg_sd[-1]:.3f} "
            f"| {decay(utility):.2f} | {bound} | {line.regret.seconds.sum(axis=1).mean():.3f} |"
        )
    return "\n".join(rows)


def draw(lines: Sequence[Curve], path: Path) -> None:
    """Draw both figures: a column per collection, utility and DCG* regret against time."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(line.collection for line in lines))
    panels = [("2", "utility"), ("3", "utility"), ("3", "dcg")]
    figure = Figure(figsize=(4.5 * len(names), 9), layout="constrained")
    axes = figure.subplots(len(panels), len(names), squeeze=False)
    for row, (number, of) in zip(axes, panels, strict=True):
        for axis, name in zip(row, names, strict=True):
            for line in lines:
                if (line.figure, line.collection) == (number, name):
                    _draw_line(axis, line, of)
            dashed = ", dashed: Theorem 1" if number == "2" else ""
            axis.set(xscale="log", title=f"Figure {number}: {name}{dashed}", xlabel="rounds")
            axis.legend(fontsize="small", loc="lower left" if number == "2" else "best")
        row[0].set_ylabel("average utility regret" if of == "utility" else "average DCG* regret")
    for axis in axes[0]:
        axis.set_yscale("log")
    figure.savefig(path, dpi=120)


def _draw_line(axis: Any, line: Curve, of: Any) -> None:
    mean, deviation = line.regret.running(of)
    rounds = np.arange(1, mean.size + 1)
    (drawn,) = axis.plot(rounds, mean, label=line.label)
    axis.fill_between(rounds, mean - deviation, mean + deviation, alpha=0.2)
    if line.alpha is not None:
        bound = line.regret.bound(line.alpha)
        axis.plot(rounds, bound, "--", color=drawn.get_color(), linewidth=0.8)


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


def verdict(collection: Collection, lines: Sequence[Curve]) -> str:
    """Return what the paper claims and whether it holds on this collection."""
    own = {line.label: line.regret for line in lines if line.collection == collection.name}
    end = {label: float(regret.running()[0][-1]) for label, regret in own.items()}
    svm_cost = own["retrained SVM"].seconds.sum(axis=1).mean()
    cost = own["perceptron"].seconds.sum(axis=1).mean()
    return (
        f"- {collection.name}: α = 1 ends at {end['α = 1'] / end['α = 0.1']:.2f} × the regret of "
        "α = 0.1 (the paper: below 1, and far above 0.1). With labels the perceptron ends at "
        f"{end['perceptron'] / end['retrained SVM']:.2f} × the SVM's regret, with adaptive steps "
        f"at {end['perceptron, adaptive'] / end['retrained SVM']:.2f} × (the paper: below 1), at "
        f"1/{svm_cost / cost:.0f} of its cost round by round and "
        f"1/{svm_cost / compiled_seconds(collection):.0f} in one compiled pass (the paper: 1/40)."
    )


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """Return the numbers of Figures 2 and 3 as Markdown; with a folder `out`, draw them there.

    `quick` runs 2 permutations in place of the paper's 20. `data` is the folder of data sets.
    """
    PreferencePerceptron().learn(np.eye(2), [0, 1], [1, 0])  # compile before time is taken
    with data_at(data):
        collections = load_collections()
    n_permutations = 2 if quick else 20
    lines = [line for each in collections for line in curves(each, n_permutations)]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        draw(lines, folder / "perceptron.png")
    heading = [
        "## Online learning with preference feedback (paper 002)",
        "",
        f"Average regret after the last round, mean ± standard deviation over {n_permutations} "
        "permutations of the queries (MSLR: each query ten times); decay is the slope of log "
        "regret in log T, −0.5 for 1/√T; seconds are processor time inside the learner.",
        "",
    ]
    return "\n".join([*heading, table(lines), "", *(verdict(each, lines) for each in collections)])
