"""Paper 000, section 6 and figure 2: preference pairs within the queries of OHSUMED.

The paper's similarities of documents are not public; cosines of the 25 features stand in, as a
complete graph and as one of nearest neighbours.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import ndtr
from sklearn.model_selection import KFold

from penchant.data import Comparisons
from penchant.errors import DataWarning
from penchant.io import GradedDocuments
from penchant.kernels import RBF, CommonCause, Independent, Inputs, Kernel, Relation, undirected
from penchant.metrics import auc, pair_error
from penchant.models import PreferenceGP, RankSVM, default_kernel
from penchant.numerics.types import FloatArray, IntArray

NEIGHBOURS = 10
SVM_GRID = tuple(product((0.5, 1.0, 2.0), (1.0, 10.0, 100.0)))
"""Widths of the RBF in median distances, and prices C."""
ITEM_EFFECTS = "attributes + item effects, no relations"
Scorer = Callable[[Comparisons, IntArray], FloatArray]
"""Learns from comparisons and gives pairs (k, 2) a number that grows with P(first is better)."""


@dataclass(frozen=True, eq=False)
class Query:
    """The documents of a query: standardised features (n, d) and grades (n,)."""

    X: FloatArray
    y: FloatArray

    @property
    def pairs(self) -> IntArray:
        """(k, 2): every pair of documents of different grades, the better one first."""
        return np.argwhere(self.y[:, None] > self.y)

    def graphs(self) -> dict[str, Relation]:
        """Cosine similarity: between all documents, and between the nearest alone."""
        length = np.linalg.norm(self.X, axis=1, keepdims=True)
        unit = self.X / np.where(length > 0, length, 1.0)
        cosine = np.clip(unit @ unit.T, 0.0, None)
        np.fill_diagonal(cosine, 0.0)
        least = np.sort(cosine, axis=1)[:, -min(NEIGHBOURS, len(cosine) - 1), None]
        near = np.where(cosine >= least, cosine, 0.0)
        return {"kNN": undirected(np.maximum(near, near.T)), "dense": undirected(cosine)}


def draw_queries(
    documents: GradedDocuments, n_queries: int, n_pairs: int, seed: int = 0
) -> list[Query]:
    """Random queries with at least twice `n_pairs` pairs of different grades."""
    rng = np.random.default_rng(seed)
    chosen: list[Query] = []
    for number in rng.permutation(np.unique(documents.qid)):
        rows = documents.qid == number
        X, y = np.asarray(documents.X[rows]), documents.y[rows]
        deviation = X.std(axis=0)
        X = (X - X.mean(axis=0))[:, deviation > 0] / deviation[deviation > 0]
        if np.sum(y[:, None] > y) >= 2 * n_pairs:
            chosen.append(Query(X, y))
    return chosen[:n_queries]


def models(query: Query) -> dict[str, Scorer]:
    """Everything that is compared, by name; hyperparameters are learned in each fit.

    Item effects are a control: a utility of its own for each document, as every graph kernel
    has on its diagonal, but nothing that goes from one document to another.
    """
    attributes = RBF(5.0 * float(np.sqrt(query.X.shape[1])))
    scorers = {
        "attributes (PGP)": _gp(query, attributes),
        "RankSVM": _svm(query),
        ITEM_EFFECTS: _gp(query, attributes + Independent()),
    }
    for name, graph in query.graphs().items():
        relations = {name: graph}
        every = Inputs(None, relations, np.arange(len(query.y)))
        kernels = {
            "regularised Laplacian": default_kernel(every),
            "common causes": CommonCause(name, per="edge" if name == "dense" else "auto"),
        }
        for called, kernel in kernels.items():
            scorers[f"XPGP, {called}, {name}"] = _gp(query, attributes + kernel, relations)
    return scorers


def _gp(query: Query, kernel: Kernel, relations: dict[str, Relation] | None = None) -> Scorer:
    def score(known: Comparisons, asked: IntArray) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return PreferenceGP(kernel).fit(query.X, known, relations).predict_proba(asked)

    return score


def _svm(query: Query) -> Scorer:
    """A ranking SVM with an RBF; width and C by cross-validation over the known pairs."""
    median = float(np.median(pdist(query.X)))
    candidates = [RankSVM(RBF(width * median), C=c) for width, c in SVM_GRID]

    def margins(model: RankSVM, known: IntArray, asked: IntArray) -> FloatArray:
        data = Comparisons.from_pairs(*known.T, items=range(len(query.y)))
        f = model.fit(query.X, data).predict(query.X)
        return np.asarray(f[asked[:, 0]] - f[asked[:, 1]])

    def score(known: Comparisons, asked: IntArray) -> FloatArray:
        pairs = np.column_stack([known.winner, known.loser])
        folds = list(KFold(3, shuffle=True, random_state=0).split(pairs))

        def right(model: RankSVM) -> float:
            return sum(
                float(np.sum(margins(model, pairs[train], pairs[test]) > 0))
                for train, test in folds
            )

        p: FloatArray = ndtr(margins(max(candidates, key=right), pairs, asked))
        return p

    return score


def query_figures(query: Query, n_pairs: int, n_repeats: int) -> dict[str, FloatArray]:
    """Error and AUC (n_repeats, 2) of each model on the pairs that are not known.

    The AUC is over both orientations of each pair.
    """
    pairs, scorers = query.pairs, models(query)
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in scorers}
    for repeat in range(n_repeats):
        shuffled = np.random.default_rng([n_pairs, repeat]).permutation(pairs)
        known, asked = shuffled[:n_pairs], shuffled[n_pairs:]
        data = Comparisons.from_pairs(*known.T, items=range(len(query.y)))
        for name, score in scorers.items():
            p = score(data, asked)
            both = np.concatenate([p, 1.0 - p])
            figures[name].append((pair_error(p), auc(both, np.repeat([1, 0], len(p)))))
    return {name: np.array(values) for name, values in figures.items()}
