"""What is written of the states of models: what cannot be worked out from the rest."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penchant.communities import Chain, Diagnostics, Draws, Found, SearchReport
from penchant.data import Comparisons
from penchant.gp import (
    Edges,
    ItemHyper,
    ItemProblem,
    Learned,
    PathHyper,
    PathPosterior,
    PathProblem,
    Posterior,
    Report,
    Settings,
    Shown,
    Sites,
    UserHyper,
    UserPosteriors,
    UserProblem,
    Votes,
)
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray


@dataclass(frozen=True, eq=False)
class SavedLearned:
    """A `Learned`: hyperparameters and items are those of the posterior.

    sites: None where they are those of the posterior (of users), or some were dropped. rule: of
    inference.
    """

    data: Comparisons
    posterior: Posterior | UserPosteriors
    sites: Sites | None
    log_evidence: float
    report: Report
    n_unsettled: int
    rule: str
    max_rank: int | None
    n_elsewhere: int = 0

    @classmethod
    def of(cls, learned: Learned[Any]) -> "SavedLearned":
        """What to write of it."""
        problem = learned.problem
        bound = "max_user_rank" if isinstance(problem, UserProblem) else "max_rank"
        return cls(
            learned.data,
            learned.posterior,
            learned.sites,
            learned.log_evidence,
            learned.report,
            learned.n_unsettled,
            problem.settings.rule,
            getattr(problem, bound, None),  # paths have none
            learned.n_elsewhere,
        )

    def restored(self) -> Learned[Any]:
        """What it was."""
        known, sites, settings = self.posterior, self.sites, Settings(self.rule)
        problem: ItemProblem | UserProblem | PathProblem
        hyper: ItemHyper | UserHyper | PathHyper
        # what data tell of how they were made counts only where effects of it were learned
        data = self.data.bare() if getattr(known, "effects", None) is None else self.data
        if isinstance(known, PathPosterior):
            problem = PathProblem(known.universe, known.meetings, known.calendar, settings)
            drift = (known.variance, known.timescale)
            hyper = PathHyper(known.constants, *drift, known.likelihood)
        elif isinstance(known, Posterior):
            edges = Edges.of(data, Shown.known(known.effects), known.likelihood.by_rater)
            problem = ItemProblem(known.universe, edges, settings, self.max_rank)
            hyper = ItemHyper(known.kernel, known.likelihood)
        else:
            votes = Votes.as_shown(data, Shown.known(known.effects), known.likelihood.by_rater)
            problem = UserProblem.of(known.items, known.users, votes, settings, self.max_rank)
            hyper = UserHyper(known.kernel, known.user_kernel, known.sharing, known.likelihood)
            if sites is None and len(known.sites.user) == len(votes):
                sites = known.sites.per_copy(votes, known.effects)
        rest = (self.log_evidence, self.report, self.n_unsettled, self.n_elsewhere)
        return Learned(self.data, problem, hyper, known, sites, *rest)


@dataclass(frozen=True, eq=False)
class SavedCommunities:
    """A `Found`; start: the parameters from which learning started."""

    data: Comparisons
    sampled: Comparisons
    kernel: Kernel
    likelihood: Likelihood
    start: FloatArray
    chains: tuple[Chain, ...]
    draws: Draws | None
    membership: FloatArray
    posteriors: tuple[Posterior, ...]
    report: Diagnostics | SearchReport
    max_rank: int | None
    user_features: FloatArray | None
    personal: Any
    communal_share: float
    n_elsewhere: int = 0
    all_sizes: FloatArray | None = None

    @classmethod
    def of(cls, found: Found) -> "SavedCommunities":
        """What to write of it."""
        return cls(
            found.data,
            found.sampled,
            found.hyper.kernel,
            found.hyper.likelihood,
            found.start.theta,
            found.chains,
            found.draws,
            found.membership,
            found.posteriors,
            found.report,
            found.max_rank,
            found.user_features,
            found.personal,
            found.communal_share,
            found.n_elsewhere,
            found.all_sizes,
        )

    def restored(self) -> Found:
        """What it was."""
        hyper = ItemHyper(self.kernel, self.likelihood)
        return Found(
            self.data,
            self.sampled,
            hyper,
            hyper.at(np.asarray(self.start)),
            self.membership,
            self.posteriors,
            self.report,
            self.chains,
            self.draws,
            self.max_rank,
            self.user_features,
            self.personal,
            self.communal_share,
            n_elsewhere=self.n_elsewhere,
            all_sizes=self.all_sizes,
        )


def saved_form(value: Any) -> Any:
    """What is written in place of a value."""
    if isinstance(value, Learned):
        return SavedLearned.of(value)
    if isinstance(value, Found):
        return SavedCommunities.of(value)
    return value


def restored_form(value: Any) -> Any:
    """What was there before `saved_form`."""
    if isinstance(value, SavedLearned | SavedCommunities):
        return value.restored()
    return value
