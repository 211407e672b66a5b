"""Model files that are valid and yet wrong: refused with their field, never answered from."""

import io
import json
import types
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF, Independent
from penchant.models.store.checks import has_type
from penchant.numerics.arrays import read_arrays, write_arrays
from tests.simulation import duel_data

ITEMS, TOLD = "items", "items with a posterior"
USERS, FREE = "users with features", "users with a free covariance"
RELATION, GROUPS, SPARSE = "items with a relation", "communities", "sparse users"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Small models of every kind, saved: their files by name."""
    rng = np.random.default_rng(5)
    n, n_users = 7, 25
    X, Z = rng.random((n, 2)), rng.random((n_users, 2))
    user = np.repeat(np.arange(n_users), 6)
    tastes = 10.0 * np.where(Z[:, :1] > 0.5, 1.0, -1.0) * X[:, 0]
    people = duel_data(rng, tastes, user=user, users=range(n_users))
    everybody = people.pooled()
    ring = np.roll(np.eye(n), 1, axis=1)
    kernel, fixed = RBF(0.5) + Independent(0.3), {"optimize": None}
    sampled = {"inference": "mcmc", "personal": False, "n_sweeps": 8, "random_state": 0}
    models = {
        TOLD: pc.PreferenceGP(**fixed).fit(X, everybody).tell([(0, 1)], reconverge=False),
        ITEMS: pc.PreferenceGP(**fixed).fit(X, everybody),
        RELATION: pc.PreferenceGP(**fixed).fit(None, everybody, {"ring": ring + ring.T}),
        USERS: pc.MultiUserGP(kernel, **fixed)
        .fit(X, people, user_features=Z)
        .tell([(0, 1)], user=0, reconverge=False),
        FREE: pc.MultiUserGP("free", **fixed).fit(None, people),
        SPARSE: pc.MultiUserGP(kernel, sparse=(6, 6), **fixed).fit(X, people),
        GROUPS: pc.CommunityGP(kernel=kernel, **sampled, **fixed).fit(X, people),
    }
    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(folder / name)
    return {name: folder / name for name in models}


class Crafted:
    """A saved model taken apart: `at(kind)` gives the fields of its first value of that kind."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.header = json.loads(archive.read("model.json"))
            names = [n for n in archive.namelist() if n.endswith(".npy")]
            self.arrays = {int(n[:-4]): np.load(io.BytesIO(archive.read(n))) for n in names}

    def at(self, kind, number=0):
        found = []

        def walk(tree):
            if isinstance(tree, dict):
                if tree.get("$kind") == kind:
                    found.append(tree["fields"])
                tree = list(tree.values())
            if isinstance(tree, list):
                for part in tree:
                    walk(part)

        walk(self.header["model"])
        return found[number]

    def array(self, kind, field, number=0):
        """A copy under a number of its own: nothing else in the file changes with it."""
        fields, new = self.at(kind, number), max(self.arrays) + 1
        self.arrays[new] = self.arrays[fields[field]["$array"]].copy()
        fields[field] = {"$array": new}
        return self.arrays[new]

    def put(self, kind, field, array, number=0):
        new = max(self.arrays) + 1
        self.at(kind, number)[field] = {"$array": new}
        self.arrays[new] = np.asarray(array)

    def load(self, path):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model.json", json.dumps(self.header))
            for number, array in self.arrays.items():
                content = io.BytesIO()
                np.save(content, array, allow_pickle=False)
                archive.writestr(f"{number}.npy", content.getvalue())
        return pc.load(path)


def is_refused(file, folder, words):
    with pytest.raises(pc.DataError, match=words):
        file.load(folder / "crafted")


class Value:
    """A JSON value in the place of a field."""

    def __init__(self, new):
        self.new = new


def at(place, new):
    def change(array):
        array[place] = new

    return change


FIELDS = [  # a model, a kind, its field, how it is changed; what the error names, if not the field
    (ITEMS, "comparisons", "winner", at(-1, 999)),
    (ITEMS, "comparisons", "loser", at(0, -1)),
    (ITEMS, "comparisons", "loser", at(0, 0), "loser|winner"),
    (ITEMS, "comparisons", "count", at(0, 0)),
    (ITEMS, "comparisons", "count", at(0, -5)),
    (ITEMS, "comparisons", "count", lambda a: a.astype(float) + 0.5),
    (ITEMS, "comparisons", "tie", lambda a: a[:-1]),
    (USERS, "comparisons", "user", at(-1, 999)),
    (ITEMS, "inputs", "X", at((0, 0), np.inf)),
    (ITEMS, "inputs", "X", lambda a: a[:-1], "X|n_first"),
    (ITEMS, "inputs", "X", lambda a: a.ravel()),
    (ITEMS, "inputs", "n_first", Value(3), "n_first|X"),
    (RELATION, "inputs", "n_first", Value(999)),
    (ITEMS, "scaling", "scale", at(0, 0.0)),
    (ITEMS, "scaling", "center", lambda a: np.append(a, 0.0), "scal"),
    (ITEMS, "feature columns", "n_columns", Value(99), "names|scaling"),
    (ITEMS, "feature columns", "n_columns", Value(-1)),
    (ITEMS, "sites", "tau", at(0, np.nan)),
    (ITEMS, "sites", "nu", lambda a: a[:-1]),
    (TOLD, "basis", "lower", at((0, -1), 1.0)),
    (TOLD, "basis", "lower", at((0, 0), 0.0)),
    (TOLD, "posterior", "lower", at((1, 1), -1)),
    (TOLD, "posterior", "lower", lambda a: a[:-1, :-1]),
    (TOLD, "basis", "first", lambda first: first[[0, 0, *range(2, len(first))]], "first|basis"),
    (TOLD, "basis", "first", at(0, 999), "basis"),
    (TOLD, "posterior", "coefficients", lambda a: a[1:]),
    (TOLD, "posterior", "coefficients", at(0, np.nan)),
    (ITEMS, "learned", "rule", Value("guess")),
    (ITEMS, "learned", "max_rank", Value(0)),
    (ITEMS, "learned", "sites", Value(None), "posterior"),
    (ITEMS, "report", "n_sweeps", Value(-1)),
    (ITEMS, "report", "converged", Value("yes")),
    (ITEMS, "fitted", "last_pairs", Value({"$tuple": [{"$tuple": [0, 99]}]})),
    (ITEMS, "fitted", "last_pairs", Value({"$tuple": ["ab"]})),
    (USERS, "posterior of users", "sharing", Value(2.0)),
    (USERS, "posterior of users", "shared_mean", lambda a: a.T),
    (USERS, "posterior of users", "shared_lower", at(slice(None), 0.0)),
    (USERS, "posterior of users", "shared_lower", at((0, 1), 1.0)),
    (USERS, "posterior of users", "n_fitted", Value(999)),
    (USERS, "sites of users", "user", at(-1, 999), "sites"),
    (USERS, "sites of users", "winner", at(-1, 999), "sites"),
    (USERS, "sites of users", "user", at(-1, 25), "sites"),  # one past the last
    (USERS, "sites of users", "winner", at(-1, 7), "sites"),
    (USERS, "sites of users", "loser", at(-1, 7), "sites"),
    (USERS, "sites of users", "weight", at(0, np.inf)),
    (SPARSE, "kept", "users", at(0, 999)),
    (SPARSE, "kept", "items", lambda a: a[[0, 0]]),
    (FREE, "FreeCovariance", "factor", at((0, 0), 0)),
    (GROUPS, "communities", "membership", lambda a: 2 * a),
    (GROUPS, "communities", "membership", at((0, slice(0, 2)), (2.0, -1.0))),
    (GROUPS, "communities", "membership", lambda a: a[1:]),
    (GROUPS, "communities", "communal_share", Value(2.0)),
    (GROUPS, "chain state", "assignment", at(0, 99)),
    (GROUPS, "chain state", "utilities", at((0, 0), np.nan)),
    (GROUPS, "chain state", "concentration", Value(0.0)),
    (GROUPS, "draw", "sizes", at(0, 0)),
    (GROUPS, "draw", "labels", at(0, 99), "kept"),
    (GROUPS, "draws", "kept", Value({"$tuple": []})),
    (GROUPS, "draws", "n_communities", Value(0)),
]


@pytest.mark.parametrize("case", FIELDS, ids=lambda case: f"{case[1]}: {case[2]}")
def test_a_changed_field_is_refused_by_its_name(case, saved, tmp_path):
    name, kind, field, change, *said = case
    file = Crafted(saved[name])
    if isinstance(change, Value):
        file.at(kind)[field] = change.new
    else:
        number = -1 if field == "labels" else 0
        array = file.array(kind, field, number)
        replaced = change(array)
        if replaced is not None:
            file.put(kind, field, replaced, number)
    is_refused(file, tmp_path, *(said or [field]))


def sizes_of(*sizes):
    """How many users the communities have, counting those of whom the file holds nothing."""
    return lambda file: file.put("communities", "all_sizes", sizes)


def of_rows(change):
    """The same change of the columns of all comparisons."""

    def craft(file):
        for name in ("winner", "loser", "count", "tie"):
            change(file.array("comparisons", name))

    return craft


def of_graph(part, change):
    """A change of the data (0) or the columns (1) of a relation's weights."""
    return lambda file: change(
        file.arrays[file.at("relation")["weights"]["$sparse"][part]["$array"]]
    )


def add_one(array):
    array[0] += 1.0


def repeat_name(file):
    names = file.at("comparisons")["items"]["$tuple"]
    names[1] = names[0]


def other_estimator(file):
    file.header["model"]["$estimator"] = "MultiUserGP"
    file.header["model"]["params"] = {}


def other_start(file):
    kinds = {"kernel": ("Independent", {"variance": 1.0}), "likelihood": ("Probit", {})}
    parts = {
        name: {"$kind": kind, "number": 10_000 + k, "fields": fields}
        for k, (name, (kind, fields)) in enumerate(kinds.items())
    }
    start = {"$kind": "item hyperparameters", "number": 20_000, "fields": parts}
    file.at("communities")["start"] = start


FILES = {
    "rows out of order": (ITEMS, of_rows(lambda a: np.copyto(a[:2], a[1::-1].copy())), "winner"),
    "the same row twice": (ITEMS, of_rows(lambda a: np.copyto(a[1:2], a[:1])), "winner"),
    "the same name twice": (ITEMS, repeat_name, "items"),
    "a relation one way": (RELATION, of_graph(0, add_one), "weights"),
    "a negative relation": (RELATION, of_graph(0, lambda a: np.negative(a, out=a)), "weights"),
    "a relation with no such column": (RELATION, of_graph(1, at(0, 10_000)), "cannot be read"),
    "sites of other comparisons": (
        ITEMS,
        lambda file: [file.put("sites", name, np.zeros(2)) for name in ("tau", "nu")],
        "sites",
    ),
    "users of a model of items": (
        ITEMS,
        lambda file: file.at("learned").update(users=file.at("learned")["items"]),
        "users",
    ),
    "priors of no effect": (ITEMS, lambda file: file.put("learned", "effect_sd", [1.0]), "effect_"),
    "a kernel where data should be": (
        ITEMS,
        lambda file: file.at("learned").update(data=file.at("item hyperparameters")["kernel"]),
        "data",
    ),
    "another model's state": (ITEMS, other_estimator, "state_"),
    "a seed below none": (
        ITEMS,
        lambda file: file.header["model"]["params"].update(random_state=-1),
        "random_state",
    ),
    "sizes below nothing": (GROUPS, sizes_of(26.0, -1.0), "all_sizes"),
    "sizes of nobody": (GROUPS, sizes_of(0.0, 0.0), "all_sizes"),
    "sizes of three": (GROUPS, sizes_of(9.0, 9.0, 7.0), "all_sizes"),
    "a start of another length": (GROUPS, other_start, "start"),
}


@pytest.mark.parametrize(("name", "craft", "field"), FILES.values(), ids=FILES)
def test_a_crafted_file_is_refused(name, craft, field, saved, tmp_path):
    file = Crafted(saved[name])
    craft(file)
    is_refused(file, tmp_path, field)


def test_files_taken_apart_and_put_together_are_still_read(saved, tmp_path):
    for path in saved.values():
        assert type(Crafted(path).load(tmp_path / "same")) is type(pc.load(path))


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_a_community_may_have_less_than_one_member(least, saved, tmp_path):
    file = Crafted(saved[GROUPS])
    sizes_of(25.0 - least, least)(file)
    assert file.load(tmp_path / "small").n_communities_ == 2


def test_relations_of_other_numbers_of_items_are_refused(tmp_path):
    ring = np.ones((3, 3)) - np.eye(3)
    data = pc.Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    relations = {name: pc.kernels.undirected(ring) for name in ("by maker", "by shop")}
    pc.PreferenceGP(optimize=None).fit(None, data, relations=relations).save(
        tmp_path / "two.penchant"
    )
    file = Crafted(tmp_path / "two.penchant")
    weights = file.at("relation", 1)["weights"]
    weights["shape"] = [4, 4]
    starts = weights["$sparse"][2]["$array"]
    file.arrays[starts] = np.append(file.arrays[starts], file.arrays[starts][-1])
    is_refused(file, tmp_path, "4 where there are 3")


@pytest.mark.parametrize(
    ("column", "bound", "said"),
    [("item", 3, "at least 4 where there are 3"), ("user", 2, "at least 3 where there are 2")],
)
def test_rankings_of_what_comes_after_the_last_are_refused(column, bound, said, tmp_path):
    data = pc.Comparisons.from_rankings([["a", "b", "c"], ["c", "a"]], users=["ann", "bob"])
    pc.MultiUserGP(optimize=None).fit(None, data).save(tmp_path / "ranked.penchant")
    file = Crafted(tmp_path / "ranked.penchant")
    file.array("rankings", column)[-1] = bound
    is_refused(file, tmp_path, said)


class Trap:
    """What is pickled runs whatever it likes when it is read."""

    def __init__(self, sprung):
        self.sprung = sprung

    def __reduce__(self):
        return (Path.touch, (self.sprung,))


def test_nothing_in_a_file_is_run(saved, tmp_path):
    file, sprung = Crafted(saved[ITEMS]), tmp_path / "sprung"
    crafted, content = tmp_path / "trap", io.BytesIO()
    np.save(content, np.array([Trap(sprung)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(crafted, "w") as archive:
        archive.writestr("model.json", json.dumps(file.header))
        for number in file.arrays:
            archive.writestr(f"{number}.npy", content.getvalue())
    with pytest.raises(pc.DataError):
        pc.load(crafted)
    assert not sprung.exists()
    np.load(io.BytesIO(content.getvalue()), allow_pickle=True)
    assert sprung.exists()  # it would have been


def tiny_model(**how):
    data = pc.Comparisons.from_pairs([0, 0], [1, 2], items=range(3))
    return pc.PreferenceGP(optimize=None, **how).fit(None, data)


def test_two_savers_to_one_path_leave_one_whole_model(tmp_path):
    models = [tiny_model(random_state=seed) for seed in (1, 2)]
    path = tmp_path / "model"

    def save(number):
        for _ in range(15):
            models[number % 2].save(path)
            assert pc.load(path).random_state in (1, 2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_no_litter(error, tmp_path, monkeypatch):
    model = tiny_model()
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def fail(*args, **kwargs):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(np.lib.format, "write_array", fail)
        with pytest.raises(type(error)):
            model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("fails", [1, 3])
def test_a_miscount_of_the_interpreter_is_no_damage(tmp_path, monkeypatch, fails):
    """CPython may take what two threads parse at a time for an error of its own."""
    model = tiny_model()
    model.save(tmp_path / "model")
    write_arrays(tmp_path / "sums.npz", {"total": 3.0})
    load, left = np.load, [fails]

    def miscounting(*given, **options):
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch")
        return load(*given, **options)

    monkeypatch.setattr(np, "load", miscounting)
    assert pc.load(tmp_path / "model").predict().tobytes() == model.predict().tobytes()
    left[0] = fails
    assert read_arrays(tmp_path / "sums.npz", "add up again")["total"] == 3.0
    left[0] = 1_000  # what never ends is told
    with pytest.raises(SystemError, match="recursion depth"):
        read_arrays(tmp_path / "sums.npz", "add up again")


def test_annotations_may_be_aliases():
    """From NumPy 2.5 on, with Python 3.12, `NDArray[T]` is one: no model could be loaded there."""

    class Alias:
        __value__ = np.ndarray[Any, np.dtype[TypeVar("T")]]

    numbers = types.GenericAlias(Alias, (np.float64,))
    assert has_type(np.zeros(2), numbers)
    assert not has_type(np.zeros(2, dtype=int), numbers)
    assert not has_type([0.0], numbers)
    assert has_type(None, numbers | None)
