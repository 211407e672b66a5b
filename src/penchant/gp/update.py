"""More answers for a posterior that is there already, or fewer: no refit, hyperparameters stay.

`settle` starts from the sites that the old comparisons had and sweeps until nothing moves: equal
to inference from scratch, in fewer sweeps, whichever answers came or went. Between two such, a
problem may `absorb` answers one by one and leave the other sites where they are.
"""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from penchant.data import Comparisons
from penchant.gp.loop import Problem, Solution, solve
from penchant.gp.rows import Rows, columns, match, place_among, sites_at
from penchant.gp.rules import RULES, propose
from penchant.gp.sites import Report, Sites
from penchant.numerics.dispatch import dispatched
from penchant.numerics.linalg import solve_lower
from penchant.numerics.types import FloatArray

UNSETTLED_SHARE = 0.02
"""Where settling is a burden, answers are only absorbed until this share of all is unsettled."""
MOST_ABSORBED = 50
"""More answers than this are cheaper to settle together than to add one by one."""

P = TypeVar("P", bound=Problem[Any, Any])


@dataclass(frozen=True, eq=False)
class Learned(Generic[P]):
    """What the comparisons so far have taught, under fixed hyperparameters.

    sites: of all distinct comparisons, in the problem's order; None where some were dropped.
    n_unsettled: how many of the answers were absorbed since the sites were last settled.
    n_elsewhere: how many comparisons of other users, not among `data`, taught what users share.
    """

    data: Comparisons
    problem: P
    hyper: Any
    posterior: Any
    sites: Sites | None
    log_evidence: float
    report: Report
    n_unsettled: int = 0
    n_elsewhere: int = 0

    @classmethod
    def of(cls, data: Comparisons, problem: P, solution: Solution[Any, Any]) -> "Learned[P]":
        """From inference that has settled."""
        inference = solution.inference
        return cls(
            data,
            problem,
            solution.hyper,
            problem.posterior(solution),
            inference.sites,
            inference.log_evidence,
            inference.report,
        )

    def is_absorbed(self, n_more: int, polish: bool | None) -> bool:
        """Whether so many more answers are only absorbed: as told, or as is sensible."""
        if n_more > MOST_ABSORBED or self.sites is None:
            return False
        if polish is not None:
            return not polish
        unsettled = self.n_unsettled + n_more
        return not self.problem.is_quick and (
            unsettled <= UNSETTLED_SHARE * self.data.n_comparisons
        )

    def settle(self, data: Comparisons, problem: P) -> "Learned[P]":
        """On other answers: what a refit with the same hyperparameters gives."""
        return Learned.of(data, problem, solve(problem, self.hyper, self.carried(problem)))

    def carried(self, problem: P) -> Sites | None:
        """The sites that known comparisons have, and for new ones what their marginals suggest."""
        if self.sites is None:
            return None
        before, now = columns(self.problem.edges), columns(problem.edges)
        if len(before) != len(now):  # the first answers that tell how they were made
            return None
        place = place_among(before, now)
        sites, edges = sites_at(self.sites, place), problem.edges
        cliques, rule = edges.outcomes.cliques, RULES[problem.settings.rule]
        n = len(edges) - (0 if cliques is None else cliques.n_edges)
        new, marginals = problem.expect(self.posterior, np.flatnonzero(place[:n] < 0))
        if len(new):
            nothing, outcomes = Sites.zeros(len(new)), edges.outcomes.part(new)
            proposal = propose(rule, marginals, nothing, self.hyper.likelihood, outcomes)
            sites.tau[new], sites.nu[new] = proposal.tau, proposal.nu
        if cliques is not None:
            # an edge of choices sums over them all, so that each follows from the means again
            every = np.arange(n, len(edges))
            known, marginals = problem.expect(self.posterior, every)
            if len(known) == len(every):
                scale = self.hyper.likelihood.choice_scale or 1.0
                sites.tau[n:], sites.nu[n:], _ = cliques.sites(marginals.mean, scale)
        return sites


def joined(known: Learned[P], added: Sites, edges: Rows, union: Rows) -> Sites:
    """Per copy, the sites of all comparisons after absorbing: one seen again has the mean.

    added: summed sites of the answers `edges`; union: the comparisons with them.
    """
    old, sites = known.problem.edges, known.sites or Sites.zeros(0)
    tau, nu = np.zeros((2, len(union)))
    before, now = match(union, old), match(union, edges)
    tau[before], nu[before] = old.count * sites.tau, old.count * sites.nu
    tau[now] += added.tau
    nu[now] += added.nu
    return Sites(tau / union.count, nu / union.count)


# A Gaussian over weights that one more site changes: O(r²) by rank-one algebra.


BLOCK = 32
"""Columns worked on together: they stay in cache, where whole matrices would not."""


class Growth(NamedTuple):
    """The Cholesky factor M of I + z zᵀ, known in closed form; B + (Lz)(Lz)ᵀ = (LM)(LM)ᵀ.

    With t_k = 1 + Σ_{i≤k} z_i²: M_kk = √(t_k/t_{k−1}) and M_ik = z_i z_k/√(t_k t_{k−1}), i > k.
    Products and solves with it are cumulative sums, so nothing loops in Python.

    >>> L = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> d = np.array([1.0, 3.0])
    >>> grown = Growth.by(np.linalg.solve(L, d)).lower(L)
    >>> np.allclose(grown @ grown.T, L @ L.T + np.outer(d, d))
    True
    """

    z: FloatArray
    before: FloatArray
    after: FloatArray

    @classmethod
    def by(cls, z: FloatArray) -> "Growth":
        """From z = L⁻¹ d for the change d dᵀ."""
        after = 1.0 + np.cumsum(z * z)
        return cls(z, np.append(1.0, after[:-1]), after)

    def lower(self, lower: FloatArray) -> FloatArray:
        """L M."""
        return grown_lower(lower, self.z, *self._stretch_and_share())

    def half(self, half: FloatArray) -> FloatArray:
        """M⁻¹ half, for half (r, n)."""
        return shrunk_half(half, self.z, *self._stretch_and_share())

    def _stretch_and_share(self) -> tuple[FloatArray, FloatArray]:
        """(r,) M_kk, and z_k/√(t_k t_{k−1})."""
        return np.sqrt(self.after / self.before), self.z / np.sqrt(self.after * self.before)


@dispatched
def grown_lower(
    lower: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """L M."""
    r = len(lower)
    grown = np.zeros((r, r), order="F")
    for start in range(0, r, BLOCK):
        rows = slice(start, start + BLOCK)
        k = min(start + BLOCK, r)  # what lies right of the diagonal is zero
        part = lower[rows, :k].T
        later = np.cumsum((part * z[:k, None])[::-1], axis=0)[::-1]
        block = part * stretch[:k, None]
        block[:-1] += share[: k - 1, None] * later[1:]
        grown[rows, :k] = block.T
    return grown


@dispatched
def shrunk_half(
    half: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """M⁻¹ half."""
    shrunk = np.empty(half.shape, order="F")
    for start in range(0, half.shape[1], BLOCK):
        part = half[:, start : start + BLOCK]
        earlier = np.cumsum(part * z[:, None], axis=0)
        block = part / stretch[:, None]
        block[1:] -= share[1:, None] * earlier[:-1]
        shrunk[:, start : start + BLOCK] = block
    return shrunk


@dataclass(frozen=True)
class Weights:
    """Weights w ~ N(mean, (lower lowerᵀ)⁻¹); half: (r, n) lower⁻¹ Φᵀ where it is at hand."""

    mean: FloatArray
    lower: FloatArray
    half: FloatArray | None = None

    def along(self, direction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """z = lower⁻¹ d, and mean and variance, each (1,), of dᵀ w."""
        z = solve_lower(self.lower, direction)
        return z, np.array([direction @ self.mean]), np.array([z @ z])

    def with_site(self, z: FloatArray, tau: float, pull: float) -> "Weights":
        """After a site of precision `tau` along d that pulls by ν − τ dᵀ mean."""
        growth = Growth.by(np.sqrt(tau) * z)
        gain = pull / (1.0 + tau * float(z @ z))
        return Weights(
            self.mean + gain * solve_lower(self.lower, z, transposed=True),
            growth.lower(self.lower),
            None if self.half is None else growth.half(self.half),
        )
