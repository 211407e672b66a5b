"""Users shared out among communities: the objective, and the steps that climb it.

With responsibilities r (U, K), sizes N_c = Σ_u r_uc and answers w_c = Pᵀ r_c the objective is

    Σ_c log Z(w_c) + K log λ + Σ_c ln Γ(N_c) − Σ r log r + ln Γ(λ) − ln Γ(λ + U),

plus the weak prior of the hyperparameters: the evidence of a Dirichlet-process mixture, with
memberships averaged and tastes integrated out.
log Z and ln Γ are convex, so that choosing communities by their slopes climbs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, gammaln, psi

from penchant.communities.assignment import Answers
from penchant.communities.taste import Crowd, Taste, TasteModel
from penchant.gp import Limits, climb
from penchant.numerics.optimize import Move
from penchant.numerics.types import FloatArray

SMALLEST = 0.5
"""A community of fewer users than this is dropped."""
UNCHANGED = 1e-3
"""Votes: a community whose answers moved by less in all is not fitted again."""
LEARNING = Limits(max_steps=8, least_gain=0.05)
"""Of learning: in nats, far below what hyperparameters are uncertain by."""
LOG_CONCENTRATIONS = (-10.0, 10.0)
"""Between which a concentration is learned."""


@dataclass(frozen=True, eq=False)
class Division:
    """Who belongs where, and what each community prefers; responsibilities: (U, K)."""

    model: TasteModel
    responsibilities: FloatArray
    tastes: tuple[Taste, ...]

    @property
    def crowd(self) -> Crowd:
        """Whose answers."""
        return self.model.crowd

    @property
    def n_communities(self) -> int:
        """K."""
        return len(self.tastes)

    @cached_property
    def sizes(self) -> FloatArray:
        """(K,) expected numbers of members."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def objective(self) -> float:
        """Log evidence, up to what mean-field memberships and Laplace leave out."""
        parameters, _ = self.model.hyper.log_prior(self.crowd.hyper)
        return float(
            sum(taste.log_z for taste in self.tastes)
            + self.value_of_concentration(self.crowd.concentration)
            + memberships_value(self.responsibilities)
            + parameters
        )

    def value_of_concentration(self, concentration: float) -> float:
        """K log λ + ln Γ(λ) − ln Γ(λ + U), and the log density of log λ where it has a prior."""
        value = self.n_communities * np.log(concentration) + gammaln(concentration)
        value -= gammaln(concentration + len(self.responsibilities))
        if self.crowd.concentration_prior is not None:
            shape, rate = self.crowd.concentration_prior
            value += shape * np.log(rate * concentration) - rate * concentration - gammaln(shape)
        return float(value)

    @cached_property
    def tables(self) -> FloatArray:
        """(m, K) what each answer says for each community."""
        return np.column_stack([self.model.slope(taste) for taste in self.tastes])

    def within(self, columns: Sequence[int]) -> "Division":
        """Some of the communities, as if they were all."""
        return Division(
            self.model, self.responsibilities[:, columns], tuple(self.tastes[c] for c in columns)
        )


def memberships_value(responsibilities: FloatArray) -> float:
    """Σ ln Γ(N_c) − Σ r log r; a community of less than one user counts as one."""
    sizes = np.maximum(responsibilities.sum(axis=0), 1.0)
    return float(gammaln(sizes).sum() + entr(responsibilities).sum())


def soft_counts(answers: Answers, responsibilities: FloatArray) -> FloatArray:
    """(K, m): Pᵀ r, how often each answer was given in each community."""
    counts = np.zeros((answers.n_answers, responsibilities.shape[1]))
    single = responsibilities.astype(np.float32, order="C")  # as the counts: else they are copied
    for part, shard in answers.shards():
        counts += shard.T @ single[part]
    return np.ascontiguousarray(counts.T)


def everybody_together(crowd: Crowd, theta: FloatArray) -> Division:
    """One community of all users."""
    return allocate(crowd.model(theta), np.ones((crowd.answers.n_users, 1)))


def allocate(
    model: TasteModel, responsibilities: FloatArray, starts: Sequence[Taste | None] | None = None
) -> Division:
    """Fit every community to its answers; one that starts from the same answers is kept."""
    weights = soft_counts(model.crowd.answers, responsibilities)
    given = starts or [None] * len(weights)
    tastes = tuple(refit(model, w, start) for w, start in zip(weights, given, strict=True))
    return Division(model, responsibilities, tastes)


def refit(model: TasteModel, weights: FloatArray, start: Taste | None) -> Taste:
    """The taste behind these answers, unless it is known already."""
    if start is not None and start.prior is model.prior:
        changed = float(np.abs(weights - start.weights).sum())
        if changed < UNCHANGED:
            return start
    return model.fit(weights, start)


def log_likelihoods(answers: Answers, tables: FloatArray) -> FloatArray:
    """(U, K): P @ tables, in the digits of the counts.

    Communities are on the leading axis in memory, where reductions over the few of them are fast.
    """
    values, single = np.empty((tables.shape[1], answers.n_users)), tables.astype(np.float32)
    for part, shard in answers.shards():
        values[:, part] = (shard @ single).T
    return values.T


def shares(log_weights: FloatArray) -> FloatArray:
    """Rows exp(x) that sum to one; works in place."""
    log_weights -= log_weights.max(axis=1, keepdims=True)
    np.exp(log_weights, out=log_weights)
    log_weights /= log_weights.sum(axis=1, keepdims=True)
    return log_weights


def sweep(allocation: Division, keep_all: bool = False) -> Division:
    """Let every user choose among the communities, then fit them: r ∝ exp(ψ(N_c) + P slope)."""
    log_weights = log_likelihoods(allocation.crowd.answers, allocation.tables)
    log_weights += psi(np.maximum(allocation.sizes, SMALLEST))
    responsibilities = shares(log_weights)
    kept = np.flatnonzero(responsibilities.sum(axis=0) >= (0.0 if keep_all else SMALLEST))
    if len(kept) < allocation.n_communities:
        responsibilities = responsibilities[:, kept]
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    starts = [allocation.tastes[c] for c in kept]
    return allocate(allocation.model, responsibilities, starts)


def settle(
    allocation: Division, max_sweeps: int, tolerance: float, keep_all: bool = False
) -> Division:
    """Sweep until the objective gains less than the tolerance; never to a lower one."""
    for _ in range(max_sweeps if allocation.n_communities > 1 else 0):
        swept = sweep(allocation, keep_all)
        gain = swept.objective - allocation.objective
        if gain > 0.0 or swept.n_communities < allocation.n_communities:
            allocation = swept
        if gain < tolerance and swept.n_communities == allocation.n_communities:
            break
    return allocation


def learn_concentration(allocation: Division) -> Division:
    """λ where it is likeliest, given the number of communities and its Gamma prior."""
    crowd = allocation.crowd
    if crowd.concentration_prior is None:
        return allocation
    found = minimize_scalar(
        lambda log: -allocation.value_of_concentration(float(np.exp(log))),
        bounds=LOG_CONCENTRATIONS,
        method="bounded",
    )
    known = replace(crowd, concentration=float(np.exp(found.x)))
    return replace(allocation, model=replace(allocation.model, crowd=known))


def learn(allocation: Division, limits: Limits = LEARNING) -> tuple[Division, tuple[Move, ...]]:
    """A few steps up Σ log Z + weak prior over the hyperparameters, memberships held.

    Also the moves, by which the next time goes on where this one ended.
    """
    crowd, last = allocation.crowd, allocation
    theta = allocation.model.hyper.theta
    if not len(theta):
        return allocation, ()

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, Division]:
        nonlocal last
        model = last.model
        if not np.array_equal(candidate, model.hyper.theta):
            model = crowd.model(candidate)
        tastes = tuple(refit(model, taste.weights, taste) for taste in last.tastes)
        slope = model.gradient(tastes)
        penalty, drag = model.hyper.log_prior(crowd.hyper)
        last = replace(last, model=model, tastes=tastes)
        return sum(taste.log_z for taste in tastes) + penalty, slope + drag, last

    if allocation.model.prior.variance is not None and len(theta) == 1:
        # −log Z bends by ½ in log σ² for every utility that is settled, of any community
        settled = sum(taste.state.n_settled for taste in allocation.tastes)
        limits = limits._replace(curvature=0.5 * float(settled))
    summit = climb(evaluate, theta, crowd.hyper.bounds, limits)
    return (allocation if summit.kept is None else summit.kept), summit.moves
