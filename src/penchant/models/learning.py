"""How an estimator learns, as one value: those of its parameters that learning follows."""

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True, eq=False)
class Learning:
    """Parameters of an estimator, called as they are there, and what is learned by them.

    It knows no state: what was learned goes in and comes out.
    """

    @classmethod
    def of(cls, estimator: object) -> Self:
        """By the parameters of an estimator."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})
