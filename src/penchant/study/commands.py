"""`penchant study …`: the group of commands, each loaded when it is called.

Their modules need the extra `study`; what there is to call can be seen without it.
"""

from importlib import import_module

import click

from penchant.errors import DataError

COMMANDS = {
    "new": ("management", "Make a study from a list of items."),
    "serve": ("management", "Serve a study, and print its links."),
    "work": ("management", "Run the model process alone; `serve` does it by itself."),
    "invite": ("management", "Print personal links."),
    "status": ("management", "Tell how a study stands."),
    "export": ("management", "Write the votes as CSV, Parquet or JSON lines."),
    "import": ("management", "Take in votes that were collected elsewhere."),
    "backup": ("management", "Copy a running study into one file."),
    "restore": ("management", "Make a study's folder from a backup."),
    "simulate": ("trials", "Let robots with known tastes answer a copy of a study, over HTTP."),
    "demo": ("trials", "Make a study, serve it, let robots answer, and open its dashboard."),
}
"""By name: the module, and what the command does."""


class StudyCommands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        try:
            found = import_module(f"penchant.study.{module}")
        except ModuleNotFoundError as error:
            raise DataError(
                f"penchant study needs {error.name}, which is not installed: "
                "pip install 'penchant[study]' brings everything"
            ) from None
        command: click.Command = getattr(found, "import_" if cmd_name == "import" else cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (_, does) in COMMANDS.items()])


command = StudyCommands(
    "study", help="Run a study: people vote in a browser, the model asks, you watch."
)
