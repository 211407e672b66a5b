"""Tables that say themselves what they hold: Parquet and JSON."""

from pathlib import Path

from penchant.data.duck import NO_GUESSES, Duck
from penchant.data.source import Source, described

JSON = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")


def open_parquet(duck: Duck, path: Path) -> Source:
    """Return the table in a Parquet file."""
    sql = f"read_parquet({duck.place(path)}, {NO_GUESSES})"
    return Source(sql, described(duck.con, sql, "typed"), path.name, first_row=0)


def open_json(duck: Duck, path: Path) -> Source:
    """Return the table in a JSON file; its cells stay JSON, as they are written."""
    file = duck.unzipped(path) if path.suffix.lower() == ".gz" else path
    sql = f"read_json({duck.place(file)}, maximum_depth = 1, sample_size = -1, {NO_GUESSES})"
    return Source(sql, described(duck.con, sql, "json"), path.name)
