"""`penchant study …`: the group of commands."""

import click

from penchant.study import management, trials

command = click.Group(
    "study",
    help="Run a study: people vote in a browser, the model asks, you watch.",
    commands=[
        management.new,
        management.serve,
        management.work,
        management.invite,
        management.status,
        management.export,
        management.import_,
        management.backup,
        management.restore,
        trials.simulate,
        trials.demo,
    ],
)
