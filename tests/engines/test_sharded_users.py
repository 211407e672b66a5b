"""Users in shards: the posterior of a fit in memory, whatever the shards and the memory."""

import duckdb
import numpy as np
import pytest

import penchant as pc


@pytest.fixture(scope="module")
def votes(vote_files):
    with pc.scan_comparisons(str(vote_files / "part-*.csv"), shards=7) as votes:
        yield votes


@pytest.fixture(scope="module")
def fitted(votes):
    return pc.MultiUserGP(optimize=None).fit(None, votes)


@pytest.fixture
def few_known(monkeypatch):
    """Only the users of the first bucket are known."""
    monkeypatch.setattr("penchant.models.sharded.LEARNING_VOTES", 1)


def assert_same(model, other, users, to=1e-8):
    for one, two in zip(
        model.predict(users=users, return_std=True),
        other.predict(users=users, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=0, atol=to)
    np.testing.assert_allclose(model.predict(), other.predict(), rtol=0, atol=to)
    assert model.log_evidence_ == pytest.approx(other.log_evidence_, abs=to)


def test_the_posterior_of_a_fit_in_memory(fitted, in_memory, whole):
    assert_same(fitted, in_memory, list(whole.users))
    assert fitted.report_.converged


@pytest.mark.parametrize("memory", [{"shards": 1}, {"shards": 8}, {"shards": 8, "max_memory": 0}])
def test_shards_and_memory_change_no_bit(vote_files, fitted, memory):
    """Without memory, parts and states are read again for every sweep."""
    with pc.scan_comparisons(str(vote_files / "part-*.csv"), **memory) as votes:
        other = pc.MultiUserGP(optimize=None).fit(None, votes)
        assert other.log_evidence_ == fitted.log_evidence_
        shared, same = other.posterior_, fitted.posterior_
        assert np.array_equal(shared.shared_mean, same.shared_mean)
        assert np.array_equal(shared.shared_lower, same.shared_lower)
        some = ["u3", "u9"]
        assert np.array_equal(other.predict(users=some), fitted.predict(users=some))
        assert not list(votes.files.folder.glob("sweeps-*"))


def test_learned_hyperparameters_are_those_of_a_fit_in_memory(votes, whole):
    settings = {"kernel": pc.kernels.Independent(), "random_state": 0}
    one = pc.MultiUserGP(**settings).fit(None, votes)
    two = pc.MultiUserGP(**settings).fit(None, whole)
    assert one.sharing_ == pytest.approx(two.sharing_, abs=1e-5)
    assert one.log_evidence_ == pytest.approx(two.log_evidence_, abs=1e-5)


@pytest.mark.parametrize("settings", [{"likelihood": "logit"}, {"inference": "laplace"}])
def test_other_rules(votes, whole, settings):
    one = pc.MultiUserGP(optimize=None, **settings).fit(None, votes)
    two = pc.MultiUserGP(optimize=None, **settings).fit(None, whole)
    assert_same(one, two, list(whole.users), to=1e-6)


def test_users_who_are_not_known_are_brought_in(votes, in_memory, whole, few_known):
    model = pc.MultiUserGP(optimize=None).fit(None, votes)
    absent = [name for name in whole.users if name not in model.comparisons_.users]
    assert len(absent) > 100
    some = absent[:9]
    assert_same(model.knowing(some), in_memory, some)
    one, two = (m.belief("u3") for m in (model.knowing("u3"), in_memory))
    np.testing.assert_allclose(one.mean, two.mean, rtol=0, atol=1e-8)
    with pytest.raises(pc.DataError, match="'nobody' made none"):
        model.knowing(["u3", "nobody"])


def test_everybody_is_written(votes, in_memory, whole, tmp_path, few_known):
    model = pc.MultiUserGP(optimize=None).fit(None, votes)
    model.write_predictions(tmp_path / "all")
    query = f"FROM '{tmp_path}/all/*.parquet' ORDER BY user, item"
    rows = duckdb.sql(query).fetchnumpy()
    order = sorted(whole.users)
    mean, sd = in_memory.predict(users=order, return_std=True)
    assert rows["user"].tolist() == [name for name in order for _ in whole.items]
    np.testing.assert_allclose(rows["mean"], mean.ravel(), rtol=0, atol=1e-8)
    np.testing.assert_allclose(rows["sd"], sd.ravel(), rtol=0, atol=1e-8)


def test_a_model_of_some_does_not_settle_what_it_cannot(votes, tmp_path, few_known):
    model = pc.MultiUserGP(optimize=None).fit(None, votes)
    known = model.comparisons_.users[0]
    model.save(tmp_path / "some.penchant")
    for same in (model, pc.load(tmp_path / "some.penchant")):
        with pytest.raises(pc.DataError, match="comparisons of other users are not in this model"):
            same.tell([("item 0", "item 1")], user=known)
    loaded = pc.load(tmp_path / "some.penchant")
    assert np.array_equal(loaded.predict(users=known), model.predict(users=known))
    new = pc.Comparisons.from_pairs(["item 0"], ["item 1"], user=["eva"])
    assert loaded.fold_in(new).predict(users="eva").shape == (1, 7)
    with pytest.raises(pc.DataError, match="not fitted to scanned comparisons"):
        loaded.knowing(known)


def test_what_does_not_go_together_is_said(votes):
    with pytest.raises(pc.DataError, match="raters yet"):
        pc.MultiUserGP(raters="lapse").fit(None, votes)
    with pytest.raises(pc.DataError, match="must be in memory"):
        pc.io.as_comparisons(votes)


def test_everybody_together(votes, whole):
    one = pc.PreferenceGP(optimize=None).fit(None, votes)
    two = pc.PreferenceGP(optimize=None).fit(None, whole.pooled())
    assert np.array_equal(one.predict(), two.predict())
