"""Paper 000: do relations between items help to predict preferences?

OHSUMED as in the paper, with similarities made of the public features; Cora, linked papers with
topics, in place of TREC, whose links are not public.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from scipy.special import ndtr
from scipy.stats import wilcoxon
from sklearn.model_selection import KFold

from experiments import BoolArray, FloatArray, IntArray
from experiments.data import graded_documents, linked_papers
from experiments.page import Claim, Page, spread, standard_error
from penchant.data import Comparisons
from penchant.datasets import Cora, load_cora, load_ohsumed
from penchant.errors import DataWarning
from penchant.io import GradedDocuments
from penchant.kernels import (
    RBF,
    CommonCause,
    Independent,
    Inputs,
    Kernel,
    Relation,
    directed,
    undirected,
)
from penchant.metrics import auc, pair_error
from penchant.models import PreferenceGP, RankSVM, default_kernel
from penchant.plots.style import COLOURS, axes, name_lines, tidy

# Paper 000, section 6 and figure 2: preference pairs within the queries of OHSUMED.
#
# The paper's similarities of documents are not public; cosines of the 25 features stand in, as a
# complete graph and as one of nearest neighbours.

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


# Paper 000, section 6 and figure 3, on Cora: a few known pairs, and papers that cite each other.
#
# A topic is a query and its papers are what is relevant; the TREC collection of the paper, whose
# links are not public, has the same shape.

Model = Callable[[Comparisons], PreferenceGP]
Errors = dict[str, FloatArray]
VARIANTS = (
    "attributes + common causes",
    "attributes + directed roles",
    "attributes + directed walk",
)
"""Other ways to see the links; the walk goes through a dense matrix of all papers."""


def cora_models(attributes: FloatArray, citations: sparse.csr_matrix) -> dict[str, Model]:
    """Every treatment that is compared, by name."""
    links = undirected(((citations + citations.T) > 0).astype(float))
    roles, walk = directed(citations), directed(citations, "chung")
    spread = attributes.std(axis=0)
    scaled = (attributes - attributes.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    smooth = RBF(3.0 * float(np.sqrt(attributes.shape[1])))
    return {
        "attributes": lambda pairs: PreferenceGP().fit(attributes, pairs),
        "links": lambda pairs: PreferenceGP().fit(None, pairs, {"cites": links}),
        "attributes + links": lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": links}),
        VARIANTS[0]: lambda pairs: PreferenceGP(smooth + CommonCause("cites")).fit(
            scaled, pairs, {"cites": links}
        ),
        VARIANTS[1]: lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": roles}),
        VARIANTS[2]: lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": walk}),
    }


def cora_errors(cora: Cora, models: dict[str, Model], n_pairs: int, n_repeats: int) -> Errors:
    """Error of each model on each topic and repeat, (topics · n_repeats,)."""
    errors: dict[str, list[float]] = {name: [] for name in models}
    for topic in np.unique(cora.labels):
        relevant = cora.labels == topic
        for repeat in range(n_repeats):
            rng = np.random.default_rng([int(topic), repeat])
            pairs = draw_pairs(relevant, n_pairs, rng)
            for name, fit in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    utilities = fit(pairs).predict()
                errors[name].append(1.0 - auc(utilities, relevant))
    return {name: np.array(values) for name, values in errors.items()}


def draw_pairs(relevant: BoolArray, n_pairs: int, rng: np.random.Generator) -> Comparisons:
    """Known pairs: a random relevant item beats a random irrelevant one."""
    winners = rng.choice(np.flatnonzero(relevant), n_pairs)
    losers = rng.choice(np.flatnonzero(~relevant), n_pairs)
    return Comparisons.from_pairs(winners, losers, items=range(len(relevant)))


def draw(errors: dict[int, Errors], what: str) -> Any:
    """Error against the number of known pairs, one line a model."""
    sizes = list(errors)
    ax = axes(None, width=5.0, height=3.4)
    for colour, name in zip(COLOURS, errors[sizes[0]], strict=False):
        means = [errors[size][name].mean() for size in sizes]
        bars = [standard_error(errors[size][name]) for size in sizes]
        ax.errorbar(sizes, means, bars, color=colour, fmt="none")
        ax.plot(sizes, means, color=colour, marker="o", markersize=3, label=name)
    ax.set(xlabel="known pairs", ylabel=f"pair error, {what}", xticks=sizes)
    ax.set_ylim(bottom=0)
    name_lines(tidy(ax))
    return ax.figure


LEVEL = 0.01
"""The paper's threshold for Wilcoxon's test."""
_ABOUT = (
    "Kersting and Xu, *Learning Preferences with Hidden Common Cause Relations*. PGP is a Gaussian "
    "process on the attributes of items alone; XPGP adds a kernel on the relations between them. "
    "Our hyperparameters are learned by evidence in every single fit, for all models alike."
)
_OHSUMED = (
    "The documents of a query, of which some pairs of different grades are known; the other "
    "pairs are to be predicted. The paper's similarities (cosine of keywords) are not public: "
    "**stand-in**, cosine of the standardised features, negative ones set to zero, as a complete "
    "graph (dense) and between the 10 nearest (kNN). On the dense graph common causes are one an "
    "edge. RankSVM: RBF, width and C by 3-fold cross-validation over the known pairs. *Item "
    "effects* are our control: a utility of its own for every document and no relation at all. "
    "Mean ± standard error over queries × repeats. The paper prints curves, no numbers."
)


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """The page of both experiments; `quick` takes fewer queries, sizes and repeats."""
    page = Page("Relations between items (paper 000)", _ABOUT, quick, out)
    _ohsumed(page)
    _cora(page)
    return page.text()


def _ohsumed(page: Page) -> None:
    sizes, n_queries, n_repeats = ((50,), 2, 2) if page.quick else ((100, 150, 200), 10, 20)
    with page.part(
        f"OHSUMED: {n_queries} random queries (seed 0), repeats: {n_repeats} (figure 2)"
    ):
        documents = page.load(load_ohsumed, graded_documents).whole()
        page.say(_OHSUMED)
        queries = draw_queries(documents, n_queries, max(sizes))
        by_query = {
            size: [query_figures(query, size, n_repeats) for query in queries] for size in sizes
        }
        figures = {
            size: {name: np.array([each[name] for each in runs]) for name in runs[0]}
            for size, runs in by_query.items()
        }
        for column, what in enumerate(("Error", "AUC")):
            rows = [
                [name, *(spread(figures[size][name][:, :, column]) for size in sizes)]
                for name in figures[sizes[0]]
            ]
            page.table([what, *(f"{size} pairs" for size in sizes)], rows)
        errors = {
            size: {name: values[:, :, 0] for name, values in each.items()}
            for size, each in figures.items()
        }
        flat = {
            size: {name: values.ravel() for name, values in each.items()}
            for size, each in errors.items()
        }
        page.figure(draw(flat, "OHSUMED"), "xpgp_ohsumed", "Error on OHSUMED (figure 2, left).")
        _tests(page, errors)
        for claim in _ohsumed_claims(errors):
            page.claim(claim)


def _tests(page: Page, errors: dict[int, Errors]) -> None:
    """Wilcoxon's signed-rank test of each XPGP against what it should beat."""
    rows = [
        [name, rival, *(_test(each[name], each[rival]) for each in errors.values())]
        for name in next(iter(errors.values()))
        if name.startswith("XPGP")
        for rival in ("attributes (PGP)", "RankSVM", ITEM_EFFECTS)
    ]
    page.say(
        "Ratio of mean errors, and p of Wilcoxon's signed-rank test over all queries × repeats, "
        "and over the means of the queries, which alone are independent of each other:"
    )
    page.table(["model", "against", *(f"{size} pairs" for size in errors)], rows)


def _test(own: FloatArray, rival: FloatArray) -> str:
    ratio = own.mean() / rival.mean()
    return f"{ratio:.2f} ×, p = {_p(own, rival):.1g}, {_p(own.mean(1), rival.mean(1)):.1g}"


def _p(own: FloatArray, rival: FloatArray) -> float:
    gap = (own - rival).ravel()
    return float(wilcoxon(gap).pvalue) if np.any(gap) else 1.0


def _better(own: FloatArray, rival: FloatArray) -> bool:
    return bool(own.mean() < rival.mean() and _p(own, rival) < LEVEL)


def _ohsumed_claims(errors: dict[int, Errors]) -> list[Claim]:
    laplacian, causes, control = (
        np.mean([each[name].mean() for each in errors.values()])
        for name in (
            "XPGP, regularised Laplacian, dense",
            "XPGP, common causes, dense",
            ITEM_EFFECTS,
        )
    )
    return [
        _beats_both(errors, "dense", "complete graph, as in the paper"),
        _beats_both(errors, "kNN", "nearest 10"),
        Claim(
            "OHSUMED: both graph kernels do similarly well",
            f"dense graph, mean error of all sizes: Laplacian {laplacian:.3f}, common causes "
            f"{causes:.3f}",
            bool(abs(laplacian - causes) < 0.1 * max(laplacian, causes)),
            "similar: they differ by less than a tenth. Common causes know no weights, so that "
            "on the kNN graph they are another prior",
        ),
        Claim(
            "OHSUMED: it is the relations between documents that help",
            f"mean error of all sizes: XPGP, Laplacian, dense {laplacian:.3f}; item effects "
            f"without relations {control:.3f}",
            None,
            "the paper's similarities are not public; those made of the features know nothing "
            "that the features do not. The control shows how much of the gain needs no relation. "
            "On Cora, links are information of their own",
        ),
    ]


def _beats_both(errors: dict[int, Errors], graph: str, which: str) -> Claim:
    """XPGP on one graph against PGP and SVM, with both graph kernels, at every size."""
    kinds = [name for name in next(iter(errors.values())) if name.endswith(f", {graph}")]
    runs = [(each, name) for each in errors.values() for name in kinds]
    cuts = [1.0 - each[name].mean() / each["attributes (PGP)"].mean() for each, name in runs]
    beaten = [
        _better(each[name], each[rival])
        for each, name in runs
        for rival in ("attributes (PGP)", "RankSVM")
    ]
    return Claim(
        f"OHSUMED: XPGP beats PGP and SVM at all sizes (p < {LEVEL}), errors fall by 12 to 40 %",
        f"{which}: errors fall by {min(cuts):.0%} to {max(cuts):.0%}; {sum(beaten)} of "
        f"{len(beaten)} comparisons won",
        all(beaten),
        f"{len(kinds)} graph kernels × {len(errors)} sizes × 2 rivals, Wilcoxon over queries × "
        "repeats; similarities are a stand-in",
    )


def _cora(page: Page) -> None:
    sizes, n_repeats = ((10,), 1) if page.quick else ((5, 10, 15, 20), 20)
    fewer_repeats = 0 if page.quick else 5
    with page.part(f"Cora instead of TREC: topics as queries, repeats: {n_repeats} (figure 3)"):
        cora = page.load(load_cora, linked_papers)
        models = cora_models(cora.features.toarray().astype(float), cora.citations.astype(float))
        variants = {name: models.pop(name) for name in VARIANTS}
        errors = {size: cora_errors(cora, models, size, n_repeats) for size in sizes}
        if fewer_repeats:
            for size in sizes:
                errors[size] |= cora_errors(cora, variants, size, fewer_repeats)
        page.say(
            f"**Stand-in**: {len(cora.labels):,} papers, {len(np.unique(cora.labels))} topics; a "
            "relevant paper beats an irrelevant one in every known pair. Error: share of all "
            "relevant–irrelevant pairs in the wrong order (1 − AUC), mean ± standard error over "
            f"topics × repeats (seeds 0 to {n_repeats - 1}; other ways to see the links: "
            f"{fewer_repeats} repeats). The paper prints curves, no numbers."
        )
        names = list(errors[sizes[0]])
        rows = [[name, *(spread(errors[size][name]) for size in sizes)] for name in names]
        page.table(["Error", *(f"{size} pairs" for size in sizes)], rows)
        page.figure(draw(errors, "Cora"), "xpgp_cora", "Error on Cora (figure 3, left).")
        page.claim(_cora_claim(errors))


def _cora_claim(errors: dict[int, Errors]) -> Claim:
    plain, both = (
        [each[name] for each in errors.values()] for name in ("attributes", "attributes + links")
    )
    cuts = [1.0 - b.mean() / p.mean() for b, p in zip(both, plain, strict=True)]
    worst = max(_p(b, p) for b, p in zip(both, plain, strict=True))
    links = np.mean([each["links"].mean() for each in errors.values()])
    return Claim(
        f"TREC: XPGP beats PGP at all sizes (p < {LEVEL}), errors fall by 30 to 50 %",
        f"Cora: errors fall by {min(cuts):.0%} to {max(cuts):.0%}, p ≤ {worst:.1g}",
        all(_better(b, p) for b, p in zip(both, plain, strict=True)),
        "TREC's links are not public: Cora stands in. Mean error of all sizes: links alone "
        f"{links:.3f}, with attributes {np.mean([b.mean() for b in both]):.3f}",
    )
