"""`penchant doctor` and `penchant bench`: is the installation right, and how fast is it?"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from math import log, pi, sqrt
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

import penchant as pc
from penchant.cli import CHECK_FAILED
from penchant.cli.output import Output, command_with, output_options
from penchant.numerics.dispatch import cards, torch_version
from penchant.workflow.models import KINDS, Material, build

PACKAGES = ("numpy", "scipy", "scikit-learn", "duckdb", "numba", "click", "rich", "matplotlib")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@command_with("penchant doctor")
@output_options(csv=False)
def doctor_command(output: Output) -> None:
    """Show versions, linear algebra and threads, and check that results are right.

    The checks compare inference with a closed form, read a file, save and load a model and draw a
    figure. The exit code is 1 if any of them fails. Put the output into a bug report.
    """
    checks = [_run(name, check) for name, check in CHECKS.items()]
    libraries = [
        {
            "library": f"{info['internal_api']} ({info.get('version') or 'version unknown'})",
            "threads": info["num_threads"],
            "file": Path(info["filepath"]).name,
        }
        for info in threadpool_info()
    ]
    versions = {"penchant": pc.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in PACKAGES}
    versions["torch"] = torch_version() or "not installed: penchant[gpu]"
    seen = cards()
    machine = {
        "cards": [card._asdict() for card in seen],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }
    if output.form == "json":
        output.json(versions=versions, machine=machine, libraries=libraries, checks=checks)
    else:
        facts = {**versions, "platform": machine["platform"], "cores": machine["cores"]}
        facts |= {card.name: f"{card.what}, {card.memory / 1e9:.0f} GB" for card in seen}
        facts |= {f"threads of {each['library']}": each["threads"] for each in libraries}
        rows = [{"what": name, "value": value} for name, value in facts.items()]
        rows += [{"what": f"check: {c['check']}", "value": c["found"], **c} for c in checks]
        output.rows(rows, {"what": "", "value": "", "ok": ""})
    if not all(check["ok"] for check in checks):
        output.note("a check failed: please report it with the output above")
        sys.exit(CHECK_FAILED)
    output.suggest("penchant demo")


def _run(name: str, check: Callable[[], str]) -> dict[str, Any]:
    begin = perf_counter()
    try:
        found, ok = check(), True
    except Exception as error:  # a doctor reports whatever is wrong, and goes on
        found, ok = f"{type(error).__name__}: {error}", False
    return {"check": name, "ok": ok, "found": found, "seconds": perf_counter() - begin}


def _inference() -> str:
    """One comparison of two independent items: the posterior has a closed form.

    The difference has prior variance 2 and noise 1, so z = 0, and the tilted mean is
    2 h / √3 with h = N(0)/Φ(0) = √(2/π); the evidence is ½ by symmetry.
    """
    data = pc.Comparisons.from_pairs(["a"], ["b"])
    model = pc.PreferenceGP(optimize=None).fit(None, data)
    a, b = model.predict()
    errors = abs(a - b - 2.0 * sqrt(2.0 / pi) / sqrt(3.0)), abs(model.log_evidence_ - log(0.5))
    if not max(errors) < 1e-9:
        raise ArithmeticError(f"inference is off by {max(errors):.1e}")
    return f"inference within {max(errors):.0e} of the closed form"


def _files() -> str:
    with tempfile.TemporaryDirectory() as folder:
        votes, file = Path(folder) / "votes.csv", Path(folder) / "model.penchant"
        votes.write_text("\ufeffwinner;loser\ntea;milk\n", encoding="utf-8")
        model = pc.PreferenceGP(optimize=None).fit(None, pc.read_comparisons(votes))
        model.save(file)
        if not (pc.load(file).predict() == model.predict()).all():
            raise OSError("a model that was saved reads back as another")
    return "a table was read, a model saved and loaded"


def _figure() -> str:
    with tempfile.TemporaryDirectory() as folder:
        data = pc.Comparisons.from_pairs(["a"], ["b"])
        ranking = pc.PreferenceGP(optimize=None).fit(None, data).rank()
        file = Path(folder) / "ranking.svg"
        pc.plots.plot_ranking(ranking).figure.savefig(file)
        return f"a figure of {file.stat().st_size} bytes"


CHECKS = {"inference": _inference, "files": _files, "figures": _figure}


BENCH_FORMATS = {"model": "", "seconds": ".2f", "comparisons_per_second": ",.0f"}


@command_with("penchant bench --items 10 --users 6 --answers 5 --with gp")
@click.option("--items", "n_items", type=click.IntRange(5), default=100, show_default=True)
@click.option("--users", "n_users", type=click.IntRange(3), default=200, show_default=True)
@click.option("--answers", type=click.IntRange(1), default=50, show_default=True, help="Per user.")
@click.option(
    "--with", "names", multiple=True, type=click.Choice(list(KINDS)), help="Only these models."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@output_options()
def bench_command(
    n_items: int, n_users: int, answers: int, names: tuple[str, ...], seed: int, output: Output
) -> None:
    """Time the fit of every model on a simulated study.

    Hyperparameters are learned as in any fit. Comparisons with other packages are in the
    repository's benchmarks folder.
    """
    simulated = pc.datasets.simulate_study(n_users, n_items, n_answers=answers, random_state=seed)
    data = simulated.comparisons
    material, rows = Material(data, simulated.item_features), []
    for name in names or KINDS:
        begin = perf_counter()
        with output.progress(f"fitting {name}"):
            material.fit(build(name, data, {"random_state": seed}))
        seconds = perf_counter() - begin
        speed = data.n_comparisons / seconds
        rows.append({"model": name, "seconds": seconds, "comparisons_per_second": speed})
    output.rows(rows, BENCH_FORMATS, items=n_items, users=n_users, comparisons=n_users * answers)
    output.suggest("penchant doctor   (which linear algebra and how many threads were used)")
