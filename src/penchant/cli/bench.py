"""`penchant bench`: how fast the models are on this machine."""

from time import perf_counter

import click

import penchant as pc
from penchant.cli.output import Output, output_options
from penchant.workflow.models import KINDS, Material, build

FORMATS = {"model": "", "seconds": ".2f", "comparisons_per_second": ",.0f"}


@click.command(
    epilog="""\b
    Example:
      penchant bench --items 10 --users 6 --answers 5 --with gp
    """
)
@click.option("--items", "n_items", type=click.IntRange(5), default=100, show_default=True)
@click.option("--users", "n_users", type=click.IntRange(3), default=200, show_default=True)
@click.option("--answers", type=click.IntRange(1), default=50, show_default=True, help="Per user.")
@click.option(
    "--with", "names", multiple=True, type=click.Choice(list(KINDS)), help="Only these models."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@output_options()
def command(
    n_items: int, n_users: int, answers: int, names: tuple[str, ...], seed: int, output: Output
) -> None:
    """Time the fit of every model on a simulated study.

    Hyperparameters are learned as in any fit. Comparisons with other packages are in the
    repository's benchmarks folder.
    """
    simulated = pc.datasets.simulate_study(n_users, n_items, n_answers=answers, random_state=seed)
    material = Material(simulated.comparisons, simulated.item_features)
    data = material.data
    rows = []
    for name in names or KINDS:
        begin = perf_counter()
        with output.progress(f"fitting {name}"):
            material.fit(build(name, data, {"random_state": seed}))
        seconds = perf_counter() - begin
        votes = data.n_comparisons
        rows.append({"model": name, "seconds": seconds, "comparisons_per_second": votes / seconds})
    output.rows(rows, FORMATS, items=n_items, users=n_users, comparisons=n_users * answers)
    output.suggest("penchant doctor   (which linear algebra and how many threads were used)")
