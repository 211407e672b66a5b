"""Lines over something: a feature, time, answers, rounds, steps of an optimiser."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.numerics.types import FloatArray
from penchant.plots.style import BLUE, COLOURS, GREY, axes, name_lines, short, tidy

if TYPE_CHECKING:
    from penchant.online import Regret


def plot_utilities(
    x: ArrayLike,
    mean: ArrayLike | Any,
    std: ArrayLike | None = None,
    ax: Any | None = None,
    marks: ArrayLike | None = None,
) -> Any:
    """The mean utility as a line, with bands of one and two standard deviations.

    x : (n,) values of the feature, in any order; mean, std : (n,) what
    `model.predict(X, return_std=True)` gives, or in place of both a model that was fitted with
    this one feature; marks : where items were, drawn on the axis.

    >>> ax = plot_utilities([0, 1, 2], mean=[0.0, 1.0, 0.5], std=[0.1, 0.2, 0.4])
    >>> len(ax.lines), len(ax.collections)
    (1, 2)
    """
    if hasattr(mean, "predict"):
        mean, std = mean.predict(np.reshape(x, (-1, 1)), return_std=True)
    elif std is None:
        raise DataError("plot_utilities needs std beside mean; or a model in place of both")
    x, mean, std = (np.asarray(column, dtype=np.float64) for column in (x, mean, std))
    order = np.argsort(x)
    x, mean, std = x[order], mean[order], std[order]
    ax = axes(ax)
    for width, alpha in ((2.0, 0.15), (1.0, 0.25)):
        ax.fill_between(
            x, mean - width * std, mean + width * std, color=BLUE, alpha=alpha, linewidth=0
        )
    ax.plot(x, mean, color=BLUE, linewidth=1.2)
    if marks is not None:
        places = np.asarray(marks, dtype=np.float64)
        ax.plot(
            places,
            np.zeros(places.size),
            "|",
            color="black",
            markersize=5,
            transform=ax.get_xaxis_transform(),
            clip_on=False,
        )
    ax.set(xlabel="feature", ylabel="utility")
    return tidy(ax)


def plot_paths(
    times: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    names: Sequence[object],
    ax: Any | None = None,
    last: Any = None,
) -> Any:
    """A line for every item's utility over time, with a band of two standard deviations.

    times : (k,) dates or days; mean, std : (k, n) what `model.paths(times)` gives, or some of its
    columns; names : (n,) of the items; last : a time beyond which everything is a forecast.

    >>> ax = plot_paths([0, 7], [[0.0, 1.0], [0.5, 0.5]], [[0.1, 0.1], [0.2, 0.2]], ["tea", "milk"])
    >>> len(ax.lines), len(ax.collections)
    (2, 2)
    """
    when = np.asarray(times)
    mean, std = (np.asarray(table, dtype=np.float64) for table in (mean, std))
    ax = axes(ax)
    for k, name in enumerate(names):
        colour, style = COLOURS[k % len(COLOURS)], ("-", "--", ":")[k // len(COLOURS) % 3]
        low, high = mean[:, k] - 2.0 * std[:, k], mean[:, k] + 2.0 * std[:, k]
        ax.fill_between(when, low, high, color=colour, alpha=0.12, linewidth=0)
        (line,) = ax.plot(when, mean[:, k], style, color=colour, linewidth=1.2)
        line.set_label(short(name))
    if last is not None:
        ax.axvline(last, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xlabel="time", ylabel="utility")
    if len(names) > 1:
        name_lines(ax)
    return tidy(ax)


def plot_learning(
    curves: Mapping[str, FloatArray], ax: Any | None = None, what: str = "error"
) -> Any:
    """A measure against the number of answers, one line a policy, with a 95 % band of its mean.

    curves : label → (runs, answers), the measure after each answer of each run. what : its name.

    >>> runs = np.random.default_rng(0).random((5, 20))
    >>> plot_learning({"random": runs}, what="pair error").get_ylabel()
    'pair error'
    """
    ax = axes(ax)
    for k, (label, runs) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        answers = np.arange(1, runs.shape[1] + 1)
        mean = runs.mean(axis=0)
        ax.plot(answers, mean, color=colour, linewidth=1.2, label=label)
        if len(runs) > 1:
            reach = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            ax.fill_between(
                answers, mean - reach, mean + reach, color=colour, alpha=0.15, linewidth=0
            )
    ax.set(xlabel="answers", ylabel=what)
    name_lines(ax)
    return tidy(ax)


def plot_regret(
    runs: "Mapping[str, Regret]",
    ax: Any | None = None,
    of: Literal["utility", "dcg"] = "utility",
    alpha: float | None = None,
) -> Any:
    """Average regret against rounds, one line a learner, with one standard deviation.

    runs : label → what `penchant.online.simulate` gives. alpha : draw Theorem 1's bound for
    α-informative feedback, dashed, for each.

    >>> from penchant.online import AlphaUser, Round, simulate
    >>> from penchant.models.preference_perceptron import PreferencePerceptron
    >>> rounds = [Round(np.eye(3)) for _ in range(20)]
    >>> taste = np.array([0.0, 1.0, 2.0])
    >>> run = simulate(PreferencePerceptron(), rounds, AlphaUser(taste), weights=taste)
    >>> plot_regret({"perceptron": run}, alpha=1.0).get_ylabel()
    'average utility regret'
    """
    ax = axes(ax)
    for k, (label, run) in enumerate(runs.items()):
        colour = COLOURS[k % len(COLOURS)]
        mean, deviation = run.running(of)
        rounds = np.arange(1, mean.size + 1)
        ax.plot(rounds, mean, color=colour, linewidth=1.2, label=label)
        ax.fill_between(
            rounds, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
        )
        if alpha is not None:
            bound = f"Theorem 1, {label}"
            ax.plot(rounds, run.bound(alpha), "--", color=colour, linewidth=0.8, label=bound)
    what = "utility" if of == "utility" else "DCG*"
    ax.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"average {what} regret")
    name_lines(ax)
    return tidy(ax)


def plot_evidence(traces: Any, ax: Any | None = None, xlabel: str = "step") -> Any:
    """Log evidence against steps of an optimiser, or log joint against sweeps of a sampler.

    traces : a model of communities; (n_steps,), or label → such a column, one line each. A line
    that still climbs at its right end has not settled. The first tenth may climb in from below
    the figure, which would otherwise show nothing else.

    >>> ax = plot_evidence({"chain 1": [-90, -60, -58], "chain 2": [-80, -59, -58]})
    >>> len(ax.lines)
    2
    """
    ylabel = "log evidence"
    if hasattr(traces, "chains_"):
        report, is_sampled = traces.report_, bool(traces.chains_)
        xlabel, ylabel = ("sweep", "log probability") if is_sampled else ("step", ylabel)
        joint = report.log_joint if is_sampled else [report.log_evidence]
        what = "chain" if is_sampled else "search"
        traces = {f"{what} {k}": trace for k, trace in enumerate(joint, start=1)}
    given = traces if isinstance(traces, Mapping) else {"": traces}
    named = {label: np.asarray(trace, dtype=np.float64) for label, trace in given.items()}
    ax = axes(ax)
    for k, (label, trace) in enumerate(named.items()):
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(np.arange(1, trace.size + 1), trace, color=colour, linewidth=1, label=label)
    late = np.concatenate([trace[trace.size // 10 :] for trace in named.values()])
    margin = 0.05 * max(float(np.ptp(late)), 1.0)
    ax.set_ylim(late.min() - margin, late.max() + margin)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if len(named) > 1:
        name_lines(ax)
    return tidy(ax)
