"""What users share: W, its prior seen through the items' factor, and its posterior.

The precision of W is S = I + Σ_u (φ_u φ_uᵀ) ⊗ (Gᵀ R_u G) with G = √ρ Φ, (n, r). With one user
feature, or as many columns as items, Σ φφᵀ ⊗ R is added up over items and contracted once; else it
is contracted user by user, so that no array of (r_u², n, n) exists. Where items fall into
parts that nothing ties together, S does too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penchant.gp.users.pair_blocks import Points
from penchant.numerics.batched import (
    join_blocks,
    join_stacks,
    mix_stack,
    multiply_stack,
    split_blocks,
    sum_stack,
    transpose_stack,
)
from penchant.numerics.dispatch import HOST, Device
from penchant.numerics.linalg import (
    add_to_diagonal,
    cholesky,
    gram,
    host,
    identity_like,
    log_det_lower,
    multiply,
    solve_lower,
)
from penchant.numerics.types import FloatArray, IntArray


class SharedPart(NamedTuple):
    """Items that hang together, the columns of the factor that are about them, and its block.

    there: the block where W's matrices live.
    """

    items: IntArray
    columns: IntArray
    factor: FloatArray
    there: FloatArray


@dataclass(frozen=True)
class SharedPrior:
    """W ~ N(0, I), (r_u, r), seen as G Wᵀ. factor: G, (n, r); rank: r_u; device: of users' stacks,
    of what they know of W, and of its covariance."""

    factor: FloatArray
    rank: int
    parts: tuple[SharedPart, ...]
    device: Device = HOST

    @classmethod
    def of(
        cls,
        factor: FloatArray,
        rank: int,
        parts: tuple[IntArray, ...] | None,
        device: Device = HOST,
    ) -> "SharedPrior":
        """With the items of each part; None: all in one."""
        n, r = factor.shape
        if parts is None or len(parts) == 1 or (rank > 1 and r < n):
            whole = SharedPart(np.arange(n), np.arange(r), factor, device.matrix(factor))
            return cls(factor, rank, (whole,), device)
        owner = np.empty(n, dtype=np.intp)
        for number, items in enumerate(parts):
            owner[items] = number
        about = owner[np.abs(factor).argmax(axis=0)]
        found = []
        for number, items in enumerate(parts):
            mine = np.flatnonzero(about == number)
            own = factor[np.ix_(items, mine)]
            if len(mine):
                found.append(SharedPart(items, mine, own, device.matrix(own)))
        return cls(factor, rank, tuple(found), device)

    @property
    def is_contracted(self) -> bool:
        """Whether information is added up over the factor's columns, not over items."""
        n, r = self.factor.shape
        return self.rank > 1 and r < n

    @property
    def flops(self) -> float:
        """Of the dense algebra with S."""
        return float(sum((self.rank * len(part.columns)) ** 3 for part in self.parts))

    def nothing(self) -> FloatArray:
        """Information of nobody, (r_u², n, n) or (r_u², r, r)."""
        size = self.factor.shape[1 if self.is_contracted else 0]
        return self.device.matrix(np.zeros((self.rank**2, size, size)))

    def add(self, information: FloatArray, block: Points, outer: FloatArray, R: FloatArray) -> None:
        """Add Σ_u outer[u] R_u of a block's users, (k, r_u²) and (k, p, p), in place."""
        if not self.is_contracted:
            information += block.weighted_sum(outer, R)
            return
        for some, G in self._rows(block):
            inner = multiply_stack(transpose_stack(G), multiply_stack(R[some], G))
            information += sum_stack(inner, outer[some]).reshape(information.shape)

    @cached_property
    def _factor_there(self) -> FloatArray:
        return self.device.matrix(self.factor)

    def _rows(self, block: Points) -> Iterator[tuple[slice, FloatArray]]:
        """A block's users a few at a time, with G at their points, (k, p, r)."""
        k, p = block.shape
        size, r = self.device.stack_size, self.factor.shape[1]
        step = max(1, size // (max(p, r) * r))
        for start in range(0, k, step):
            some = slice(start, min(start + step, k))
            yield some, block.rows(self._factor_there, some)

    def pick(self, block: Points, outer: FloatArray, covariance: FloatArray) -> FloatArray:
        """(k, p, p): Σ_q outer[u, q] covariance[q] at each user's points, covariance as `nothing`'s
        shape, where stacks live."""
        if not self.is_contracted:
            return block.weighted_pick(outer, covariance)
        picked = []
        for some, G in self._rows(block):
            inner = mix_stack(covariance, outer[some])
            picked.append(multiply_stack(multiply_stack(G, inner), transpose_stack(G)))
        return join_stacks(*picked)

    def half_contracted(self, block: Points, outer: FloatArray, R: FloatArray) -> FloatArray:
        """(r_u², r, n): Σ_u outer[u] Gᵀ R_u of a block's users."""
        total: FloatArray = np.zeros((outer.shape[1], *self.factor.shape[::-1]))
        for some, G in self._rows(block):
            rows = multiply_stack(R[some], G)
            total += host(block.collect_rows(rows, outer[some], some))
        return total

    def given(self, information: FloatArray) -> "SharedState":
        """The posterior of W."""
        factors = [cholesky(self._precision(information, part)) for part in self.parts]
        return SharedState(
            self,
            information,
            tuple(factor.lower for factor in factors),
            max((factor.jitter for factor in factors), default=0.0),
        )

    def inside(self, information: FloatArray, part: SharedPart) -> FloatArray:
        """(r_u, r_u, n, n) information about the items of one part."""
        whole = len(self.parts) == 1
        some = information if whole else information[:, part.items[:, None], part.items]
        return some.reshape(self.rank, self.rank, *some.shape[1:])

    def _precision(self, information: FloatArray, part: SharedPart) -> FloatArray:
        """The block of S that is about one part, (r_u r, r_u r)."""
        projected = self.inside(information, part)
        if not self.is_contracted:
            projected = multiply_stack(multiply_stack(part.there.T, projected), part.there)
        S = join_blocks(projected)
        add_to_diagonal(S, 1.0)
        return S


@dataclass(frozen=True)
class SharedState:
    """The posterior of W: the information about it, and the Cholesky factor of S of each part."""

    prior: SharedPrior
    information: FloatArray
    lowers: tuple[FloatArray, ...]
    jitter: float

    @property
    def log_det(self) -> float:
        """log |S|."""
        return sum(map(log_det_lower, self.lowers))

    @property
    def lower(self) -> FloatArray:
        """Cholesky factor of the whole S, (r_u r, r_u r)."""
        if len(self.lowers) == 1:
            return host(self.lowers[0])
        rank, r = self.prior.rank, self.prior.factor.shape[1]
        whole = np.eye(rank * r)
        for part, lower in zip(self.prior.parts, self.lowers, strict=True):
            place = (np.arange(rank)[:, None] * r + part.columns).ravel()
            whole[np.ix_(place, place)] = host(lower)
        return whole

    def respond(self, collected: FloatArray) -> FloatArray:
        """(r_u, r): S⁻¹ applied to Σ_u φ_u x_uᵀ G, given the (r_u, n) before G."""
        shared = np.zeros((self.prior.rank, self.prior.factor.shape[1]))
        for part, lower in zip(self.prior.parts, self.lowers, strict=True):
            pull = multiply(np.ascontiguousarray(collected[:, part.items]), part.factor)
            w = solve_lower(lower, solve_lower(lower, pull.ravel()), transposed=True)
            shared[:, part.columns] = w.reshape(pull.shape)
        return shared

    @cached_property
    def covariance(self) -> FloatArray:
        """Of G Wᵀ, (r_u², n, n), or of W, (r_u², r, r) where information is contracted."""
        total, rank = self.prior.nothing(), self.prior.rank
        for part, lower in zip(self.prior.parts, self.lowers, strict=True):
            wide = solve_lower(lower, identity_like(lower, len(lower)))
            if not self.prior.is_contracted:
                wide = multiply(wide.reshape(-1, len(part.columns)), part.there.T)
            flat = split_blocks(gram(wide.reshape(len(lower), -1)), rank)
            if len(self.lowers) == 1:
                return flat
            total[:, part.items[:, None], part.items] = flat
        return total

    def at(self, block: Points, outer: FloatArray) -> FloatArray:
        """(k, p, p) covariance of the shared utilities of a block's users at their points."""
        return self.prior.pick(block, outer, self.covariance)
