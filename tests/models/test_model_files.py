"""Model files that are valid and yet wrong: refused with their field, never answered from."""

import io
import json
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF, Independent
from penchant.numerics.arrays import read_arrays, write_arrays

ITEMS, TOLD, USERS, FREE = (
    "items",
    "items with a posterior",
    "users with features",
    "users with a free covariance",
)
RELATION, GROUPS, SPARSE = "items with a relation", "communities", "sparse users"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Small models of every kind, saved: their files by name."""
    rng = np.random.default_rng(5)
    n, n_users = 7, 25
    X, Z = rng.random((n, 2)), rng.random((n_users, 2))
    user = np.repeat(np.arange(n_users), 6)
    first = rng.integers(n, size=len(user))
    second = (first + rng.integers(1, n, size=len(user))) % n
    side = np.where(Z[user, 0] > 0.5, 1.0, -1.0)
    better = side * (X[first, 0] - X[second, 0]) + 0.1 * rng.standard_normal(len(user)) > 0
    winner, loser = np.where(better, first, second), np.where(better, second, first)
    everybody = pc.Comparisons.from_pairs(winner, loser, items=range(n))
    people = pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n), users=range(n_users)
    )
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


def changed(kind, field, change, number=0):
    """Change an array in place, or put the one that is returned."""

    def craft(file):
        array = file.array(kind, field, number)
        replaced = change(array)
        if replaced is not None:
            file.put(kind, field, replaced, number)

    return craft


def value(kind, field, new):
    def craft(file):
        file.at(kind)[field] = new

    return craft


def at(place, new):
    def change(array):
        array[place] = new

    return change


def one_past(column, names):
    """A vote of the first position that there is not."""

    def craft(file):
        bound = len(file.at("comparisons")[names]["$tuple"])
        file.array("sites of users", column)[-1] = bound

    return craft


def sizes_of(*sizes):
    """How many users the communities have, counting those of whom the file holds nothing."""
    return lambda file: file.put("communities", "all_sizes", sizes)


def swapped_rows(file):
    for name in ("winner", "loser", "count", "tie"):
        array = file.array("comparisons", name)
        array[[0, 1]] = array[[1, 0]]


def repeated_row(file):
    for name in ("winner", "loser", "count", "tie"):
        array = file.array("comparisons", name)
        array[1] = array[0]


def repeated_name(file):
    names = file.at("comparisons")["items"]["$tuple"]
    names[1] = names[0]


def asymmetric(file):
    parts = file.at("relation")["weights"]["$sparse"]
    data = file.arrays[parts[0]["$array"]]
    data[0] += 1.0


def negative_relation(file):
    parts = file.at("relation")["weights"]["$sparse"]
    file.arrays[parts[0]["$array"]] *= -1.0


def sparse_out_of_range(file):
    parts = file.at("relation")["weights"]["$sparse"]
    file.arrays[parts[1]["$array"]][0] = 10_000


def other_estimator(file):
    file.header["model"]["$estimator"] = "MultiUserGP"
    file.header["model"]["params"] = {}


def wrong_parameter(file):
    file.header["model"]["params"]["random_state"] = -1


def other_start(file):
    kinds = {"kernel": ("Independent", {"variance": 1.0}), "likelihood": ("Probit", {})}
    parts = {
        name: {"$kind": kind, "number": 10_000 + k, "fields": fields}
        for k, (name, (kind, fields)) in enumerate(kinds.items())
    }
    start = {"$kind": "item hyperparameters", "number": 20_000, "fields": parts}
    file.at("communities")["start"] = start


CASES = {
    "winner beyond the items": (ITEMS, changed("comparisons", "winner", at(-1, 999)), "winner"),
    "a negative position": (ITEMS, changed("comparisons", "loser", at(0, -1)), "loser"),
    "an item against itself": (
        ITEMS,
        changed("comparisons", "loser", at(0, 0)),
        "loser|winner",
    ),
    "count of zero": (ITEMS, changed("comparisons", "count", at(0, 0)), "count"),
    "negative count": (ITEMS, changed("comparisons", "count", at(0, -5)), "count"),
    "counts that are no numbers": (
        ITEMS,
        changed("comparisons", "count", lambda a: a.astype(float) + 0.5),
        "count",
    ),
    "a column too short": (ITEMS, changed("comparisons", "tie", lambda a: a[:-1]), "tie"),
    "rows out of order": (ITEMS, swapped_rows, "winner"),
    "the same row twice": (ITEMS, repeated_row, "winner"),
    "the same name twice": (ITEMS, repeated_name, "items"),
    "an unknown user": (USERS, changed("comparisons", "user", at(-1, 999)), "user"),
    "features that are infinite": (ITEMS, changed("inputs", "X", at((0, 0), np.inf)), "X"),
    "a row of features missing": (ITEMS, changed("inputs", "X", lambda a: a[:-1]), "X|index"),
    "features flat": (ITEMS, changed("inputs", "X", lambda a: a.ravel()), "X"),
    "an index beyond the relation": (RELATION, changed("inputs", "index", at(0, 999)), "index"),
    "a relation one way": (RELATION, asymmetric, "weights"),
    "a negative relation": (RELATION, negative_relation, "weights"),
    "a relation with no such column": (RELATION, sparse_out_of_range, ""),
    "scale of zero": (ITEMS, changed("scaling", "scale", at(0, 0.0)), "scale"),
    "scale of too many": (ITEMS, changed("scaling", "center", lambda a: np.append(a, 0.0)), "scal"),
    "too many columns": (ITEMS, value("feature columns", "n_columns", 99), "names|scaling"),
    "columns below none": (ITEMS, value("feature columns", "n_columns", -1), "n_columns"),
    "sites of NaN": (ITEMS, changed("sites", "tau", at(0, np.nan)), "tau"),
    "sites one short": (ITEMS, changed("sites", "nu", lambda a: a[:-1]), "nu"),
    "sites of other comparisons": (
        ITEMS,
        lambda file: (
            file.put("sites", "tau", np.zeros(2)),
            file.put("sites", "nu", np.zeros(2)),
        ),
        "sites",
    ),
    "a factor that is no triangle": (TOLD, changed("basis", "lower", at((0, -1), 1.0)), "lower"),
    "a factor with a zero": (TOLD, changed("basis", "lower", at((0, 0), 0.0)), "lower"),
    "a factor with a negative entry": (
        TOLD,
        changed("posterior", "lower", at((1, 1), -1)),
        "lower",
    ),
    "a factor too small": (TOLD, changed("posterior", "lower", lambda a: a[:-1, :-1]), "lower"),
    "pivots twice": (TOLD, changed("basis", "first", at(1, 0)), "first|basis"),
    "pivots beyond the items": (TOLD, changed("basis", "first", at(0, 999)), "basis"),
    "coefficients too few": (TOLD, changed("posterior", "coefficients", lambda a: a[1:]), "coeff"),
    "coefficients of NaN": (TOLD, changed("posterior", "coefficients", at(0, np.nan)), "coeff"),
    "an unknown rule": (ITEMS, value("learned", "rule", "guess"), "rule"),
    "a rank of zero": (ITEMS, value("learned", "max_rank", 0), "max_rank"),
    "sweeps below none": (ITEMS, value("report", "n_sweeps", -1), "n_sweeps"),
    "converged by hearsay": (ITEMS, value("report", "converged", "yes"), "converged"),
    "neither posterior nor sites": (ITEMS, value("learned", "sites", None), "posterior"),
    "users of a model of items": (
        ITEMS,
        lambda file: file.at("learned").update(users=file.at("learned")["items"]),
        "users",
    ),
    "fewer items than compared": (ITEMS, changed("inputs", "index", lambda a: a[:-1]), "index|X"),
    "priors of no effect": (
        ITEMS,
        lambda file: file.put("learned", "effect_sd", [1.0]),
        "effect_sd",
    ),
    "a kernel where data should be": (
        ITEMS,
        lambda file: file.at("learned").update(data=file.at("item hyperparameters")["kernel"]),
        "data",
    ),
    "told about no item": (
        ITEMS,
        value("fitted", "last_pairs", {"$tuple": [{"$tuple": [0, 99]}]}),
        "last_pairs",
    ),
    "told of letters": (ITEMS, value("fitted", "last_pairs", {"$tuple": ["ab"]}), "last_pairs"),
    "another model's state": (ITEMS, other_estimator, "state_"),
    "a seed below none": (ITEMS, wrong_parameter, "random_state"),
    "sharing of two": (USERS, value("posterior of users", "sharing", 2.0), "sharing"),
    "shared mean of another shape": (
        USERS,
        changed("posterior of users", "shared_mean", lambda a: a.T),
        "shared_mean",
    ),
    "shared factor of zeros": (
        USERS,
        changed("posterior of users", "shared_lower", at(slice(None), 0.0)),
        "shared_lower",
    ),
    "a shared factor with a cell above its diagonal": (
        USERS,
        changed("posterior of users", "shared_lower", at((0, 1), 1.0)),
        "shared_lower",
    ),
    "votes of nobody": (USERS, changed("sites of users", "user", at(-1, 999)), "sites"),
    "votes for nothing": (USERS, changed("sites of users", "winner", at(-1, 999)), "sites|winner"),
    "votes of the user after the last": (USERS, one_past("user", "users"), "sites"),
    "votes for the item after the last": (USERS, one_past("winner", "items"), "sites"),
    "votes against the item after the last": (USERS, one_past("loser", "items"), "sites"),
    "votes of no weight": (USERS, changed("sites of users", "weight", at(0, np.inf)), "weight"),
    "more fitted than there are": (USERS, value("posterior of users", "n_fitted", 999), "n_fitted"),
    "kept of nobody": (SPARSE, changed("kept", "users", at(0, 999)), "users"),
    "kept twice": (SPARSE, changed("kept", "items", lambda a: a[[0, 0]]), "items"),
    "a free covariance that is none": (
        FREE,
        changed("FreeCovariance", "factor", at((0, 0), 0)),
        "factor",
    ),
    "memberships of two": (GROUPS, changed("communities", "membership", lambda a: 2 * a), "memb"),
    "negative memberships": (
        GROUPS,
        changed("communities", "membership", at((0, slice(0, 2)), (2.0, -1.0))),
        "membership",
    ),
    "members missing": (
        GROUPS,
        changed("communities", "membership", lambda a: a[1:]),
        "membership",
    ),
    "assigned to no community": (GROUPS, changed("chain state", "assignment", at(0, 99)), "assign"),
    "utilities of NaN": (GROUPS, changed("chain state", "utilities", at((0, 0), np.nan)), "utilit"),
    "a concentration of zero": (GROUPS, value("chain state", "concentration", 0.0), "concentr"),
    "an empty community": (GROUPS, changed("draw", "sizes", at(0, 0)), "sizes"),
    "labels of none": (GROUPS, changed("draw", "labels", at(0, 99), -1), "kept"),
    "no draws": (GROUPS, value("draws", "kept", {"$tuple": []}), "kept"),
    "communities of none": (GROUPS, value("draws", "n_communities", 0), "n_communities"),
    "a share of two": (GROUPS, value("communities", "communal_share", 2.0), "communal_share"),
    "sizes below nothing": (GROUPS, sizes_of(26.0, -1.0), "all_sizes"),
    "sizes of nobody": (GROUPS, sizes_of(0.0, 0.0), "all_sizes"),
    "sizes of three": (GROUPS, sizes_of(9.0, 9.0, 7.0), "all_sizes"),
    "a start of another length": (GROUPS, other_start, "start"),
}


@pytest.mark.parametrize(("name", "craft", "field"), CASES.values(), ids=CASES)
def test_a_crafted_file_is_refused_with_its_field(name, craft, field, saved, tmp_path):
    file = Crafted(saved[name])
    craft(file)
    with pytest.raises(pc.DataError) as refused:
        file.load(tmp_path / "crafted")
    assert re.search(field, str(refused.value)), refused.value


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
    with pytest.raises(pc.DataError, match="4 where there are 3"):
        file.load(tmp_path / "crafted")


@pytest.mark.parametrize(
    ("column", "bound", "said"),
    [("item", 3, "at least 4 where there are 3"), ("user", 2, "at least 3 where there are 2")],
)
def test_rankings_of_what_comes_after_the_last_are_refused(column, bound, said, tmp_path):
    data = pc.Comparisons.from_rankings([["a", "b", "c"], ["c", "a"]], users=["ann", "bob"])
    pc.MultiUserGP(optimize=None).fit(None, data).save(tmp_path / "ranked.penchant")
    file = Crafted(tmp_path / "ranked.penchant")
    file.array("rankings", column)[-1] = bound
    with pytest.raises(pc.DataError, match=said):
        file.load(tmp_path / "crafted")


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


def test_two_savers_to_one_path_leave_one_whole_model(tmp_path):
    data = pc.Comparisons.from_pairs([0, 0], [1, 2], items=range(3))
    models = [pc.PreferenceGP(optimize=None, random_state=seed).fit(None, data) for seed in (1, 2)]
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
    data = pc.Comparisons.from_pairs([0, 0], [1, 2], items=range(3))
    model = pc.PreferenceGP(optimize=None).fit(None, data)
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
    model = pc.PreferenceGP().fit(None, pc.Comparisons.from_pairs(["a"], ["b"]))
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
