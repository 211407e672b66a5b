"""Progress is shown on a terminal only, where it is wanted, and on stderr."""

import pytest
from rich.console import Console

import penchant as pc

DATA = pc.Comparisons.from_pairs([*"aab"], [*"bcc"], user=[*"xyx"])


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (True, False), (False, True)])
def test_evaluations_are_told_where_somebody_looks(terminal, wanted, monkeypatch, capsys):
    monkeypatch.setattr(Console, "is_terminal", terminal)
    pc.MultiUserGP(pc.kernels.Independent(), progress=wanted).fit(None, DATA)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("log evidence" in err) == (terminal and wanted)
