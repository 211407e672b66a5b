"""CommunityGP: communities of taste, found by a Dirichlet-process mixture (paper 004)."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from penchant.communities import SAMPLERS, Found, Support
from penchant.data import Comparisons, ShardedComparisons
from penchant.engines import ENGINES
from penchant.errors import DataError, DataWarning, warn
from penchant.gp import check_newcomers
from penchant.io import as_comparisons
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood
from penchant.models.community_learning import CommunityLearning
from penchant.models.community_report import summarize, view_items
from penchant.models.community_views import CommunityViews
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.sharded import check_all_here, whereabouts
from penchant.models.sharded_communities import CommunityShards
from penchant.models.state import Fitted
from penchant.models.validation import (
    CONCENTRATION,
    KERNEL,
    LIKELIHOOD,
    NONE,
    SEED,
    TEXT,
    YES_OR_NO,
    Constraints,
    check_arguments,
    check_in_memory,
    one_of,
    whole,
)
from penchant.numerics.random import RandomState

OF_CHAINS: dict[str, Any] = {
    "sampler": "collapsed",
    "n_sweeps": 60,
    "n_chains": 2,
    "hyperparameters": "shared",
}
"""Settings of chains alone, and their defaults."""


class CommunityGP(CommunityViews):
    """Groups of users with a common taste, their number included, and what each prefers.

    A Dirichlet-process mixture: every user belongs to a community, every community has its own
    utilities with a Gaussian process prior over the items. By default a deterministic search
    finds the likeliest communities, in about a second for thousands of users; inference="mcmc"
    samples memberships instead, so that whatever is uncertain (who belongs where, how many
    communities there are) comes with probabilities.

    `tell` takes answers by known and by new users. It places those users anew among the
    communities that there are and infers the communities' utilities again (not with
    polish=False), with personal taste also everybody's own. Which communities there are, and the
    hyperparameters, stay until `relearn` (or, with chains, `resume`) asks again. `withdraw`
    searches again, so that it equals a refit exactly; with chains, or more than a million answers,
    it places users anew as `tell` does.

    Parameters
    ----------
    concentration : float or (shape, rate)
        λ: the larger, the more communities are expected. A pair has it learned under a Gamma
        prior.
    kernel : Kernel or None
        Prior covariance over items. None: an RBF on the standardised features beside an effect of
        each item's own, and a graph kernel per relation, or independent items without either.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance.
    inference : {"variational", "mcmc"}
        A search for the likeliest communities, or chains of the posterior over them.
    n_communities : int or None
        So many, by the search; None: as many as the answers speak for. Chains sample the number,
        and refuse one that is given.
    sampler : {"collapsed", "blocked"}
        Of chains, as are n_sweeps, n_chains and hyperparameters. "collapsed" reassigns users one
        after another; "blocked" all at once given weights, for very many users.
    personal : {"auto", True, False}
        People vary inside communities: f_u = f_c + a deviation, whose covariance is learned and
        the same for all. What is said of a user is then their own. With one community this is
        `MultiUserGP`, exactly. A search counts communities again, by evidence: they are modes
        of taste then, and fewer. "auto" takes it where the evidence speaks for it, as long as
        answers × items are at most 10⁷ (it costs what `MultiUserGP` does); never with
        `max_rank`, or of scanned comparisons.
    n_sweeps : int
        Sweeps of each chain; the first half warms it up and is not used.
    n_chains : int
        Independent chains, compared in `report_`; with inference="mcmc", like all about sweeps.
    hyperparameters : {"shared", "community"}
        One set for all communities, or each its own, held near the shared ones (by chains).
    optimize : {"evidence", None}
        Learn hyperparameters while warming up, or keep them as given.
    max_rank : int or None
        Bound on the rank of the prior's factor, for very many items; of communities alone, not
        with personal=True.
    engine : {"local", "ray"}
        Who works on the shards of scanned comparisons: this process, or Ray's actors. Refused
        with comparisons in memory, which need none.
    address : str or None
        Of a running Ray cluster; None for RAY_ADDRESS, or Ray on this machine.
    progress : bool
        Show a progress bar, on a terminal only.
    random_state : None, int or Generator
        The same seed gives the same result.

    Attributes
    ----------
    n_communities_ : int, the likeliest number of communities that their answers support
    community_counts_ : dict, posterior over the number
    membership_ : (n_users, n_communities_), rows sum to one
    communities_ : list of `Community`, largest first
    posteriors_ : tuple of `Posterior`, one a community
    report_ : how the search went, or `Diagnostics` of the chains: traces, agreement
    verdict_ : whether the communities are real: "supported", "personal" or "too few"
    kernel_, likelihood_ : with learned parameters
    personal_ : `UserPosteriors` where people vary inside communities, else None
    communal_share_ : how much of taste communities explain, where people vary
    chains_, draws_ : what was sampled; `resume` goes on from there
    comparisons_ : the data that were fitted, and told since; sampled_ : what communities were
        found in

    Examples
    --------
    >>> from penchant.data import Comparisons
    >>> tea = ["tea", "milk", "juice", "water"]
    >>> users = range(12)
    >>> data = Comparisons.from_rankings([tea] * 6 + [tea[::-1]] * 6, users=users)
    >>> model = CommunityGP(random_state=0).fit(None, data)
    >>> model.n_communities_
    2
    >>> bool(model.predict_proba([("tea", "water")], users=0)[0] > 0.8)
    True
    """

    constraints: ClassVar[Constraints] = {
        "concentration": CONCENTRATION,
        "kernel": NONE | KERNEL,
        "likelihood": LIKELIHOOD,
        "inference": one_of(("variational", "mcmc")),
        "n_communities": NONE | whole(1),
        "sampler": one_of(SAMPLERS),
        "personal": YES_OR_NO | one_of(("auto",)),
        "n_sweeps": whole(2),
        "n_chains": whole(1),
        "hyperparameters": one_of(("shared", "community")),
        "optimize": NONE | one_of(("evidence",)),
        "max_rank": NONE | whole(1),
        "engine": one_of(ENGINES),
        "address": NONE | TEXT,
        "progress": YES_OR_NO,
        "random_state": SEED,
    }

    def __init__(
        self,
        concentration: float | tuple[float, float] = 1.0,
        *,
        kernel: Kernel | None = None,
        likelihood: str | Likelihood = "probit",
        inference: str = "variational",
        n_communities: int | None = None,
        sampler: str = OF_CHAINS["sampler"],
        personal: bool | str = "auto",
        n_sweeps: int = OF_CHAINS["n_sweeps"],
        n_chains: int = OF_CHAINS["n_chains"],
        hyperparameters: str = OF_CHAINS["hyperparameters"],
        optimize: str | None = "evidence",
        max_rank: int | None = None,
        engine: str = "local",
        address: str | None = None,
        progress: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.concentration = concentration
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.n_communities = n_communities
        self.sampler = sampler
        self.personal = personal
        self.n_sweeps = n_sweeps
        self.n_chains = n_chains
        self.hyperparameters = hyperparameters
        self.optimize = optimize
        self.max_rank = max_rank
        self.engine = engine
        self.address = address
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        data: Comparisons | ShardedComparisons,
        relations: Mapping[str, Any] | None = None,
        *,
        user_features: Any = None,
    ) -> Self:
        """Find the communities.

        X : (n_items, d) features, or None. Rows that have names (a frame's index, `encode`) are
            matched by them, others are in the order of `data.items`; docs/howto/features.md.
        data : Comparisons with users. The search takes choices and rankings whole; chains, and
            effects of the order shown or of covariates, take the pairs that they hold. Personal
            taste and the verdict are judged by one pair of every choice.
            Of those that `scan_comparisons` made, communities are searched among the users of the
            first 500,000 distinct answers, and then settled with everybody's, their number held;
            nobody varies inside them, and `report_.steps` says so. The model knows those first
            users.
        relations : {"name": graph} between the items.
        user_features : (n_users, q) by name or in the order of `data.users`, or None: not used to
            find communities, but to tell afterwards who their members are.

        An interrupt from the keyboard stops sampling and leaves a model of what there is by then.
        """
        self._check()
        self._check_together()
        self.__dict__.pop("_elsewhere", None)  # of an earlier fit
        learning = CommunityLearning.of(self)
        if isinstance(data, ShardedComparisons):
            self._check_scanned(user_features)
            columns, items = fitted_items(X, data.everybody, relations, self.kernel)
            found, self._elsewhere = learning.found_in_shards(items, data)
            return self._keep(found, columns, FeatureColumns(0, None))
        check_in_memory(self)
        data = self._taken(as_comparisons(data))
        columns, items = fitted_items(X, data, relations, self.kernel)
        user_columns, users = FeatureColumns.of(user_features, data.users, "users", scale=False)
        found = learning.found(items, data)
        return self._keep(replace(found, user_features=users.X), columns, user_columns)

    def _check_together(self) -> None:
        if self.inference == "variational":
            given = [
                f"{name}={getattr(self, name)!r}"
                for name, value in OF_CHAINS.items()
                if getattr(self, name) != value
            ]
            if given:  # not refused: one script may try both ways to infer
                warn(
                    f"CommunityGP: {', '.join(given)} without effect: the search has no chains; "
                    "leave that out, or give inference='mcmc'",
                    DataWarning,
                )
        if self.inference == "mcmc" and self.n_communities is not None:
            raise DataError(
                f"CommunityGP: n_communities={self.n_communities} with inference='mcmc': chains "
                "sample the number of communities; leave n_communities out, or give "
                "inference='variational' to have so many"
            )
        if self.max_rank is not None and self._asks_for_personal:
            raise DataError(
                f"CommunityGP: max_rank={self.max_rank} with personal=True: the rank is bounded of "
                "communities alone; leave max_rank out, or give personal=False"
            )

    @property
    def _asks_for_personal(self) -> bool:
        return not isinstance(self.personal, str) and bool(self.personal)

    def _check_scanned(self, user_features: Any) -> None:
        given = {
            "inference='mcmc'": self.inference == "mcmc",
            "personal=True": self._asks_for_personal,
            "user_features": user_features is not None,
        }
        if refused := ", ".join(name for name, is_given in given.items() if is_given):
            raise DataError(
                "communities of scanned comparisons are found by a search, without personal taste "
                f"and features of users, got {refused}: leave that out, or read the comparisons "
                "of some users with read_comparisons"
            )

    def write_memberships(self, folder: str | PathLike[str]) -> None:
        """Write how much every user of the scanned comparisons belongs to each community: Parquet
        files of the columns user, community and membership, each by a shard.

        folder : made if it is not there; files of an earlier call are replaced.
        """
        elsewhere: CommunityShards = whereabouts(self, "others have membership_")
        elsewhere.write(Path(folder), self.engine, self.address)

    @property
    def takes_choices(self) -> bool:
        """Whether choices and rankings are whole answers: chains break them into pairs."""
        return self.inference == "variational"

    def resume(self, n_sweeps: int) -> Self:
        """Let every chain go on from where it is, exactly as if it had never stopped.

        Where answers came since (`tell`, `fold_in`), it goes on with them: hyperparameters are
        learned at the first sweep, two sweeps are not used, earlier draws are dropped.
        """
        check_arguments(self, "resume", n_sweeps=(n_sweeps, whole(1)))
        with self._alone() as fitted:
            if fitted.learned.draws is None:
                raise DataError(
                    "there are no chains to resume: this model was found by a search; fit it with "
                    "inference='mcmc' to sample"
                )
            learned = CommunityLearning.of(self).resumed(fitted.learned, n_sweeps)
            self.state_, self._history = replace(fitted, learned=learned), ()
        return self

    def _relearned(self, fitted: Fitted) -> Found:
        return CommunityLearning.of(self).relearned(fitted.learned)

    def _told(self, fitted: Fitted, answers: Comparisons, polish: bool | None) -> Found:
        found: Found = fitted.learned
        check_all_here(found.n_elsewhere)
        data = found.data.extend(answers)
        told = np.atleast_1d(data.user_index(answers.users))
        return found.with_answers(data, told, polish)

    def _without(self, fitted: Fitted, data: Comparisons) -> Found:
        return CommunityLearning.of(self).without(fitted.learned, data)

    def fold_in(self, data: Comparisons) -> Self:
        """A copy of this model that knows new users too, without sampling again.

        data : comparisons by users who were not in the fit, between items that were. Their rows
        of `membership_` come after the others.
        """
        found, data = self._fitted().learned, as_comparisons(data)
        check_newcomers(found.data, data)
        return self._with(found.with_newcomers(found.data.extend(data)))

    @property
    def support_(self) -> Support:
        """Whether the communities are real, and by what numbers.

        It takes two to ten times as long as the fit, the first time that somebody asks (also
        through `verdict_` and `describe`); it is kept until the answers change.
        """
        with self._alone() as fitted:
            found: Found = fitted.learned
            support = found.support
            if support is None:
                support = CommunityLearning.of(self).again(found).judged(found)
                self.state_ = replace(fitted, learned=replace(found, support=support))
        return support

    @property
    def verdict_(self) -> str:
        """ "supported", "personal" (tastes differ without groups) or "too few" votes to tell."""
        return self.support_.verdict

    def describe(self) -> str:
        """What was found, in a few lines: first whether the communities are real, see `support_`.

        Where they are not, the main directions of disagreement are told, too.
        """
        support, lines = self.support_, []
        if support.verdict == "personal":
            lines = [*map(str, self.disagreement())]
        if support.verdict != "personal" or self.has_communities_:
            views = view_items(self._fitted().learned)
            lines.append(summarize(self.community_counts_, self.communities_, views))
        return "\n".join([support.sentence, *lines])
