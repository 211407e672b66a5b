"""`penchant fit`: learn a model and save it."""

from time import perf_counter

import click

from penchant.cli.model_file import SUFFIX, save
from penchant.cli.options import SourceOptions, source_argument, target_option
from penchant.cli.output import Output, output_options


@click.command(
    epilog="""\b
    Examples:
      penchant fit votes.csv -o model.penchant
      penchant fit votes.csv --items items.csv --relation similar=links.csv
    """
)
@source_argument
@target_option(f"model{SUFFIX}", "model")
@output_options(csv=False)
def command(source: SourceOptions, target: str, output: Output) -> None:
    """Learn a model from the comparisons in SOURCE and save it.

    SOURCE is a CSV, Parquet, JSON-lines or PrefLib file, or - for standard input. Its rows name a
    winner and a loser, and if you know it the user.
    """
    if not target.endswith(SUFFIX):
        raise click.UsageError(f"-o {target}: the name of a model file ends in {SUFFIX}")
    material = source.material(output)
    data = material.data
    begin = perf_counter()
    fitted = source.fit(material, output)
    seconds = perf_counter() - begin
    save(fitted, target)
    output.note(f"wrote {target}")
    output.record(
        {
            "model": fitted.name,
            "why": fitted.why,
            "file": target,
            "items": data.n_items,
            "users": data.n_users,
            "comparisons": data.n_comparisons,
            "log_evidence": getattr(fitted.model, "log_evidence_", None),
            "seconds": seconds,
        }
    )
    output.suggest(f"penchant rank {target}")
