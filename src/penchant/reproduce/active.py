"""Paper 000, section 5 and figure 4: does choosing the questions pay?

The paper's TREC collection is not public; Cora stands in, with a topic for a query and its papers
for what is relevant. Learning curves of every criterion follow, on Cora, on sushi and on made-up
items of which the best, or the whole order, is to be found.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from penchant.ask import CRITERIA
from penchant.data.datasets import load_cora
from penchant.data.folder import data_at
from penchant.numerics.types import FloatArray
from penchant.plots.learning import plot_learning
from penchant.plots.style import BLUE, ORANGE, tidy
from penchant.reproduce.active_tasks import (
    Items,
    Query,
    Settled,
    Task,
    cora_queries,
    explore,
    made_up_task,
    sushi_task,
)

Curves = dict[str, FloatArray]
MADE_UP = (Items(2.0, n_features=2), Items(3.0), Items(2.0), Items(1.0))
"""Made-up items; the first are the ones drawn."""

_ABOUT_FIGURE_4 = (
    "Cora instead of TREC: a query is a topic and 1,000 random papers; 10 pairs of a relevant and "
    "an irrelevant paper are known, chosen one after another by each criterion, or drawn at "
    "random 20 times. Error: share of all such pairs predicted wrongly; AUC: of the predicted "
    "probabilities. The paper's criterion is `variance_ratio`; it reports 9 of 10."
)
_ABOUT_CURVES = (
    "Learning curves, mean ± standard error. The criteria differ in what they are for: "
    "`expected_best` and `thompson` look for the best item, the others for the whole order."
)


def figure_4(
    queries: list[Query], n_pairs: int, n_draws: int
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Error and AUC: (queries, 2) of each criterion, and (queries, draws, 2) of random pairs."""
    chosen: dict[str, list[tuple[float, float]]] = {name: [] for name in CRITERIA}
    by_chance = np.empty((len(queries), n_draws, 2))
    for q, query in enumerate(queries):
        settled = Settled(query.task.prior)
        for draw in range(n_draws):
            rng = np.random.default_rng([1, q, draw])
            winner, loser = rng.choice(query.task.pairs, n_pairs, replace=False).T
            by_chance[q, draw] = query.figures(settled.fit(winner, loser))
        for name in chosen:
            settled.model = None
            rng = np.random.default_rng([2, q])
            _, belief = explore(query.task, name, n_pairs, rng, settled)
            chosen[name].append(query.figures(belief))
    return {name: np.array(values) for name, values in chosen.items()}, by_chance


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


def figure_4_table(chosen: Mapping[str, FloatArray], by_chance: FloatArray) -> str:
    """Error and AUC of every query, and in how many each criterion beats the mean of chance."""
    names = [name for name in chosen if name != "random"]
    mean, deviation = by_chance.mean(axis=1), by_chance.std(axis=1, ddof=1)
    rows = [
        "| query | random, error | random, AUC | "
        + " | ".join(f"{name}, error | AUC" for name in names)
        + " |",
        "|---" * (3 + 2 * len(names)) + "|",
    ]
    for q in range(len(mean)):
        cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(mean[q], deviation[q], strict=True)]
        cells += [f"{value:.3f}" for name in names for value in chosen[name][q]]
        rows.append(f"| {q + 1} | " + " | ".join(cells) + " |")
    better = {
        name: (chosen[name][:, 0] < mean[:, 0], chosen[name][:, 1] > mean[:, 1]) for name in names
    }
    wins = [f"{np.sum(e)} | {np.sum(e & a)} in both" for e, a in better.values()]
    rows.append("| better than the mean of random | | | " + " | ".join(wins) + " |")
    return "\n".join(rows)


def curves_table(curves: Curves) -> str:
    """Mean ± standard error of each criterion at a tenth, a quarter, half and all of the way."""
    length = next(iter(curves.values())).shape[1]
    at = [length // 10, length // 4, length // 2, length]
    rows = ["| criterion | " + " | ".join(f"{n} answers" for n in at) + " |", "|---" * 5 + "|"]
    for name, runs in curves.items():
        error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        cells = [f"{runs[:, n - 1].mean():.3f} ± {error[n - 1]:.3f}" for n in at]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def answers_to_match(curves: Curves) -> dict[str, int | None]:
    """How many answers each criterion needs for the mean that random has at the end."""
    target = curves["random"].mean(axis=0)[-1]
    reached = {name: np.flatnonzero(runs.mean(axis=0) <= target) for name, runs in curves.items()}
    return {name: int(when[0]) + 1 if len(when) else None for name, when in reached.items()}


def _needed(items: Items, order: Curves) -> str:
    needed = answers_to_match(order).items()
    listed = ", ".join(f"{name} {n or 'more than 200'}" for name, n in needed)
    return f"Answers until the pair error that random has after 200, {items}: {listed}."


def draw_figure_4(active: FloatArray, by_chance: FloatArray, path: Path) -> None:
    """Error and AUC of each query: random draws with their deviation, the paper's criterion."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained", dpi=200)
    queries = np.arange(1, len(active) + 1)
    for column, (ax, what) in enumerate(zip(figure.subplots(1, 2), ("error", "AUC"), strict=True)):
        mean, deviation = (f(by_chance[:, :, column], axis=1) for f in (np.mean, np.std))
        ax.errorbar(
            queries, mean, deviation, fmt="o", color=BLUE, markersize=4, capsize=2, label="random"
        )
        ax.plot(queries, active[:, column], "s", color=ORANGE, markersize=4, label="chosen")
        ax.set(xlabel="query", ylabel=what, xticks=queries)
        tidy(ax)
    ax.legend(fontsize=6, frameon=False)
    figure.savefig(path)


def draw_curves(curves: Mapping[str, Curves], path: Path) -> None:
    """One panel of learning curves for each task."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5.2), layout="constrained", dpi=200)
    panels = figure.subplots(2, (len(curves) + 1) // 2).ravel()
    for ax, (what, runs) in zip(panels, curves.items(), strict=False):
        title, measure = what.split(", ")
        plot_learning(runs, ax, measure).set_title(title, fontsize=9)
    figure.savefig(path)


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """Figure 4 and the learning curves as Markdown; with a folder `out`, drawn there too.

    `quick` takes fewer queries, draws, seeds and answers.
    """
    with data_at(data):
        queries = cora_queries(load_cora(), 3 if quick else 10)
        sushi = sushi_task()
    chosen, by_chance = figure_4(queries, 10, 5 if quick else 20)
    seeds = range(5 if quick else 30)
    orders = {
        items: learning_curves([made_up_task(seed, items, find_best=False) for seed in seeds], 200)
        for items in MADE_UP
    }
    curves = {
        "Cora, pair error": learning_curves([query.task for query in queries], 30),
        "sushi, pair error": learning_curves([sushi] * len(seeds), 100 if quick else 300),
        "best of 50 items, simple regret": learning_curves(
            [made_up_task(seed, MADE_UP[0], find_best=True) for seed in seeds], 100
        ),
        "order of 50 items, pair error": orders[MADE_UP[0]],
    }
    parts = ["## Choosing what to compare (paper 000, figure 4)", _ABOUT_FIGURE_4]
    parts += [figure_4_table(chosen, by_chance), _ABOUT_CURVES]
    for what, runs in curves.items():
        parts += [f"### {what}", curves_table(runs)]
    parts += [_needed(items, order) for items, order in orders.items()]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        draw_figure_4(chosen["variance_ratio"], by_chance, folder / "active_figure_4.png")
        draw_curves(curves, folder / "active_curves.png")
    return "\n\n".join(parts)
