"""Options that commands share: where the data are, and which model learns from them."""

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from click.core import ParameterSource

import penchant as pc
from penchant.cli.files import RELATION_KINDS, SUFFIX, Files, FittedModel, load, read_material
from penchant.cli.output import Output
from penchant.workflow.choosing import choose
from penchant.workflow.encoding import Encoded, as_names
from penchant.workflow.models import (
    KINDS,
    Material,
    build,
    knows_only_features,
    settings_of,
    tells_people_apart,
)

PATIENCE = 10.0
"""Seconds after which fitting the same model again would annoy."""
FILE = click.Path(allow_dash=True)
"""A text that shells complete to the name of a file."""
ROLES = ("winner", "loser", "user", "tie", "count", "margin", "first")


@dataclass(frozen=True)
class SourceOptions(Files):
    """What to learn from, and how."""

    model: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the estimator
    seed: int | None = None  # None: 0

    @property
    def is_model(self) -> bool:
        """Whether the file is a model that was fitted before."""
        return Path(self.comparisons).suffix == SUFFIX

    @property
    def all_settings(self) -> dict[str, Any]:
        """Those of the estimator, the seed among them."""
        return {"random_state": self.seed or 0, **self.settings}

    @property
    def spelled(self) -> str:
        """The source and the options about data, to be typed again."""
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

    def material(self, output: Output) -> Material:
        """Read the data, and say what is there."""
        if self.is_model:
            raise click.UsageError(
                f"{self.comparisons} is a fitted model: this command needs the comparisons"
            )
        with output.progress("reading"):
            material = read_material(self, output.note)
        output.note(material.data.describe().splitlines()[0])
        return material

    def chosen(self, material: Material, asked: str | None = None) -> tuple[str, str]:
        """The model that was asked for, or one that suits; and why."""
        asked = asked or self.model
        if asked == "auto" and self.time is None:
            return choose(material)
        name, why = (asked, "as you asked") if asked != "auto" else ("gp", "it follows time")
        check_usable(name, material)
        if self.time is not None and not {"drift", "half_life"} & set(self.settings):
            raise pc.DataError(
                f"--time {self.time}: nothing uses it; add --set drift=ou, or --set half_life=DAYS"
            )
        return name, why

    def fit(self, material: Material, output: Output) -> FittedModel:
        """Choose and fit a model."""
        return fit_and_tell(material, self.chosen(material), output, self.all_settings)

    def fitted(
        self, output: Output, *, user: str | None = None, items: Sequence[str] = ()
    ) -> FittedModel:
        """The model in the file, or a new one fitted to the data in it.

        Whether the user and items that the command will look for exist is checked before any fit.
        """
        if not self.is_model:
            begin = perf_counter()
            material = self.material(output)
            data = material.data
            find_user(data.users, user)
            data.item_index(as_names(items, data.items))
            choice = self.chosen(material)
            find_user(data.users if tells_people_apart(choice[0]) else (), user)
            fitted = fit_and_tell(material, choice, output, self.all_settings)
            if perf_counter() - begin > PATIENCE:
                output.note(f"tip: penchant fit {self.spelled} keeps the model for the next time")
            return fitted
        if self != SourceOptions(self.comparisons):
            raise click.UsageError(
                f"{self.comparisons} is a fitted model: options about data and model belong to "
                "`penchant fit`"
            )
        return load(self.comparisons)


def check_usable(name: str, material: Material) -> None:
    """Whether a model that was asked for can learn from what there is."""
    if tells_people_apart(name) and material.data.user is None:
        raise pc.DataError(
            f"--model {name} learns tastes of people, but no column says who made each "
            "comparison: name it with --column user=NAME, or use --model gp"
        )
    if knows_only_features(name) and material.X is None:
        raise pc.DataError(
            f"--model {name} ranks items by their features: give them with --items FILE, or use "
            "--model gp"
        )
    data = material.data
    given = {
        "relations": (material.relations, "--relation", knows_only_features(name)),
        "features of users": (material.user_features, "--users", not tells_people_apart(name)),
        "covariates": (data.covariates, "--covariate", knows_only_features(name)),
        "times": (data.time, "--time", name != "gp"),
    }
    for what, (value, option, is_unused) in given.items():
        if value is not None and is_unused:
            instead = "multi-user" if option == "--users" else "gp"
            raise pc.DataError(
                f"--model {name} does not use {what}: leave out {option}, or use --model {instead}"
            )


def find_user(users: tuple[Any, ...], name: str | None) -> Any | None:
    """The user whom a text on the command line names; users: those whom a model tells apart."""
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
    material: Material, choice: tuple[str, str], output: Output, settings: Mapping[str, Any]
) -> FittedModel:
    """Fit a model, saying which and why."""
    name, why = choice
    output.note(f"model: {name} ({why})")
    begin = perf_counter()
    if "progress" in settings_of(name):  # it shows a bar of its own
        bar = {"progress": not output.quiet}
        model = material.fit(build(name, material.data, {**bar, **settings}))
    else:
        with output.progress(f"fitting {name}"):
            model = material.fit(build(name, material.data, settings))
    output.note(f"fitted in {perf_counter() - begin:.1f} s")
    if material.data.user is not None and not tells_people_apart(name):
        about = getattr(getattr(model, "report_", None), "about_people", str)()
        output.note(" ".join(about.split()) or f"{name} does not use who made which comparison")
    return FittedModel(model, material.X if isinstance(material.X, Encoded) else None, why)


def as_moment(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """A number of days, or the text of a date."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


at_option = click.option(
    "--at",
    metavar="DATE",
    callback=as_moment,
    help="As of this date (2024-05-31), where utilities drift; else as of the last comparison.",
)


def as_of(fitted: FittedModel, when: Any) -> dict[str, Any]:
    """What predictions of a model as of a date take."""
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


def target_option(default: str, what: str) -> Callable[..., Any]:
    """Add -o for a file to write; whether it can be written is known before any work is done."""

    def check(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        path = Path(value).resolve()
        if not path.parent.is_dir():
            raise click.BadParameter(f"{value}: there is no folder {Path(value).parent}")
        if path.exists() and not path.is_file():
            raise click.BadParameter(f"{value} is no plain file: give the path of one")
        if not os.access(path.parent, os.W_OK):
            raise click.BadParameter(f"{value}: the folder {path.parent} cannot be written to")
        return value

    return click.option(
        "-o",
        "--output",
        "target",
        metavar="FILE",
        type=FILE,
        default=default,
        show_default=True,
        callback=check,
        help=f"Where to write the {what}.",
    )


def _refuse_input_as_output(source: SourceOptions, target: str | None) -> None:
    """Data must not be written over by what is made of them."""
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
        callback=_relations,
        help="Links between items; KIND is undirected, directed or bipartite. Repeatable.",
    )
    @click.option(
        "--column",
        "columns",
        metavar="ROLE=NAME",
        multiple=True,
        callback=_columns,
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
        type=click.Choice(["auto", *KINDS]),
        default="auto",
        show_default=True,
        help="What to fit; auto chooses by the data.",
    )
    @click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_settings,
        help="A setting of the model, such as likelihood=logit. Repeatable.",
    )
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        show_default="0",
        help="Same seed, same result.",
    )
    @wraps(function)
    def command(**given: Any) -> Any:
        own = {part.name: given.pop(part.name) for part in fields(SourceOptions)}
        source = SourceOptions(**own)
        _refuse_input_as_output(source, given.get("target"))
        return function(source=source, **given)

    return command


def _relations(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str, str], ...]:
    return tuple(_relation(value) for value in values)


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


def _columns(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    columns = dict(value.partition("=")[::2] for value in values)
    for role, name in columns.items():
        if not name or role not in ROLES:
            raise click.BadParameter(
                f"'{role}={name}' must look like winner=chosen, with one of {', '.join(ROLES)} "
                "before ="
            )
    return columns


def _settings(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Values are read as JSON where they are JSON, as text otherwise."""
    settings: dict[str, Any] = {}
    for name, value in (pair.partition("=")[::2] for pair in values):
        if not name or not value:
            raise click.BadParameter(f"'{name}' must look like likelihood=logit")
        if name == "random_state":
            raise click.BadParameter("random_state is given by --seed")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings
