"""Curves: utilities over a feature or time, learning, regret, evidence, calibration."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.gp import as_shown
from penchant.io import as_comparisons
from penchant.metrics import Calibration
from penchant.metrics import calibration as calibration_of
from penchant.numerics.types import FloatArray
from penchant.plots.style import BLUE, COLOURS, GREY, axes, draw_line, name_lines, short, tidy

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
    columns = np.array([x, mean, std], dtype=np.float64)
    at, middle, sd = columns[:, np.argsort(columns[0])]
    ax = axes(ax)
    ax.fill_between(at, middle - 2.0 * sd, middle + 2.0 * sd, color=BLUE, alpha=0.15, linewidth=0)
    draw_line(ax, 0, at, middle, sd, 0.25)
    if marks is not None:
        places, on_axis = np.asarray(marks, dtype=np.float64), ax.get_xaxis_transform()
        how = {"color": "black", "markersize": 5, "clip_on": False}
        ax.plot(places, np.zeros(places.size), "|", transform=on_axis, **how)
    return tidy(ax, xlabel="feature", ylabel="utility")


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
        style = ("-", "--", ":")[k // len(COLOURS) % 3]
        reach, label = 2.0 * std[:, k], short(name)
        draw_line(ax, k, when, mean[:, k], reach, 0.12, linestyle=style, label=label)
    if last is not None:
        ax.axvline(last, color=GREY, linewidth=0.8, linestyle=":")
    if len(names) > 1:
        name_lines(ax)
    return tidy(ax, xlabel="time", ylabel="utility")


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
        n_runs, n_answers = runs.shape
        reach = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(n_runs) if n_runs > 1 else None
        draw_line(ax, k, np.arange(1, n_answers + 1), runs.mean(axis=0), reach, label=label)
    name_lines(ax)
    return tidy(ax, xlabel="answers", ylabel=what)


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
        mean, deviation = run.running(of)
        rounds = np.arange(1, mean.size + 1)
        draw_line(ax, k, rounds, mean, deviation, 0.2, label=label)
        if alpha is not None:
            bound = f"Theorem 1, {label}"
            draw_line(ax, k, rounds, run.bound(alpha), linestyle="--", linewidth=0.8, label=bound)
    ax.set(xscale="log", yscale="log")
    name_lines(ax)
    what = "utility" if of == "utility" else "DCG*"
    return tidy(ax, xlabel="rounds", ylabel=f"average {what} regret")


def plot_evidence(traces: Any, ax: Any | None = None, xlabel: str = "step") -> Any:
    """Log evidence against steps of an optimiser, or log joint against sweeps of a sampler.

    traces : a model of communities; (n_steps,), or label → such a column, one line each. A line
    that still climbs at its right end has not converged. The limits follow the last nine tenths: a
    bad start lies below the figure.

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
        draw_line(ax, k, np.arange(1, trace.size + 1), trace, linewidth=1, label=label)
    late = np.concatenate([trace[trace.size // 10 :] for trace in named.values()])
    margin = 0.05 * max(float(np.ptp(late)), 1.0)
    ax.set_ylim(late.min() - margin, late.max() + margin)
    if len(named) > 1:
        name_lines(ax)
    return tidy(ax, xlabel=xlabel, ylabel=ylabel)


def plot_calibration(
    calibration: Calibration | Any, ax: Any | None = None, *, data: Any = None
) -> Any:
    """Observed share against predicted probability, bin by bin, with two standard errors.

    On the diagonal, predictions of 70 % come true 7 times in 10; above it the model was too
    cautious, below it too bold. The area of a point is the number of predictions.

    calibration : what `penchant.metrics.calibration` gives, or a model.
    data : beside a model, comparisons that it has not learned from, by people whom it knows.

    >>> from penchant.metrics import calibration
    >>> ax = plot_calibration(calibration([0.7, 0.7, 0.7, 0.3], n_bins=5))
    >>> ax.get_xlabel()
    'predicted probability'
    """
    if not isinstance(calibration, Calibration):
        calibration = _of_model(calibration, data)
    full = calibration.count > 0
    x, y = calibration.predicted[full], calibration.observed[full]
    count = calibration.count[full]
    # Wilson's centre keeps the error of a bin that came out all one way above zero
    centre = (y * count + 2.0) / (count + 4.0)
    reach = 2.0 * np.sqrt(centre * (1.0 - centre) / (count + 4.0))
    ax = axes(ax, height=3.2)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.vlines(x, np.maximum(centre - reach, 0), np.minimum(centre + reach, 1), color=BLUE)
    size = 12 + 60 * count / count.max()
    ax.scatter(x, y, s=size, color=BLUE, alpha=0.8, zorder=3, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return tidy(ax, xlabel="predicted probability", ylabel="observed share")


def _of_model(model: Any, data: Any) -> Calibration:
    if data is None:
        raise DataError(
            "plot_calibration was given a model without data: its own comparisons would flatter "
            "it; give comparisons that it has not learned from, as data=…"
        )
    data = as_comparisons(data)
    decided = ~data.tie
    ends = (data.winner[decided].tolist(), data.loser[decided].tolist())
    # names, because a model would take the index 3 for an item that is called 3
    pairs = [(data.items[a], data.items[b]) for a, b in zip(*ends, strict=True)]
    if not pairs:
        raise DataError("all comparisons are ties: predictions need comparisons with a winner")
    who = None if data.user is None else [data.users[u] for u in data.user[decided].tolist()]
    prob = model.predict_proba(pairs, who, **as_shown(model, data, decided))
    return calibration_of(prob, counts=data.count[decided])
