"""An estimator in one file: everybody's wins, counted."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from penchant.ask import Joint
from penchant.gp import Normal
from penchant.likelihoods import Probit
from penchant.models import OutcomeProbabilities, UtilityModel, fitted_items


class Counted(NamedTuple):
    data: object
    belief: Joint
    hyper: object
    report: object
    n_pending_sites: int = 0


def count(data):
    wins = np.bincount(data.winner, data.count, data.n_items)
    met = wins + np.bincount(data.loser, data.count, data.n_items)
    mean, var = (wins + 1) / (met + 2), 1 / (met + 2)
    hyper, report = SimpleNamespace(likelihood=Probit()), SimpleNamespace(converged=True)
    return Counted(data, Joint(mean, np.diag(var), Probit()), hyper, report)


class WinShare(UtilityModel):
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, data, relations=None):
        columns, _ = fitted_items(X, data, relations, scale=False)
        return self._set_fit(count(data.pooled()), columns)

    def _users(self, fitted, users):
        return None if users is None else np.zeros(np.size(users), dtype=int)

    def _belief(self, fitted, user):
        return fitted.learned.belief

    def _utilities(self, fitted, users, X):
        mean, var = fitted.learned.belief.mean, fitted.learned.belief.var
        shape = mean.shape if users is None else (len(users), len(mean))
        return Normal(np.broadcast_to(mean, shape), np.broadcast_to(var, shape))

    def _probabilities(self, fitted, pairs, users, X, z=None, time=None):
        difference = fitted.learned.belief.difference(pairs[:, 0], pairs[:, 1])
        return OutcomeProbabilities.of(Probit(), difference)

    def _add(self, fitted, answers, reconverge):
        return count(fitted.learned.data.extend(answers))

    def _refit(self, fitted, data):
        return count(data)

    def _relearn(self, fitted):
        return fitted.learned
