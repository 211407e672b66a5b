"""README.md's table of peers, made from BENCHMARKS.md.

`python benchmarks/readme.py` writes it; so does every run that writes BENCHMARKS.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
HEAD = "| against | on | penchant | the peer |"
TABLE = re.compile(r"^\| against \|.*?\n(?!\|)", re.M | re.S)


class Row(NamedTuple):
    """What two rows of BENCHMARKS.md say, found by their section and some of their cells.

    say: with the names of columns in braces; a cell is shown without what is in parentheses.
    """

    against: str
    on: str
    say: str
    section: str
    shared: dict[str, str]
    ours: str
    theirs: str
    their_section: str | None = None


GP = "Posterior and hyperparameters"
TIMED = "{seconds} s, {peak MB} MB, log-likelihood {log-lik (ceiling)}"
LIKELY = "{seconds} s, log-likelihood {log-lik (ceiling)}"
GROUPED = "{seconds} s, adjusted Rand {adjusted Rand}"
RANKED = "{seconds} s, error {disagreement error}"
CARD = "at given hyperparameters"
FOUR = "2,000 people in four communities, 30 votes each"
MILLION = "1,000,000 votes over 1,000 items"
VOTES = {"n / m": "1,000 / 1,000,000"}
SUSHI = {"learned from": "27 of 45 pairs a user"}
ROWS = (
    Row(
        "BoTorch's PairwiseGP",
        "1,000 items, 20,000 comparisons",
        TIMED,
        GP,
        {"n / m": "1,000 / 20,000"},
        "penchant ep",
        "botorch laplace",
    ),
    Row(
        "BoTorch's PairwiseGP, hyperparameters learned",
        "1,000 items, 20,000 comparisons",
        TIMED,
        GP,
        {"n / m": "1,000 / 20,000"},
        "penchant evidence",
        "botorch evidence",
    ),
    Row(
        "BoTorch on the same H200",
        "2,000 items, 50,000 comparisons",
        "{seconds} s",
        f"Inference {CARD}",
        {"n / m": "2,000 / 50,000"},
        "",
        "",
        f"BoTorch's PairwiseGP {CARD}",
    ),
    Row(
        "choix (EP)",
        "500 items, 5,000 comparisons",
        LIKELY,
        GP,
        {"n / m": "500 / 5,000"},
        "penchant ep, no kernel",
        "choix ep, no kernel",
    ),
    Row(
        "Polis' pipeline (red-dwarf)",
        FOUR,
        GROUPED,
        "Communities of taste",
        {"votes a user": "30"},
        "penchant CommunityGP",
        "red-dwarf (Polis)",
    ),
    Row(
        "scikit-learn's DP mixture",
        FOUR,
        GROUPED,
        "Communities of taste",
        {"votes a user": "30"},
        "penchant CommunityGP",
        "scikit-learn DP mixture",
    ),
    Row(
        "implicit (ALS)",
        "sushi, 27 pairs a user",
        "{seconds} s, {accuracy} right",
        "Single users: sushi",
        SUSHI,
        "penchant MultiUserGP",
        "implicit ALS",
    ),
    Row(
        "scikit-learn's logistic regression",
        "sushi, a column a user and item",
        "{seconds} s, {accuracy} right, log-likelihood {log-likelihood}",
        "Single users: sushi",
        SUSHI,
        "penchant MultiUserGP",
        "scikit-learn logistic, user × item",
    ),
    Row(
        "scikit-learn's logistic regression",
        MILLION,
        LIKELY,
        "Win tables",
        VOTES,
        "penchant probit",
        "scikit-learn logistic, items",
    ),
    Row(
        "evalica",
        MILLION,
        LIKELY,
        "Win tables",
        VOTES,
        "penchant probit",
        "evalica Bradley–Terry",
    ),
    Row(
        "arena-rank, which has intervals too",
        MILLION,
        LIKELY,
        "Win tables",
        VOTES,
        "penchant probit",
        "arena-rank",
    ),
    Row(
        "kickscore, given the true constants",
        "40 items that drift, 5,000 games",
        LIKELY,
        "Utilities that drift",
        {},
        "penchant PreferenceGP, drift",
        "kickscore",
    ),
    Row(
        "RLScore",
        "MQ2008, linear RankRLS",
        RANKED,
        "Graded documents",
        {},
        "penchant RankRLS, linear",
        "rlscore RankRLS, linear",
    ),
    Row(
        "RLScore",
        "MQ2008, RankRLS with an RBF kernel",
        RANKED,
        "Graded documents",
        {},
        "penchant RankRLS",
        "rlscore RankRLS, RBF",
    ),
    Row(
        "LightGBM",
        "MQ2008",
        RANKED,
        "Graded documents",
        {},
        "penchant RankRLS",
        "lightgbm lambdarank",
    ),
)


def make_table(benchmarks: str) -> str:
    """The table; a peer that has no figures is left out."""
    rows = list(rows_of(benchmarks))
    lines = [HEAD, "|---|---|---|---|"]
    for row in ROWS:
        ours = sentence(row, rows, row.section, row.ours)
        theirs = sentence(row, rows, row.their_section or row.section, row.theirs)
        if ours and theirs:
            lines.append(f"| {row.against} | {row.on} | {ours} | {theirs} |")
    return "\n".join(lines) + "\n"


def sentence(row: Row, rows: list[tuple[str, dict[str, str]]], section: str, who: str) -> str:
    """What is said of one contestant; empty where it was not measured."""
    wanted = row.shared | ({"contestant": who} if who else {})
    for heading, cells in rows:
        if heading.startswith(section) and wanted.items() <= cells.items():
            used = re.findall(r"{(.*?)}", row.say)
            shown = {name: re.sub(r" \([^)]*\)", "", cells.get(name, "")) for name in used}
            is_measured = all(re.match(r"-?\d", cell) for cell in shown.values())
            return row.say.format_map(shown) if is_measured else ""
    return ""


def rows_of(benchmarks: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Every row of every table: the heading above it, and its cells by column."""
    heading, columns = "", []
    for line in benchmarks.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells_of(line)
        elif not set(line) <= set("|- "):
            yield heading, dict(zip(columns, cells_of(line), strict=True))


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_of(readme: str) -> str:
    """The table that stands in README.md."""
    return TABLE.search(readme).group()


def write(benchmarks: Path) -> None:
    """Put the table that BENCHMARKS.md gives into README.md."""
    file = ROOT / "README.md"
    readme, table = file.read_text(encoding="utf-8"), make_table(benchmarks.read_text("utf-8"))
    file.write_text(readme.replace(table_of(readme), table), encoding="utf-8")


if __name__ == "__main__":
    write(ROOT / "BENCHMARKS.md")
