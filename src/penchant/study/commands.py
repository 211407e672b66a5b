"""`penchant study …`: the group of commands, each loaded when it is called.

Their modules need the extra `study`; what there is to call can be seen without it.
"""

from importlib import import_module

import click

from penchant.errors import DataError

COMMANDS = {
    "new": "Make a study from a list of items.",
    "serve": "Serve a study, and print its links.",
    "work": "Run the model process alone; `serve` does it by itself.",
    "invite": "Print personal links.",
    "status": "Tell how a study stands.",
    "export": "Write the votes as CSV, Parquet or JSON lines.",
    "import": "Take in votes that were collected elsewhere.",
    "backup": "Copy a running study into one file.",
    "restore": "Make a study's folder from a backup.",
    "simulate": "Let robots with known tastes answer a copy of a study, over HTTP.",
    "demo": "Make a study, serve it, let robots answer, and open its dashboard.",
}
"""What each command does."""


class StudyCommands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            found = import_module("penchant.study.management")
        except ModuleNotFoundError as error:
            raise DataError(
                f"penchant study needs {error.name}, which is not installed: "
                "pip install 'penchant[study]' brings everything"
            ) from None
        command: click.Command = getattr(found, "import_" if cmd_name == "import" else cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


command = StudyCommands(
    "study", help="Run a study: people vote in a browser, the model asks, you watch."
)
