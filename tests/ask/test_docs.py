"""The page about asking says what is true: its snippets run, its tables are complete."""

import re
from pathlib import Path

from penchant.ask import CRITERIA

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ask.md").read_text(encoding="utf-8")


def test_every_snippet_runs_and_shows_what_it_claims(tmp_path, monkeypatch, run_snippet):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    n_claims = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        n_claims += run_snippet(block, scope)
    assert n_claims >= 8


def test_every_criterion_and_stop_rule_is_named():
    for name in (*CRITERIA, "Budget", "SmallGain", "TopSettled"):
        assert f"`{name}" in PAGE
