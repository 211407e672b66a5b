"""`penchant fit`: learn a model and save it."""

from time import perf_counter
from typing import Any

import click

import penchant as pc
from penchant.cli.output import FILE, Output, command_with, output_options, target_option
from penchant.cli.source import SUFFIX, FittedModel, SourceOptions, source_argument
from penchant.engines import ENGINES
from penchant.workflow.models import build

SHARDS = 64
SCANNED = ("gp", "multi-user", "community")
"""Models that learn from comparisons in shards."""


@command_with(
    "penchant fit votes.csv -o model.penchant",
    "penchant fit votes.csv --items items.csv --relation similar=links.csv",
    "penchant fit 'votes/*.parquet' --engine local --predictions tastes",
)
@source_argument
@target_option(f"model{SUFFIX}", "model")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="SOURCE is a file or a pattern of names, and need not fit in memory: users are worked on "
    "in shards, here or by Ray.",
)
@click.option("--address", help="Of a running Ray cluster.")
@click.option("--shards", type=click.IntRange(min=1), show_default=str(SHARDS), help="How many.")
@click.option("--scratch", type=FILE, help="Folder for shards; workers elsewhere must see it.")
@click.option(
    "--resume",
    type=FILE,
    metavar="FOLDER",
    help="With --engine: keep shards and sweeps there; the same command goes on from them.",
)
@click.option(
    "--predictions",
    type=FILE,
    metavar="FOLDER",
    help="With --engine: write the utilities (or memberships) of all users there, as Parquet.",
)
@output_options(csv=False)
def fit_command(source: SourceOptions, target: str, output: Output, **sharding: Any) -> None:
    """Learn a model from the comparisons in SOURCE and save it.

    SOURCE is a CSV, Parquet, JSON-lines or PrefLib file, or - for standard input. Its rows name a
    winner and a loser, and if you know it the user.
    """
    if not target.endswith(SUFFIX):
        raise click.UsageError(f"-o {target}: the name of a model file ends in {SUFFIX}")
    if sharding["engine"] is None:
        if given := [f"--{name}" for name, value in sharding.items() if value is not None]:
            raise click.UsageError(f"{' and '.join(given)} belong to --engine")
        material = source.material(output)
        data: Any = material.data
        begin = perf_counter()
        fitted = source.fit(material, output)
        seconds = perf_counter() - begin
        fitted.save(target)
    else:
        data, fitted, seconds = _fit_shards(source, target, output, sharding)
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


def _fit_shards(
    source: SourceOptions, target: str, output: Output, sharding: dict[str, Any]
) -> tuple[Any, FittedModel, float]:
    """Scan the files, fit, and save while the shards are there."""
    name = "multi-user" if source.model == "auto" else source.model
    if name not in SCANNED:
        raise click.UsageError(f"--engine: --model must be one of {', '.join(SCANNED)}")
    if name == "gp" and sharding["predictions"]:
        raise click.UsageError("--predictions: --model gp takes everybody together")
    if sharding["address"] and sharding["engine"] != "ray":
        raise click.UsageError("--address belongs to --engine ray")
    if name == "gp" and sharding["engine"] == "ray":
        raise click.UsageError(
            "--engine ray: --model gp adds everybody up here; use --engine local"
        )
    unread = ("covariates", "time", "margin", "first")
    if source.items or source.users or source.relations or any(map(source.how.get, unread)):
        raise click.UsageError(
            "--engine: features, relations, covariates, times, margins and sides are not read from "
            "shards: fit without --engine"
        )
    how = {key: value for key, value in source.how.items() if key not in unread}
    how |= {key: sharding[key] for key in ("scratch", "resume")}
    how["shards"] = sharding["shards"] or SHARDS
    with output.progress("scanning"):
        votes = pc.scan_comparisons(source.comparisons, **how)
    with votes:
        output.note(f"{votes.n_comparisons:,} comparisons by {votes.n_users:,} users")
        begin = perf_counter()
        settings = dict(source.all_settings)
        if name != "gp":
            given = {"engine": sharding["engine"], "address": sharding["address"]}
            settings = {"progress": not output.quiet, **given, **settings}
        if name == "community":
            settings = {"personal": False, **settings}
        try:
            model = build(name, votes.pooled, settings).fit(None, votes)
        except KeyboardInterrupt:
            if votes.is_kept:
                output.note(f"sweeps are kept in {sharding['resume']}: the same command goes on")
            raise
        seconds = perf_counter() - begin
        output.note(f"fitted in {seconds:.1f} s")
        fitted = FittedModel(model, None, "as you asked")
        fitted.save(target)
        if sharding["predictions"] is not None:
            write = model.write_memberships if name == "community" else model.write_predictions
            write(sharding["predictions"])
            output.note(f"wrote {sharding['predictions']}")
        return votes, fitted, seconds
