"""The mutants: every change is one, is valid Python, and is drawn again by the same seed."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import mutants

SOURCE = '''
def f(a: int = 3, b=-1.5) -> "x - y":
    """1 + 1"""
    if a <= b and not a == 2 or a is None:
        return (a + b) * f"{a + 1:>3}"
    return a not in (b, True)
'''


def test_every_kind_of_change_is_found():
    found = mutants.mutants_of(Path("x.py"), SOURCE)
    changes = {(mutant.before, mutant.after) for mutant in found}
    assert changes >= {
        ("<=", "<"),
        ("==", "!="),
        ("and", "or"),
        ("or", "and"),
        ("is", "is not"),
        ("not in", "in"),
        ("+", "-"),
        ("*", "/"),
        ("-", "+"),
        ("2", "3"),
        ("True", "False"),
    }
    for mutant in found:
        changed = mutant.applied(SOURCE)
        assert changed != SOURCE
        ast.parse(changed)


def test_the_same_seed_draws_the_same_changes_of_the_core():
    one, two = (mutants.draw(mutants.ROOT, 25, seed) for seed in (4, 4))
    assert one == two
    assert one != mutants.draw(mutants.ROOT, 25, 5)
    for mutant in one:
        text = (mutants.ROOT / mutant.path).read_text(encoding="utf-8")
        ast.parse(mutant.applied(text))


def test_the_nearest_tests_are_those_of_the_same_name():
    tests = mutants.nearest(mutants.ROOT, Path("src/penchant/ask/criteria.py"))
    assert tests[:2] == ["src/penchant/ask/criteria.py", "tests/ask/test_criteria.py"]


def test_a_killed_and_a_surviving_mutant_are_told_apart(tmp_path, monkeypatch):
    for name, text in {
        "src/penchant/ask/a.py": "LIMIT = 3\nUNUSED = 5\n",
        "src/penchant/ask/__init__.py": "",
        "src/penchant/__init__.py": "",
        "tests/ask/test_b.py": "def test():\n    assert False\n",
        "tests/ask/test_a.py": "import penchant.ask.a as a\n\ndef test():\n    assert a.LIMIT == 3",
    }.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "tree")
    monkeypatch.setattr(mutants, "FILES", ())
    bench = mutants.Bench(tmp_path / "bench", timeout=60.0)
    one, other = sorted(mutants.draw(tmp_path / "tree", 2, 0))
    assert not bench.survives(one, with_all=False)
    assert bench.survives(other, with_all=True)
    assert (tmp_path / "bench/src/penchant/ask/a.py").read_text() == "LIMIT = 3\nUNUSED = 5\n"
