"""`docs/guarantees.md`: every promise names a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if hasattr(node, "name")}
    bound = [node for node in tree.body if isinstance(node, ast.Assign)]
    return names | {
        name.id for node in bound for name in ast.walk(node) if isinstance(name, ast.Name)
    }


def promises():
    """The page's bullets, but for what is not promised."""
    page = PAGE.split("## What is not promised")[0]
    return re.split(r"\n- ", page)[1:]


def cited(promise):
    """Pairs of a file and the name of a test in it."""
    path = None
    for file, name in re.findall(r"\*(tests/[\w/]+\.py)\*|`(test_\w+|Test\w+)`", promise):
        path = file or path
        if name:
            yield path, name


def test_every_promise_names_a_test():
    assert len(promises()) > 15
    assert [promise for promise in promises() if not list(cited(promise))] == []


def test_every_named_test_exists():
    named = [pair for promise in promises() for pair in cited(promise)]
    assert [pair for pair in named if pair[1] not in names_in(pair[0])] == []
