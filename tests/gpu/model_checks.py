"""Models that take a device, with nothing else chosen or one thing at a time: all that they say.

Values are held against the host where hyperparameters are given; here it counts that every path
runs, and says what the host says, as far as a climb of the evidence goes.
"""

import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
from checks import close
from scipy import sparse

import penchant as pc
from penchant.kernels import RBF, CommonCause, Independent, Linear, Matern, bipartite, directed

N, M, U = 14, 220, 7
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, 2))
LINKS = np.roll(np.eye(N), 1, axis=0) + np.roll(np.eye(N), -1, axis=0)
CAUSES = (RNG.random((N, 5)) < 0.3).astype(float)
ABOUT = RNG.standard_normal((U, 2))
FRIENDS = np.roll(np.eye(U), 1, axis=0) + np.roll(np.eye(U), -1, axis=0)
FIRST = RNG.integers(N, size=M)
SECOND = (FIRST + 1 + RNG.integers(N - 1, size=M)) % N
WINS = 1.5 * (X[FIRST] - X[SECOND])[:, 0] + RNG.standard_normal(M) > 0
WINNER, LOSER = np.where(WINS, [FIRST, SECOND], [SECOND, FIRST])
WHO = RNG.integers(U, size=M)
SIDE = RNG.choice([-1, 1], size=M)
AGREEMENT = 0.02  # two climbs of the evidence end this near, in the spread of utilities


def votes(**more):
    named = {"user": WHO, "items": range(N), "users": range(U)}
    return pc.Comparisons.from_pairs(WINNER, LOSER, **named | more)


def rankings():
    orders = [list(np.random.default_rng(i).permutation(N)[:4]) for i in range(40)]
    return pc.Comparisons.from_rankings(orders, users=np.arange(40) % U, items=range(N))


GIVEN = [
    ("nothing", {}, (None, votes())),
    ("features", {}, (X, votes())),
    ("twins", {}, (np.round(X), votes())),
    ("sparse features", {}, (sparse.csr_array(np.maximum(X, 0.0)), votes())),
    ("many features", {}, (np.random.default_rng(1).standard_normal((N, 30)), votes())),
    ("a relation", {}, (None, votes(), {"links": LINKS})),
    ("features and relations", {}, (X, votes(), {"a": LINKS, "b": directed(np.triu(LINKS))})),
    ("shared causes", {"kernel": CommonCause("c")}, (None, votes(), {"c": bipartite(CAUSES)})),
    ("a kernel", {"kernel": RBF() + Linear()}, (X, votes())),
    ("a rough kernel", {"kernel": Matern(1.5)}, (X, votes())),
    ("logit", {"likelihood": "logit"}, (X, votes())),
    ("ties", {"likelihood": "ties"}, (X, votes(tie=RNG.random(M) < 0.1))),
    ("margins", {"likelihood": "gaussian", "inference": "exact"}, (X, votes(margin=RNG.random(M)))),
    ("laplace", {"inference": "laplace"}, (X, votes())),
    ("variational", {"inference": "variational"}, (X, votes())),
    ("lapses", {"raters": "lapse"}, (X, votes())),
    ("noise", {"raters": "noise"}, (None, votes())),
    ("rankings", {}, (X, rankings())),
    ("kept", {"optimize": None}, (X, votes())),
    ("order", {}, (None, votes(first=SIDE))),
    ("covariates", {}, (X, votes(covariates={"length": RNG.standard_normal(M)}))),
]
OF_ITEMS = [
    ("max_rank", {"max_rank": 5}, (X, votes())),
    ("restarts", {"n_restarts": 1}, (X, votes())),
    ("em", {"optimize": "em"}, (X, votes())),
    ("independent answers", {"clustered": False}, (X, votes())),
    ("nobody named", {}, (X, votes().pooled())),
    ("order at a bounded rank", {"max_rank": 5}, (X, votes(first=SIDE))),
    ("order by em", {"optimize": "em"}, (X, votes(first=SIDE))),
]
OF_USERS = [
    ("free", {"kernel": "free"}, (None, votes())),
    ("sparse", {"sparse": (4, 6)}, (X, votes())),
]
ABOUT_USERS = [
    ("user features", {}, {"user_features": ABOUT}),
    ("friends", {}, {"user_relations": {"friends": FRIENDS}}),
    ("user kernel", {"user_kernel": RBF() + 1.0}, {"user_features": ABOUT}),
    ("user rank", {"max_user_rank": 2}, {"user_features": ABOUT}),
]


def check_items_in_all_ways(device):
    """`PreferenceGP`: whatever may be chosen, one thing at a time."""
    _check_each(pc.PreferenceGP, [(*case, {}) for case in GIVEN + OF_ITEMS], device)


def check_users_in_all_ways(device):
    """`MultiUserGP`: the same, and what there is of users."""
    cases = [(*case, {}) for case in GIVEN + OF_USERS]
    cases += [(name, how, (X, votes()), about) for name, how, about in ABOUT_USERS]
    _check_each(pc.MultiUserGP, cases, device)


def _check_each(cls, cases, device):
    failed = []
    for name, how, given, about in cases:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is said of data is not checked here
                _check_all_that_is_said(cls, how, given, about, device)
        except Exception:
            failed.append(f"{cls.__name__} with {name}:\n{traceback.format_exc()}")
    assert not failed, "\n".join(failed)


def _check_all_that_is_said(cls, how, given, about, device):
    settings = {"random_state": 0, **how}
    if cls is pc.MultiUserGP:
        settings["progress"] = False
    users = [None] if cls is pc.PreferenceGP else [None, 3]
    if not how.keys() & {"kernel", "optimize", "n_restarts"}:  # without a climb digits agree
        kernel = Independent() if given[0] is None else RBF(1.0) + Independent()
        standing = {**settings, "kernel": kernel, "optimize": None}
        here, there = (cls(**standing, device=d).fit(*given, **about) for d in (None, device))
        for user in users:
            asked = {"return_std": True} | ({} if user is None else {"users": user})
            close(there.predict(**asked), here.predict(**asked), 1e-7)  # as sites converge
    here, there = (cls(**settings, device=where).fit(*given, **about) for where in (None, device))
    for user in users:
        _check_said_of(there, here, user)
    features = given[0] if len(given) == 2 else None  # new items would need relations
    _check_said_of_the_fit(there, here, features, users[-1])


def _check_said_of(there, here, user):
    asked = {} if user is None else {"users": user}
    _near(there.predict(return_std=True, **asked), here.predict(return_std=True, **asked))
    pairs = [(0, 1), (2, 3)]
    _near(there.predict_proba(pairs, **asked), here.predict_proba(pairs, **asked))
    assert len(there.rank(user, n_samples=20)) == N
    belief = there.belief(user)
    assert belief.sample(3, np.random.default_rng(0)).shape == (3, N)
    assert isinstance(belief.covariance(), np.ndarray)
    for criterion in ("variance_ratio", "information_gain", "expected_best", "thompson", "random"):
        assert len(there.ask(2, criterion, user=user)) == 2
    if there.likelihood_.choice_scale is not None:
        assert len(there.ask(1, k_items=3, user=user)[0]) == 3


def _check_said_of_the_fit(there, here, features, user):
    _near(np.array([there.score(there.comparisons_)]), np.array([here.score(here.comparisons_)]))
    for told in (there.report_, there.shares_, there.scale_, there.effects_, there.kernel_):
        assert str(told)
    can_be_told = there.state_.learned.sites is not None and there.comparisons_.margin is None
    if there.comparisons_.users and can_be_told:
        assert str(there.raters_)
    if isinstance(features, np.ndarray) and features.shape[1] == 2:
        # sparse features are dense on a card, where each may have a lengthscale of its own
        _near(there.predict(X[:3] + 0.1), here.predict(X[:3] + 0.1))
        there.predict_proba([(0, 1)], X=X[:3])
    if can_be_told:
        pairs, who = [(0, 1), (2, 5)], {} if user is None else {"user": user}
        for reconverge in (True, False, None):
            there.tell(pairs, reconverge=reconverge, **who)
        there.withdraw(pairs[:1], **who).undo()
        there.tell(pairs, relearn=0.001, **who)
    with tempfile.TemporaryDirectory() as folder:
        there.save(Path(folder) / "model.penchant")
        loaded = pc.load(Path(folder) / "model.penchant")
    close(loaded.predict(), there.predict(), 1e-6)


def _near(ours, theirs):
    if isinstance(theirs, tuple):
        for both in zip(ours, theirs, strict=True):
            _near(*both)
        return
    assert isinstance(ours, np.ndarray)
    assert np.abs(ours - theirs).max() <= AGREEMENT * max(1.0, np.abs(theirs).max())


CHECKS = {check.__name__: check for check in (check_items_in_all_ways, check_users_in_all_ways)}
