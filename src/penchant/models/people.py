"""What the models of many users share: where learning starts, and one user a pair."""

import numpy as np

from penchant.errors import DataError
from penchant.gp.users.posterior import UserPosteriors
from penchant.kernels import Constant, Independent, Inputs, Kernel
from penchant.kernels.free import FreeCovariance
from penchant.models.defaults import default_kernel
from penchant.numerics.types import IntArray


def taste_kernel(items: Inputs) -> Kernel:
    """How tastes for items go together: learned entry by entry where items have no features."""
    if items.X is None:
        return FreeCovariance.of(np.eye(len(items)))
    return default_kernel(items) + Independent()


def user_kernel(users: Inputs) -> Kernel:
    """What users share: a population mean, and what their features say."""
    return Constant(1.0) if users.X is None else 1.0 + default_kernel(users)


def check_sharing(sharing: float) -> None:
    """ρ must leave something shared and something personal."""
    if not 0.0 < sharing < 1.0:
        raise DataError(
            f"MultiUserGP: sharing={sharing!r}: it must lie strictly between 0 (everybody apart) "
            "and 1 (everybody the same)"
        )


def check_sparse(sparse: tuple[int, int] | None) -> None:
    """How many users and items Sparse-EP keeps."""
    if sparse is not None and not (len(sparse) == 2 and min(sparse) >= 1):
        raise DataError(
            f"MultiUserGP: sparse={sparse!r}: it must be (n_users, n_items) to keep, at least one "
            "each, such as (4, 8)"
        )


def with_more_users(posterior: UserPosteriors, n_users: int) -> Inputs:
    """Everybody: the known users, and newcomers of whom no features are given."""
    n_new = n_users - len(posterior)
    if n_new and posterior.users.X is not None:
        raise DataError(
            f"{n_new} new users answered, and the model was fitted with features of users: bring "
            "them in by fold_in(data, user_features)"
        )
    newcomers = Inputs(index=np.arange(n_new))
    return posterior.with_users(newcomers).users if n_new else posterior.users


def one_user_a_pair(users: IntArray, n_pairs: int) -> IntArray:
    """(n_pairs,) users: the same one for all pairs, or one for each.

    >>> one_user_a_pair(np.array([4]), 3).tolist()
    [4, 4, 4]
    """
    if len(users) not in (1, n_pairs):
        raise DataError(
            f"there are {n_pairs} pairs and {len(users)} users: give one user for all pairs, or "
            "one for each"
        )
    return np.broadcast_to(users, n_pairs)
