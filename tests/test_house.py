"""The house itself: names that exist once, modules and functions that stay readable."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "penchant"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "migrations" not in path.parts)
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def test_a_class_name_exists_once():
    names = Counter(
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_functions_stay_short():
    long = [
        f"{path.relative_to(SOURCE)}:{node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno > 75
    ]
    assert long == []


def test_products_of_many_users_go_through_the_seam():
    """`numerics` alone may learn of another device: no `@` and no factorisation beside it."""
    for path in (SOURCE / "gp" / "users").glob("*.py"):
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                line = path.read_text().splitlines()[node.lineno - 1]
                assert "wide.T @ weights" in line, f"{path.name}:{node.lineno}"  # a sparse one
            if isinstance(node, ast.Attribute) and node.attr == "linalg":
                raise AssertionError(f"{path.name}:{node.lineno} uses numpy.linalg")
