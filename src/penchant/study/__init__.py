"""Studies: items in, people vote in a browser, the model asks, the owner watches.

`penchant study new`, `serve`, `simulate` … are its commands; `Client` speaks with a running
server; `penchant.study.serve` serves a study from a notebook. Needs the extra `penchant[study]`.

Nothing is imported before it is used. The commands can be listed without the extra, and a web
process, for which people wait after a crash, loads no numerics.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from penchant.errors import DataError

if TYPE_CHECKING:
    from penchant.study.client import Client as Client
    from penchant.study.notebook import serve as serve

_NAMES = {
    "client": ("Client",),
    "config": ("CRITERIA", "Check", "Config"),
    "events": ("UNNAMED", "Answer", "Event", "Record", "replay", "split_at"),
    "differences": ("marked_differences",),
    "folder": (
        *("Folder", "backup_to", "backups_of", "copy_without_answers", "dated_backup"),
        *("read_votes", "restore_from", "write_deaths", "write_votes"),
    ),
    "items": ("LARGEST_FILE", "read_items", "store_media"),
    "learner": (
        *("StudyLearner", "Worker", "best_questions", "comparisons", "groups", "learned_from_file"),
        *("learning_point", "p_first", "replayed", "stock_for", "work"),
    ),
    "many": ("ManyItemsModel", "fit_many"),
    "metadata": ("orientation_of", "without_metadata"),
    "notebook": ("StudyServer", "serve"),
    "quality": ("calibration", "raters"),
    "questions": (
        *("KINDS", "REPEAT_AFTER", "Prepared", "check_items", "check_order", "draw"),
        *("is_finished", "is_pending", "kind_of", "pair_key", "passed", "random_items"),
        *("shown_order", "take_new"),
    ),
    "refusals": ("Refusal", "strings"),
    "robots": ("RobotCrowd", "RobotPlan", "RobotTaste", "simulate"),
    "logs": ("JsonLines", "Lines", "tell"),
    "supervisor": ("Backups", "Child", "Supervisor", "listen", "running", "server_config"),
    "store": ("Database", "NewItem", "Snapshot"),
    "web": ("Counts", "Rate", "create_app", "shared_numbers"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
__all__ = ["Client", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'penchant.study' has no attribute {name!r}")
    return getattr(import_module(f"penchant.study.{_MODULE_OF[name]}"), name)


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
    "delete": "Delete a study and all that people said in it.",
    "simulate": "Let robots with known tastes answer a copy of a study, over HTTP.",
    "demo": "Make a study, serve it, let robots answer, and open its dashboard.",
}
"""The commands and their one-line help."""


class StudyCommands(click.Group):
    """Imports the commands when one of them is called: they need the extra."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module("penchant.study.commands")
        except ModuleNotFoundError as error:
            raise DataError(
                f"penchant study needs {error.name}, which is not installed: "
                "pip install 'penchant[study]' brings everything"
            ) from None
        found = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        found.help = COMMANDS[cmd_name]
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


command = StudyCommands(
    "study", help="Run a study: people vote in a browser, the model asks, you watch."
)
