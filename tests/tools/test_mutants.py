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
    parts = ("likelihoods",)
    one, two, other = (mutants.draw(mutants.ROOT, 25, seed, parts) for seed in (4, 4, 5))
    assert one == two != other
    for mutant in one:
        text = (mutants.ROOT / mutant.path).read_text(encoding="utf-8")
        ast.parse(mutant.applied(text))


def test_slices_share_a_draw(capsys):
    listed = []
    for part in ("1/1", "1/2", "2/2"):
        mutants.main(["-n", "5", "--part", "likelihoods", "--list", "--slice", part])
        listed.append(capsys.readouterr().out.splitlines())
    assert listed[0] == [listed[1][0], listed[2][0], listed[1][1], listed[2][1], listed[1][2]]


def test_a_statement_has_all_its_lines_and_a_compound_one_its_head():
    text = "if (a and\n        b):\n    x = (1 +\n         2)\n"
    assert list(mutants.statement(text, 2)) == [1, 2]
    assert list(mutants.statement(text, 4)) == [3, 4]


def test_tests_that_reach_the_line_are_asked_the_likeliest_first():
    lines = {"src/a.py": {1: {""}, 3: {"t/x.py::slow", "t/x.py::quick", "t/test_a.py::named"}}}
    seconds = {"t/x.py::slow": 9.0, "t/x.py::quick": 0.1, "t/test_a.py::named": 1.0, "t/o.py::o": 0}
    reach = mutants.Reach(lines, seconds)
    text = "LIMIT = 3\ndef f():\n    return 1 + 2\n"
    inside = mutants.Mutant(Path("src/a.py"), 3, 13, "+", "-")
    assert reach.tests_for(inside, text) == ["t/test_a.py::named", "t/x.py::quick", "t/x.py::slow"]
    on_import = mutants.Mutant(Path("src/a.py"), 1, 8, "3", "4")
    assert reach.tests_for(on_import, text) == reach.tests_for(inside, text)
    nowhere = mutants.Mutant(Path("src/b.py"), 1, 8, "3", "4")
    assert reach.tests_for(nowhere, text) == []


def test_a_killed_and_a_surviving_mutant_are_told_apart(tmp_path, monkeypatch):
    for name, text in {
        "src/penchant/ask/a.py": "LIMIT = 3\n\n\ndef f(x):\n    return x * (0 < 5)\n",
        "src/penchant/ask/__init__.py": "",
        "src/penchant/__init__.py": "",
        "tests/ask/test_b.py": "def test():\n    assert False\n",
        "tests/ask/test_a.py": (
            "import penchant.ask.a as a\n\n"
            "def test():\n    assert a.LIMIT == 3\n\n"
            "def test_f():\n    assert a.f(2) == 2\n"
        ),
    }.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "tree")
    bench = mutants.Bench(tmp_path / "bench", patience=60.0)
    reach = bench.recorded()
    assert len(reach.seconds) == 2  # the one that fails without a change says nothing
    drawn = sorted(mutants.draw(tmp_path / "tree", 9, 0))
    killed, survivor = (mutant for mutant in drawn if mutant.before in ("3", "5"))
    assert not bench.survives(killed, reach)
    assert bench.survives(survivor, reach)
    text = (tmp_path / "tree/src/penchant/ask/a.py").read_text()
    assert (tmp_path / "bench/src/penchant/ask/a.py").read_text() == text
