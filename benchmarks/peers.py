"""The peers and the environments that they live in, apart from penchant's.

Each is installed by itself under a time limit; one that fails is shown with its reason.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parent.parent / ".venv-bench"
PYTHON = HOME / "bin" / "python"
OLD_PYTHON = HOME / "old" / "bin" / "python"
INSTALL_LIMIT = 300

PEERS = {
    "torch": "torch==2.13.0",  # by number: a registry's CPU build spares gigabytes of drivers
    "botorch": "botorch",
    "choix": "choix",
    "evalica": "evalica",
    "scikit-learn": "scikit-learn",
    "lightgbm": "lightgbm",
    "implicit": "implicit",
    "red-dwarf": "red-dwarf",
    "vowpalwabbit": "vowpalwabbit",
    "river": "river",
    "kickscore": "kickscore",
    "openskill": "openskill",
    "trueskill": "trueskill",
    "crowd-kit": "crowd-kit",
    "whole-history-rating": "whole-history-rating",
    "trueskillthroughtime": "trueskillthroughtime",
    "arena-rank": "arena-rank",  # last: it wants one version of numpy, which serves the others too
}


def install(old_python):
    """Make the environments; returns {peer: why it is missing}.

    old_python: a command that runs Python 3.6, the last one RLScore's C sources compile with.
    """
    if not PYTHON.exists():
        _run([sys.executable, "-m", "venv", HOME])
    missing = {}
    for peer, requirement in PEERS.items():
        print(f"peers: {peer}", file=sys.stderr)
        if reason := _pip(PYTHON, requirement):
            missing[peer] = reason
    print("peers: rlscore", file=sys.stderr)
    if reason := _install_rlscore(old_python):
        missing["rlscore"] = reason
    return missing


def _install_rlscore(old_python):
    if shutil.which(old_python) is None or _run([old_python, "--version"]).returncode:
        return (
            "its C sources compile with Python 3.6 at the latest, and there is none here "
            "(`make bench OLD_PYTHON=…` names one)"
        )
    if not OLD_PYTHON.exists():
        _run([old_python, "-m", "venv", OLD_PYTHON.parents[1]])
    return _pip(OLD_PYTHON, "numpy", "scipy") or _pip(OLD_PYTHON, "--no-build-isolation", "rlscore")


def _pip(python, *what):
    """Why an installation failed, or None."""
    try:
        done = _run([python, "-m", "pip", "install", "-q", *what], timeout=INSTALL_LIMIT)
    except subprocess.TimeoutExpired:
        return f"not installed within {INSTALL_LIMIT} s"
    return clean_reason(done.stderr) if done.returncode else None


def clean_reason(stderr):
    """The line of an error output that says most, without this machine's folders and addresses."""
    lines = [line.strip() for line in stderr.splitlines() if "error" in line.lower()]
    reason = lines[-1] if lines else "no reason given"
    reason = re.sub(r"\w+://\S+|host='[^']*'", "…", reason)
    return re.sub(r"(/[\w.+-]+)+/", "", reason)[:200].replace("|", "¦")


def _run(command, timeout=None):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout
    )


def python_of(contestant):
    """The interpreter of the environment where a contestant lives; its name starts with whose."""
    if contestant.startswith("penchant"):
        return sys.executable
    return str(OLD_PYTHON if contestant.startswith("rlscore") else PYTHON)


def versions():
    """What is installed, as one line."""
    found = {}
    for python, wanted in ((PYTHON, PEERS), (OLD_PYTHON, ("rlscore",))):
        if python.exists():
            listed = json.loads(_run([python, "-m", "pip", "list", "--format=json"]).stdout)
            found |= {p["name"]: p["version"] for p in listed if p["name"] in wanted}
    return ", ".join(f"{name} {version}" for name, version in found.items())
