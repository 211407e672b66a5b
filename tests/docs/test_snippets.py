"""Every Python block of every page runs, in order, in an empty folder, and shows what it claims.

Tutorials bring their own data. Pages that speak of data which the reader has are given some here.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import penchant as pc

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
GENERATED = {"_build", "api", "gallery", "project", "cli_reference.md"}
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in GENERATED
    and "```python" in path.read_text(encoding="utf-8")
)
ELSEWHERE = {"reproductions.md": "tests/experiments/test_pages.py"}
"""Pages whose snippets another test runs."""
NEEDS = {"gpu.md": "cuda", "tutorials/gpu.md": "cuda", "cluster.md": "ray", "data.md": "pandas"}
"""Pages that need hardware or an extra: skipped where it is absent."""
SLOW = {
    "coming_from.md",
    "howto/plots.md",
    "tutorials/arena.md",
    "tutorials/clicks.md",
    "tutorials/league.md",
    "tutorials/millions.md",
    "tutorials/survey.md",
}
"""Pages that `make test` leaves to `make slow` and `make docs`: a second or more each."""


def battles(rng):
    lines = ["model_a,model_b,winner,length_a,length_b"]
    for _ in range(80):
        a, b = rng.choice(list("abcd"), 2, replace=False)
        lines.append(f"{a},{b},{rng.choice(['model_a', 'model_b', 'tie'])},{rng.integers(90)},50")
    Path("battles.csv").write_text("\n".join(lines))
    return {"test": pc.read_comparisons("battles.csv", covariates=["length_a - length_b"])}


def games(rng):
    teams = np.array(["Arsenal", "Everton", "Leeds"])
    home = rng.integers(3, size=60)
    away = (home + rng.integers(1, 3, size=60)) % 3
    days = np.datetime64("2019-08-01") + 14 * np.arange(60)
    data = pc.Comparisons.from_pairs(
        teams[home], teams[away], first=np.ones(60, int), tie=rng.random(60) < 0.2, time=days
    )
    return {"games": data, "dates": days[::10]}


def linked(rng):
    graph = np.ones((6, 6)) - np.eye(6)
    data = pc.datasets.simulate_pairs(np.arange(6.0), 60, random_state=0)
    return {"X": rng.standard_normal((6, 2)), "data": data, "graph": graph}


def people(rng):
    study = pc.datasets.simulate_study(n_users=6, n_items=8, n_answers=10)
    return {"X": study.item_features, "data": study.comparisons}


def many_votes(rng):
    pandas = pytest.importorskip("pandas")
    Path("votes").mkdir()
    winner = rng.integers(4, size=200)
    frame = pandas.DataFrame({"user": np.arange(200) // 10, "winner": winner})
    frame["loser"] = (winner + 1) % 4
    frame.to_parquet("votes/part.parquet")
    return {}


SETTING = {
    "effects.md": battles,
    "time.md": games,
    "defaults.md": linked,
    "gpu.md": people,
    "cluster.md": many_votes,
}
"""What the reader of a page has: files in the folder, and names."""


def marked(page):
    return pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if page not in ELSEWHERE])
@pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning")
def test_every_snippet_runs_and_shows_what_it_claims(
    page, tmp_path, monkeypatch, capsys, run_snippet
):
    require(NEEDS.get(page))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    scope = {"pc": pc} | SETTING.get(page, lambda rng: {})(np.random.default_rng(0))
    text = (DOCS / page).read_text(encoding="utf-8")
    for language, block in BLOCK.findall(text):
        if language == "text":
            assert capsys.readouterr().out == block
        else:
            run_snippet(block, scope)


def require(what):
    if what is not None:
        module = pytest.importorskip("torch" if what == "cuda" else what)
        if what == "cuda" and not module.cuda.is_available():
            pytest.skip("torch sees no graphics card here")


def test_what_is_run_elsewhere_is_run_there():
    for page, test in ELSEWHERE.items():
        assert page in PAGES
        assert page in (DOCS.parent / test).read_text(encoding="utf-8")
