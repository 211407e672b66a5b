"""How soon the command line answers; on a quiet machine."""

import subprocess
import sys
from time import perf_counter

import pytest


@pytest.mark.slow
def test_help_starts_within_three_times_an_import_of_click():
    def seconds(code):
        times = []
        for _ in range(7):
            begin = perf_counter()
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
            times.append(perf_counter() - begin)
        return min(times)

    help_ = "from penchant.cli import main; main(['--help'])"
    assert seconds(help_) < 3 * seconds("import click")
