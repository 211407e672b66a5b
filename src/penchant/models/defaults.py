"""What an estimator chooses when the user does not: the prior, and how it is learned.

Three topics in order: what a prior is made of (sources and their shares), default kernels, and what
the evidence decides (one lengthscale or many, how tastes go together, what ties mean).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy import sparse

from penchant.errors import DataWarning, warn
from penchant.gp import (
    Callback,
    CovarianceChoice,
    ItemHyper,
    ItemProblem,
    ItemSolution,
    Report,
    Solution,
    Start,
    StartingPoint,
    UserHyper,
    UserProblem,
    UserSolution,
    choose,
    gradient,
    maximize_evidence,
    scaled_start,
    solve,
    with_word,
)
from penchant.kernels import (
    RBF,
    Constant,
    FreeCovariance,
    GraphKernel,
    Independent,
    Inputs,
    Kernel,
    Linear,
    LowRankCovariance,
    Matern,
    Product,
    RegularizedLaplacian,
    Relation,
)
from penchant.kernels.inputs import Features, as_dense
from penchant.kernels.stationary import LEAVING_PULL, MANY_FEATURES
from penchant.likelihoods import Abstain, Probit
from penchant.numerics.linalg import row_squares, to_numpy
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray

SAMPLED_ITEMS = 128
"""Items whose differences stand for all: their 8,128 pairs give the mean within a few percent."""


class SourceShare(NamedTuple):
    """Of the prior variance of a random difference: where it began, and after the answers."""

    prior: float
    posterior: float


@dataclass(frozen=True)
class SourcesReport(Report):
    """How inference went, and what each source counts in the prior, see `shares`."""

    shares: Mapping[str, SourceShare] = field(default_factory=dict)


def shares(start: Kernel, learned: Kernel, items: Inputs) -> dict[str, SourceShare]:
    """The share of each source, before and after the answers; each column adds up to one.

    A source that only the answers called for has a prior share of zero.

    >>> from penchant.kernels import RBF
    >>> items = Inputs(np.arange(4.0)[:, None], index=np.arange(4))
    >>> found = shares(RBF(), RBF() + Independent(), items)
    >>> found["features"].prior, found["item effects"].prior
    (1.0, 0.0)
    """
    before, after = _by_source(start, items), _by_source(learned, items)
    names = dict.fromkeys([*before, *after])
    return {name: SourceShare(before.get(name, 0.0), after.get(name, 0.0)) for name in names}


def _by_source(kernel: Kernel, items: Inputs) -> dict[str, float]:
    variance = np.array([difference_variance(part, items) for part in kernel.parts])
    total = float(variance.sum()) or 1.0
    told: Counter[str] = Counter()
    found: dict[str, float] = {}
    for part, share in zip(kernel.parts, (variance / total).tolist(), strict=True):
        name = source_name(part)
        told[name] += 1
        found[name if told[name] == 1 else f"{name} {told[name]}"] = share
    return found


def source_name(kernel: Kernel) -> str:
    """What a part of a prior looks at.

    >>> source_name(Independent()), source_name(Linear() * Independent())
    ('item effects', 'features × item effects')
    """
    if isinstance(kernel, Product):
        return " × ".join(map(source_name, kernel.kernels))
    if isinstance(kernel, GraphKernel):
        return kernel.relation
    if isinstance(kernel, Independent):
        return "item effects"
    if isinstance(kernel, RBF | Matern | Linear):
        return "features"
    if isinstance(kernel, FreeCovariance | LowRankCovariance):
        return "learned covariance"
    return type(kernel).__name__


def difference_variance(kernel: Kernel, items: Inputs) -> float:
    """Prior variance of the difference between two random items; linear in their number.

    >>> difference_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = to_numpy(kernel(items.take(spread_over(len(items), SAMPLED_ITEMS))))
    n = len(K)
    if n < 2:
        return 0.0
    # mean over i ≠ j of K_ii + K_jj − 2 K_ij
    return max(0.0, float(2.0 * (n * np.trace(K) - K.sum()) / (n * (n - 1))))


def typical_variance(kernel: Kernel, items: Inputs) -> float:
    """The median instead of the mean: few items that stand alone in a graph differ most from all.

    >>> typical_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = to_numpy(kernel(items.take(spread_over(len(items), SAMPLED_ITEMS))))
    first, second = np.triu_indices(len(K), k=1)
    if not len(first):
        return 0.0
    own = np.diagonal(K)
    return float(np.median(own[first] + own[second] - 2.0 * K[first, second]))


def spread_over(n: int, size: int) -> IntArray:
    """Up to `size` positions evenly over n: the same ones every time."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).round().astype(np.intp))


SAMPLED_LINKS = 5_000
"""Links whose features are compared."""
COMPARED_ITEMS, MOST_COSINES = (16, 128), 1_000_000
"""Items whose neighbours are sought, at least and at most, and how many cosines that may take."""
SPLITS = 2
"""Ways in which the features are halved; each half predicts the other."""
MOST_WEIGHT = 30.0
"""Of the one source in units of the other: answers can still raise the weaker one."""
FEW_ANSWERS = 30
"""With more, answers themselves say what counts."""
ROUNDING = 1e-9
"""Cosines nearer to each other are the same."""


class Agreement(NamedTuple):
    """How much more alike than random pairs some pairs are in half of the features, in standard
    deviations of random pairs: linked ones, and as many that the other half holds to be nearest;
    and the standard error of the difference.
    """

    links: float
    features: float
    error: float


def relation_weight(X: Features, relation: Relation) -> float:
    """How much a relation counts beside features of weight one.

    It is the odds that links predict one half of the features at least as well as the other half
    does. The odds are bounded, since what predicts features need not predict utilities. Where
    neither predicts the features, neither is preferred; but columns that are unrelated have to be
    learned one by one, which takes about as many answers, so that very many count little.
    """
    if not relation.n_edges:
        return 1.0 / MOST_WEIGHT
    links, features, error = graph_feature_agreement(X, relation)
    more, less = (_evidence(t, error) for t in (links - features, features - links))
    is_chance = 1.0 / (1.0 + _evidence(max(links, features), error))
    odds = (1.0 + more) / (1.0 + less) * max(1.0, min(X.shape) / FEW_ANSWERS) ** is_chance
    return float(np.clip(odds, 1.0 / MOST_WEIGHT, MOST_WEIGHT))


def _evidence(t: float, error: float) -> float:
    """For t being positive rather than zero: the Bayes factor by Schwarz's approximation."""
    # exp(½ z²) / √m with t measured in units of one of m pairs, whose error is m^−½
    return float(np.exp(min(0.5 * (t / error) ** 2, 500.0)) * error) if t > 0.0 else 0.0


def graph_feature_agreement(X: Features, relation: Relation) -> Agreement:
    """How well links and features predict a half of the features; the mean over some halves."""
    n, d = X.shape
    if n < 3 or not relation.n_edges:
        return Agreement(0.0, 0.0, 1.0)
    rng = np.random.default_rng(0)  # the same halves and links every time
    links = sparse.triu(relation.weights, k=1).tocoo()
    chosen = np.arange(links.nnz)
    if links.nnz > SAMPLED_LINKS:
        chosen = rng.choice(links.nnz, SAMPLED_LINKS, replace=False)
    first, second, weight = links.row[chosen], links.col[chosen], links.data[chosen]
    items = spread_over(n, int(np.clip(MOST_COSINES // n, *COMPARED_ITEMS)))
    n_near = _mean_degree(links.data, n)
    found = []
    for _ in range(SPLITS):
        halves = [CentredRows.of(X[:, half]) for half in _halves(rng.permutation(d))]
        cosines = [half.among(items) for half in halves]
        for half, hidden, known in zip(halves, cosines, cosines[::-1], strict=True):
            random = hidden[np.isfinite(hidden)]
            linked = float(np.average(half.paired(first, second), weights=weight))
            near = _of_nearest(known, hidden, n_near)
            found.append((np.array([linked, near]) - random.mean()) / (random.std() or np.inf))
    error = np.sqrt(1.0 / len(chosen) + 1.0 / (len(items) * n_near))
    by_links, by_features = np.mean(found, axis=0)
    return Agreement(float(by_links), float(by_features), float(error))


def _halves(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Of the columns; a single one is both."""
    middle = len(columns) // 2
    return columns[: max(1, middle)], columns[middle:]


def _mean_degree(weights: FloatArray, n: int) -> int:
    """Of an item, as many links counted as would weigh the same were all alike."""
    effective = float(weights.sum() ** 2 / (weights @ weights))
    return int(np.clip(round(2.0 * effective / n), 1, n - 2))


def _of_nearest(known: FloatArray, hidden: FloatArray, n_near: int) -> float:
    """Mean of what is hidden over the nearest by what is known; those as near as the last count."""
    least = -np.partition(-known, n_near - 1, axis=1)[:, n_near - 1, None]
    near = (known >= least - ROUNDING) & np.isfinite(known)
    rows: FloatArray = np.where(near, hidden, 0.0).sum(axis=1) / near.sum(axis=1)
    return float(rows.mean())


class CentredRows(NamedTuple):
    """Rows around the mean row; sparse ones are never centred themselves.

    (x − m)·(y − m) = x·y − along(x) − along(y)  with  along(x) = x·m − ½ m·m.
    """

    X: Features
    along: FloatArray
    length: FloatArray

    @classmethod
    def of(cls, X: Features) -> "CentredRows":
        """Of all items."""
        mean = np.asarray(X.mean(axis=0)).ravel()
        along = np.asarray(X @ mean).ravel() - 0.5 * float(mean @ mean)
        return cls(X, along, np.sqrt(np.maximum(row_squares(X) - 2.0 * along, 0.0)))

    def paired(self, first: IntArray, second: IntArray) -> FloatArray:
        """Cosine (k,) of each of the first with the one in the same place of the second."""
        left, right = self.X[first], self.X[second]
        if isinstance(left, sparse.sparray):
            product = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            product = np.einsum("ij,ij->i", left, right)
        product = product - self.along[first] - self.along[second]
        return _ratio(product, self.length[first] * self.length[second])

    def among(self, items: IntArray) -> FloatArray:
        """Cosines (k, n) of some with every item, minus infinity with themselves."""
        product = self.X[items] @ self.X.T
        product = as_dense(product) if isinstance(product, sparse.sparray) else product
        product -= self.along[items, None] + self.along
        cosines = _ratio(product, self.length[items, None] * self.length)
        cosines[np.arange(len(items)), items] = -np.inf
        return cosines


def _ratio(product: FloatArray, scale: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0.0)
    return ratio


ARD_FEATURES = 20
"""Up to this many features each gets its own lengthscale; more would outrun the comparisons."""
RELEVANCE_FEATURES = 100
"""Up to this many each does where utilities are of everybody: shrunk towards a common value."""
SMOOTH_START = 5.0
"""First lengthscale, in units of the root mean squared distance of an item from the mean."""
ARBITRATED_START = 2.0
"""The same where the variance of a difference is set: the kernel's variance is then a few times
that of a difference, and a feature that explains little data can not make it much larger."""
OWN_EFFECT = 0.3
"""First variance of what features do not tell of an item, in units of an answer's noise: the
smallest of .1, .2, .3 and 1 at which intervals of simulated studies cover as they should."""
FEW_TWINS = 0.05
"""Share of items that may have the features of another before features say so little that an
item's own effect starts at variance one."""
FREE_ITEMS, LOW_RANK_ITEMS = 60, (20, 400)
"""Most items whose covariance is learned entry by entry; how many it takes, and how many there may
be, for few directions of taste."""
DIRECTIONS = 4
GRAPH_REACH = 50.0
"""First ι² of a graph kernel, in units of the inverse mean degree."""
DIFFERENCE = 2.0
"""First variance of a random difference, in units of an answer's noise: that of independent items
of variance one, and what each source brings where there are features or relations."""


def utility_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The default kernel, with an effect of each item's own beside features."""
    return _with_effects(default_kernel(items), items, max_rank)


def arbitrated_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The same on one scale: each source brings one variance of a difference.

    What features and relations bring is divided between them by who knows features better.
    """
    parts = list(default_kernel(items, ARBITRATED_START, RELEVANCE_FEATURES).parts)
    if items.X is not None or items.relations:
        weight = np.array([_weight(part, items) for part in parts])
        variances = DIFFERENCE * weight / weight.mean()
        parts = [_at_variance(*each, items) for each in zip(parts, variances, strict=True)]
    return _with_effects(reduce(add, parts), items, max_rank)


def _with_effects(kernel: Kernel, items: Inputs, max_rank: int | None) -> Kernel:
    """Add an effect of each item's own: features do not tell all, and intervals must allow for it.

    Its variance is learned under the weak prior around this start. With a bound on the rank there
    is no such effect, since it would use up the rank; with relations the graph kernels have it.
    """
    if items.X is None or items.relations or max_rank is not None:
        return kernel
    return kernel + Independent(1.0 if _has_twins(items.X) else OWN_EFFECT)


def _weight(part: Kernel, items: Inputs) -> float:
    """How much a source counts before any answer, in units of the features'."""
    if items.X is None or not isinstance(part, RegularizedLaplacian):
        return 1.0
    return relation_weight(items.X, items.relations[part.relation])


def _at_variance(part: Kernel, variance: float, items: Inputs) -> Kernel:
    """The same part with another variance of a random difference, if it has any at all."""
    measure = typical_variance if isinstance(part, GraphKernel) else difference_variance
    now = measure(part, items)
    factor = variance / now if now > 0.0 else 1.0
    if isinstance(part, RBF):
        return replace(part, variance=factor * part.variance)
    if isinstance(part, RegularizedLaplacian):
        return replace(part, beta=part.beta / factor)
    return part


def default_kernel(
    items: Inputs, smooth: float = SMOOTH_START, most_lengthscales: int = ARD_FEATURES
) -> Kernel:
    """An RBF on features plus a graph kernel per relation; independent items without either.

    These are also the values that the evidence falls back on where comparisons are few.
    Lengthscales start beyond the typical distance between items, where the utility is a smooth,
    nearly linear function of the features and leaves room for the relations.
    """
    parts: list[Kernel] = []
    if items.X is not None:
        d, each = items.X.shape[1], not isinstance(items.X, sparse.sparray)
        start = smooth * float(np.sqrt(_total_variance(items.X))) or 1.0
        parts.append(RBF((start,) * d if each and d <= most_lengthscales else start))
    parts += [_default_graph_kernel(name, items) for name in items.relations]
    if not parts:
        return Independent()
    return reduce(add, parts)


def taste_kernel(items: Inputs) -> Kernel:
    """How tastes for items go together: learned entry by entry where nothing is known of items."""
    if items.X is not None or items.relations:
        return default_kernel(items) + Independent()
    return FreeCovariance.of(np.eye(len(items))) if len(items) <= FREE_ITEMS else Independent()


def free_start(known: UserHyper, n_items: int) -> UserHyper:
    """A free covariance, begun at the variance and the sharing that independent items learned."""
    kernel = FreeCovariance.of(_variance(known) * np.eye(n_items))
    return known._replace(kernel=kernel.around(kernel))


def learned_covariances(place: IntArray) -> dict[str, Start]:
    """Candidates for a covariance that users teach, as far as the number of items allows.

    place: (n_items,) of each item in an order that does not depend on names.
    """
    found: dict[str, Start] = {}
    n_items = len(place)
    fewest, most = LOW_RANK_ITEMS
    if fewest < n_items <= most:
        found["low rank"] = lambda known: known._replace(
            kernel=LowRankCovariance.begin(place, DIRECTIONS, _variance(known))
        )
    if n_items <= FREE_ITEMS:
        found["free"] = lambda known: free_start(known, n_items)
    return found


def _variance(known: UserHyper) -> float:
    return float(known.kernel.diag(Inputs(index=np.zeros(1, dtype=np.intp)))[0])


def sharing_kernel(users: Inputs) -> Kernel:
    """What users share: a population mean, and what their features and relations say."""
    if users.X is None and not users.relations:
        return Constant(1.0)
    return 1.0 + default_kernel(users)


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


def with_relevance(
    problem: ItemProblem,
    start: ItemHyper,
    learn: Callable[[ItemProblem, ItemHyper], ItemSolution],
) -> tuple[ItemHyper, ItemSolution]:
    """What is learned, and the start it belongs to: each feature's lengthscale its own, or common.

    The prior lets one of many features leave the common lengthscale only where the evidence pulls
    hard enough. Where it pulls none so hard, climbing along each would be for nothing.
    """
    d = _n_apart(start.kernel)
    if d <= MANY_FEATURES:
        return start, learn(problem, start)
    tied = start._replace(kernel=_with_lengthscales(start.kernel, 1))
    common = learn(problem, tied)
    apart = common.hyper._replace(kernel=_with_lengthscales(common.hyper.kernel, d))
    pull = gradient(problem, common._replace(hyper=apart))[:d]
    if np.abs(pull - pull.mean()).max() <= LEAVING_PULL:
        return tied, common
    return start, maximize_evidence(problem, start, begin=StartingPoint(apart.theta))


def _n_apart(kernel: Kernel) -> int:
    """How many lengthscales the features have; they are the first part of a kernel."""
    first = kernel.parts[0]
    if isinstance(first, RBF) and isinstance(first.lengthscale, tuple):
        return len(first.lengthscale)
    return 0


def _with_lengthscales(kernel: Kernel, d: int) -> Kernel:
    """The same with one lengthscale for all features, or with d that are all the same."""
    first, others = cast(RBF, kernel.parts[0]), kernel.parts[1:]
    one = float(np.ravel(first.lengthscale)[0])
    return reduce(add, [replace(first, lengthscale=one if d == 1 else (one,) * d), *others])


def learn_tastes(
    problem: UserProblem,
    start: UserHyper,
    kernel: Kernel | str | None,
    n_restarts: int = 0,
    random_state: RandomState = None,
    watch: Callback | None = None,
) -> UserSolution:
    """The climb of the evidence, after the choice of an item covariance where none is given.

    start: with the kernel that is given, or with that of the features.
    """
    begin: StartingPoint | None = None
    word = ""
    if not isinstance(kernel, Kernel):
        choice = _chosen(problem, start, kernel, watch)
        start, begin = choice.start, StartingPoint(choice.theta)
        word = choice.word + not_tried(problem, kernel)
    rng = as_rng(random_state)
    return with_word(maximize_evidence(problem, start, n_restarts, rng, begin, watch), word)


def not_tried(problem: UserProblem, kernel: str | None) -> str:
    """Which candidates the number of items rules out, in words."""
    n, most = len(problem.items), LOW_RANK_ITEMS[1]
    if kernel is not None or n <= FREE_ITEMS:
        return ""
    directions = f"few directions of taste (up to {most}) and " if n > most else ""
    return f"; {n:,} items are too many for {directions}a free covariance (up to {FREE_ITEMS})"


def _chosen(
    problem: UserProblem, start: UserHyper, kernel: str | None, watch: Callback | None
) -> CovarianceChoice:
    """The item covariance: free as asked for, else the candidate that predicts best."""
    items, simplest = problem.items, start._replace(kernel=Independent())
    n, is_known = len(items), items.X is not None or bool(items.relations)
    if kernel == "free":
        return scaled_start(problem, simplest, lambda known: free_start(known, n), watch)
    featured: dict[str, Start] = {"features": lambda _: start} if is_known else {}
    fallback = "features" if is_known else "independent"
    others = {**featured, **learned_covariances(problem.edges.item_order(n))}
    return choose(problem, simplest, others, fallback, watch)


WORTHWHILE = 1.0
"""Gain in log evidence before ties mean nothing: mostly they are said of what is close."""

HyperT = TypeVar("HyperT", ItemHyper, UserHyper)


def with_ties_understood(
    problem: ItemProblem | UserProblem,
    start: HyperT,
    close: Solution[HyperT, Any],
    learn: Callable[[Any, HyperT], Solution[HyperT, Any]],
) -> tuple[HyperT, Solution[HyperT, Any]]:
    """The given solution, whose ties mean close items, or a likelier one whose ties mean nothing.

    With the hyperparameters from which it was learned.

    Ties of people who cannot judge or do not care come at any difference. Taken for closeness
    they draw utilities together, and predictions are worse than without them.
    """
    rate = _share_of_ties(problem)
    if not 0.0 < rate < 1.0:
        return start, close
    other = start._replace(likelihood=Abstain(Probit(), rate))
    few: Any = problem.while_learning()  # where comparisons are very many, some of them tell
    is_sample = few.edges is not problem.edges
    unrelated = learn(few if is_sample else problem, other)
    known = solve(few, close.hyper) if is_sample else close
    gain = unrelated.log_evidence - known.log_evidence
    if gain <= WORTHWHILE:
        return start, close
    if is_sample:
        unrelated = learn(problem, other)
    warn(
        f"ties come at any difference here (log evidence {gain:.1f} higher): they are taken for "
        "abstentions, which say nothing about closeness; likelihood=Ties() insists on closeness",
        DataWarning,
    )
    return other, unrelated


def _share_of_ties(problem: ItemProblem | UserProblem) -> float:
    """Among single pairs: a choice out of several items is no tie, and stands behind them."""
    tie = problem.edges.outcomes.tie
    if tie is None:
        return 0.0
    count = problem.edges.count[: len(tie)]
    return float(count[tie].sum() / count.sum())
