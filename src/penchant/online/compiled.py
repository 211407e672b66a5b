"""The sequential loops, compiled.

This module imports numba at its head: import it only inside the functions that run a loop.

A loop changes the arrays of its `State` in place; nothing is allocated per round, and no
difference matrix is ever formed. It returns how many rounds it learned, and of how many. It stops
before a round whose margin is not finite: a missing or infinite feature makes it so (0·∞ is NaN),
which spares a pass over the data that would only look for them.

All compiled code is in this one file, because numba's cache notices changes of the file that
holds a function, not of the files it calls into.
"""

from collections.abc import Callable
from math import exp, inf, isfinite, sqrt
from typing import Any, TypeVar

import numba
import numpy as np

from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import (
    ADAPTIVE,
    EXPONENTIATED,
    HINGE,
    LINEAR,
    PERCEPTRON,
    Real,
    State,
    UpdateRule,
)

F = TypeVar("F", bound=Callable[..., object])
Done = tuple[int, int]
"""Rounds learned, and rounds given."""

# Sums may be reordered (that is what lets a dot product use vector registers), but NaN and
# infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "nsz"}
# "numpy": a check of each division for zero would keep the adaptive loop out of them too.
_OPTIONS = {"fastmath": _FASTMATH, "error_model": "numpy", "nogil": True}
_TINY = float(np.finfo(np.float64).tiny)


def compile_loop(function: F, inline: str = "never") -> F:
    options = {"inline": inline, **_OPTIONS}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation and no folder for the cache elsewhere
        return numba.njit(**options)(function)


def _inlined(function: F) -> F:
    """Handing a whole state to a function takes as long as a small round: paste it instead."""
    return compile_loop(function, inline="always")


@compile_loop
def _slope(loss: int, margin: float) -> float:
    """Return −ℓ'(margin)."""
    if loss == LINEAR:
        return 1.0
    if loss == PERCEPTRON:
        return 1.0 if margin <= 0.0 else 0.0
    if loss == HINGE:
        return 1.0 if margin < 1.0 else 0.0
    return 1.0 / (1.0 + exp(margin))


@compile_loop
def _add(weights: Real, delta: Real, size: float) -> None:
    scale = weights.dtype.type(size)
    for f in range(delta.size):
        weights[f] += scale * delta[f]


@compile_loop
def _adapt(weights: Real, squares: FloatArray, delta: Real, slope: float, rate: float) -> None:
    for f in range(delta.size):
        gradient = slope * delta[f]
        squares[f] += gradient * gradient
        # A branch on zero would keep the loop out of vector registers; 0/√tiny is 0 as well.
        weights[f] += rate * gradient / sqrt(squares[f] + _TINY)


@compile_loop
def _exponentiate(weights: Real, log_weights: FloatArray, delta: Real, size: float) -> None:
    largest = -inf
    for f in range(delta.size):
        log_weights[f] += size * delta[f]
        largest = max(largest, log_weights[f])
    total = 0.0
    for f in range(delta.size):
        log_weights[f] -= largest
        weights[f] = exp(log_weights[f])
        total += weights[f]
    for f in range(delta.size):
        weights[f] /= total


@_inlined
def _step(rule: UpdateRule, state: State, delta: Real, margin: float) -> None:
    """Move by Δ = φ(x, ȳ) − φ(x, y), whose utility wᵀΔ is the margin."""
    slope = _slope(rule.loss, margin)
    if slope != 0.0:
        if rule.update == ADAPTIVE:
            _adapt(state.weights, state.squares, delta, slope, rule.rate)
        elif rule.update == EXPONENTIATED:
            _exponentiate(state.weights, state.log_weights, delta, slope * rule.rate)
        else:
            _add(state.weights, delta, slope * rule.rate)  # Figure 1's update
    if rule.average:
        for f in range(delta.size):
            state.total[f] += state.weights[f]
    state.rounds[0] += 1


@compile_loop
def _dot(left: Real, right: Real) -> Any:
    total = left.dtype.type(0.0)
    for f in range(left.size):
        total += left[f] * right[f]
    return total


@compile_loop
def _select(values: Real, candidates: IntArray, best: IntArray) -> int:
    """Write the highest-valued candidates into `best`, highest first; return how many fit.

    Insertion into a short list: no full sort, and equal values stay in the given order.
    """
    kept = 0
    for candidate in candidates:
        value = values[candidate]
        if kept < best.size:
            kept += 1
        elif value <= values[best[kept - 1]]:
            continue
        place = kept - 1
        while place > 0 and values[best[place - 1]] < value:
            best[place] = best[place - 1]
            place -= 1
        best[place] = candidate
    return kept


@compile_loop
def _weigh(discount: FloatArray, presented: IntArray, feedback: IntArray, out: Real) -> None:
    """Write each document's coefficient in φ(x, ȳ) − φ(x, y), with φ of Eq. 5."""
    out[:] = 0.0
    for i in range(min(discount.size, presented.size)):
        out[feedback[i]] += discount[i]
        out[presented[i]] -= discount[i]


@compile_loop
def _combine(docs: Real, coefficients: Real, delta: Real) -> None:
    delta[:] = 0.0
    for j in range(docs.shape[0]):
        if coefficients[j] != 0.0:
            _add(delta, docs[j], coefficients[j])


@compile_loop
def _differences(rule: UpdateRule, state: State, deltas: Real) -> Done:
    """Rounds given by their feature differences Δ = φ(x, ȳ) − φ(x, y), (T, d), for any φ."""
    for t in range(deltas.shape[0]):
        margin = _dot(state.weights, deltas[t])
        if not isfinite(margin):
            return t, len(deltas)
        _step(rule, state, deltas[t], margin)
    return len(deltas), len(deltas)


@compile_loop
def _logged(
    rule: UpdateRule, state: State, docs: Real, presented: IntArray, feedback: IntArray
) -> Done:
    """T rounds of n documents, (T, n, d), with the orders shown and returned, (T, ≥ min(k, n))."""
    coefficients = np.empty(docs.shape[1], docs.dtype)
    delta = np.empty(docs.shape[2], docs.dtype)
    for t in range(docs.shape[0]):
        _weigh(rule.discount, presented[t], feedback[t], coefficients)
        _combine(docs[t], coefficients, delta)
        margin = _dot(state.weights, delta)
        if not isfinite(margin):
            return t, len(docs)
        _step(rule, state, delta, margin)
    return len(docs), len(docs)


@compile_loop
def _graded(
    rule: UpdateRule, state: State, docs: Real, starts: IntArray, grades: FloatArray, depth: int
) -> Done:
    """Graded documents, (N, d), one round for each block between `starts`.

    Each block is presented with the weights of that moment. The feedback brings the k best-graded
    of the first `depth` presented documents to the top, equal grades in presented order.
    """
    longest = np.max(np.diff(starts))
    given = np.arange(longest)
    scores = np.empty(longest, docs.dtype)
    coefficients = np.empty(longest, docs.dtype)
    delta = np.empty(docs.shape[1], docs.dtype)
    seen = np.empty(max(depth, rule.discount.size), np.intp)
    improved = np.empty(rule.discount.size, np.intp)
    n_rounds = starts.size - 1
    for t in range(n_rounds):
        block = docs[starts[t] : starts[t + 1]]
        n = block.shape[0]
        for j in range(n):
            scores[j] = _dot(block[j], state.weights)
        n_seen = _select(scores, given[:n], seen)
        visible = seen[: min(n_seen, depth)]
        n_top = _select(grades[starts[t] : starts[t + 1]], visible, improved)
        _weigh(rule.discount, seen[:n_top], improved, coefficients[:n])
        margin = _dot(coefficients[:n], scores[:n])
        if not isfinite(margin):
            return t, n_rounds
        _combine(block, coefficients[:n], delta)
        _step(rule, state, delta, margin)
    return n_rounds, n_rounds


@compile_loop
def _pairs(rule: UpdateRule, state: State, docs: Real, winner: IntArray, loser: IntArray) -> Done:
    """Rounds of two documents, given as row numbers: Δ = x_winner − x_loser."""
    delta = np.empty(docs.shape[1], docs.dtype)
    for t in range(winner.size):
        better, worse = docs[winner[t]], docs[loser[t]]
        for f in range(delta.size):
            delta[f] = better[f] - worse[f]
        margin = _dot(state.weights, delta)
        if not isfinite(margin):
            return t, winner.size
        _step(rule, state, delta, margin)
    return winner.size, winner.size


LOOPS: dict[str, Callable[..., Done]] = {
    "differences": _differences,
    "logged": _logged,
    "graded": _graded,
    "pairs": _pairs,
}
