"""The command reference: every command, argument and option, told by click itself."""

from collections.abc import Iterator
from pathlib import Path

import click

from _site.root_files import DOCS, write_if_new
from penchant.cli import main

PAGE = DOCS / "cli_reference.md"


def commands(
    command: click.Command = main, words: tuple[str, ...] = ("penchant",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below and including this one, by the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, (*words, name))


def write_cli(page: Path = PAGE) -> Path:
    """Write the page, which nobody edits."""
    parts = [
        "# Every command and option",
        "What each is for, with examples: [the command line](cli.md).",
        *(_section(words, command) for words, command in commands()),
    ]
    write_if_new(page, ("\n\n".join(parts) + "\n").encode())
    return page


def _section(words: tuple[str, ...], command: click.Command) -> str:
    name = " ".join(words)
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"{'#' * (len(words) + 1)} {name}", f"```text\n{usage}\n```"]
    parts += [_prose(text) for text in (command.help, command.epilog) if text]
    rows = [_row(parameter) for parameter in command.params if isinstance(parameter, click.Option)]
    shown = [row for row in rows if row]
    if shown:
        parts.append("\n".join(["| option | what it does |", "|---|---|", *shown]))
    return "\n\n".join(parts)


def _prose(text: str) -> str:
    r"""Help as Markdown; what click was told not to wrap (\b) stays as it is."""
    parts = []
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        if lines and lines[0].strip() == "\b":
            parts.append("```text\n" + "\n".join(lines[1:]) + "\n```")
        else:
            parts.append(_safe(" ".join(paragraph.split())))
    return "\n\n".join(parts)


def _row(option: click.Option) -> str:
    if option.hidden:
        return ""
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag else f" *{_safe(_kind(option))}*"
    return f"| {flags}{kind} | {_safe(' '.join((option.help or '').split()))} |"


def _kind(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " or ".join(map(str, option.type.choices))
    return (option.metavar or option.type.name).upper()


def _safe(text: str) -> str:
    """Signs that Markdown would take for its own are taken for signs."""
    for sign in "\\|*_<>[]$`":
        text = text.replace(sign, f"\\{sign}")
    return text
