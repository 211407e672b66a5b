"""What every device must do for many users like the host: plain functions of a device's name."""

import copy
import pickle
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from checks import check_slopes, close, raised
from sklearn.base import clone

import penchant as pc
from penchant.errors import NumericalError
from penchant.gp import (
    Arrangement,
    ArrowPrior,
    Rows,
    Settings,
    UserFactor,
    UserHyper,
    UserProblem,
    arrange,
    gradient,
    solve,
    tied_items,
)
from penchant.kernels import RBF, Constant, FreeCovariance, Independent, Inputs, Linear
from penchant.likelihoods import Logit, Probit, get
from penchant.numerics import batched, dispatch, linalg

N, U, M = 9, 20, 260


def ends(n_users=U, n=N, m=M, seed=0):
    """User, winner and loser of random answers, some given twice; the last user says nothing."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(n, size=m)
    loser = (winner + 1 + rng.integers(n - 1, size=m)) % n
    user = np.sort(rng.integers(n_users - 1, size=m))
    return np.append(user, user[:2]), np.append(winner, winner[:2]), np.append(loser, loser[:2])


def people(m=M, seed=0, n=N, **how):
    user, winner, loser = ends(m=m, seed=seed, n=n)
    given = {name: values[: len(user)] for name, values in how.items()}
    return pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n), users=range(U), **given
    )


class SmallStacks(dispatch.Device):
    stack_size = 2 * N**2
    call_flops = 0.0


def blocks_of_all_kinds():
    """All items alike, few of many items, and most of few items."""
    same = np.repeat(np.arange(4), 2), np.tile([0, 2], 4), np.tile([2, 5], 4)
    yield from arrange(*same, N)
    yield from arrange(*ends(6, 8, 40), 40)
    yield from arrange(*ends(), N)
    yield from arrange(*ends(), N, SmallStacks())


def check_stacks(device):
    """Every function of users' batched."""
    there, rng = dispatch.device_called(device).matrix, np.random.default_rng(1)
    for block in blocks_of_all_kinds():
        (k, p), n, m = block.items.shape, block.n_items, 1 + int(block.edges.max())
        weight = rng.uniform(0.1, 1.0, m)
        x, F = rng.standard_normal((k, p)), rng.standard_normal((k, p, p))
        cov = F @ F.transpose(0, 2, 1)
        for call, array in (
            (block.laplacian, weight),
            (block.adjoint, weight),
            (block.forward, x),
        ):
            close(call(there(array)), call(array), 1e-13)
        close(block.differences(there(x), there(cov)), block.differences(x, cov), 1e-12)
        for q in (1, 3):
            weights = rng.standard_normal((k, q))
            vectors, matrices = rng.standard_normal((q, n)), rng.standard_normal((q, n, n))
            for call, array in (
                (partial(block.collect, weights), x),
                (partial(block.pick, weights), vectors),
                (partial(block.meet, vectors=vectors), x),
                (partial(block.weighted_sum, weights), cov),
                (partial(block.weighted_pick, weights), matrices),
                (partial(block.collect_rows, weights=weights, some=slice(None)), F),
                (partial(batched.sum_stack, weights=weights), cov),
                (partial(batched.mix_stack, weights=weights), matrices),
            ):
                close(call(there(array)), call(array), 1e-13)
            totals = np.zeros((2, n, q * p))
            block.add_rows(totals[0], F, weights, slice(None))
            on_device = there(totals[1])
            block.add_rows(on_device, there(F), weights, slice(None))
            close(on_device, totals[0], 1e-13)
        _check_algebra(there, cov, F, x)
    broken = there(-np.eye(3)[None])
    assert "a prior" in raised(NumericalError, batched.cholesky_stack, broken, "a prior")


def _check_algebra(there, cov, F, x):
    flat = cov * 0.0 + 1.0  # of rank one
    root = batched.square_root_stack(there(flat))
    close(batched.multiply_stack(root, root.mT), flat, 1e-11)
    definite, narrow = cov + np.eye(cov.shape[1]), F[:, : F.shape[1] // 2]
    lower = batched.cholesky_stack(definite, "a test")
    close(batched.cholesky_stack(there(definite), "a test"), lower, 1e-12)
    for right in (F, F[:1]):
        solved = batched.solve_stack(lower, right)
        close(batched.solve_stack(there(lower), there(right)), solved, 1e-10)
    close(batched.log_det_stack(there(lower)), batched.log_det_stack(lower), 1e-13)
    close(batched.apply_stack(there(F), there(x)), batched.apply_stack(F, x), 1e-13)
    close(batched.inner_stack(there(F), there(cov)), batched.inner_stack(F, cov), 1e-13)
    for root in (batched.square_root_stack(there(cov)), batched.triangle_stack(there(narrow))):
        found = linalg.to_numpy(batched.multiply_stack(root, root.mT))
        wanted = cov if found.shape == cov.shape else narrow @ narrow.transpose(0, 2, 1)
        close(found, wanted, 1e-12)


def check_arrow(device):
    """Posteriors given sites: whole and in parts, kept and worked out again."""
    user, winner, loser = ends()
    rng = np.random.default_rng(2)
    weight, shift = rng.uniform(0.1, 0.5, len(user)), rng.standard_normal(len(user))
    full = np.linalg.cholesky(np.eye(N) + 0.5)
    apart = np.kron(np.eye(3), np.ones((3, 3))) + np.eye(N)
    for phi, factor in (
        (np.ones((U, 1)), full),
        (rng.standard_normal((U, 3)), full),
        (rng.standard_normal((U, 3)), full[:, :4]),
        (np.ones((U, 1)), np.linalg.cholesky(apart)),
    ):
        for missed in (None, rng.uniform(0.0, 0.3, U)):
            tied = tied_items(factor @ factor.T)
            arranged = Arrangement.of(user, winner, loser, tied, dispatch.device_called(device))
            items = linalg.PivotedCholesky(factor, np.arange(len(factor)), 0.0)
            users = UserFactor(phi, np.arange(phi.shape[1]), missed)
            how = (items, users, 0.4, arranged)
            here = ArrowPrior(*how).refresh(weight, shift)
            for is_kept in (True, False):
                prior = ArrowPrior(*how, dispatch.device_called(device))
                vars(prior)["is_kept"] = is_kept
                _check_state(prior.refresh(weight, shift), here)


def _check_state(there, here):
    close(there.mean, here.mean)
    close(there.var, here.var)
    close(there.log_det, here.log_det)
    close(there.quadratic, here.quadratic)
    close(there.shared.lower, here.shared.lower)
    close(there.covariance_times(here.weight), here.covariance_times(here.weight))
    close(there.response.shared, here.response.shared)
    close(there.response.own, here.response.own)


def user_problems(device):
    """With and without user features, at full and low rank, other rules and likelihoods."""
    rng = np.random.default_rng(3)
    X, features = rng.standard_normal((N, 3)), rng.standard_normal((U, 2))
    items, alike = Inputs(X, index=np.arange(N)), Inputs(index=np.arange(U))
    told = Inputs(features, index=np.arange(U))
    smooth = RBF((0.8, 1.2, 2.0), 1.4) + 0.3 * Independent()
    ties = people(tie=rng.random(M + 2) < 0.2)
    shown = people(first=rng.choice([-1, 1], size=M + 2))
    for kernel, user_kernel, users, data, rule, likelihood, rank in (
        (Independent(), Constant(1.0), alike, people(), "ep", Probit(), None),
        (smooth, Constant(1.0), alike, people(), "ep", Probit(), None),
        (FreeCovariance.of(np.eye(N) + 0.3), Constant(1.0), alike, people(), "ep", Probit(), None),
        (Linear(0.8), Constant(1.0), alike, people(), "laplace", Logit(), None),
        (smooth, RBF(1.5), told, people(), "ep", Probit(), None),
        (Linear(0.8), RBF(1.5), told, people(), "ep", Probit(), None),
        (smooth, RBF(0.3), told, people(), "ep", Probit(), 4),
        (smooth, RBF(1.5), told, people(), "variational", Probit(), None),
        (smooth, Constant(1.0), alike, ties, "ep", get("ties"), None),
        (smooth, RBF(1.5), told, shown, "ep", Probit(), None),
    ):
        settings, votes = Settings(rule, tolerance=1e-11), Rows.by_user(data)
        here = UserProblem.of(items, users, votes, settings, rank)
        yield (
            here,
            here.on(dispatch.device_called(device)),
            UserHyper(kernel, user_kernel, 0.6, likelihood),
        )


def check_users(device):
    """Evidence, gradient and every prediction are those of the host."""
    every = np.arange(U)
    for here, there, hyper in user_problems(device):
        wanted, found = solve(here, hyper), solve(there, hyper)
        close(found.log_evidence, wanted.log_evidence)
        close(found.inference.state.mean, wanted.inference.state.mean)
        close(found.inference.state.var, wanted.inference.state.var)
        close(gradient(there, found), gradient(here, wanted), 1e-7)
        ours, theirs = there.posterior(found), here.posterior(wanted)
        assert ours.at(here.items.take(np.arange(3))).device is there.device
        for new in (None, Inputs(np.random.default_rng(9).standard_normal((4, 3)))):
            if new is not None and isinstance(hyper.kernel, FreeCovariance | Independent):
                continue
            close(ours.at(new).utilities(every), theirs.at(new).utilities(every))
        pairs = (np.append(every, -1), np.full(U + 1, 1), np.full(U + 1, 4))
        z = None if here.edges.shown is None else np.full((1, U + 1), 0.7)
        close(ours.known_differences(*pairs, z), theirs.known_differences(*pairs, z))
        close(ours.for_user(3).covariance(), theirs.for_user(3).covariance())
        close(ours.population().var, theirs.population().var)


def check_very_many_items(device):
    """The same by rows of the items' factor."""
    with mock.patch("penchant.gp.users.arrowhead.MOST_ITEMS", 5):
        for here, there, hyper in user_problems(device):
            if isinstance(hyper.kernel, Independent):
                continue
            wanted, found = solve(here, hyper), solve(there, hyper)
            assert found.prior.by_rows
            close(found.log_evidence, wanted.log_evidence)
            close(found.inference.state.var, wanted.inference.state.var)
            close(gradient(there, found), gradient(here, wanted), 1e-7)
            ours, theirs = there.posterior(found), here.posterior(wanted)
            close(ours.utilities(np.arange(U)), theirs.utilities(np.arange(U)))


def check_user_gradients(device):
    """The slope of the evidence against differences of the evidence, on the device itself."""
    for _, there, hyper in list(user_problems(device))[1:7:2]:
        check_slopes(there, hyper, None)


def check_user_estimator(device):
    """Fit, learn, tell, withdraw, undo, fold in, ask, rank, files and copies."""
    rng = np.random.default_rng(4)
    X, features = rng.standard_normal((N, 3)), rng.standard_normal((U, 2))
    data, more = people(), pc.Comparisons.from_pairs([1, 3], [2, 4], user=[5, 6])
    smooth = RBF(1.0) + 0.2 * Independent()
    for how, given in (
        ({"kernel": smooth, "optimize": None}, {}),
        ({"kernel": smooth}, {"user_features": features}),
        ({"kernel": "free"}, {}),
        ({"kernel": "free", "optimize": "em"}, {}),
        ({"kernel": smooth, "optimize": None, "sparse": (12, 7)}, {}),
        ({"kernel": smooth, "optimize": None, "raters": "lapse"}, {}),
    ):
        model = pc.MultiUserGP(random_state=0, progress=False, **how)
        here, there = (
            clone(model).set_params(device=d).fit(X, data, **given) for d in (None, device)
        )
        is_given = how.get("optimize", "") is None
        # a maximisation ends with steps that gain less than .02 nats
        close(there.log_evidence_, here.log_evidence_, 1e-8 if is_given else 1e-5)
        _check_same(there, here, 1e-7 if is_given else 2e-3)
    here, there = (
        pc.MultiUserGP(smooth, optimize=None, random_state=0, device=d).fit(X, data)
        for d in (None, device)
    )
    for reconverge in (True, False):
        _check_same(
            there.tell(more, reconverge=reconverge), here.tell(more, reconverge=reconverge), 1e-8
        )
        assert there.ask(2, user=5) == here.ask(2, user=5)
        _check_same(there.withdraw(more), here.withdraw(more), 1e-8)
    before = there.predict(users=[5])
    there.tell(more).undo()
    close(there.predict(users=[5]), before, 1e-12)
    new = pc.Comparisons.from_pairs([0, 1, 2], [3, 2, 4], user=["eva", "eva", "udo"])
    close(there.fold_in(new).predict(users="eva"), here.fold_in(new).predict(users="eva"))
    assert [r.item for r in there.rank(n_samples=50)] == [r.item for r in here.rank(n_samples=50)]
    _check_user_copies(there)


def _check_same(there, here, tolerance):
    for users in (None, list(range(U))):
        found, wanted = (model.predict(users=users, return_std=True) for model in (there, here))
        close(found, wanted, tolerance)
    pairs, who = [(0, 1), (2, 3)], [4, 7]
    close(there.predict_proba(pairs, who), here.predict_proba(pairs, who), tolerance)


def _check_user_copies(model):
    """A file and a copy know no device, and predict and learn the same."""
    wanted = model.predict(users=[1, 2])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.penchant"
        model.save(file)
        loaded = pc.load(file)
    for other in (loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        close(other.predict(users=[1, 2]), wanted)
        learned = other._fitted().learned
        assert learned.problem.device.name == "cpu"
        assert isinstance(learned.posterior.shared_lower, np.ndarray)
        other.tell(pc.Comparisons.from_pairs([2], [1], user=[3]))
    assert clone(model).device == model.device


CHECKS = {
    check.__name__: check
    for check in (
        check_stacks,
        check_arrow,
        check_users,
        check_very_many_items,
        check_user_gradients,
        check_user_estimator,
    )
}
