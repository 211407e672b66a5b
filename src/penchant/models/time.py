"""Comparisons that have a time: utilities that drift, answers that fade, and what a date is."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from penchant.data import Comparisons, as_column, read_times
from penchant.errors import DataError
from penchant.gp import (
    Calendar,
    Edges,
    Meetings,
    PathHyper,
    PathProblem,
    Settings,
    check_time,
    edges_of,
)
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray

START_VARIANCE = 0.25
"""Of a path, in units of an answer's noise, where learning starts; its timescale is half of the
time that the comparisons span."""


def path_problem(
    items: Inputs, data: Comparisons, settings: Settings, calendar: Calendar
) -> PathProblem:
    """The comparisons in the periods of a calendar."""
    return PathProblem(items, Meetings.of(data, calendar), calendar, settings)


def path_start(kernel: Kernel, data: Comparisons, likelihood: Likelihood) -> PathHyper:
    """Where the learning of drift starts."""
    time = check_time(data)
    span = float(time.max() - time.min()) or 1.0
    return PathHyper(kernel, START_VARIANCE, 0.5 * span, likelihood)


def faded_counts(data: Comparisons, half_life: float | None) -> FloatArray:
    """(m,) counts, halved for every half-life before the last of all comparisons; as they are
    where half_life is None."""
    if half_life is None:
        return data.count.astype(np.float64)
    time = check_time(data)
    count: FloatArray = data.count * np.exp2((time - time.max()) / half_life)
    return np.maximum(count, np.finfo(float).tiny)  # zero is no power


def faded(edges: Edges, data: Comparisons, half_life: float) -> Edges:
    """Edges whose answers count half for every half-life before the last of all comparisons."""
    edge = edges_of(data, np.arange(len(data)), edges)
    count = np.bincount(edge, faded_counts(data, half_life), len(edges))
    return edges.weighted(count.astype(np.float64))


def as_days(at: Any) -> FloatArray:
    """A date, a moment, a text such as "2024-05-31" or a number of days, as days since 1970; or
    several of them, (k,).

    >>> as_days("1970-01-03").tolist(), as_days([2.5, "1970-01-02"]).tolist()
    (2.0, [2.5, 1.0])
    """
    is_one = isinstance(at, str | bytes) or not isinstance(at, Iterable)
    values = [at] if is_one else as_column(at, "at")
    if not len(values):
        raise DataError("at is empty: give one time, or one for each pair")
    are_dates = len(values) and all(isinstance(each, np.datetime64) for each in values)
    days = read_times(np.array(values, dtype="datetime64[us]") if are_dates else values)
    is_bool = np.array([isinstance(each, bool | np.bool_) for each in values], dtype=bool)
    wrong = is_bool | ~np.isfinite(days)
    if wrong.any():
        bad = at if is_one else values[int(np.argmax(wrong))]
        raise DataError(
            f"at={bad!r}: it must be a date, a text such as '2024-05-31', or a number of days"
        )
    return days[0] if is_one else days  # type: ignore[no-any-return]  # a NumPy number
