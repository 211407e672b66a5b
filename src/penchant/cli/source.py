"""SOURCE and the options about it: the files that a command reads, and the model that it fits.

SOURCE is a table of comparisons, or a model file. A model file is what `model.save` writes, and
beside it the items' features: with them the command line encodes new tables as it encoded the
model's own. `penchant.load` ignores the addition.
"""

import io
import json
import os
import re
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

import penchant as pc
from penchant.cli.output import FILE, Output
from penchant.workflow import models
from penchant.workflow.encoding import Encoded, Encoding, as_names

PATIENCE = 10.0
"""Seconds of fitting after which the command advises to keep the model."""
ROLES = ("winner", "loser", "user", "tie", "count", "margin", "first")
RELATION_KINDS = ("undirected", "directed", "bipartite")
SUFFIX = ".penchant"
_ENCODING, _FEATURES = "study.json", "features.npy"
"""Names of the command line's additions inside a model file."""
_MAGIC = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl", b"# FILE NAME": ".toi"}
"""First bytes of a format → the suffix of its files."""


@dataclass(frozen=True)
class FittedModel:
    """A fitted model, and the items' features where they came from a table."""

    model: Any
    X: Encoded | None
    why: str = ""

    @property
    def name(self) -> str:
        """The model's name on the command line."""
        return models.name_of(self.model)

    @property
    def data(self) -> pc.Comparisons:
        """The comparisons that it was fitted to."""
        return self.model.comparisons_

    def save(self, path: str) -> None:
        """Write one file, whole or not at all."""
        target = Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".penchant-") as folder:
            scratch = Path(folder) / target.name
            self.model.save(scratch)
            if self.X is not None:
                buffer = io.BytesIO()
                np.save(buffer, self.X.values, allow_pickle=False)
                with zipfile.ZipFile(scratch, "a") as archive:
                    content = {"item_encoding": asdict(self.X.encoding)}
                    archive.writestr(_ENCODING, json.dumps(content))
                    archive.writestr(_FEATURES, buffer.getvalue())
            os.replace(scratch, target)

    @classmethod
    def load(cls, path: str) -> "FittedModel":
        """Read what `save` or a model's own `save` wrote."""
        model = models.as_model(pc.load(path))
        try:
            names = model.comparisons_.items
        except AttributeError:
            raise pc.DataError(
                f"{path} holds a {models.name_of(model)} model without the names of its items: "
                "fit it with `penchant fit`, or use it in Python"
            ) from None
        try:
            with zipfile.ZipFile(path) as archive:
                if not {_ENCODING, _FEATURES} <= set(archive.namelist()):
                    return cls(model, None)
                values = np.load(io.BytesIO(archive.read(_FEATURES)), allow_pickle=False)
                encoding = Encoding.from_dict(json.loads(archive.read(_ENCODING))["item_encoding"])
                return cls(model, Encoded(values, names, encoding))
        except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise pc.DataError(f"{path} is damaged ({error}): fit the model again") from None


@dataclass(frozen=True)
class SourceOptions:
    """What to learn from, and how."""

    comparisons: str
    items: str | None = None
    users: str | None = None
    relations: tuple[tuple[str, str, str], ...] = ()  # name, kind, path
    columns: Mapping[str, str] = field(default_factory=dict)  # role → name of the column
    shape: str | None = None
    covariates: tuple[str, ...] = ()  # columns, or differences of two: "length_a - length_b"
    time: str | None = None
    skip_bad: bool = False
    where: str | None = None
    model: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the estimator
    seed: int | None = None  # None: 0

    @property
    def is_model(self) -> bool:
        """Whether the file is a model that was fitted before."""
        return Path(self.comparisons).suffix == SUFFIX

    @property
    def how(self) -> dict[str, Any]:
        """The keywords of `read_comparisons`."""
        plain = {"shape": self.shape, "skip_bad": self.skip_bad, "where": self.where}
        return {**plain, "covariates": self.covariates, "time": self.time, **self.columns}

    @property
    def all_settings(self) -> dict[str, Any]:
        """The settings of the estimator, and its seed."""
        return {"random_state": self.seed or 0, **self.settings}

    @property
    def spelled(self) -> str:
        """The source and its options, as they would be typed."""
        flags = [("--items", self.items), ("--users", self.users)]
        for name, kind, path in self.relations:
            label = name if kind == RELATION_KINDS[0] else f"{name}:{kind}"
            flags.append(("--relation", f"{label}={path}"))
        flags += [("--column", f"{role}={name}") for role, name in self.columns.items()]
        flags += [("--shape", self.shape), ("--where", self.where)]
        flags += [("--covariate", covariate) for covariate in self.covariates]
        flags.append(("--time", self.time))
        flags.append(("--model", self.model if self.model != "auto" else None))
        for name, value in self.settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            flags.append(("--set", f"{name}={text}"))
        flags.append(("--seed", str(self.seed) if self.seed else None))
        words = ["votes.csv" if self.comparisons == "-" else self.comparisons]
        words += [word for flag, value in flags if value for word in (flag, value)]
        return shlex.join(words + ["--skip-bad"] * self.skip_bad)

    def read(self, note: Callable[[str], None]) -> models.Material:
        """Read and match all files; `note` is called with a sentence about each column left out."""
        with local_file(self.comparisons) as path, _hints():
            data = pc.read_comparisons(path, **self.how)
        X, user_features = None, None
        if data.source:
            note(f"read {data.source}")
        if self.items is not None:
            X = _encoded(self.items, data.items, "item", note)
            data = replace(data, items=X.names)
        if self.users is not None:
            if data.user is None:
                raise pc.DataError(
                    f"{self.users} describes users, but no column of the comparisons says who made "
                    "them: name it with --column user=NAME, or leave out --users"
                )
            user_features = _encoded(self.users, data.users, "user", note)
            data = replace(data, users=user_features.names)
        links: list[tuple[str, Any, pc.io.Links]] = []
        for name, kind, path_of_links in self.relations:
            with local_file(path_of_links) as path:
                links.append((name, kind, pc.io.read_relation(path, data.items)))
        if X is None:  # items that are linked but were never compared belong to the study
            known = dict.fromkeys(data.items)
            for _, kind, found in links:
                known |= dict.fromkeys(found.items(kind))
            data = replace(data, items=tuple(known))
        graphs: dict[str, Any] = {}
        for name, kind, found in links:  # `from, to[, weight]`; bipartite: `item, other thing[, …]`
            graph = found.matrix(data.items, kind)
            undirected = kind == RELATION_KINDS[0]
            graphs[name] = graph if undirected else getattr(pc.kernels, kind)(graph)
        return models.Material(data, X, graphs or None, user_features)

    def segments(self, by: str) -> dict[str, pc.Comparisons]:
        """Read the comparisons apart by the values of a column."""
        with local_file(self.comparisons) as path, _hints():
            return pc.io.read_segments(path, by, **self.how)

    def material(self, output: Output) -> models.Material:
        """Read the data, and describe them."""
        if self.is_model:
            raise click.UsageError(
                f"{self.comparisons} is a fitted model: this command needs the comparisons"
            )
        with output.progress("reading"):
            material = self.read(output.note)
        output.note(material.data.describe().splitlines()[0])
        return material

    def chosen(self, material: models.Material, asked: str | None = None) -> tuple[str, str]:
        """The model that the user asked for, or one that suits; and why."""
        asked = asked or self.model
        if asked == "auto" and self.time is None:
            return models.choose(material)
        name, why = (asked, "as you asked") if asked != "auto" else ("gp", "it follows time")
        check_usable(name, material)
        if self.time is not None and not {"drift", "half_life"} & set(self.settings):
            raise pc.DataError(
                f"--time {self.time}: nothing uses it; add --set drift=ou, or --set half_life=DAYS"
            )
        return name, why

    def fit(self, material: models.Material, output: Output) -> FittedModel:
        """Choose and fit a model."""
        return fit_and_tell(material, self.chosen(material), output, self.all_settings)

    def fitted(
        self, output: Output, *, user: str | None = None, items: Sequence[str] = ()
    ) -> FittedModel:
        """The model in the file, or a new one fitted to the data in it.

        Unknown users and items are an error before the fit.
        """
        if self.is_model:
            if self != SourceOptions(self.comparisons):
                raise click.UsageError(
                    f"{self.comparisons} is a fitted model: options about data and model belong to "
                    "`penchant fit`"
                )
            return FittedModel.load(self.comparisons)
        begin = perf_counter()
        material = self.material(output)
        data = material.data
        find_user(data.users, user)
        if items:
            data.item_index(as_names(items, data.items))
        choice = self.chosen(material)
        find_user(data.users if models.tells_people_apart(choice[0]) else (), user)
        fitted = fit_and_tell(material, choice, output, self.all_settings)
        if perf_counter() - begin > PATIENCE:
            output.note(f"tip: penchant fit {self.spelled} keeps the model for the next time")
        return fitted


# Reading


@contextmanager
def local_file(path: str) -> Iterator[Path]:
    """The path itself, or for `-` a temporary file with the content of standard input.

    Standard input has no name to tell its format; its first bytes do.
    """
    if path != "-":
        yield Path(path)
        return
    if sys.stdin is None:
        raise pc.DataError("standard input is closed: give the path of a file instead of -")
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise pc.DataError("standard input is empty: pipe a table with a header line into it")
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    suffix = next((s for magic, s in _MAGIC.items() if start.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        file = Path(folder) / f"standard input{suffix}"
        file.write_bytes(content)
        yield file


def read_table(path: str) -> pc.io.CellTable:
    """All columns of a table of features or pairs."""
    with local_file(path) as file:
        return pc.io.read_table(file)


def _encoded(path: str, names: Sequence[Any], what: str, note: Callable[[str], None]) -> Encoded:
    """Features of everything that was compared, and after them of other rows of the table."""
    table = read_table(path)
    encoded = pc.encode(table, names, others=True, what=what)
    for sentence in encoded.left_out:
        note(f"{table.source}: {sentence}")
    return encoded


@contextmanager
def _hints() -> Iterator[None]:
    """Add the command line's own options to the library's advice."""
    try:
        yield
    except pc.DataError as error:
        message = str(error)
        columns = re.findall(r"""(?:winner|loser)=(?:'[^']*'|"[^"]*")""", message)
        # a shape after "as" or "for" is said not to fit
        shapes = dict.fromkeys(re.findall(r"(?<!as )(?<!for )shape='([a-z-]+)'", message))
        options = [" ".join(f"--column {column}" for column in columns)] if columns else []
        options += [f"--shape {shape}" for shape in shapes]
        if not options and "rows are counted" in message:
            options = ["--skip-bad leaves such rows out"]
        hint = f"\non the command line: {', '.join(options)}" if options else ""
        raise pc.DataError(message + hint) from None


# Choosing and fitting


def check_usable(name: str, material: models.Material) -> None:
    """Raise an error where a model cannot learn from these data, or would ignore some."""
    if models.tells_people_apart(name) and material.data.user is None:
        raise pc.DataError(
            f"--model {name} learns tastes of people, but no column says who made each "
            "comparison: name it with --column user=NAME, or use --model gp"
        )
    if models.knows_only_features(name) and material.X is None:
        raise pc.DataError(
            f"--model {name} ranks items by their features: give them with --items FILE, or use "
            "--model gp"
        )
    data = material.data
    given = {
        "relations": (material.relations, "--relation", models.knows_only_features(name)),
        "features of users": (
            material.user_features,
            "--users",
            not models.tells_people_apart(name),
        ),
        "covariates": (data.covariates, "--covariate", models.knows_only_features(name)),
        "times": (data.time, "--time", name != "gp"),
    }
    for what, (value, option, is_unused) in given.items():
        if value is not None and is_unused:
            instead = "multi-user" if option == "--users" else "gp"
            raise pc.DataError(
                f"--model {name} does not use {what}: leave out {option}, or use --model {instead}"
            )


def find_user(users: tuple[Any, ...], name: str | None) -> Any | None:
    """The user of that name; users: all users of the model."""
    if name is None:
        return None
    if not users:
        raise pc.DataError(
            "--user: this model takes everybody together; fit --model multi-user or community to "
            "look at one person"
        )
    (user,) = as_names([name], users)
    if user not in users:
        raise pc.DataError(
            f"--user {name}: nobody of that name made a comparison; the {len(users)} users are "
            f"{', '.join(map(str, users[:3]))} …"
        )
    return user


def fit_and_tell(
    material: models.Material, choice: tuple[str, str], output: Output, settings: Mapping[str, Any]
) -> FittedModel:
    """Fit a model, and note which and why."""
    name, why = choice
    output.note(f"model: {name} ({why})")
    begin = perf_counter()
    if "progress" in models.settings_of(name):  # it shows a bar of its own
        bar = {"progress": not output.quiet}
        model = material.fit(models.build(name, material.data, {**bar, **settings}))
    else:
        with output.progress(f"fitting {name}"):
            model = material.fit(models.build(name, material.data, settings))
    output.note(f"fitted in {perf_counter() - begin:.1f} s")
    if material.data.user is not None and not models.tells_people_apart(name):
        output.note(models.about_people(model) or f"{name} does not use who made which comparison")
    return FittedModel(model, material.X if isinstance(material.X, Encoded) else None, why)


# Options


def as_moment(value: str) -> float | str:
    """A number of days, or the text of a date."""
    try:
        return float(value)
    except ValueError:
        return value


at_option = click.option(
    "--at",
    metavar="DATE",
    type=as_moment,
    help="As of this date (2024-05-31), where utilities drift; else as of the last comparison.",
)


def as_of(fitted: FittedModel, when: Any) -> dict[str, Any]:
    """The keyword that makes a model predict as of a date."""
    if when is None:
        return {}
    if getattr(fitted.model, "drift", None) is None:
        raise pc.DataError(
            f"--at {when}: this model has no drift; fit with --time COLUMN --set drift=ou"
        )
    return {"at": when}


def refuse_beside(option: str, *others: str) -> None:
    """Refuse options that would do nothing beside another one."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        if given and parameter.name in others:
            raise click.UsageError(f"{option} goes without {parameter.opts[-1]}")


def _refuse_input_as_output(source: SourceOptions, target: str | None) -> None:
    if source.is_model:
        return  # a command that needs comparisons says so
    inputs = [source.comparisons, source.items, source.users]
    inputs += [path for *_, path in source.relations]
    there = [Path(path) for path in inputs if path and path != "-" and Path(path).exists()]
    if target and Path(target).exists() and any(path.samefile(target) for path in there):
        raise click.UsageError(
            f"-o {target} is also read: it would be overwritten; give another name"
        )


def source_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add SOURCE and the options about data; the command receives them as `source`."""

    @click.argument("comparisons", metavar="SOURCE", type=FILE)
    @click.option("--items", metavar="FILE", type=FILE, help="Table with features of the items.")
    @click.option("--users", metavar="FILE", type=FILE, help="Table with features of the users.")
    @click.option(
        "--relation",
        "relations",
        metavar="NAME[:KIND]=FILE",
        multiple=True,
        type=_relation,
        help="Links between items; KIND is undirected, directed or bipartite. Repeatable.",
    )
    @click.option(
        "--column",
        "columns",
        metavar="ROLE=NAME",
        multiple=True,
        type=_column,
        callback=_as_dict,
        help=f"Which column is which; ROLE is {', '.join(ROLES)}. Repeatable.",
    )
    @click.option(
        "--shape",
        metavar="SHAPE",
        help="How the table is meant, where that is not recognised: pairs, outcome, scores, "
        "rankings, ranks, ratings, grades, questions, best-worst, top, approvals …",
    )
    @click.option(
        "--where",
        metavar="CONDITION",
        help="Read some rows only: 'language = en and turns > 2' (and, or; = != < <= > >=).",
    )
    @click.option(
        "--covariate",
        "covariates",
        metavar="COLUMN",
        multiple=True,
        help="A number beside each comparison whose effect is estimated: a column, or a difference "
        "such as 'length_a - length_b'. Repeatable.",
    )
    @click.option(
        "--time",
        metavar="COLUMN",
        help="Date, or number of days, of each comparison: for --set drift=ou or half_life=DAYS.",
    )
    @click.option("--skip-bad", is_flag=True, help="Leave out rows that cannot be used.")
    @click.option(
        "--model",
        type=click.Choice(["auto", *models.KINDS]),
        default="auto",
        show_default=True,
        help="What to fit; auto chooses by the data.",
    )
    @click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        type=_setting,
        callback=_as_dict,
        help="A setting of the model, such as likelihood=logit. Repeatable.",
    )
    @click.option(
        "--seed", type=click.IntRange(min=0), show_default="0", help="Same seed, same result."
    )
    @wraps(function)
    def command(**given: Any) -> Any:
        own = {part.name: given.pop(part.name) for part in fields(SourceOptions)}
        source = SourceOptions(**own)
        _refuse_input_as_output(source, given.get("target"))
        return function(source=source, **given)

    return command


def _relation(value: str) -> tuple[str, str, str]:
    label, equals, path = value.partition("=")
    name, colon, kind = label.partition(":")
    kind = kind if colon else RELATION_KINDS[0]
    if not (equals and name and path) or kind not in RELATION_KINDS:
        raise click.BadParameter(
            f"{value!r} must look like cites=links.csv or cites:KIND=links.csv, with KIND one of "
            f"{', '.join(RELATION_KINDS)}"
        )
    return name, kind, path


def _column(value: str) -> tuple[str, str]:
    role, _, name = value.partition("=")
    if not name or role not in ROLES:
        raise click.BadParameter(
            f"'{role}={name}' must look like winner=chosen, with one of {', '.join(ROLES)} before ="
        )
    return role, name


def _setting(text: str) -> tuple[str, Any]:
    """A value is read as JSON where it is JSON, as text otherwise."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise click.BadParameter(f"'{name}' must look like likelihood=logit")
    if name == "random_state":
        raise click.BadParameter("random_state is given by --seed")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _as_dict(ctx: click.Context, parameter: click.Parameter, pairs: Any) -> dict[str, Any]:
    return dict(pairs)
