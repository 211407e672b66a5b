"""scikit-learn's base of estimators, with types, so that checkers know what estimators have."""

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """What the base of scikit-learn, which is untyped, brings."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters by name."""
            raise NotImplementedError

        def set_params(self, **params: Any) -> Self:
            """Change parameters by name."""
            raise NotImplementedError

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator

__all__ = ["BaseEstimator"]
