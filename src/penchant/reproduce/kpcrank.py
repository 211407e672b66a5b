"""Paper 001: kernel principal component ranking on sinc pairs, parses and documents.

The sinc experiment and Figure 1 are the paper's. Of its parse data a public sample of 200 parses
remains; OHSUMED and MQ2008 stand beside it. RLS and KPCR are scikit-learn's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import softmax
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from penchant.data import Comparisons, load_mq2008, load_ohsumed, load_parse_sample
from penchant.data.folder import data_at
from penchant.data.svmrank import GradedDocuments
from penchant.kernels import RBF
from penchant.likelihoods import Lapse, Probit
from penchant.metrics import disagreement_error, mean_average_precision, ndcg
from penchant.models.kpc_rank import KPCRank
from penchant.models.preference_gp import PreferenceGP
from penchant.models.rank_rls import RankRLS
from penchant.models.rank_svm import RankSVM
from penchant.numerics.types import FloatArray, IntArray

WIDTHS = (0.25, 0.5, 1.0, 2.0)
NOISE = (0.0, 0.5, 1.0)
COMPONENTS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
RIDGES = np.geomspace(1e-6, 1e1, 15)
LANDMARKS = 300
Errors = Mapping[str, FloatArray]


class SincDraw(NamedTuple):
    """Section 6.2 of the paper: 379 training pairs of 1,000 points, 48 test pairs of 338."""

    train: FloatArray
    clean: Comparisons
    flipped: Comparisons
    test: FloatArray
    test_pairs: tuple[IntArray, IntArray]

    def error(self, predicted: FloatArray) -> float:
        """Share of the test pairs in the wrong order."""
        winner, loser = self.test_pairs
        return float(np.mean(predicted[winner] <= predicted[loser]))


def draw_sinc(seed: int) -> SincDraw:
    """Draw points and pairs; `flipped` has the directions alone, 5 % of them reversed."""
    rng = np.random.default_rng(seed)
    points = rng.permutation(np.linspace(-4.0, 4.0, 2000))[:, None]
    train, test = points[:1000], points[1000:1338]
    winner, loser, margin = _draw_pairs(train, 379, rng)
    flip = rng.random(379) < 0.05
    first, second = np.where(flip, loser, winner), np.where(flip, winner, loser)
    return SincDraw(
        train,
        Comparisons.from_pairs(winner, loser, margin=margin, items=range(1000)),
        Comparisons.from_pairs(first, second, items=range(1000)),
        test,
        _draw_pairs(test, 48, rng)[:2],
    )


def _draw_pairs(
    x: FloatArray, n_pairs: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray]:
    a = rng.integers(len(x), size=n_pairs)
    b = (a + rng.integers(1, len(x), size=n_pairs)) % len(x)
    lead = np.sinc(x[a, 0]) - np.sinc(x[b, 0])
    return np.where(lead > 0, a, b), np.where(lead > 0, b, a), np.abs(lead)


def fit_kpcrank(draw: SincDraw, data: Comparisons) -> KPCRank:
    """KPCRank whose kernel width is cross-validated along with the number of components."""
    fits = [KPCRank(RBF(width)).fit(draw.train, data) for width in WIDTHS]
    return min(fits, key=lambda fit: float(np.min(np.asarray(fit.cv_error_))))


def sinc_experiment(n_seeds: int = 20) -> Errors:
    """Test errors (n_seeds,) of each method."""
    lapse = PreferenceGP(RBF(), likelihood=Lapse(Probit()))
    gaussian = PreferenceGP(RBF(), likelihood="gaussian", inference="exact")
    methods: dict[str, Callable[[SincDraw], Any]] = {
        "KPCRank, score differences": lambda d: fit_kpcrank(d, d.clean),
        "Gaussian GP, score differences": lambda d: gaussian.fit(d.train, d.clean),
        "probit GP, directions": lambda d: PreferenceGP(RBF()).fit(d.train, d.clean),
        "KPCRank, directions, 5 % flipped": lambda d: fit_kpcrank(d, d.flipped),
        "probit GP, directions, 5 % flipped": lambda d: PreferenceGP(RBF()).fit(d.train, d.flipped),
        "probit GP with a lapse rate, 5 % flipped": lambda d: lapse.fit(d.train, d.flipped),
    }
    draws = [draw_sinc(seed) for seed in range(n_seeds)]
    return {
        name: np.array([draw.error(fit(draw).predict(draw.test)) for draw in draws])
        for name, fit in methods.items()
    }


def marginalised_width(draw: SincDraw, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and deviation at x (k, 1) with the width integrated out.

    The prior is uniform on the log of the width, as in the paper; the variance is the one of
    highest evidence. Weights are the evidences on an even grid of log widths.
    """
    best: Any = PreferenceGP(RBF()).fit(draw.train, draw.flipped).kernel_
    fits = [
        PreferenceGP(RBF(width, best.variance), optimize=None).fit(draw.train, draw.flipped)
        for width in np.geomspace(0.1, 4.0, 25)
    ]
    weight = softmax([fit.log_evidence_ for fit in fits])
    mean, deviation = (
        np.array(part)
        for part in zip(*(fit.predict(x, return_std=True) for fit in fits), strict=True)
    )
    total = weight @ mean
    return total, np.sqrt(weight @ (deviation**2 + mean**2) - total**2)


def draw_figure_1(path: Path, seed: int = 0) -> None:
    """Left: directions, 5 % flipped, width marginalised. Right: score differences."""
    from matplotlib.figure import Figure

    draw = draw_sinc(seed)
    x = np.linspace(-4.0, 4.0, 400)[:, None]
    sinc = np.sinc(x[:, 0])
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, deviation = marginalised_width(draw, x)
    left.plot(x, sinc, "k--", label="sinc")
    left.plot(x, mean, label="GP posterior mean")
    left.fill_between(x[:, 0], mean - 2 * deviation, mean + 2 * deviation, alpha=0.2)
    left.set_title("directions, 5 % flipped; kernel width marginalised")
    gaussian = PreferenceGP(RBF(), likelihood="gaussian", inference="exact")
    right.plot(x, sinc, "k--", label="sinc")
    for name, model, line in (
        ("GP posterior mean (ML-II)", gaussian.fit(draw.train, draw.clean), "-"),
        ("KPCRank", fit_kpcrank(draw, draw.clean), ":"),
    ):
        f = np.asarray(model.predict(x))
        f += sinc.mean() - f.mean()  # the level is not identified
        right.plot(x, f, line, linewidth=2.5, label=name)
    right.set_title("score differences")
    for axis in (left, right):
        axis.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def noise_table(
    train: GradedDocuments, test: GradedDocuments, n_repeats: int = 10
) -> Mapping[float, Errors]:
    """Test errors of four methods after noise on the training labels, as in the paper's Table 1.

    Noise is Gaussian with a deviation of σ times the range of the labels. Everything is chosen
    by cross-validated disagreement error over groups. Kernels are linear in the given features;
    beyond 2,000 rows KPCR and RLS are fitted in the primal, which is the same solution.
    """
    methods = _methods(train.X)
    table = {}
    for sigma in NOISE:
        repeats = n_repeats if sigma else 1
        errors: dict[str, list[float]] = {name: [] for name in methods}
        for seed in range(repeats):
            noise = np.random.default_rng(seed).standard_normal(len(train))
            y = train.y + sigma * np.ptp(train.y) * noise
            for name, fit in methods.items():
                predicted = fit(train.X, y, train.qid).predict(test.X)
                errors[name].append(disagreement_error(test.y, predicted, test.qid))
        table[sigma] = {name: np.array(values) for name, values in errors.items()}
    return table


def _methods(X: Any) -> dict[str, Callable[[Any, FloatArray, IntArray], Any]]:
    n, d = X.shape
    scale = float(X.power(2).sum() if hasattr(X, "power") else np.square(X).sum())
    components = [p for p in COMPONENTS if p < min(0.75 * n, d)]
    if n <= 2000:
        kpcr = [make_pipeline(KernelPCA(p), LinearRegression()) for p in components]
        rls = [KernelRidge(alpha=scale * ridge) for ridge in RIDGES]
    else:
        kpcr = [make_pipeline(PCA(p), LinearRegression()) for p in components]
        rls = [Ridge(scale * ridge, fit_intercept=False) for ridge in RIDGES]
    return {
        "KPCR": partial(_fit_best, kpcr),
        "KPCRank": lambda X, y, qid: KPCRank("linear").fit(X, y, qid),
        "RLS": partial(_fit_best, rls),
        "RankRLS": lambda X, y, qid: RankRLS("linear").fit(X, y, qid),
    }


def _fit_best(candidates: Sequence[Any], X: Any, y: FloatArray, qid: IntArray) -> Any:
    """The regression with the least cross-validated disagreement, fitted to centred labels."""
    centred = y - y.mean()

    def error(model: Any) -> float:
        predicted = cross_val_predict(model, X, centred, groups=qid, cv=GroupKFold(5))
        return disagreement_error(y, predicted, qid)

    return min(candidates, key=error).fit(X, centred)


def ohsumed_features() -> tuple[GradedDocuments, GradedDocuments]:
    """OHSUMED in 300 Nyström features of an RBF: its 9,219 training rows are too many for n³.

    Features are first scaled to [0, 1] within each query, as LETOR does, then standardised; the
    RBF's width is the median distance.
    """
    parts = load_ohsumed()
    train, test = (_scaled_by_query(part) for part in (parts.train, parts.test))
    scaler = StandardScaler().fit(train)
    gamma = 0.5 / np.median(pdist(scaler.transform(train)[::10])) ** 2
    landmarks = Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=0)
    features = make_pipeline(scaler, landmarks).fit(train)
    return (
        replace(parts.train, X=features.transform(train)),
        replace(parts.test, X=features.transform(test)),
    )


def _scaled_by_query(part: GradedDocuments) -> FloatArray:
    X = np.array(part.X)
    for query in np.unique(part.qid):
        rows = part.qid == query
        low, spread = X[rows].min(axis=0), np.ptp(X[rows], axis=0)
        X[rows] = (X[rows] - low) / np.where(spread > 0, spread, 1.0)
    return X


def mq2008() -> dict[str, tuple[float, float]]:
    """NDCG@10 and MAP on the test part of fold 1; LightGBM beside them where it is installed."""
    parts = load_mq2008()
    train, test = parts.train, parts.test
    models = {
        "RankRLS, linear": RankRLS("linear"),
        "RankRLS, RBF": RankRLS("rbf", random_state=0),
        "RankSVM, linear": RankSVM("linear"),
        "KPCRank, RBF": KPCRank("rbf", random_state=0),
    }
    predicted = {
        name: model.fit(train.X, train.y, train.qid).predict(test.X)
        for name, model in models.items()
    }
    boosted = _lightgbm(train, parts.validation, test)
    if boosted is not None:
        predicted["LightGBM rank_xendcg"] = boosted
    return {
        name: (
            ndcg(test.y, f, 10, test.qid, gain="exponential"),
            mean_average_precision(test.y, f, test.qid),
        )
        for name, f in predicted.items()
    }


def _lightgbm(train: GradedDocuments, valid: Any, test: GradedDocuments) -> FloatArray | None:
    try:
        import lightgbm  # type: ignore[import-not-found]
    except ImportError:
        return None
    options = {"n_estimators": 500, "learning_rate": 0.05, "num_leaves": 15, "verbose": -1}
    model = lightgbm.LGBMRanker(objective="rank_xendcg", random_state=0, n_jobs=1, **options)
    sizes = [
        np.diff(np.flatnonzero(np.diff(part.qid, prepend=-1, append=-1))) for part in (train, valid)
    ]
    model.fit(
        train.X,
        train.y,
        group=sizes[0],
        eval_X=valid.X,
        eval_y=valid.y,
        eval_group=[sizes[1]],
        eval_at=[10],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    return np.asarray(model.predict(test.X))


def _spread(values: FloatArray) -> str:
    """Mean and, of several values, its standard error."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _noise_markdown(table: Mapping[float, Errors]) -> str:
    """One row a noise level; the last column answers the paper's claim about KPCRank."""
    names = list(next(iter(table.values())))
    rows = [
        [f"{sigma:g}", *(_spread(errors[name]) for name in names), _verdict(errors)]
        for sigma, errors in table.items()
    ]
    return _markdown(["σ", *names, "KPCRank against the best other"], rows)


def _verdict(errors: Errors) -> str:
    """KPCRank less its best rival, paired by repeat; within two standard errors they are level."""
    rival = min((name for name in errors if name != "KPCRank"), key=lambda n: errors[n].mean())
    gap = errors["KPCRank"] - errors[rival]
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
    level = abs(gap.mean()) <= 2.0 * error
    word = "level with" if level else "ahead of" if gap.mean() < 0 else "behind"
    return f"{word} {rival}: {_spread(gap)}"


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """Return the paper's numbers and ours as Markdown; with a folder `out`, draw Figure 1 there.

    `quick` takes 3 seeds and 2 repeats in place of 20 and 10. `data` is the folder of public
    data sets.
    """
    sinc, repeats = sinc_experiment(3 if quick else 20), 2 if quick else 10
    with data_at(data):
        parses = load_parse_sample()
        by_noise = {
            "Parse sample": noise_table(parses.train, parses.test, repeats),
            f"OHSUMED fold 1, RBF through {LANDMARKS} landmarks": noise_table(
                *ohsumed_features(), repeats
            ),
        }
        scores = mq2008()
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        draw_figure_1(folder / "kpcrank.png")
    rows = [[name, f"{gain:.4f}", f"{mean:.4f}"] for name, (gain, mean) in scores.items()]
    parts = [
        "## Kernel ranking under noise (paper 001)\n",
        "Sinc pairs: test error (the paper: probit GP 0.035, KPCRank 0.025)\n",
        _markdown(["method", "error"], [[name, _spread(e)] for name, e in sinc.items()]),
    ]
    for name, table in by_noise.items():
        parts += [f"{name}: test error by label noise\n", _noise_markdown(table)]
    parts += ["MQ2008 fold 1, test part\n", _markdown(["method", "NDCG@10", "MAP"], rows)]
    return "\n".join(parts)
