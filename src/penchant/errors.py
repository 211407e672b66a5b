"""Everything that penchant raises or warns with.

A message says what is wrong, what it got, what it must be and what to try.
"""


class PenchantError(Exception):
    """Base class of every error that penchant raises on purpose."""


class DataError(PenchantError, ValueError):
    """The input is not usable as it stands; the message tells the fix."""


class UntoldError(DataError, AttributeError):
    """An attribute that these data or this model do not have, so that `hasattr` says no."""


class NumericalError(PenchantError, ArithmeticError):
    """A computation lost its footing (not positive definite, not finite)."""


class ConvergenceWarning(UserWarning):
    """Inference or optimisation stopped before it settled; the message says what to do."""


class DataWarning(UserWarning):
    """The data are usable, but what they can tell is limited; the message says how."""
