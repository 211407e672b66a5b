"""More items than arrays of items × items are made for: sums by rows of a bounded factor."""

from dataclasses import replace

import numpy as np
import pytest

import penchant as pc
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import Rows, Settings, UserHyper, UserProblem, gradient, solve
from penchant.kernels import RBF, Constant, Independent, Inputs, LinearRBF
from penchant.likelihoods import Probit

N_ITEMS, N_USERS = 10, 12


@pytest.fixture
def by_rows(monkeypatch):
    """A switch: from now on so few items are very many."""
    return lambda: monkeypatch.setattr("penchant.gp.users.arrowhead.MOST_ITEMS", 5)


def problem_of(users_differ, effects, rng):
    """Answers of users who compared among few items, so that some compared in circles."""
    m = 90
    first = rng.integers(N_ITEMS, size=m)
    second = (first + 1 + rng.integers(N_ITEMS - 1, size=m)) % N_ITEMS
    more = {"covariates": rng.standard_normal((m, 2))} if effects else {}
    data = Comparisons.from_pairs(
        first,
        second,
        user=rng.integers(N_USERS, size=m),
        items=range(N_ITEMS),
        users=range(N_USERS),
        **more,
    )
    items = Inputs(rng.standard_normal((N_ITEMS, 2)), index=np.arange(N_ITEMS))
    Z = rng.standard_normal((N_USERS, 2)) if users_differ else None
    users = Inputs(Z, index=np.arange(N_USERS))
    user_kernel = 1.0 + RBF((3.0, 4.0), 0.7) if users_differ else Constant(1.0)
    hyper = UserHyper(LinearRBF((2.0, 3.0), 2.0, 0.3), user_kernel, 0.6, Probit())
    return UserProblem.of(items, users, Rows.by_user(data), Settings("ep", 1e-12, 1000)), hyper


def results(problem, hyper):
    """Evidence, slopes, marginals, and predictions for known and new items."""
    solution = solve(problem, hyper)
    posterior, votes = problem.posterior(solution), problem.edges
    shown = None if votes.shown is None else votes.shown.z
    everybody = np.arange(N_USERS)
    new = posterior.at(Inputs(np.random.default_rng(5).standard_normal((4, 2))))
    return (
        [solution.log_evidence],
        gradient(problem, solution),
        solution.inference.state.mean,
        *posterior.differences(votes.user, votes.winner, votes.loser, shown),
        *posterior.utilities(everybody),
        *posterior.utilities(everybody, relative=True),
        *new.utilities(everybody),
        *new.utilities(everybody, relative=True),
        posterior.spread(),
        posterior.for_user(3).mean,
    )


@pytest.mark.parametrize("users_differ", [False, True])
@pytest.mark.parametrize("effects", [False, True])
def test_sums_by_rows_are_those_by_items(users_differ, effects, by_rows, rng):
    problem, hyper = problem_of(users_differ, effects, rng)
    whole = results(problem, hyper)
    by_rows()
    for one, two in zip(whole, results(problem, hyper), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-7)


@pytest.mark.parametrize("users_differ", [False, True])
@pytest.mark.parametrize("effects", [False, True])
def test_slopes_of_a_bounded_factor_are_those_of_the_evidence(users_differ, effects, by_rows, rng):
    """Of six columns of ten, and of users three directions of twelve."""
    problem, hyper = problem_of(users_differ, effects, rng)
    problem = replace(problem, most_columns=6, shared_size=18)
    by_rows()
    solution = solve(problem, hyper)
    assert solution.prior.by_rows
    assert solution.prior.rank == 6
    slopes, theta, step = gradient(problem, solution), hyper.theta, 1e-5
    for i in range(len(theta)):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[i] += sign * step
            ends.append(solve(problem, hyper.at(moved)).log_evidence)
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slopes[i], abs=2e-5)


@pytest.fixture
def study(rng):
    """40 items and 30 users, whose tastes are about two features."""
    X, m = rng.standard_normal((40, 2)), 500
    user, first = rng.integers(30, size=m), rng.integers(40, size=m)
    second = (first + 1 + rng.integers(39, size=m)) % 40
    taste = np.array([1.0, 0.5]) + 0.5 * rng.standard_normal((30, 2))
    margin = np.einsum("md,md->m", taste[user], X[first] - X[second])
    won = margin + rng.standard_normal(m) > 0
    ends = np.where(won, first, second), np.where(won, second, first)
    return X, Comparisons.from_pairs(*ends, user=user, items=range(40), users=range(30))


def test_a_model_of_many_items_is_whole(study, by_rows, tmp_path):
    """Learned, asked, told, folded in, saved, and close to the fit with all columns."""
    X, data = study
    dense = pc.MultiUserGP(progress=False).fit(X, data)
    by_rows()
    model = pc.MultiUserGP(progress=False).fit(X, data)
    assert not any(part.__class__.__name__ == "Independent" for part in model.kernel_.parts)
    pairs = [(i, (i + 7) % 40) for i in range(40)]
    users = [i % 30 for i in range(40)]
    known = model.predict_proba(pairs, users=users)
    assert np.abs(known - dense.predict_proba(pairs, users=users)).mean() < 0.05
    model.save(tmp_path / "model.pen")
    again = pc.load(tmp_path / "model.pen")
    np.testing.assert_allclose(again.predict_proba(pairs, users=users), known, atol=1e-6)
    newcomer = Comparisons.from_pairs([3, 3, 5], [4, 6, 9], user=["eva"] * 3, items=range(40))
    folded = model.fold_in(newcomer)
    (told,) = folded.predict_proba([(3, 4)], users="eva")
    assert told > model.predict_proba([(3, 4)])[0]
    model.tell([(3, 4)], user=0)
    assert model.comparisons_.n_comparisons == data.n_comparisons + 1
    assert len(model.rank(user=0)) == len(model.rank()) == 40


def test_a_shard_at_a_time_is_all_at_once(study, by_rows, tmp_path):
    X, data = study
    by_rows()
    rows = (f"u{u},{a},{b}" for u, a, b in zip(data.user, data.winner, data.loser, strict=True))
    (tmp_path / "votes.csv").write_text("\n".join(["user,winner,loser", *rows]))
    scanned = pc.scan_comparisons(tmp_path / "votes.csv")
    read = pc.read_comparisons(tmp_path / "votes.csv")
    fits = []
    for answers in (scanned, read):
        features = X[[int(name) for name in answers.items]]
        model = pc.MultiUserGP(RBF(2.0, 2.0), optimize=None, progress=False)
        fits.append(model.fit(features, answers).log_evidence_)
    assert fits[0] == pytest.approx(fits[1], abs=1e-4)


def test_items_without_features_are_refused_with_what_to_do(study, by_rows):
    _, data = study
    by_rows()
    with pytest.raises(DataError, match="features"):
        pc.MultiUserGP(Independent(), progress=False).fit(None, data)
    with pytest.raises(DataError, match="free"):
        pc.MultiUserGP(kernel="free", progress=False).fit(None, data)
