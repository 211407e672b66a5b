"""Small random changes of the core, each of which some test should notice: `make mutants`.

A mutant changes one operator, comparison, constant or sign. Tests whose names are nearest to the
changed module run first, then all. It works on a copy of the tree; the same seed draws the same
mutants. Survivors are listed with file, line and change; the exit code is 1 if there are more than
one in twenty.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("numerics", "data", "kernels", "likelihoods", "gp", "ask", "models", "communities")
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "results")
FILES = ("pyproject.toml", "README.md", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md")
OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
BOOLEANS = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
MOST_SURVIVORS = 0.05


class Mutant(NamedTuple):
    """One change: where it is, and the text before and after; positions count bytes of the line."""

    path: Path
    line: int
    start: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.start}  {self.before}  →  {self.after}"

    def applied(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        row = lines[self.line - 1].encode()
        end = self.start + len(self.before.encode())
        lines[self.line - 1] = (row[: self.start] + self.after.encode() + row[end:]).decode()
        return "".join(lines)


def mutants_of(path: Path, text: str) -> list[Mutant]:
    """Every change of one module; those within one line only, so that they can be shown.

    >>> [str(m) for m in mutants_of(Path("x.py"), "y = a + 2")]
    ['x.py:1:6  +  →  -', 'x.py:1:8  2  →  3']
    """
    lines = [line.encode() for line in text.splitlines()]
    found = []

    def between(left: ast.expr, right: ast.expr, before: str, after: str) -> None:
        """An operator stands between its operands; parentheses and spaces do too."""
        if left.end_lineno == right.lineno:
            gap = lines[right.lineno - 1][left.end_col_offset : right.col_offset]
            place = gap.find(before.encode())
            if place >= 0:
                start = left.end_col_offset + place
                found.append(Mutant(path, right.lineno, start, before, after))

    for node in _code_of(ast.parse(text)):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
                if type(op) in COMPARISONS:
                    between(left, right, *COMPARISONS[type(op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                between(left, right, *BOOLEANS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            found.append(Mutant(path, node.lineno, node.col_offset, "-", "+"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            found.append(
                Mutant(path, node.lineno, node.col_offset, str(node.value), str(not node.value))
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            written = ast.get_source_segment(text, node) or ""
            other = str(node.value + 1) if isinstance(node.value, int) else f"({written} * 2 + 1)"
            found.append(Mutant(path, node.lineno, node.col_offset, written, other))
    return sorted(set(found))


def _code_of(tree: ast.AST):
    """Nodes that run: annotations say nothing at run time, and formats of texts only look."""
    for name, part in ast.iter_fields(tree):
        if name in ("annotation", "returns", "format_spec"):
            continue
        for node in part if isinstance(part, list) else [part]:
            if isinstance(node, ast.JoinedStr):
                continue
            if isinstance(node, ast.AST):
                yield node
                yield from _code_of(node)


def draw(root: Path, n: int, seed: int, parts=PARTS) -> list[Mutant]:
    """n mutants, evenly over the lines of the core."""
    every = []
    for part in parts:
        for path in sorted((root / "src" / "penchant" / part).rglob("*.py")):
            every += mutants_of(path.relative_to(root), path.read_text(encoding="utf-8"))
    return random.Random(seed).sample(every, min(n, len(every)))


def nearest(root: Path, path: Path) -> list[str]:
    """Tests of the same name, then of the same folder, and the module's own doctests."""
    inside = path.relative_to("src/penchant")
    named = sorted((root / "tests").rglob(f"test_{path.stem}*.py"))
    folder = sorted((root / "tests" / inside.parent).glob("test_*.py"))
    tests = [str(test.relative_to(root)) for test in dict.fromkeys(named + folder)]
    return [str(path), *tests]


class Bench:
    """A copy of the tree in which one mutant at a time is put to the test."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.root, self.timeout = folder, timeout
        self._is_steady: dict[str, bool] = {}
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
                )
        for name in FILES:
            shutil.copy(ROOT / name, folder / name)

    def steady(self, tests: list[str]) -> list[str]:
        """Those that pass without a change: the others would take every mutant for noticed."""
        for test in tests:
            if test not in self._is_steady:
                self._is_steady[test] = not self.is_noticed([test], self.timeout)
                if not self._is_steady[test]:
                    print(f"left out, it fails without a change: {test}", flush=True)
        return [test for test in tests if self._is_steady[test]]

    def is_noticed(self, tests: list[str], timeout: float) -> bool:
        """Whether some test fails or the time runs out; where there is none (exit 5), no."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        names = {"PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.Popen(
            command,
            cwd=self.root,
            env={**os.environ, **threads, **names},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return done.wait(timeout) not in (0, 5)
        except subprocess.TimeoutExpired:
            done.kill()
            done.wait()
            return True

    def survives(self, mutant: Mutant, with_all: bool) -> bool:
        if self._notices(mutant, self.steady(nearest(self.root, mutant.path)), self.timeout):
            return False
        everything = [str(path.relative_to(self.root)) for path in _all_tests(self.root)]
        return not (with_all and self._notices(mutant, self.steady(everything), 5.0 * self.timeout))

    def _notices(self, mutant: Mutant, tests: list[str], timeout: float) -> bool:
        target = self.root / mutant.path
        text = target.read_text(encoding="utf-8")
        target.write_text(mutant.applied(text), encoding="utf-8")
        try:
            return bool(tests) and self.is_noticed(tests, timeout)
        finally:
            target.write_text(text, encoding="utf-8")


def _all_tests(root: Path) -> list[Path]:
    return sorted((root / "tests").rglob("test_*.py"))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--timeout", type=float, default=300.0, help="of the nearest tests, seconds"
    )
    parser.add_argument("--nearest", action="store_true", help="leave the other tests out")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these folders")
    parser.add_argument("--list", action="store_true", help="only say what would be tried")
    options = parser.parse_args(argv)
    chosen = draw(ROOT, options.n, options.seed, options.part or PARTS)
    if options.list:
        print(*chosen, sep="\n")
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.timeout)
        for number, mutant in enumerate(chosen, 1):
            start = time.monotonic()
            lives = bench.survives(mutant, not options.nearest)
            survivors += [mutant] * lives
            fate = "SURVIVED" if lives else "killed"
            seconds = time.monotonic() - start
            print(f"{number}/{len(chosen)} {fate} in {seconds:.0f} s  {mutant}", flush=True)
    print(f"\n{len(survivors)} of {len(chosen)} survived (seed {options.seed})")
    print(*survivors, sep="\n")
    return int(len(survivors) > MOST_SURVIVORS * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
