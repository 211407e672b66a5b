"""`python -m penchant.study`: the same commands as `penchant study`."""

import sys

import click

from penchant.errors import DataError
from penchant.study.commands import command

BAD_DATA = 3

if __name__ == "__main__":
    try:
        command(prog_name="penchant study")
    except DataError as error:
        click.secho(f"error: {error}", fg="red", err=True)
        sys.exit(BAD_DATA)
