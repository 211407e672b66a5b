"""CommunityGP's parameters, checked, as the plan that its chains follow."""

from typing import Any

import numpy as np

from penchant.communities.chains import Plan
from penchant.communities.samplers import SAMPLERS
from penchant.errors import DataError
from penchant.models.validation import check_choice


def checked_plan(model: Any) -> Plan:
    """The plan of a `CommunityGP` whose parameters make sense.

    >>> from penchant.models.community_gp import CommunityGP
    >>> checked_plan(CommunityGP((2.0, 1.0), n_sweeps=40)).concentration
    2.0
    """
    check_choice(model, "sampler", SAMPLERS)
    check_choice(model, "optimize", ("evidence", None))
    check_choice(model, "hyperparameters", ("shared", "community"))
    for name, least in (("n_sweeps", 2), ("n_chains", 1)):
        value = getattr(model, name)
        if not isinstance(value, int | np.integer) or value < least:
            raise DataError(f"CommunityGP: {name}={value!r}: it must be at least {least}")
    numbers = np.atleast_1d(np.asarray(model.concentration, dtype=float))
    if len(numbers) > 2 or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise DataError(
            f"CommunityGP: concentration={model.concentration!r}: it must be a positive number, "
            "or (shape, rate) of a Gamma prior, both positive"
        )
    *rest, last = numbers.tolist()
    return Plan(
        sampler=model.sampler,
        n_warmup=model.n_sweeps // 2,
        concentration=rest[0] / last if rest else last,
        concentration_prior=(rest[0], last) if rest else None,
        learn=model.optimize is not None,
        own=model.hyperparameters == "community",
    )
