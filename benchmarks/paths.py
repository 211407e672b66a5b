"""Special paths of the engine: what a fit that each is for costs without it.

A path is switched off by replacing one name. Seconds are processor time of one thread, the best of
three; docs/architecture.md has the table.
"""

from contextlib import contextmanager
from dataclasses import replace
from time import process_time

import numpy as np
from scipy.optimize import minimize

import penchant as pc
from penchant import gp
from penchant.communities import component, population, search, split_merge
from penchant.communities import data as answers
from penchant.gp import learn, loop, rows, update
from penchant.gp.items import prior as item_prior
from penchant.gp.users import arrowhead, blocks, posterior
from penchant.kernels import RBF, Independent
from penchant.numerics import linalg, optimize

REPEATS = 3
PERSONAL = {"kernel": Independent(2.0), "progress": False}


def pairs(n, m):
    """m answers to random pairs of n items of normal utilities, winners and losers."""
    rng = np.random.default_rng(0)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    f = rng.standard_normal(n)
    won = f[a] - f[b] + rng.standard_normal(m) > 0
    return np.where(won, a, b), np.where(won, b, a)


def many_answers(likelihood):
    """200,000 answers about 500 items without features."""
    data = pc.Comparisons.from_pairs(*pairs(500, 200_000), items=range(500))
    return lambda: pc.PreferenceGP(likelihood=likelihood, random_state=0).fit(None, data)


def featured(n, m, **how):
    """m answers about n items with five features."""
    X = np.random.default_rng(1).random((n, 5))
    data = pc.Comparisons.from_pairs(*pairs(n, m), items=range(n))
    return lambda: pc.PreferenceGP(**how).fit(X, data)


def many_items_each():
    """50 users with 80 answers each about 400 items with five features."""
    user, X = np.repeat(np.arange(50), 80), np.random.default_rng(1).standard_normal((400, 5))
    data = pc.Comparisons.from_pairs(*pairs(400, 4_000), user=user, items=range(400))
    kernel = RBF((2.0,) * 5, 4.0) + Independent(0.1)
    return lambda: pc.MultiUserGP(kernel, progress=False).fit(X, data)


def many_people(n_items, **how):
    """300 users with 50 answers each about so many items with five features."""
    user, X = np.repeat(np.arange(300), 50), np.random.default_rng(1).standard_normal((n_items, 5))
    data = pc.Comparisons.from_pairs(*pairs(n_items, 15_000), user=user, items=range(n_items))
    return lambda: pc.MultiUserGP(optimize=None, progress=False, **how).fit(X, data)


def groups_of_items():
    """1,000 users with 20 answers each, everybody within one of 20 groups of 25 items."""
    user = np.repeat(np.arange(1_000), 20)
    group = 25 * np.random.default_rng(3).integers(20, size=1_000)[user]
    a, b = pairs(25, 20_000)
    data = pc.Comparisons.from_pairs(a + group, b + group, user=user, items=range(500))
    return lambda: pc.MultiUserGP(**PERSONAL).fit(None, data)


def utilities_of_all():
    """Predicted utilities of 2,000 users and 100 items."""
    user = np.repeat(np.arange(2_000), 10)
    data = pc.Comparisons.from_pairs(*pairs(100, 20_000), user=user, items=range(100))
    fitted = pc.MultiUserGP(**PERSONAL, optimize=None).fit(None, data)
    return lambda: fitted.predict(users=data.users)


def single_answers():
    """30 answers told one by one to a model of 1,500 items, with a prediction after each."""
    model = featured(1_500, 6_000, kernel=RBF((0.5,) * 5, 2.0), optimize=None)()

    def tell():
        for k in range(30):
            model.tell([(k, k + 40)], reconverge=False)
            model.predict_proba([(0, 1)])

    return tell


def camps(n_users, n_votes, n_items, k=4, **how):
    """So many votes of every user of k tastes about items without features."""
    rng = np.random.default_rng(0)
    f, user = 1.5 * rng.standard_normal((k, n_items)), np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    won = f[user % k, a] - f[user % k, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = pc.Comparisons.from_pairs(winner, loser, user=user, items=range(n_items))
    how = {"personal": False, "random_state": 0, "progress": False, **how}
    return lambda: pc.CommunityGP(**how).fit(None, data)


class Never:
    """No kernel is an instance."""


class NotAhead(learn._Evidence):
    def __init__(self, *given):
        super().__init__(*given)
        self.is_ahead = False


def whole(factor, rank, parts, *device, of=arrowhead.SharedPrior.of):
    return of(factor, rank, None, *device)


def with_products(*given, of=arrowhead.SharedPart.of):
    return of(*given)._replace(weights=None)


def without_half(weights, of=update.as_weights):
    return replace(of(weights), half=None)


def by_scipy(objective, start, bounds, max_steps, *_):
    """SciPy's L-BFGS-B in place of our own, to the same tolerance of the value."""
    options = {"maxiter": max_steps, "maxcor": 20, "ftol": 1e-6}
    first = np.clip(start, *bounds.T)
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return optimize.Minimum(found.x, found.fun, str(found.message))


def to_the_end(self, modes, threshold=None, of=population.UserEffectMixture.fit):
    return of(self, modes)


def none(*_):
    return None


PATHS = [
    (
        "start at a logistic model's mode",
        lambda: many_answers("probit"),
        gp,
        "start_at_mode",
        none,
    ),
    ("one Newton step", lambda: many_answers("logit"), learn, "_one_step", none),
    (
        "proposed sites at the next evaluation",
        lambda: many_answers("logit"),
        learn,
        "_Evidence",
        NotAhead,
    ),
    (
        "steps at frozen covariances",
        lambda: featured(500, 2_000, kernel=RBF((0.5,) * 5, 2.0), random_state=0),
        loop,
        "RULE_FLOPS",
        np.inf,
    ),
    (
        "first sites from a coarse factor",
        lambda: featured(2_000, 10_000, kernel=RBF((1.0,) * 5, 2.0), optimize=None),
        loop,
        "COARSE_SHARE",
        -1.0,
    ),
    (
        "independent items without a factor",
        lambda: many_answers("probit"),
        item_prior,
        "Independent",
        Never,
    ),
    ("dense Laplacian of a dense graph", lambda: many_answers("probit"), rows, "DENSE_SHARE", 0),
    (
        "users among their comparisons (`PairBlock`)",
        many_items_each,
        blocks,
        "SAVED_FLOPS",
        np.inf,
    ),
    ("parts of items (`SharedPrior.parts`)", groups_of_items, arrowhead.SharedPrior, "of", whole),
    (
        "a diagonal factor of people's items (`SharedPart.weights`)",
        lambda: many_people(1_500, kernel=Independent(2.0)),
        arrowhead.SharedPart,
        "of",
        with_products,
    ),
    (
        "sums by rows of many items' factor",
        lambda: many_people(6_000, kernel=RBF((4.0,) * 5, 2.0)),
        arrowhead,
        "MOST_ITEMS",
        np.inf,
    ),
    (
        "pivots one by one",
        lambda: featured(4_000, 20_000, kernel=RBF((0.5,) * 5, 2.0), max_rank=100),
        linalg,
        "FEW_PIVOTS",
        np.inf,
    ),
    ("one shared utility", utilities_of_all, posterior.ItemCovariances, "_is_single", False),
    ("cached L⁻¹Φᵀ in rank-one updates", single_answers, update, "as_weights", without_half),
    ("own L-BFGS", lambda: featured(300, 3_000), learn, "minimize_in_box", by_scipy),
    (
        "Bethe's determinant",
        lambda: camps(800, 60, 1_000, kernel=Independent(1.5)),
        component,
        "MANY_ITEMS",
        np.inf,
    ),
    ("a search among 20,000 users", lambda: camps(60_000, 10, 30), search, "MANY_USERS", np.inf),
    ("distinct answers by a table", lambda: camps(200_000, 10, 30), answers, "FEW_KEYS", 0),
    (
        "splits that were refused",
        lambda: camps(2_000, 30, 20),
        split_merge.SplitSearch,
        "_has_refused",
        lambda *_: False,
    ),
    (
        "personal taste that is out of reach",
        lambda: camps(240, 25, 8, 3, personal="auto"),
        population.UserEffectMixture,
        "fit",
        to_the_end,
    ),
]


@contextmanager
def replaced(owner, name, value):
    """A name of a module or class has another value."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def seconds(job):
    begin = process_time()
    job()
    return process_time() - begin


def run(quick):
    lines = [
        "## Special paths",
        "",
        "Fits with and without each path that only saves time, in processor seconds of one thread.",
        "",
        "| path | with, s | without, s | ratio |",
        "|---|---|---|---|",
    ]
    for name, make, owner, attribute, off in PATHS:
        job, times = make(), []
        for _ in range(1 if quick else REPEATS):
            used = seconds(job)
            with replaced(owner, attribute, off):
                times.append((used, seconds(job)))
        used, unused = np.min(times, axis=0)
        lines.append(f"| {name} | {used:.2f} | {unused:.2f} | {unused / used:.2f} |")
    return lines


if __name__ == "__main__":
    print("\n".join(run(quick=False)))
