"""Features and relations of frames are matched by name: of rows, and of columns."""

import numpy as np
import pandas as pd
import polars
import pytest

import penchant as pc
from penchant.errors import DataError
from tests.simulation import duels

ITEMS = ["tea", "milk", "cola", "juice", "water", "beer", "wine", "mate"]
COLUMNS = ["sugar", "price", "heat"]
USERS = [f"user {u}" for u in range(9)]
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((8, 3)) * [1.0, 30.0, 0.2], ITEMS, COLUMNS)
ABOUT_USERS = pd.DataFrame(RNG.standard_normal((9, 2)), USERS, ["age", "height"])
LINKS = pd.DataFrame(np.triu(RNG.random((8, 8)) < 0.4, 1).astype(float), ITEMS, ITEMS)
LINKS += LINKS.T
KNOWS = pd.DataFrame(np.triu(RNG.random((9, 9)) < 0.4, 1).astype(float), USERS, USERS)
KNOWS += KNOWS.T
NEW = pd.DataFrame(RNG.standard_normal((4, 3)), columns=COLUMNS)
SHUFFLED = RNG.permutation(8)
OTHERS = RNG.permutation(9)


def answers(items=ITEMS, users=USERS):
    rng = np.random.default_rng(1)
    utility = X.to_numpy() @ [1.0, 0.02, 0.0]
    winner, loser = duels(rng, utility, 250)
    who = [users[u] for u in rng.integers(9, size=250)]
    names = np.array(items)
    return pc.Comparisons.from_pairs(
        names[winner], names[loser], user=who, items=items, users=users
    )


MODELS = {
    "gp": lambda: pc.PreferenceGP(random_state=0),
    "multi-user": lambda: pc.MultiUserGP(random_state=0, progress=False),
    "community": lambda: pc.CommunityGP(random_state=0, progress=False),
    "rank-rls": pc.RankRLS,
    "kpc-rank": pc.KPCRank,
    "rank-svm": pc.RankSVM,
}
GPS = [name for name in MODELS if not name.startswith(("rank", "kpc"))]


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_frame_and_of_an_encoded_table_are_matched_by_name(name):
    wanted = MODELS[name]().fit(X, answers()).predict(NEW)
    found = MODELS[name]().fit(X.iloc[SHUFFLED], answers()).predict(NEW)
    np.testing.assert_array_equal(found, wanted)
    positions = MODELS[name]().fit(X.to_numpy(), answers()).predict(NEW.to_numpy())
    np.testing.assert_array_equal(positions, wanted)
    encoded = pc.encode(X.iloc[SHUFFLED].rename_axis("name").reset_index())
    found = MODELS[name]().fit(encoded, answers())
    new = encoded.like(NEW.assign(name=list("abcd")))
    np.testing.assert_allclose(found.predict(new), wanted, atol=1e-12)


@pytest.mark.parametrize("name", GPS)
def test_columns_of_new_items_are_matched_by_name(name):
    model = MODELS[name]().fit(X, answers())
    wanted = model.predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW[COLUMNS[::-1]]), wanted)
    np.testing.assert_array_equal(model.predict(NEW.to_numpy()), wanted)
    pairs = [(0, 1), (2, 3)]
    swapped = model.predict_proba(pairs, X=polars.from_pandas(NEW[COLUMNS[::-1]]))
    np.testing.assert_array_equal(swapped, model.predict_proba(pairs, X=NEW))
    with pytest.raises(DataError, match=r"'cost'.*'price'"):
        model.predict(NEW.rename(columns={"price": "cost"}))
    turned = MODELS[name]().fit(X[COLUMNS[::-1]], answers()).predict(NEW)
    np.testing.assert_allclose(turned, wanted, atol=1e-4)


@pytest.mark.parametrize("name", ["rank-rls", "kpc-rank", "rank-svm"])
def test_rankers_refuse_other_columns(name):
    model = MODELS[name]().fit(X, answers())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(NEW[COLUMNS[::-1]])


def without(name):
    return LINKS.drop(name).drop(columns=name)


@pytest.mark.parametrize(
    ("wrong", "relation", "why"),
    [
        (X.drop(index="tea"), None, "1 of 8 items have no row in X.*'tea'"),
        (pd.concat([X, X.iloc[:1]]), None, "2 rows for 'tea'"),
        (X.rename(index={"tea": "teas"}), None, "'tea' .did you mean 'teas'"),
        (pd.concat([X, X.iloc[:1].rename(index=lambda _: "gin")]), None, "'gin'.*items="),
        (X.rename(columns={"heat": "sugar"}), None, "several columns called 'sugar'"),
        (None, without("tea"), r"relation 'links'.*'tea'"),
        (None, LINKS.rename(index={"tea": "gin"}), "rows and the columns of relation 'links'"),
    ],
)
def test_names_that_do_not_fit_are_refused(wrong, relation, why):
    links = None if relation is None else {"links": relation}
    with pytest.raises(DataError, match=why):
        pc.PreferenceGP().fit(wrong, answers(), links)
    if links is None and "columns" not in why:
        with pytest.raises(DataError, match=why):
            pc.RankRLS().fit(wrong, answers())


def test_rows_that_are_only_numbered_are_in_order():
    """Unless items are called so themselves: then row 3 is item 3, wherever it stands."""
    wanted = pc.PreferenceGP(optimize=None).fit(X, answers()).predict()
    plain = X.reset_index(drop=True)
    for same in (plain, polars.from_pandas(plain), plain.to_numpy()):
        np.testing.assert_array_equal(
            pc.PreferenceGP(optimize=None).fit(same, answers()).predict(), wanted
        )
    numbers = answers([5, 2, 7, 0, 1, 6, 3, 4])
    by_name = X.set_axis(numbers.items).sort_index()
    assert list(by_name.index) == list(range(8))
    for frame in (by_name, by_name.iloc[SHUFFLED], by_name.rename(index=str)):
        found = pc.PreferenceGP(optimize=None).fit(frame, numbers).predict()
        np.testing.assert_array_equal(found, wanted)


def test_numbered_columns_are_matched_too():
    plain, new = X.set_axis(range(3), axis=1), NEW.set_axis(range(3), axis=1)
    model = pc.PreferenceGP(optimize=None).fit(plain, answers())
    np.testing.assert_array_equal(model.predict(new[[2, 0, 1]]), model.predict(new))


@pytest.mark.parametrize("name", GPS)
def test_relations_are_matched_by_name(name):
    turned = LINKS.iloc[SHUFFLED, SHUFFLED[::-1]]
    of_columns = polars.from_pandas(LINKS.iloc[SHUFFLED, SHUFFLED].reset_index(drop=True))
    wanted = MODELS[name]().fit(None, answers(), {"links": LINKS.to_numpy()}).predict()
    for same in (LINKS, turned, of_columns, turned.set_axis(LINKS.index[SHUFFLED])):
        found = MODELS[name]().fit(None, answers(), {"links": same}).predict()
        np.testing.assert_array_equal(found, wanted)


def test_directed_and_bipartite_frames_keep_their_names():
    arrows = LINKS * np.triu(np.ones((8, 8)))
    made = pc.kernels.directed, lambda graph: pc.kernels.directed(graph, "chung")
    for make in (*made, pc.kernels.bipartite):
        relations = [{"r": make(graph)} for graph in (arrows.to_numpy(), arrows.iloc[SHUFFLED])]
        plain, named = (
            pc.PreferenceGP(optimize=None).fit(None, answers(), each) for each in relations
        )
        np.testing.assert_allclose(named.predict(), plain.predict(), atol=1e-12)


def test_new_nodes_are_matched_by_name():
    names = [*ITEMS, "gin", "rum"]
    every = pd.DataFrame(np.zeros((10, 10)), names, names)
    every.iloc[:8, :8] = LINKS
    every.loc["gin", ["tea", "cola"]] = every.loc[["tea", "cola"], "gin"] = 1.0
    every.loc["rum", ["beer"]] = every.loc[["beer"], "rum"] = 1.0
    model = pc.PreferenceGP(random_state=0).fit(X, answers(), {"links": LINKS})
    new = NEW.iloc[:2].set_axis(["gin", "rum"])
    wanted = model.predict(new.to_numpy(), relations={"links": every.to_numpy()})
    mixed = RNG.permutation(10)
    found = model.predict(new, relations={"links": every.iloc[mixed, mixed]})
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_users_are_matched_by_name():
    def fitted(about, knows):
        model = pc.MultiUserGP(optimize=None, progress=False)
        return model.fit(None, answers(), user_features=about, user_relations={"knows": knows})

    model = fitted(ABOUT_USERS, KNOWS)
    wanted = model.predict(users=USERS)
    turned = fitted(ABOUT_USERS.iloc[OTHERS], KNOWS.iloc[OTHERS, OTHERS])
    np.testing.assert_array_equal(turned.predict(users=USERS), wanted)
    with pytest.raises(DataError, match=r"users.*'user 3'"):
        fitted(ABOUT_USERS.drop("user 3"), KNOWS)


def test_features_of_new_users_are_matched_by_name():
    model = pc.MultiUserGP(optimize=None, progress=False)
    model.fit(None, answers(), user_features=ABOUT_USERS)
    more = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "cola"], user=["ann", "bob"])
    about = pd.DataFrame([[0.3, 1.0], [-1.0, 0.2]], ["ann", "bob"], ["age", "height"])
    turned = about.iloc[::-1, ::-1]
    wanted = model.fold_in(more, about).predict(users=["ann", "bob"])
    found = model.fold_in(more, turned).predict(users=["ann", "bob"])
    np.testing.assert_array_equal(found, wanted)
    swapped = model.predict(user_features=turned)
    np.testing.assert_array_equal(swapped, model.predict(user_features=about)[::-1])


def test_members_are_described_by_their_own_features():
    found = [
        pc.CommunityGP(n_communities=2, random_state=0, progress=False)
        .fit(None, answers(), user_features=about)
        .state_.learned.user_features
        for about in (ABOUT_USERS, ABOUT_USERS.iloc[OTHERS])
    ]
    np.testing.assert_array_equal(*found)


def test_every_way_to_a_model_matches_names():
    data = answers()
    turned = X.iloc[SHUFFLED]
    how = {"folds": 2, "random_state": 0}
    tables = [
        pc.evaluate(["gp", "rank-rls"], data, features, **how).to_dicts()
        for features in (X, turned)
    ]
    for wanted, found in zip(*tables, strict=True):
        np.testing.assert_equal(*({**row, "seconds": 0.0} for row in (found, wanted)))
    assert str(pc.choose_model(data, X)) == str(pc.choose_model(data, turned))
