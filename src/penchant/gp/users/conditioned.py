"""Some users given their own comparisons, and what follows for anything asked of them.

On the p items that a user compared: R, α of their own sites (see `arrow`). For utilities t with
covariance k to those items through the user's deviation, and covariances s and S to and among
those items through what users share: mean = shared mean + k α and, with v = k R,
var = k_tt − v kᵀ + s_tt − 2 v sᵀ + v S vᵀ. Whoever came after the fit has the shared part in k.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from penchant.numerics.batched import apply_stack, multiply_stack, row_products_stack, scale_stack
from penchant.numerics.linalg import host
from penchant.numerics.types import FloatArray, IntArray


class Asked(NamedTuple):
    """Utilities or contrasts of some rows, before the user's own sites.

    mean, prior, shared_var: (s, t) shared mean, K_x variance, variance of the shared utility;
    cross, shared_cross: (s, t, p) covariances with the user's items, of K_x and of what is shared.
    """

    mean: FloatArray
    prior: FloatArray
    cross: FloatArray
    shared_var: FloatArray
    shared_cross: FloatArray


class Conditioned(NamedTuple):
    """k users who compared p items each.

    rows: (k,) where they stand among those asked for; items: (k, p); phi: (k, r_u); personal: (k,)
    variance of their deviations; R: (k, p, p) and alpha: (k, p) of their own sites; shared:
    (k, p, p) covariance of what is shared, None for users who came after the fit. R, alpha and
    shared may live on a device, with what is asked; largest: most numbers of an array there.
    """

    rows: IntArray
    items: IntArray
    phi: FloatArray
    personal: FloatArray
    R: FloatArray
    alpha: FloatArray
    shared: FloatArray | None
    largest: int

    def chunks(self, n_asked: int, of: IntArray | None = None) -> Iterator[IntArray]:
        """Positions of rows (or of `of`, whose entries are rows) whose arrays fit at once."""
        n_rows = len(self.rows) if of is None else len(of)
        p = max(1, self.items.shape[1])
        step = max(1, self.largest // (p * max(p, n_asked)))
        return (np.arange(at, min(at + step, n_rows)) for at in range(0, n_rows, step))

    def moments(self, some: IntArray, asked: Asked) -> tuple[FloatArray, FloatArray]:
        """Means and variances (s, t) of what is asked of rows `some`."""
        personal = self.personal[some][:, None]
        cross = scale_stack(asked.cross, personal[:, 0])
        if self.shared is None:
            cross = cross + asked.shared_cross
        through = multiply_stack(cross, self.R[some])
        mean = asked.mean + host(apply_stack(cross, self.alpha[some]))
        var = personal * asked.prior + asked.shared_var
        var = var - row_products_stack(through, cross)
        if self.shared is not None:
            var -= 2.0 * row_products_stack(through, asked.shared_cross)
            inner = multiply_stack(through, self.shared[some])
            var += row_products_stack(inner, through)
        return mean, var
