"""Paper 000: do relations between items help to predict preferences?

OHSUMED as in the paper, with similarities made of the public features; Cora, linked papers with
topics, in place of TREC, whose links are not public.
"""

from os import PathLike

import numpy as np
from scipy.stats import wilcoxon

from penchant.datasets.folder import data_at
from penchant.datasets.items import load_cora, load_ohsumed
from penchant.numerics.types import FloatArray
from penchant.reproduce.cora import VARIANTS, Errors, cora_errors, cora_models, draw
from penchant.reproduce.ohsumed import ITEM_EFFECTS, draw_queries, query_figures
from penchant.reproduce.page import Claim, Page, spread
from penchant.reproduce.stand_ins import graded_documents, linked_papers

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


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """The page of both experiments; `quick` takes fewer queries, sizes and repeats."""
    page = Page("Relations between items (paper 000)", _ABOUT, quick, out)
    with data_at(data):
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
