import sys

import numpy as np
import pytest
from scipy import sparse

from penchant import datasets
from penchant.datasets import data_folder as find_data_folder
from penchant.errors import DataError

LOADERS = [name for name in datasets.__all__ if name.startswith("load_") and name != "load_preflib"]


def test_set_a_of_sushi_has_its_own_ids(data_folder):
    sushi = datasets.load_sushi_a()
    assert sushi.rankings.shape == (5000, 10)
    assert (np.sort(sushi.rankings, axis=1) == np.arange(10)).all()
    assert sushi.item_names[5:] == ("ikura", "tamago", "toro", "tekka_maki", "kappa_maki")
    assert sushi.item_features[5, 2] == 7  # ikura is roe
    assert sushi.scores is None
    assert sushi.user_features.shape == (5000, len(sushi.user_feature_names))
    # toro, fatty tuna, is known to be the favourite, cucumber roll the least liked.
    first = np.bincount(sushi.rankings[:, 0])
    last = np.bincount(sushi.rankings[:, -1], minlength=10)
    assert sushi.item_names[first.argmax()] == "toro"
    assert sushi.item_names[last.argmax()] == "kappa_maki"


def test_set_b_of_sushi_ranks_what_it_grades(data_folder):
    sushi = datasets.load_sushi_b()
    assert sushi.item_features.shape == (100, len(sushi.item_feature_names))
    assert (np.isfinite(sushi.scores).sum(axis=1) == 10).all()
    ranked = np.take_along_axis(sushi.scores, sushi.rankings, axis=1)
    assert np.isfinite(ranked).all()
    assert ranked[:, 0].mean() > ranked[:, -1].mean() + 1  # best first, and 4 is the best grade


def test_cars(data_folder):
    cars = datasets.load_cars()
    assert cars.comparisons.n_comparisons == 2675
    assert cars.controls.n_comparisons == 298
    assert (cars.comparisons.n_items, cars.comparisons.n_users) == (10, 60)
    per_user = np.bincount(cars.comparisons.user, weights=cars.comparisons.count)
    assert (per_user.min(), per_user.max()) == (39, 45)
    assert cars.item_features.shape == (10, 4)
    assert cars.user_features.shape == (60, 4)


def test_cora_cites_in_one_direction(data_folder):
    cora = datasets.load_cora()
    assert cora.citations.nnz == 5429
    assert (cora.citations != cora.citations.T).nnz > 0
    # A paper cites few others here, but a classic is cited by many.
    assert np.diff(cora.citations.indptr).max() <= 5
    assert cora.citations.sum(axis=0).max() == 166
    assert len(cora.names) == len(cora.labels) == 2708
    assert len(cora.class_names) == cora.labels.max() + 1 == 7
    linked = cora.citations.tocoo()
    assert (cora.labels[linked.row] == cora.labels[linked.col]).mean() > 0.7


def test_samples_of_graded_documents(data_folder):
    mslr, parses = datasets.load_mslr_sample(), datasets.load_parse_sample()
    assert [part.n_queries for part in (mslr.train, mslr.validation, mslr.test)] == [53, 18, 18]
    assert mslr.whole().X.shape == (5488 + 1734 + 1900, 136)
    assert set(np.unique(mslr.train.y)) == {0, 1, 2, 3, 4}
    assert sparse.issparse(parses.train.X)
    assert parses.train.X.shape[1] == parses.test.X.shape[1]
    assert [parses.train.n_queries, parses.test.n_queries] == [22, 20]
    assert parses.validation is None
    assert parses.whole().X.shape[0] == 200


def test_movielens(data_folder):
    films = datasets.load_movielens()
    assert (films.user.max() + 1, films.item.max() + 1, len(films.rating)) == (943, 1682, 100_000)
    assert films.titles[0] == "Toy Story (1995)"
    assert films.genre_names[5] == "Comedy"
    assert films.genres[0].nonzero()[0].tolist() == [3, 4, 5]
    assert films.user_features.shape == (943, len(films.user_feature_names))
    assert (films.user_features[:, 2:].sum(axis=1) == 1).all()


@pytest.mark.parametrize("name", LOADERS)
def test_an_absent_set_says_what_to_get_and_where_to_put_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    arguments = ("housing",) if name == "load_regression" else ()
    with pytest.raises(DataError) as caught:
        getattr(datasets, name)(*arguments)
    message = str(caught.value)
    assert message.startswith(f"there is no file {tmp_path}")
    assert "get " in message
    assert "https://" in message
    assert "PENCHANT_DATA" in message


def test_a_damaged_set_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    (tmp_path / "regression").mkdir()
    text = "@relation r\n@attribute x real\n@attribute y real\n@data\n1,2\n"
    (tmp_path / "regression" / "pyrim.arff").write_text(text)
    with pytest.raises(DataError, match="rows: 1 where the published data set has 74"):
        datasets.load_regression("pyrim")


def test_the_folder_must_be_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match="which is not a folder"):
        find_data_folder()


def test_the_folder_beside_the_current_one(tmp_path, monkeypatch):
    monkeypatch.delenv("PENCHANT_DATA", raising=False)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert find_data_folder() == tmp_path / "shared" / "data"


def test_no_folder_at_all(tmp_path, monkeypatch):
    monkeypatch.delenv("PENCHANT_DATA", raising=False)
    monkeypatch.setattr(
        sys.modules[find_data_folder.__module__], "__file__", str(tmp_path / "a/b/c/d")
    )
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    with pytest.raises(DataError, match="environment variable PENCHANT_DATA"):
        find_data_folder()
    with pytest.raises(DataError, match="then get Cora"):
        datasets.load_cora()
