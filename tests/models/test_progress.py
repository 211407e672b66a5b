"""The progress bar: on a terminal only, and on stderr."""

from rich.console import Console

from penchant.models.base import progress_bar


def test_silent_where_nobody_looks(capsys):
    with progress_bar("learning", shown=True) as watch:
        assert watch is None
    assert capsys.readouterr() == ("", "")


def test_silent_where_not_wanted(monkeypatch):
    monkeypatch.setattr(Console, "is_terminal", True)
    with progress_bar("learning", shown=False) as watch:
        assert watch is None


def test_tells_evaluations_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(Console, "is_terminal", True)
    with progress_bar("learning", shown=True) as watch:
        watch(3, -1234.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert "evaluation 3" in err
    assert "-1,234.5" in err
