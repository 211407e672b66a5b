"""Rankings learned from noisy labels: the paper 001's Table 1, and graded documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from penchant.datasets.items import GradedParts
from penchant.io import GradedDocuments
from penchant.metrics import disagreement_error, mean_average_precision, ndcg
from penchant.models import KPCRank, RankRLS, RankSVM
from penchant.numerics.types import FloatArray, IntArray
from penchant.reproduce.page import Claim, spread, standard_error

NOISE = (0.0, 0.5, 1.0)
COMPONENTS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
RIDGES = np.geomspace(1e-6, 1e1, 15)
LANDMARKS = 300
PRINTED = {
    "KPCR": (0.40, 0.46, 0.47),
    "KPCRank": (0.37, 0.41, 0.42),
    "RLS": (0.34, 0.43, 0.46),
    "RankRLS": (0.35, 0.45, 0.47),
}
"""The paper's Table 1, in the order of NOISE."""
Errors = Mapping[str, FloatArray]


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


def landmark_features(parts: GradedParts) -> tuple[GradedDocuments, GradedDocuments]:
    """Training and test part in 300 Nyström features of an RBF, for too many rows for n³.

    Features are first scaled to [0, 1] within each query, as LETOR does, then standardised; the
    RBF's width is the median distance.
    """
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


def graded_scores(parts: GradedParts) -> list[list[str]]:
    """Rows: method, NDCG@10, MAP on the test part; LightGBM's too where it is installed."""
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
    return [
        [
            name,
            f"{ndcg(test.y, f, 10, test.qid, gain='exponential'):.4f}",
            f"{mean_average_precision(test.y, f, test.qid):.4f}",
        ]
        for name, f in predicted.items()
    ]


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


def noise_rows(
    table: Mapping[float, Errors], with_paper: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table: methods by noise, on request with the paper's numbers beside."""
    rows = []
    for name in next(iter(table.values())):
        ours = [spread(errors[name]) for errors in table.values()]
        paper = [f" ({value:.2f})" if with_paper else "" for value in PRINTED[name]]
        rows.append([name, *(own + theirs for own, theirs in zip(ours, paper, strict=True))])
    rows.append(
        ["KPCRank less its best rival", *(against_best(errors)[1] for errors in table.values())]
    )
    beside = " (the paper)" if with_paper else ""
    return ["method", *(f"σ = {sigma:g}{beside}" for sigma in table)], rows


def against_best(errors: Errors) -> tuple[int, str]:
    """KPCRank less its best rival, paired by repeat: −1 ahead, 0 level within 2 s.e., 1 behind."""
    rival = min((name for name in errors if name != "KPCRank"), key=lambda n: errors[n].mean())
    gap = errors["KPCRank"] - errors[rival]
    level = abs(gap.mean()) <= 2.0 * standard_error(gap)
    sign = 0 if level else int(np.sign(gap.mean()))
    word = {-1: "ahead of", 0: "level with", 1: "behind"}[sign]
    return sign, f"{word} {rival} ({spread(gap)})"


def claims(tables: Mapping[str, Mapping[float, Errors]]) -> list[Claim]:
    """What the paper says of Table 1, on each of the tables."""
    noisy = {
        f"{name}, σ = {sigma:g}": against_best(errors)
        for name, table in tables.items()
        for sigma, errors in table.items()
        if sigma
    }
    clean = {name: table[0.0] for name, table in tables.items()}
    return [
        Claim(
            "with noise in the labels KPCRank is better than KPCR, RLS and RankRLS",
            "; ".join(f"{where}: {words}" for where, (_, words) in noisy.items()),
            all(sign < 0 for sign, _ in noisy.values()),
            "the full parse set is not public: a sample of it, and OHSUMED, stand in; better by "
            "two standard errors in every column",
        ),
        Claim(
            "without noise RLS and RankRLS are better than KPCR and KPCRank",
            "; ".join(
                f"{where}: " + ", ".join(f"{name} {e.mean():.3f}" for name, e in errors.items())
                for where, errors in clean.items()
            ),
            all(
                max(errors["RLS"].mean(), errors["RankRLS"].mean())
                < min(errors["KPCR"].mean(), errors["KPCRank"].mean())
                for errors in clean.values()
            ),
            "as above; one run, without noise there is nothing to repeat",
        ),
    ]
