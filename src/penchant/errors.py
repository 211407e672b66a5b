"""Errors and warnings of penchant.

A message says what is wrong, what it got, what it must be and what to try.
"""

import contextlib
import os
import sys
import warnings

_INSIDE = (os.path.dirname(__file__) + os.sep, contextlib.__file__)
"""Files of this package, and contextlib, whose frames stand between two of its functions."""


class PenchantError(Exception):
    """Base class of every error that penchant raises on purpose.

    >>> issubclass(DataError, PenchantError) and issubclass(NumericalError, PenchantError)
    True
    """


class DataError(PenchantError, ValueError):
    """The input is not usable as it is; the message says how to fix it.

    It is a ValueError too, so that code which does not import this package can catch it.

    >>> import penchant as pc
    >>> try:
    ...     pc.Comparisons.from_pairs(["tea"], ["tea"])
    ... except DataError as error:
    ...     print(str(error).split(":")[0])
    row 0 compares 'tea' with itself
    """


class UntoldError(DataError, AttributeError):
    """These data or this model do not have the attribute; `hasattr` is then False."""


class NumericalError(PenchantError, ArithmeticError):
    """A computation failed: a matrix is not positive definite, or a value is not finite.

    >>> import numpy as np
    >>> from penchant.numerics.linalg import cholesky
    >>> try:
    ...     cholesky(-np.eye(2))
    ... except NumericalError as error:
    ...     print("refused")
    refused
    """


class ConvergenceWarning(UserWarning):
    """Inference or optimisation stopped before it converged; the message says what to do.

    Make it an error where nobody reads warnings:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ConvergenceWarning)
    """


class DataWarning(UserWarning):
    """The data are usable, but limit what can be learned; the message says how.

    >>> import warnings, penchant as pc
    >>> apart = pc.Comparisons.from_pairs(["tea", "red"], ["milk", "blue"])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = pc.PreferenceGP(optimize=None).fit(None, apart)
    >>> told[0].category.__name__, "2 groups" in str(told[0].message)
    ('DataWarning', True)
    """


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, however deep inside it the call comes from.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea"], ["milk"])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = pc.PreferenceGP(optimize=None).fit([[1.0], [1.0]], data)
    >>> "doctest" in told[0].filename, str(told[0].message).split(":")[0]
    (True, 'feature columns 0 of X are constant')
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
