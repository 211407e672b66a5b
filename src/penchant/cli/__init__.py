"""The command line: one file a command, loaded when it is called."""

from importlib import import_module

import click

COMMANDS = {
    "demo": "penchant.cli.demo",
}


class LazyCommands(click.Group):
    """Imports a command's module only when it runs, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penchant")
def main() -> None:
    """Learn what people prefer from comparisons."""
