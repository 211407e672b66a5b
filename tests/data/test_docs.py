"""The pages about data say what is true: their snippets run and show what they claim."""

import re
from pathlib import Path

import numpy as np
import pytest

from penchant.io import SPELLINGS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "data.md"
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)


def test_every_snippet_runs_and_shows_what_it_claims(tmp_path, monkeypatch, capsys, run_snippet):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    n_claims = 0
    for language, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "text":
            assert capsys.readouterr().out == block
            continue
        n_claims += run_snippet(block, scope)
    assert n_claims > 20


def test_the_page_lists_the_spellings_that_are_recognised():
    page = PAGE.read_text(encoding="utf-8")
    for role, words in SPELLINGS.items():
        assert f"| {role} | {', '.join(words)}" in page


def test_the_examples_of_choices_run_in_order():
    page = (DOCS / "choices.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    blocks = [block for language, block in BLOCK.findall(page) if language == "python"]
    for block in blocks:
        exec(block, scope)
    assert len(blocks) == len(scope["sets"]) == 2
    assert np.isfinite(scope["gp"].predict()).all()
