"""What inference keeps between sweeps, and what it tells about itself."""

from dataclasses import dataclass

import numpy as np

from penchant.numerics.types import FloatArray


@dataclass(frozen=True)
class Sites:
    """Per edge and per copy, exp(−½ τ g² + ν g): the Gaussian that stands in for the likelihood.

    One-dimensional and in natural parameters: the two-dimensional site covariance of paper 000
    Eq. 12 has rank one and no inverse. An edge seen `count` times carries `count` equal sites.
    """

    tau: FloatArray
    nu: FloatArray

    @classmethod
    def zeros(cls, m: int) -> "Sites":
        """No information yet: the posterior is the prior."""
        return cls(np.zeros(m), np.zeros(m))

    def towards(self, tau: FloatArray, nu: FloatArray, step: float) -> "Sites":
        """A damped move: `step` of the way to the proposed sites."""
        if step == 1.0:
            return Sites(tau, nu)
        return Sites(self.tau + step * (tau - self.tau), self.nu + step * (nu - self.nu))


@dataclass(frozen=True)
class Report:
    """How inference went. Always present, never hidden.

    change: largest site change of the last sweep, in units of the edge's own posterior sd.
    step: smallest damping step used (1 = undamped). jitter: added to make a factor succeed.
    residual: variance that the prior's factor leaves out. skipped: site updates held back in
    the last sweep because their cavity was not a distribution. n_people: who gave the answers,
    where a pooled model knows; widened: how many times as wide that makes its intervals.
    """

    converged: bool
    n_sweeps: int
    change: float
    tolerance: float
    step: float = 1.0
    jitter: float = 0.0
    rank: int = 0
    residual: float = 0.0
    skipped: int = 0
    space: str = "items"
    n_evaluations: int = 0
    optimizer: str = ""
    n_people: int = 0
    widened: float = 1.0

    def about_people(self) -> str:
        """Why the intervals of a pooled model are wider than its answers' number suggests.

        >>> print(Report(True, 5, 0.0, 1e-7, n_people=60, widened=1.5).about_people())
        60 people answered, and answers of one person go together: intervals are 1.50 times as wide
        as those of as many independent answers (clustered=False takes them for independent)
        """
        if not self.n_people:
            return ""
        return (
            f"{self.n_people} people answered, and answers of one person go together: intervals "
            f"are {self.widened:.2f} times as wide\nas those of as many independent answers "
            "(clustered=False takes them for independent)"
        )

    def advice(self) -> str:
        """What to tell a user whose inference did not settle."""
        if self.skipped:
            return (
                f"{self.skipped} comparisons could not be taken into account: without them nothing "
                "is left of the model's own idea of their difference; the results are not exact: "
                "try inference='variational', a likelihood without lapses, a smaller kernel "
                "variance, or more noise in a Gaussian likelihood"
            )
        return (
            f"inference stopped after {self.n_sweeps} sweeps with sites still moving by "
            f"{self.change:.1e} (tolerance {self.tolerance:.0e}, smallest step {self.step:.3g}); "
            "the results are usable but not exact: try inference='variational', a likelihood "
            "without lapses, or a smaller kernel variance"
        )
