"""The house itself: names that exist once, functions that stay readable, tests at front doors."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penchant"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "migrations" not in path.parts)


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_a_class_name_exists_once():
    classes = [node for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    names = Counter(node.name for node in classes)
    assert [name for name, times in names.items() if times > 1] == []


def test_functions_stay_short():
    long = [
        f"{path.relative_to(SOURCE)}:{node.name}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno > 75
    ]
    assert long == []


def test_products_of_many_users_go_through_numerics():
    """Only `numerics` knows of other devices: no `@` and no factorisation beside it."""
    for path in (SOURCE / "gp" / "users").glob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                line = path.read_text().splitlines()[node.lineno - 1]
                assert "wide.T @ weights" in line, f"{path.name}:{node.lineno}"  # a sparse one
            if isinstance(node, ast.Attribute) and node.attr == "linalg":
                raise AssertionError(f"{path.name}:{node.lineno} uses numpy.linalg")


BEHIND_THE_DOOR = {
    "cli/test_docs.py",
    "cli/test_files.py",
    "cli/test_options.py",
    "cli/test_output.py",
    "models/test_ask_tell_people.py",
    "models/test_community_gp.py",
    "models/test_community_relations.py",
    "models/test_model_files.py",
    "plots/test_style.py",
    "study/test_parity.py",
    "workflow/test_html.py",
}
"""Tests that import a module of a package. Take files off this list, put none on it."""


IMPORT = re.compile(r"^\s*(?:from|import) (penchant[\w.]*)(?: import (\([^)]*\)|.*))?", re.M)


def modules_behind(path):
    """The modules inside packages that a file imports. A package in a package has a front door."""
    for module, names in IMPORT.findall(path.read_text(encoding="utf-8")):
        door = SOURCE.joinpath(*module.split(".")[1:], "__init__.py")
        if module.count(".") > 1 and not door.is_file():
            yield module
        if module != "penchant" and door.is_file():
            bound = re.findall(r"[\w.]+", door.read_text(encoding="utf-8"))
            for name in re.findall(r"\w+", names):
                if name not in bound and door.with_name(f"{name}.py").is_file():
                    yield f"{module}.{name}"


def test_tests_speak_to_front_doors():
    """Tests import packages, never a module inside one, so that the inside can move."""
    behind = {
        path.relative_to(ROOT / "tests").as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if any(modules_behind(path))
    }
    assert sorted(behind - BEHIND_THE_DOOR) == []
