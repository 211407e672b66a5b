"""A small study on disk, and a way to run commands in its folder."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

import penchant as pc
from penchant.cli import demo, main


@pytest.fixture(scope="session")
def write_files():
    """Write votes.csv, items.csv, users.csv, links.csv, pairs.csv and model.penchant."""
    return _write_files


def _write_files(place, **size):
    truth = pc.datasets.simulate_study(n_tastes=2, **size)
    demo.write_study(truth, place)
    rng = np.random.default_rng(0)
    with (place / "users.csv").open("w", newline="") as file:
        rows = [
            (user, rng.integers(18, 80), "ab"[k % 2]) for k, user in enumerate(truth.user_names)
        ]
        csv.writer(file).writerows([("user", "age", "region"), *rows])
    (place / "pairs.csv").write_text("first,second\nitem 01,item 02\nitem 03,item 01\n")
    data = truth.comparisons
    pc.PreferenceGP(random_state=0).fit(None, data.pooled()).save(place / "model.penchant")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The files of a study of 12 people and 10 items."""
    place = tmp_path_factory.mktemp("study")
    _write_files(place, n_users=12, n_items=10, n_answers=12)
    return place


@pytest.fixture
def run(folder, monkeypatch):
    """Run `penchant …` in the study's folder; fails on an unexpected exception."""
    monkeypatch.chdir(folder)

    def invoke(*arguments, code=0, **settings):
        result = CliRunner().invoke(main, [str(a) for a in arguments], **settings)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result

    return invoke
