"""Communities of users in shards: those of a fit in memory, whatever the shards."""

import duckdb
import numpy as np
import pytest

import penchant as pc


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Two camps of opposite taste, three to two."""
    path = tmp_path_factory.mktemp("camps") / "votes.csv"
    rng = np.random.default_rng(3)
    rows = []
    for user in range(150):
        taste = np.linspace(-1.5, 1.5, 6) * (1 if user < 90 else -1)
        for _ in range(12):
            a, b = rng.choice(6, 2, replace=False)
            first = taste[a] - taste[b] + rng.normal() > 0
            rows.append(f"{'abcdef'[a if first else b]},{'abcdef'[b if first else a]},u{user}")
    path.write_text("winner,loser,user\n" + "\n".join(rows) + "\n")
    return path


SETTINGS = {"personal": False, "optimize": None, "progress": False}


@pytest.fixture(scope="module")
def votes(path):
    with pc.scan_comparisons(path, shards=7) as votes:
        yield votes


@pytest.fixture(scope="module")
def fitted(votes):
    return pc.CommunityGP(**SETTINGS).fit(None, votes)


def test_the_communities_of_a_fit_in_memory(path, fitted):
    data = pc.read_comparisons(path)
    whole = pc.CommunityGP(**SETTINGS).fit(None, data)
    assert fitted.n_communities_ == whole.n_communities_ == 2
    place = fitted.comparisons_.user_index(data.users)
    np.testing.assert_allclose(fitted.membership_[place], whole.membership_, atol=1e-2)
    for one, two in zip(fitted.posteriors_, whole.posteriors_, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-2)


@pytest.mark.parametrize("shards", [1, 8])
def test_shards_change_no_bit(path, fitted, shards):
    with pc.scan_comparisons(path, shards=shards, max_memory=0) as votes:
        other = pc.CommunityGP(**SETTINGS).fit(None, votes)
    assert np.array_equal(other.membership_, fitted.membership_)
    assert other.report_ == fitted.report_


def test_users_who_are_not_known_count(path, votes, fitted, monkeypatch, tmp_path):
    monkeypatch.setattr("penchant.models.sharded.LEARNING_VOTES", 500)
    few = pc.CommunityGP(**SETTINGS).fit(None, votes)
    assert few.comparisons_.n_users < 75
    sizes = few._fitted().learned.sizes
    assert sizes.sum() == pytest.approx(150)
    np.testing.assert_allclose(sizes, [90, 60], atol=3)
    for one, two in zip(few.posteriors_, fitted.posteriors_, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, atol=2e-2)
    few.write_memberships(tmp_path / "all")
    rows = duckdb.sql(f"FROM '{tmp_path}/all/*.parquet' WHERE membership > 0.5").fetchall()
    assert len(rows) == 150
    right = sum((int(user[1:]) < 90) == (community == 0) for user, community, _ in rows)
    assert right >= 147
    few.save(tmp_path / "few.penchant")
    loaded = pc.load(tmp_path / "few.penchant")
    assert np.array_equal(loaded.predict(), few.predict())
    known = few.comparisons_.users[0]
    for model in (few, loaded):
        with pytest.raises(pc.DataError, match="not in this model"):
            model.tell([("a", "b")], user=known)
        with pytest.raises(pc.DataError, match="not in this model"):
            _ = model.verdict_
    new = pc.Comparisons.from_pairs(["f"], ["a"], user=["eva"])
    assert loaded.fold_in(new).membership_.shape == (few.comparisons_.n_users + 1, 2)


def test_what_does_not_go_together_is_said(votes):
    for settings in ({"inference": "mcmc", "personal": False}, {"personal": True}):
        with pytest.raises(pc.DataError, match="found by a search"):
            pc.CommunityGP(**settings).fit(None, votes)
    with pytest.raises(pc.DataError, match="got user_features"):
        pc.CommunityGP().fit(None, votes, user_features=[[1.0]])


def test_the_defaults_are_what_a_scan_allows(votes, fitted):
    model = pc.CommunityGP(optimize=None, progress=False).fit(None, votes)
    assert np.array_equal(model.membership_, fitted.membership_)
    assert model.report_.steps[-1] == "all users, without personal taste"
