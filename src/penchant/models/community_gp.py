"""CommunityGP: communities of taste, found by a Dirichlet-process mixture (paper 004)."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from penchant import communities, gp
from penchant.ask import Belief, Joint
from penchant.communities import FittedMixture, MixtureFitter
from penchant.data import Comparisons, ShardedComparisons
from penchant.engines import ENGINES
from penchant.errors import ConvergenceWarning, DataError, DataWarning, warn
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, get
from penchant.models import community_report as report
from penchant.models import sharded, tables
from penchant.models.base import Fitted, UtilityModel
from penchant.models.defaults import utility_kernel
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.multi_user_gp import maximize_choosing_covariance, progress_bar, taste_kernel
from penchant.models.parameters import (
    KERNEL,
    LIKELIHOOD,
    NONE,
    POSITIVE,
    SEED,
    TEXT,
    YES_OR_NO,
    check_arguments,
    check_in_memory,
    check_parameters,
    one_of,
    parameter,
    two,
    whole,
)
from penchant.models.predictive import OutcomeProbabilities
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray

OF_CHAINS = ("sampler", "n_sweeps", "n_chains", "hyperparameters")
"""Settings of chains alone."""
SEARCHED_AGAIN = 1_000_000
"""Most distinct answers among which communities are searched again when some are withdrawn."""


@dataclass(eq=False, repr=False)
class CommunityGP(UtilityModel):
    """Groups of users with a common taste, their number included, and what each prefers.

    A Dirichlet-process mixture: every user belongs to a community, every community has its own
    utilities with a Gaussian process prior over the items. By default a deterministic search
    finds the likeliest communities, in about a second for thousands of users; inference="mcmc"
    samples memberships instead, for a posterior over memberships and the number of communities.

    `tell` takes answers by known and by new users. It computes the memberships of those users
    again and, unless reconverge=False, the utilities of the communities, with personal taste also
    everybody's own. The communities and the hyperparameters stay until `relearn` (or, with
    chains, `resume`). `withdraw` searches again and equals a refit exactly; with chains, or with
    more than a million answers, it only computes memberships again, as `tell` does.

    Parameters
    ----------
    concentration : float or (shape, rate)
        λ: the larger, the more communities are expected. Pass (shape, rate) to learn it under a
        Gamma prior.
    kernel : Kernel or None
        Prior covariance over items. None: `LinearRBF` on the standardised features plus an effect
        of each item, and a graph kernel per relation; independent items without either.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance.
    inference : {"variational", "mcmc"}
        A search for the likeliest communities, or chains of the posterior over them.
    n_communities : int or None
        The number of communities for the search; None: the likeliest. Chains sample the number
        and refuse a given one.
    sampler : {"collapsed", "blocked"}
        For chains, like n_sweeps, n_chains and hyperparameters. "collapsed" reassigns users one
        after another; "blocked" all at once given weights, for very many users.
    personal : {"auto", True, False}
        Whether users vary inside communities: f_u = f_c + a deviation, whose covariance is learned
        and common to all. Predictions for a user are then that user's own. With one community
        this is `MultiUserGP`, exactly. The search then chooses the number of communities again,
        by evidence: there are fewer. "auto" decides by evidence and, where that is not clear,
        by answers held out, as long as answers × items are at most 10⁷ (it costs as much as
        `MultiUserGP`); never with `max_rank` or scanned comparisons.
    n_sweeps : int
        Sweeps of each chain; the first half is warm-up and is not used.
    n_chains : int
        Independent chains, compared in `report_`.
    hyperparameters : {"shared", "community"}
        One set for all communities, or, with chains, each its own, shrunk to the shared ones.
    optimize : {"evidence", None}
        Learn hyperparameters, with chains during warm-up, or keep them as given.
    max_rank : int or None
        Bound on the rank of the prior's factor, for very many items; not with personal=True.
    engine : {"local", "ray"}
        Where the shards of scanned comparisons are computed: in this process, or by Ray's actors.
        Refused with comparisons in memory, which have no shards.
    address : str or None
        Of a running Ray cluster; None for RAY_ADDRESS, or Ray on this machine.
    progress : bool
        Show a progress bar, on a terminal only.
    random_state : None, int or Generator
        The same seed gives the same result.

    Attributes
    ----------
    n_communities_ : int, the likeliest number of communities that their answers support
    community_counts_ : dict, posterior over the number of non-empty communities, those of a single
        user included
    supported_counts_ : dict, posterior over the number that the answers support
    membership_ : (n_users, n_communities_), rows sum to one
    communities_ : list of `Community`, largest first
    posteriors_ : tuple of `Posterior`, one a community
    report_ : how the search went, or `Diagnostics` of the chains: traces, agreement
    verdict_ : whether the communities are real: "supported", "personal" or "too few"
    kernel_, likelihood_ : with learned parameters
    personal_ : `UserPosteriors` where people vary inside communities, which then predict, else None
    communal_share_ : share of the variance of taste between communities, where users vary
    chains_, draws_ : states and draws of the chains; `resume` continues them
    comparisons_ : the comparisons of the fit and of every `tell` since; sampled_ : those that the
        search or the chains saw

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

    concentration: float | tuple[float, float] = parameter(
        1.0, POSITIVE | two(POSITIVE, "(shape, rate) of a Gamma prior, both positive")
    )
    _: KW_ONLY
    kernel: Kernel | None = parameter(None, NONE | KERNEL)
    likelihood: str | Likelihood = parameter("probit", LIKELIHOOD)
    inference: str = parameter("variational", one_of(("variational", "mcmc")))
    n_communities: int | None = parameter(None, NONE | whole(1))
    sampler: str = parameter("collapsed", one_of(communities.SAMPLERS))
    personal: bool | str = parameter("auto", YES_OR_NO | one_of(("auto",)))
    n_sweeps: int = parameter(60, whole(2))
    n_chains: int = parameter(2, whole(1))
    hyperparameters: str = parameter("shared", one_of(("shared", "community")))
    optimize: str | None = parameter("evidence", NONE | one_of(("evidence",)))
    max_rank: int | None = parameter(None, NONE | whole(1))
    engine: str = parameter("local", one_of(ENGINES))
    address: str | None = parameter(None, NONE | TEXT)
    progress: bool = parameter(True, YES_OR_NO)
    random_state: RandomState = parameter(None, SEED)

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
            taste and the verdict use one pair of every choice.
            Of scanned comparisons (`scan_comparisons`) communities are searched among the users
            of the first 500,000 distinct answers; then inference converges with the answers of
            all, for the same number of communities and without personal taste, as `report_.steps`
            says. The model has those first users.
        relations : {"name": graph} between the items.
        user_features : (n_users, q) by name or in the order of `data.users`, or None. They describe
            the members of communities; the search does not use them.

        An interrupt from the keyboard stops sampling and leaves a model of the draws so far.
        """
        check_parameters(self)
        self._check_together()
        self.__dict__.pop("_shards", None)  # of an earlier fit
        if isinstance(data, ShardedComparisons):
            self._check_scanned(user_features)
            columns, items = fitted_items(X, data.pooled, relations, self.kernel)
            with threads_for(len(items)):  # search among some users, converge with all answers
                fitter = self._first_fitter(items, sharded.first_users(data))
                where = (data, self.engine, self.address)
                found, self._shards = sharded.learn_communities(*where, fitter)
            return self._set_fit(found, columns)
        check_in_memory(self)
        data = self._comparisons(data)
        columns, items = fitted_items(X, data, relations, self.kernel)
        user_columns, users = FeatureColumns.of(user_features, data.users, "users", scale=False)
        found = self._find(items, data)
        return self._set_fit(replace(found, user_features=users.X), columns, user_columns)

    def _check_together(self) -> None:
        if self.inference == "variational":
            chosen = {name: getattr(self, name) for name in OF_CHAINS}
            given = [f"{n}={v!r}" for n, v in chosen.items() if v != getattr(CommunityGP, n)]
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
                f"CommunityGP: max_rank={self.max_rank} with personal=True: only the utilities of "
                "communities alone can have a bounded rank; leave max_rank out, or give "
                "personal=False"
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

    @property
    def takes_choices(self) -> bool:
        """Whether the model takes choices and rankings whole: chains take their pairs."""
        return self.inference == "variational"

    # Learning

    def _find(self, items: Inputs, data: Comparisons) -> FittedMixture:
        """Fit by a search, or by chains that start from its result."""
        fitter = self._first_fitter(items, data)
        with threads_for(len(items)):
            if self.inference == "variational":
                return fitter.fit_by_search()
            seed = int(as_rng(self.random_state).integers(2**32))
            result = fitter.search()
            chains = fitter.start_chains(result, seed, self.n_chains)
            return self._sampled(fitter, chains, self.n_sweeps, fitter.has_variation(result))

    def _first_fitter(self, items: Inputs, data: Comparisons) -> MixtureFitter:
        answers = communities.Answers.of(data)
        likelihood = get(self.likelihood, data.margin, data.count)
        likelihood.check(answers.outcomes)
        kernel = self._given_kernel(items) or utility_kernel(items, self.max_rank)
        return self._fitter(data, answers, items, gp.ItemHyper(kernel, likelihood))

    def _given_kernel(self, items: Inputs) -> Kernel | None:
        return None if self.kernel is None else self.kernel.at_scale_of(items)

    def _fitter(
        self, data: Comparisons, answers: communities.Answers, items: Inputs, start: gp.ItemHyper
    ) -> MixtureFitter:
        """The fitter of these answers; start: the first hyperparameters."""
        personal = None
        if self.personal and self.max_rank is None:
            kernel, required = self._given_kernel(items), not isinstance(self.personal, str)
            personal = communities.PersonalSettings(
                lambda: kernel or taste_kernel(items),
                required,
                partial(maximize_choosing_covariance, kernel=kernel),
            )
        *shape, rate = np.atleast_1d(np.asarray(self.concentration, dtype=float)).tolist()
        mixture = communities.MixtureData(
            answers,
            items,
            start,
            concentration=shape[0] / rate if shape else rate,
            max_rank=self.max_rank,
            concentration_prior=(shape[0], rate) if shape else None,
        )
        plan = communities.ChainPlan(
            sampler=self.sampler,
            n_warmup=self.n_sweeps // 2,
            learn=self.optimize is not None,
            own=self.hyperparameters == "community",
        )
        return MixtureFitter(data, mixture, plan, personal, self.n_communities)

    def _fitter_again(self, found: FittedMixture) -> MixtureFitter:
        sharded.check_all_here(found.n_elsewhere)
        return self._fitter(found.data, found.answers, found.items, found.start)

    def _sampled(
        self,
        fitter: MixtureFitter,
        chains: Sequence[communities.Chain],
        n_sweeps: int,
        personal: bool,
    ) -> FittedMixture:
        def words(state: communities.ChainState) -> str:
            return f"chain {state.seed[-1] + 1}, {len(state.utilities)} communities"

        total = len(chains) * n_sweeps
        with progress_bar("sampling communities", self.progress, words, total) as watch:
            found = fitter.fit_by_chains(chains, n_sweeps, watch)
        if gp.has_covariates(found.data):
            found = replace(found, posteriors=found.infer_posteriors())
        if (message := found.report.advice()) is not None:
            warn(message, ConvergenceWarning)
        return fitter.with_personal(found) if personal and found.report.completed else found

    # Fitted attributes

    @property
    def _mixture(self) -> FittedMixture:
        return self._fitted().learned

    @property
    def membership_(self) -> FloatArray:
        """A row a user, a column a community: rows sum to one."""
        membership = self._mixture.membership.view()
        membership.flags.writeable = False
        return membership

    @property
    def posteriors_(self) -> tuple[gp.Posterior, ...]:
        """The posterior of each community's utilities."""
        return self._mixture.posteriors

    @property
    def n_communities_(self) -> int:
        """The likeliest number of communities that their answers support."""
        return len(self.posteriors_)

    @property
    def has_communities_(self) -> bool:
        """Whether more than one community is likelier than one."""
        return self.n_communities_ > 1

    @property
    def community_counts_(self) -> dict[int, float]:
        """Posterior over the number of non-empty communities from chains, those of a single user
        included; one number after a search."""
        draws = self._mixture.draws
        return {self.n_communities_: 1.0} if draws is None else draws.counts()

    @property
    def supported_counts_(self) -> dict[int, float]:
        """Posterior over the number of communities that explain their members better than others
        would; one number after a search. `n_communities_` is its likeliest."""
        draws = self._mixture.draws
        return {self.n_communities_: 1.0} if draws is None else draws.supported_counts()

    @property
    def communities_(self) -> list[report.Community]:
        """Summaries of the communities, largest first."""
        fitted, found = self._fitted(), self._mixture
        names = (fitted.columns.names, fitted.user_columns.names)
        return report.summarize_communities(found, *names, np.random.default_rng(found.seed))

    @property
    def personal_(self) -> gp.UserPosteriors | None:
        """The posterior of each user's own utilities, where users vary inside communities."""
        personal = self._mixture.personal
        return None if personal is None else personal.posterior

    @property
    def communal_share_(self) -> float:
        """Share of the variance of taste between communities; 1 unless users vary inside them."""
        return self._mixture.communal_share

    @property
    def chains_(self) -> tuple[communities.Chain, ...]:
        """The chains with their last states; `resume` continues them."""
        return self._mixture.chains

    @property
    def draws_(self) -> communities.Draws | None:
        """The draws of the chains; None after a search."""
        return self._mixture.draws

    @property
    def sampled_(self) -> Comparisons:
        """The comparisons that the search or the chains saw."""
        return self._mixture.sampled

    @property
    def support_(self) -> communities.Support:
        """Whether the communities are real, with the numbers behind the verdict.

        The first use (also through `verdict_` and `describe`) takes two to ten times as long as
        the fit; the result is stored until the answers change.
        """
        with self._exclusive() as fitted:
            found: FittedMixture = fitted.learned
            support = found.support
            if support is None:
                support = self._fitter_again(found).assess(found)
                self.state_ = replace(fitted, learned=replace(found, support=support))
        return support

    @property
    def verdict_(self) -> str:
        """ "supported", "personal" (tastes differ without groups) or "too few" votes to tell."""
        return self.support_.verdict

    def describe(self) -> str:
        """A summary in a few lines: first whether the communities are real, see `support_`.

        Where they are not, it lists the main directions of disagreement, too.
        """
        support, lines = self.support_, []
        if support.verdict == "personal":
            lines = [*map(str, self.disagreement())]
        if support.verdict != "personal" or self.has_communities_:
            views = report.view_items(self._mixture)
            lines.append(report.summarize(self.supported_counts_, self.communities_, views))
        return "\n".join([support.sentence, *lines])

    def consensus(self, k: int = 5) -> list[report.ItemView]:
        """The k items that communities agree on most, liked or not."""
        check_arguments(self, "consensus", k=(k, whole(1)))
        return report.view_items(self._mixture)[:k]

    def divisive(self, k: int = 5) -> list[report.ItemView]:
        """The k items that divide communities most."""
        check_arguments(self, "divisive", k=(k, whole(1)))
        return report.view_items(self._mixture)[::-1][:k]

    def disagreement(self, k: int = 3) -> list[report.Disagreement]:
        """The k main directions along which people differ, with or without groups.

        An empty list where all have the same utilities: one community without personal taste.
        """
        check_arguments(self, "disagreement", k=(k, whole(1)))
        return report.disagreements(self._mixture, k)

    def write_memberships(self, folder: str | PathLike[str]) -> None:
        """Write the memberships of every user of the scanned comparisons: Parquet files of the
        columns user, community and membership, one a shard.

        folder : made if it is not there; files of an earlier call are replaced.
        """
        shards: sharded.CommunityShards = sharded.shards_of(self, "others have membership_")
        shards.write(Path(folder), self.engine, self.address)

    def _belief(self, fitted: Fitted, user: int | None) -> Belief:
        found: FittedMixture = fitted.learned
        if user is None:
            people = found.population()
            if len(people.apart) == 1:
                return people.parts[0]
            return Joint(people.mean, people.covariance, people.parts[0].likelihood)
        if found.personal is not None:
            return found.personal.posterior.belief(user)
        (weights,) = found.shares(np.array([user]))
        return Joint.mixture(found.posteriors, weights / weights.sum())

    def _spread(self, fitted: Fitted) -> FloatArray:
        found: FittedMixture = fitted.learned
        if found.personal is not None:
            return found.personal.posterior.spread()
        return found.population().spread

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> gp.Normal:
        found: FittedMixture = fitted.learned
        return found.utilities(users, fitted.new_items(X))

    def _probabilities(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
        time: FloatArray | None = None,
    ) -> OutcomeProbabilities:
        found: FittedMixture = fitted.learned
        target, (first, second) = fitted.new_items(X), pairs.T
        if found.personal is not None:
            return OutcomeProbabilities.of_users(
                found.personal.posterior.at(target), users, pairs, z
            )
        shares = np.broadcast_to(found.shares(users), (len(pairs), len(found.posteriors)))
        total = np.zeros((3, len(pairs)))
        for share, community in zip(shares.T, found.at(target), strict=True):
            difference = community.difference(first, second, z)
            total += share * np.stack(OutcomeProbabilities.of(community.likelihood, difference))
        return OutcomeProbabilities(*total)

    def _effects(self, fitted: Fitted) -> tables.Estimates:
        if fitted.learned.personal is not None:
            own = fitted.learned.personal.posterior
            return tables.Estimates.of(own.effects, own.shared_lower)
        found = communities.common_effects(fitted.learned.posteriors)
        return tables.NO_EFFECTS if found is None else tables.Estimates(found[0], *found[1])

    # Adding and removing answers

    def fold_in(self, data: Comparisons) -> Self:
        """A copy of this model with new users, without searching or sampling again.

        data : comparisons by users who were not in the fit, between items that were. Their rows
        of `membership_` come after the others.
        """
        found, data = self._fitted().learned, self._comparisons(data)
        gp.check_newcomers(found.data, data)
        return self._copy_with(found.with_newcomers(found.data.extend(data)))

    def resume(self, n_sweeps: int) -> Self:
        """Continue every chain, exactly as if it had never stopped.

        After `tell` or `fold_in` chains continue with the new answers: hyperparameters are learned
        at the first sweep, two sweeps are not used, and earlier draws are dropped.
        """
        check_arguments(self, "resume", n_sweeps=(n_sweeps, whole(1)))
        with self._exclusive() as fitted:
            if fitted.learned.draws is None:
                raise DataError(
                    "there are no chains to resume: this model was fitted by a search; fit it with "
                    "inference='mcmc' to sample"
                )
            learned = self._resumed(fitted.learned, n_sweeps)
            self.state_, self._history = replace(fitted, learned=learned), ()
        return self

    def _add(self, fitted: Fitted, answers: Comparisons, reconverge: bool | None) -> FittedMixture:
        found: FittedMixture = fitted.learned
        sharded.check_all_here(found.n_elsewhere)
        data = found.data.extend(answers)
        told = np.atleast_1d(data.user_index(answers.users))
        return found.with_answers(data, told, reconverge)

    def _refit(self, fitted: Fitted, data: Comparisons) -> FittedMixture:
        found: FittedMixture = fitted.learned
        sharded.check_all_here(found.n_elsewhere)
        left = replace(found, data=data)
        if found.draws is None and len(data) <= SEARCHED_AGAIN:
            return self._fit_again(left)
        return found.with_answers(data, left.changed_since(found.data), None)

    def _relearn(self, fitted: Fitted) -> FittedMixture:
        return self._fit_again(fitted.learned)

    def _fit_again(self, found: FittedMixture) -> FittedMixture:
        """Search or sample the communities and hyperparameters again."""
        if found.draws is None:
            again = self._fitter_again(found).fit_by_search()
            return replace(again, user_features=found.user_features)
        n_sweeps = self.n_sweeps - self.n_sweeps // 2 + communities.LEARNING_SWEEPS
        return self._resumed(found, n_sweeps)

    def _resumed(self, found: FittedMixture, n_sweeps: int) -> FittedMixture:
        """After more sweeps of every chain."""
        fitter = self._fitter_again(found)
        personal = not isinstance(self.personal, str) or found.personal is not None
        after = self._sampled(fitter, fitter.chains_of(found), n_sweeps, personal)
        return replace(after, user_features=found.user_features)
