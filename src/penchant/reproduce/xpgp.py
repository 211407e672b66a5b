"""Paper 000: do relations between items help to predict preferences?

The paper's TREC collection and its links are not public; Cora (linked papers with topics) stands
in. A topic is the query, its papers are relevant; a few relevant ≻ irrelevant pairs are known and
all others are to be predicted (paper 000, section 6 and figure 3).
"""

import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.stats import wilcoxon

from penchant.data import Comparisons
from penchant.data.datasets import Cora, load_cora
from penchant.data.folder import data_at
from penchant.errors import DataWarning
from penchant.kernels import RBF, CommonCause, directed, undirected
from penchant.metrics import auc
from penchant.models.preference_gp import PreferenceGP
from penchant.numerics.types import BoolArray, FloatArray
from penchant.plots.style import COLOURS, axes, tidy

Model = Callable[[Comparisons], PreferenceGP]


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """The table of figure 3 on Cora, as Markdown; `quick` takes fewer repeats and one size."""
    with data_at(data):
        cora = load_cora()
    sizes, repeats = ((10,), 2) if quick else ((5, 10, 15, 20), 20)
    errors = {size: cora_errors(cora, size, repeats) for size in sizes}
    names = list(next(iter(errors.values())))
    lines = [
        "## Relations between items (paper 000)",
        "",
        f"Cora instead of TREC: {len(cora.labels):,} papers, 7 topics as queries, {repeats} "
        "repeats each; error = share of all relevant–irrelevant pairs ordered wrongly (1 − AUC), "
        "mean ± standard error. Hyperparameters learned in every fit.",
        "",
        "| known pairs | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for size, by_model in errors.items():
        cells = [
            f"{e.mean():.3f} ± {e.std(ddof=1) / np.sqrt(len(e)):.3f}" for e in by_model.values()
        ]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    lines += ["", *(_verdict(size, by_model) for size, by_model in errors.items())]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        draw(errors, folder / "xpgp.png")
    return "\n".join(lines)


def _verdict(size: int, errors: dict[str, FloatArray]) -> str:
    plain, both, links = (errors[k] for k in ("attributes", "attributes + links", "links"))
    p_value = float(wilcoxon(both, plain).pvalue)
    return (
        f"- {size} pairs: attributes + links have {both.mean() / plain.mean():.2f} × the error of "
        f"attributes alone (Wilcoxon p = {p_value:.1g}; the paper reports 0.5–0.7 ×) and "
        f"{both.mean() / links.mean():.2f} × that of links alone."
    )


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
        "attributes + common causes": lambda pairs: PreferenceGP(smooth + CommonCause("cites")).fit(
            scaled, pairs, {"cites": links}
        ),
        "attributes + directed roles": lambda pairs: PreferenceGP().fit(
            attributes, pairs, {"cites": roles}
        ),
        "attributes + directed walk": lambda pairs: PreferenceGP().fit(
            attributes, pairs, {"cites": walk}
        ),
    }


def cora_errors(cora: Cora, n_pairs: int, repeats: int) -> dict[str, FloatArray]:
    """Error of each model on each topic and repeat, (7 · repeats,)."""
    models = cora_models(cora.features.toarray().astype(float), cora.citations.astype(float))
    errors: dict[str, list[float]] = {name: [] for name in models}
    for topic in np.unique(cora.labels):
        relevant = cora.labels == topic
        for repeat in range(repeats):
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


def draw(errors: dict[int, dict[str, FloatArray]], path: Path) -> None:
    """Error against the number of known pairs, one line a model (the paper's figure 3, left)."""
    sizes = list(errors)
    ax = axes(None, height=3.0)
    for colour, name in zip(COLOURS, errors[sizes[0]], strict=False):
        means = [errors[size][name].mean() for size in sizes]
        bars = [errors[size][name].std(ddof=1) / len(errors[size][name]) ** 0.5 for size in sizes]
        ax.errorbar(sizes, means, bars, color=colour, marker="o", markersize=3, label=name)
    ax.set_xlabel("known pairs")
    ax.set_ylabel("pair error on Cora")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=6, frameon=False)
    tidy(ax).figure.savefig(path)
