"""`python -m penchant` is the command line."""

from penchant.cli import main

main(prog_name="penchant")
