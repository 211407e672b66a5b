"""What an estimator chooses when the user does not: the prior, and how it is learned.

First default kernels, then what the evidence decides: one lengthscale or many, the meaning of ties.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, TypeVar, cast

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax, logsumexp, softmax

from penchant import gp
from penchant.errors import DataWarning, NumericalError, warn
from penchant.kernels import (
    RBF,
    GraphKernel,
    Independent,
    Inputs,
    Kernel,
    LinearRBF,
    RegularizedLaplacian,
)
from penchant.kernels.inputs import Features
from penchant.kernels.stationary import LEAVING_PULL
from penchant.likelihoods import Abstain, Lapse, Probit
from penchant.models.features import evenly_spaced
from penchant.models.graph_agreement import relation_weight
from penchant.numerics.linalg import row_squares, to_numpy
from penchant.numerics.optimize import PRIOR_SPREAD

SAMPLED_ITEMS = 128
"""Items in a sample: their 8,128 pairs give the mean over all pairs within a few percent."""


def difference_variance(kernel: Kernel, items: Inputs) -> float:
    """Prior variance of the difference between two random items, over a sample of items.

    >>> difference_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = to_numpy(kernel(items.take(evenly_spaced(len(items), SAMPLED_ITEMS))))
    n = len(K)
    if n < 2:
        return 0.0
    # mean over i ≠ j of K_ii + K_jj − 2 K_ij
    return max(0.0, float(2.0 * (n * np.trace(K) - K.sum()) / (n * (n - 1))))


def typical_variance(kernel: Kernel, items: Inputs) -> float:
    """The median instead of the mean, robust to isolated nodes of a graph.

    >>> typical_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = to_numpy(kernel(items.take(evenly_spaced(len(items), SAMPLED_ITEMS))))
    first, second = np.triu_indices(len(K), k=1)
    if not len(first):
        return 0.0
    own = np.diagonal(K)
    return float(np.median(own[first] + own[second] - 2.0 * K[first, second]))


ARD_FEATURES = 20
"""Most features that get their own lengthscales: more would need too many comparisons."""
RELEVANCE_FEATURES = 100
"""The same in a pooled model, where lengthscales are shrunk towards a common value."""
SMOOTH_START = 5.0
"""First lengthscale, in units of the root mean squared distance of an item from the mean."""
BALANCED_START = 2.0
"""The same where the variance of a difference is set: the kernel's variance is then a few times
that of a difference, and a feature that explains little data can not make it much larger."""
OWN_EFFECT = 0.3
"""First variance of an item's own effect beside features, in units of an answer's noise: the
smallest of .1, .2, .3 and 1 at which intervals of simulated studies have nominal coverage."""
FEW_TWINS = 0.05
"""Share of items with the same features as another, beyond which features explain so little that
an item's own effect starts at variance one."""
GRAPH_REACH = 50.0
"""First ι² of a graph kernel, in units of the inverse mean degree."""
DIFFERENCE = 2.0
"""First variance of a random difference, in units of an answer's noise: that of independent items
of variance one, and what each source brings where there are features or relations."""


def utility_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The default kernel plus, with features, an independent effect of each item."""
    return _with_effects(default_kernel(items), items, max_rank)


def balanced_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The same with one prior variance of a difference a source.

    Features and relations divide theirs by how well each predicts features.
    """
    parts = list(default_kernel(items, BALANCED_START, RELEVANCE_FEATURES).parts)
    if items.X is not None or items.relations:
        weight = np.array([_weight(part, items) for part in parts])
        variances = DIFFERENCE * weight / weight.mean()
        parts = [_at_variance(*each, items) for each in zip(parts, variances, strict=True)]
    return _with_effects(reduce(add, parts), items, max_rank)


def _with_effects(kernel: Kernel, items: Inputs, max_rank: int | None) -> Kernel:
    """Add an independent effect of each item: features do not explain all.

    Its variance is learned under the weak prior around this start. With a bound on the rank there
    is no such effect, since it would use up the rank; graph kernels include one.
    """
    if items.X is None or items.relations or max_rank is not None:
        return kernel
    return kernel + Independent(1.0 if _has_twins(items.X) else OWN_EFFECT)


def _weight(part: Kernel, items: Inputs) -> float:
    """Weight of a source before any answer, in units of that of the features."""
    if items.X is None or not isinstance(part, RegularizedLaplacian):
        return 1.0
    return relation_weight(items.X, items.relations[part.relation])


def _at_variance(part: Kernel, variance: float, items: Inputs) -> Kernel:
    """The same part with another variance of a random difference, if it has any."""
    measure = typical_variance if isinstance(part, GraphKernel) else difference_variance
    now = measure(part, items)
    if now == 0.0:
        return part
    return _times(part, variance / now)


def default_kernel(
    items: Inputs,
    smooth: float = SMOOTH_START,
    most_lengthscales: int = ARD_FEATURES,
    linear: bool = True,
) -> Kernel:
    """An RBF and a linear kernel on features plus a graph kernel per relation; independent items
    without either.

    The weak prior holds parameters near these values where comparisons are few. Lengthscales start
    beyond the typical distance between items, where the utility is a smooth function of the
    features and leaves room for the relations. The linear part, which starts with the same variance
    of a difference, carries on where items are unlike all others.
    """
    parts: list[Kernel] = []
    if items.X is not None:
        d, each = items.X.shape[1], not isinstance(items.X, sparse.sparray)
        start = smooth * float(np.sqrt(_total_variance(items.X))) or 1.0
        scale = (start,) * d if each and d <= most_lengthscales else start
        parts.append(_equal_halves(RBF(scale), items) if linear else RBF(scale))
    parts += [_default_graph_kernel(name, items) for name in items.relations]
    if not parts:
        return Independent()
    return reduce(add, parts)


def _equal_halves(curved: RBF, items: Inputs) -> LinearRBF:
    """The kernel with a linear part of the same variance of a difference."""
    unit = LinearRBF(curved.lengthscale, curved.variance, 1.0)
    variance = difference_variance(curved, items)
    straight = difference_variance(unit, items) - variance
    return replace(unit, linear=variance / straight if straight > 0.0 else 1.0)


def _total_variance(X: Features) -> float:
    """Mean squared distance of a row from the mean row."""
    if not isinstance(X, sparse.sparray):
        return float(X.var(axis=0).sum())
    mean = np.asarray(X.mean(axis=0)).ravel()
    return float(row_squares(X).mean() - mean @ mean)


def _has_twins(X: Features) -> bool:
    """Whether many items have the same features as another."""
    n = int(X.shape[0])
    if isinstance(X, sparse.sparray):
        rows = X.sorted_indices()
        ends = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
        different = {rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in ends}
    else:
        different = {row.tobytes() for row in X}
    return len(different) < (1.0 - FEW_TWINS) * n


def _default_graph_kernel(name: str, items: Inputs) -> Kernel:
    """A regularised Laplacian that reaches a few links far, with unit variance on average."""
    laplacian = items.relations[name].laplacian
    n = laplacian.shape[0]
    degree = float(laplacian.diagonal().mean())
    iota = float(np.sqrt(GRAPH_REACH / degree)) if degree > 0 else 1.0
    sample = np.unique(np.linspace(0, n - 1, min(n, 64)).astype(np.intp))
    unscaled = RegularizedLaplacian(name, 1.0, iota)
    return RegularizedLaplacian(name, float(unscaled.diag(items.take(sample)).mean()), iota)


Learn = Callable[[gp.ItemProblem, gp.ItemHyper], gp.ItemSolution]


LOG_ODDS = np.linspace(-5.0, 5.0, 9)
"""Of the second source's share of the prior variance, at which answers left out are predicted."""
HOPELESS = 20.0
"""Nats of the answers left out behind the best share, beyond which larger ones are not tried."""


def choose_sources(
    problem: gp.ItemProblem, start: gp.ItemHyper, learn: Learn
) -> tuple[gp.ItemHyper, gp.ItemSolution]:
    """Learn features and relations each alone, and their shares from answers left out.

    The evidence prefers the more flexible source. So each answer is predicted from all others: of
    few answers and features that were made from many, features hold their own by the evidence where
    links predict better. Of answers about items of a few grades, features that say little of these
    are taken for much; then effects of items get a larger share in the same way.
    """
    items, parts = problem.universe, start.kernel.parts
    is_both = items.X is not None and bool(items.relations)
    groups = (parts[0], reduce(add, parts[1:])) if is_both else ()
    variances = [difference_variance(group, items) for group in groups]
    if not gp.predicts_left_out(problem.edges) or not all(variances):
        return maximize_with_relevance(problem, start, learn)
    if is_both:
        features, relations = (
            maximize_with_relevance(
                problem, start._replace(kernel=_times(group, sum(variances) / variance)), learn
            )[1]
            for group, variance in zip(groups, variances, strict=True)
        )
        log_odds = float(np.log(variances[1] / variances[0]))
        best, _ = _at_mean_share(problem, features, relations.hyper.kernel, log_odds)
        start = best.hyper
    else:
        start, best = maximize_with_relevance(problem, start, learn)
    if problem.max_rank is None and items.X is not None:  # independent items have full rank
        effects = Independent(0.5 * difference_variance(best.hyper.kernel, items))
        mixed, gain = _at_mean_share(problem, best, effects, float(np.log(OWN_EFFECT)))
        if gain > 0.0:
            start, best = mixed.hyper, mixed
    return start, best


def _at_mean_share(
    problem: gp.ItemProblem, first: gp.ItemSolution, second: Kernel, log_odds: float
) -> tuple[gp.ItemSolution, float]:
    """Solve with both kernels, the second with the mean of its share's posterior; and by how many
    nats answers left out are likelier with a share than without.

    log_odds: the prior mean of those of the share; their spread is that of the ratio of two
    variances under the weak prior. The likelihood has the same power as in `gp.calibration`.
    """
    rough, scores = problem.while_learning(), []
    sites = first.inference.sites if rough.edges is problem.edges else None
    for share in (0.0, *expit(LOG_ODDS)):
        hyper = first.hyper._replace(kernel=_mixed(first.hyper.kernel, second, share))
        solution = gp.solve(rough, hyper, sites)
        sites = solution.inference.sites
        scores.append(gp.POWER * gp.calibrate(rough.edges, solution).log_score)
        if scores[-1] < max(scores) - gp.POWER * HOPELESS:
            break
    at = LOG_ODDS[: len(scores) - 1]
    prior = log_softmax(-0.25 * ((LOG_ODDS - log_odds) / PRIOR_SPREAD) ** 2)[: len(at)]
    log_joint = prior + scores[1:]
    gain = float(logsumexp(log_joint)) - scores[0]
    share = float(softmax(log_joint) @ expit(at))
    hyper = first.hyper._replace(kernel=_mixed(first.hyper.kernel, second, share))
    return gp.solve(problem, hyper, sites if rough.edges is problem.edges else None), gain


def _mixed(first: Kernel, second: Kernel, share: float) -> Kernel:
    """The sum of both, the second with this share; effects of items are one part of it."""
    both = [*_times(first, 1.0 - share).parts]
    if share > 0.0:
        both += _times(second, share).parts
    own = sum(part.variance for part in both if isinstance(part, Independent))
    others = [part for part in both if not isinstance(part, Independent)]
    return reduce(add, [*others, *([Independent(own)] if own else [])])


def _times(kernel: Kernel, factor: float) -> Kernel:
    return kernel.with_theta(kernel.theta + np.log(factor) * kernel.powers)


CLEAR_RELEVANCE = 3.0
"""Least gain in penalised log evidence, nats, for features to have lengthscales of their own. In
simulations held-out answers lost as often as they gained below it, and mostly gained above."""


def maximize_with_relevance(
    problem: gp.ItemProblem,
    start: gp.ItemHyper,
    learn: Learn,
) -> tuple[gp.ItemHyper, gp.ItemSolution]:
    """Learn one lengthscale a feature or a common one; return the start and the solution.

    The prior lets a feature leave the common lengthscale only where the slope of the evidence is
    steep enough. Where no slope is, climbing along each would be wasted.
    """
    d = _n_lengthscales(start.kernel)
    if d <= 1:
        return start, learn(problem, start)
    tied = start._replace(kernel=_with_lengthscales(start.kernel, 1))
    common = learn(problem, tied)
    separate = common.hyper._replace(kernel=_with_lengthscales(common.hyper.kernel, d))
    slope = gp.gradient(problem, common._replace(hyper=separate))[:d]
    if np.abs(slope - slope.mean()).max() <= LEAVING_PULL:
        return tied, common
    own = gp.maximize_evidence(problem, start, begin=gp.StartingPoint(separate.theta))
    gain = _penalized(own, start) - _penalized(common, tied)
    return (start, own) if gain > CLEAR_RELEVANCE else (tied, common)


def _penalized(solution: gp.ItemSolution, start: gp.ItemHyper) -> float:
    """Log evidence times the weak prior around the start."""
    return solution.log_evidence + solution.hyper.log_prior(start)[0]


def _n_lengthscales(kernel: Kernel) -> int:
    """How many lengthscales the features have; their kernel is the first part."""
    first = kernel.parts[0]
    if isinstance(first, RBF) and isinstance(first.lengthscale, tuple):
        return len(first.lengthscale)
    return 0


def _with_lengthscales(kernel: Kernel, d: int) -> Kernel:
    """The same with one lengthscale for all features, or with d that are all the same."""
    first, others = cast(RBF, kernel.parts[0]), kernel.parts[1:]
    one = float(np.ravel(first.lengthscale)[0])
    return reduce(add, [replace(first, lengthscale=one if d == 1 else (one,) * d), *others])


WORTHWHILE = 1.0
"""Least gain in log evidence, nats, for ties to mean nothing: mostly ties mean close items."""

HyperT = TypeVar("HyperT", "gp.ItemHyper", "gp.UserHyper")


def choose_tie_likelihood(
    problem: "gp.ItemProblem | gp.UserProblem",
    start: HyperT,
    close: gp.Solution[HyperT, Any],
    learn: Callable[[Any, HyperT], gp.Solution[HyperT, Any]],
) -> gp.Solution[HyperT, Any]:
    """The given solution, whose ties mean close items, or a likelier one whose ties mean nothing.

    start: the hyperparameters from which it was learned. Ties of people who cannot judge or do not
    care come at any difference. Taken as closeness they shrink utilities, and predictions are worse
    than without them.
    """
    rate = share_of_ties(problem)
    if not 0.0 < rate < 1.0:
        return close
    other = start._replace(likelihood=Abstain(Probit(), rate))
    few: Any = problem.while_learning()  # of very many comparisons a sample decides
    is_sample = few.edges is not problem.edges
    unrelated = learn(few if is_sample else problem, other)
    known = gp.solve(few, close.hyper) if is_sample else close
    gain = unrelated.log_evidence - known.log_evidence
    if gain <= WORTHWHILE:
        return close
    if is_sample:
        unrelated = learn(problem, other)
    warn(
        f"ties come at any difference here (log evidence {gain:.1f} higher): they are taken for "
        "abstentions, which say nothing about closeness; likelihood=Ties() insists on closeness",
        DataWarning,
    )
    return unrelated


FEW_ANSWERS = 300
"""Fewer answers do not tell a lapse from noise."""


def choose_lapses(
    problem: gp.ItemProblem, start: gp.ItemHyper, solution: gp.ItemSolution, learn: Learn
) -> gp.ItemSolution:
    """The given solution, or a clearly likelier one in which some answers are given at random.

    start: the hyperparameters from which it was learned. A single answer against a large value of a
    covariate moves its effect far where the likelihood has a normal tail.
    """
    if problem.edges.shown is None or problem.edges.count.sum() < FEW_ANSWERS:
        return solution
    lapses = Lapse(Probit())
    try:  # a likelihood that is not log-concave may have no Gaussian approximation here
        quick = gp.solve(problem.while_learning(), solution.hyper._replace(likelihood=lapses))
        if quick.log_evidence <= solution.log_evidence:
            return solution
        robust = learn(problem, start._replace(likelihood=lapses))
    except NumericalError:
        return solution
    gain = robust.log_evidence - solution.log_evidence
    if gain <= gp.CLEAR_GAIN or not robust.inference.report.converged:
        return solution
    return robust.with_note(f"some answers at random: {gain:.1f} nats likelier")


def share_of_ties(problem: "gp.ItemProblem | gp.UserProblem") -> float:
    """Share of ties among single pairs; rows of choices stand behind them and have no ties."""
    tie = problem.edges.outcomes.tie
    if tie is None:
        return 0.0
    count = problem.edges.count[: len(tie)]
    return float(count[tie].sum() / count.sum())
