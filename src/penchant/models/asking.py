"""Ask, tell and undo: what every model that can choose its next question has in common."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from penchant.ask import (
    Rules,
    as_answers,
    ask,
    belief_of,
    remember,
    restore,
    rng_for,
    seen_by,
    without_last,
)
from penchant.data import Comparisons
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.random import RandomState
from penchant.numerics.threads import threads_for
from penchant.numerics.types import IntArray


class Asking:
    """Mixin: a fitted model that says what to compare next and learns from the answers.

    A model adds how it learns: `_learn_from` more answers, and `_relearn` its hyperparameters.
    """

    random_state: RandomState
    comparisons_: Comparisons
    likelihood_: Likelihood
    n_learned_: int
    last_told_: IntArray

    @abstractmethod
    def _learn_from(self, answers: Comparisons, polish: bool | None) -> None:
        """Learn from answers between known items, under the hyperparameters there are."""

    @abstractmethod
    def _relearn(self) -> None:
        """Learn the hyperparameters again, from all comparisons."""

    def _begin(self, data: Comparisons, n_learned: int | None = None) -> None:
        """Nothing was told yet; hyperparameters rest on n_learned comparisons, or on all."""
        self._told: tuple[dict[str, Any], ...] = ()
        self.comparisons_ = data
        self.n_learned_ = data.n_comparisons if n_learned is None else n_learned
        self.last_told_ = np.empty((0, 2), dtype=np.intp)

    def ask(
        self,
        k: int = 1,
        criterion: str = "variance_ratio",
        *,
        user: Any = None,
        rules: Rules | None = None,
        random_state: RandomState = None,
    ) -> list[tuple[Any, Any]]:
        """The k pairs of items, by name, that it is best to compare next.

        criterion : "variance_ratio" (paper 000: close and uncertain), "information_gain" (for
            the whole order), "expected_best" or "thompson" (for the best item), "random".
        user : whose utilities they are to tell about, in a model that tells users apart; None:
            those of people at large.
        rules : what may be asked, a `penchant.ask.Rules`.
        random_state : None to follow the estimator's, with other draws after every tell.
        """
        check_is_fitted(self, "comparisons_")
        belief, data = belief_of(self, user), self.comparisons_
        rng = rng_for(self.random_state if random_state is None else random_state, data)
        rules = without_last(rules, data, self.last_told_)
        return ask(belief, seen_by(data, user), k, criterion, rules, rng)

    def tell(
        self,
        more: Comparisons | Iterable[tuple[Any, Any]],
        *,
        user: Any = None,
        polish: bool | None = None,
        relearn: float | None = None,
    ) -> Self:
        """Learn from more answers without a refit; `undo` takes them back.

        more : comparisons, or (winner, loser) pairs, between known items.
        user : who gave them, where `more` does not say and the model tells users apart.
        polish : True settles everything, equal to a refit with the same hyperparameters; False
            only absorbs the answers, much faster. None: as soon as it is quick, or there is
            much to settle. What a model does exactly is in its own documentation.
        relearn : learn the hyperparameters again, as `fit` does, once the comparisons have
            grown by this share since they were last learned; None: never.
        """
        check_is_fitted(self, "comparisons_")
        answers = as_answers(self.comparisons_, more, user)
        tie = answers.tie if answers.tie.any() else None
        self.likelihood_.check(Outcomes(tie, answers.margin))
        remember(self)
        try:
            with threads_for(answers.n_items):
                self._learn_from(answers, polish)
            total = self.comparisons_.n_comparisons
            if relearn is not None and total >= (1.0 + relearn) * self.n_learned_:
                self._relearn()
                self.n_learned_ = total
        except BaseException:
            restore(self)
            raise
        self.last_told_ = np.column_stack([answers.winner, answers.loser])
        return self

    def undo(self) -> Self:
        """Take the last `tell` back, exactly."""
        restore(self)
        return self
