"""Small random changes of the core, each of which some test should notice: `make mutants`.

A mutant changes one operator, comparison, constant or sign. One run of the tests first records
which of them reach which lines, and how long each takes. A mutant then meets the tests that reach
its statement: those named after its module first, and quick ones before slow ones. A line that runs
on import (a constant, a default) meets the tests that use its module and those of
its package.
Mutants live in a copy of the tree. The same seed draws the same mutants; `--slice 1/2` and
`--slice 2/2`, with one `--reach` file, share a draw between two processes. Survivors are listed
with file, line and change; the exit code is 1 if more than one in twenty survive.
"""

import argparse
import ast
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("numerics", "data", "io", "kernels", "likelihoods", "gp", "ask", "models", "communities")
LEFT_OUT = (".*", "__pycache__", "build", "dist", "_build")
"""What a copy of the tree does not need."""
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
STAGES = (5.0, 60.0)
"""Seconds of tests in the first runs of pytest: collecting all tests at once would take longer."""
SLOWER = 5.0
"""A mutant runs for ever, and so is noticed, if its tests take this many times their usual time."""


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
            swapped = (str(node.value), str(not node.value))
            found.append(Mutant(path, node.lineno, node.col_offset, *swapped))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            written = ast.get_source_segment(text, node) or ""
            other = str(node.value + 1) if isinstance(node.value, int) else f"({written} * 2 + 1)"
            found.append(Mutant(path, node.lineno, node.col_offset, written, other))
    return sorted(set(found))


def _code_of(tree: ast.AST):
    """Nodes that run: annotations say nothing at run time, and formats of texts only look.

    `strict` is an assertion about what is zipped, which holds.
    """
    for name, part in ast.iter_fields(tree):
        if name in ("annotation", "returns", "format_spec"):
            continue
        if isinstance(tree, ast.keyword) and tree.arg == "strict":
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
            if path.name.startswith("torch_"):  # `make torch` tests them, where torch is
                continue
            every += mutants_of(path.relative_to(root), path.read_text(encoding="utf-8"))
    return random.Random(seed).sample(every, min(n, len(every)))


class Reach(NamedTuple):
    """What one run without a change taught: which tests reach which lines, and their seconds."""

    lines: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]

    def tests_for(self, mutant: Mutant, text: str) -> list[str]:
        """Those that could notice, the likeliest first; its module's if it runs on import."""
        reached = self.lines.get(mutant.path.as_posix(), {})
        found = set().union(*(reached.get(line, set()) for line in statement(text, mutant.line)))
        if "" in found:
            found |= set().union(*reached.values())
        if "" in found or "import numba" in text:  # the tracer sees nothing of what is compiled
            found |= {test for test in self.seconds if f"tests/{mutant.path.parent.name}/" in test}
        named = f"test_{mutant.path.stem}"

        def likeliest(test: str) -> tuple[bool, float]:
            return (named not in test, self.seconds[test])

        return sorted(found - {""}, key=likeliest)


def statement(text: str, line: int) -> range:
    """Lines of the smallest statement around one line; of a compound one, its head alone.

    >>> list(statement("x = (\\n    1 +\\n    2)\\nif x:\\n    y = 3", 2))
    [1, 2, 3]
    """
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or line
            if node.lineno <= line <= max(last, node.lineno):
                best = range(node.lineno, max(last, node.lineno) + 1)
    return best


def stages(tests: list[str], seconds: dict[str, float]) -> list[list[str]]:
    """The tests in runs of their own, each longer than the last: most mutants need the first.

    >>> stages(list("abcd"), {"a": 4.0, "b": 4.0, "c": 30.0, "d": 90.0})
    [['a', 'b'], ['c', 'd']]
    """
    found: list[list[str]] = [[]]
    limits, taken = iter(STAGES), 0.0
    limit = next(limits)
    for test in tests:
        if taken >= limit:
            found.append([])
            limit, taken = next(limits, math.inf), 0.0
        found[-1].append(test)
        taken += seconds[test]
    return [some for some in found if some]


class Recorder:
    """The pytest plugin of the recording run: names the running test to the tracer."""

    def __init__(self, tracer: Any, root: Path) -> None:
        self.tracer, self.root = tracer, root
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tracer.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def reach(self) -> Reach:
        """Tests that fail or are skipped without a change are left out."""
        data = self.tracer.get_data()
        lines = {}
        for path in data.measured_files():
            reached = data.contexts_by_lineno(path)
            name = Path(path).resolve().relative_to(self.root.resolve()).as_posix()
            lines[name] = {line: set(tests) - self.failed for line, tests in reached.items()}
        kept = {test: took for test, took in self.seconds.items() if test not in self.failed}
        return Reach(lines, kept)


def record(root: Path) -> Reach:
    """Run every test of the tree at root once, in this process."""
    import coverage
    import pytest

    sources = [str(root / "src" / "penchant" / part / "*") for part in PARTS]
    tracer = coverage.Coverage(data_file=None, include=sources)
    recorder = Recorder(tracer, root)
    tracer.start()
    pytest.main(["-q", "-p", "no:cacheprovider"], plugins=[recorder])
    tracer.stop()
    return recorder.reach()


class Bench:
    """A copy of the tree in which one mutant at a time is put to the test."""

    def __init__(self, folder: Path, patience: float) -> None:
        self.root, self.patience = folder, patience
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT, folder, ignore=ignore, dirs_exist_ok=True)

    def recorded(self, kept: Path | None = None) -> Reach:
        """What a child process learns of the unchanged tree: the tracer stays out of this one."""
        into = (kept or self.root / "reach.pickle").resolve()
        if not into.exists():
            self._python(str(Path(__file__)), "--record", str(into)).wait()
        with into.open("rb") as file:
            return Reach(*pickle.load(file))

    def survives(self, mutant: Mutant, reach: Reach) -> bool:
        target = self.root / mutant.path
        text = target.read_text(encoding="utf-8")
        tests = reach.tests_for(mutant, text)
        target.write_text(mutant.applied(text), encoding="utf-8")
        try:
            for some in stages(tests, reach.seconds):
                patience = self.patience + SLOWER * sum(reach.seconds[test] for test in some)
                if self._is_noticed(some, patience):
                    return False
            return True
        finally:
            target.write_text(text, encoding="utf-8")

    def _is_noticed(self, tests: list[str], timeout: float) -> bool:
        """Whether some test fails or the time runs out."""
        wanted = self.root / "wanted.txt"
        wanted.write_text("\n".join(tests), encoding="utf-8")
        done = self._python("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{wanted}")
        try:
            return done.wait(timeout) not in (0, 5)
        except subprocess.TimeoutExpired:
            done.kill()
            done.wait()
            return True

    def _python(self, *words: str) -> subprocess.Popen[bytes]:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        names = {"PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, **threads, **names}
        return subprocess.Popen([sys.executable, *words], cwd=self.root, env=environment, **quiet)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds beyond what its tests should take"
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="only these folders")
    parser.add_argument("--slice", default="1/1", metavar="I/K", help="every K-th, from the I-th")
    parser.add_argument("--list", action="store_true", help="only say what would be tried")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--reach", type=Path, help="which tests reach which lines, kept here for the next run"
    )
    options = parser.parse_args(argv)
    if options.record:
        options.record.write_bytes(pickle.dumps(tuple(record(Path.cwd()))))
        return 0
    number, of = map(int, options.slice.split("/"))
    chosen = draw(ROOT, options.n, options.seed, options.part or PARTS)[number - 1 :: of]
    if options.list:
        print(*chosen, sep="\n")
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.patience)
        reach = bench.recorded(options.reach)
        print(f"{len(reach.seconds)} tests recorded", flush=True)
        for number, mutant in enumerate(chosen, 1):
            start = time.monotonic()
            lives = bench.survives(mutant, reach)
            survivors += [mutant] * lives
            fate = "SURVIVED" if lives else "killed"
            seconds = time.monotonic() - start
            print(f"{number}/{len(chosen)} {fate} in {seconds:.0f} s  {mutant}", flush=True)
    print(f"\n{len(survivors)} of {len(chosen)} survived (seed {options.seed})")
    print(*survivors, sep="\n")
    return int(len(survivors) > MOST_SURVIVORS * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
