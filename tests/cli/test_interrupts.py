"""Ctrl-C at the moments that Python itself handles badly."""

import signal
import subprocess
import sys

import pytest

from penchant.cli import Interrupt, interruptible


@pytest.fixture(autouse=True)
def listening():
    """Whoever runs the tests in the background may have told them to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


CTRL_C = "import signal; signal.raise_signal(signal.SIGINT)"


def test_an_interrupt_inside_text_that_is_executed_keeps_the_exit_code(tmp_path):
    (tmp_path / "command.py").write_text(
        "import sys\n"
        "from penchant.cli import interruptible\n"
        "try:\n"
        "    with interruptible():\n"
        f"        exec({CTRL_C!r})\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    run = subprocess.run([sys.executable, "-m", "command"], cwd=tmp_path, check=False)
    assert run.returncode == 130


def test_an_interrupt_that_a_library_hides_is_still_one():
    def load():
        try:
            exec(CTRL_C)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    with pytest.raises(Interrupt), interruptible():
        load()


def test_errors_without_an_interrupt_are_themselves():
    with pytest.raises(ImportError, match="absent"), interruptible():
        raise ImportError("absent")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_interrupt_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
