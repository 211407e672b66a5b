"""Columns that speak of a thing: as it is, with "id" behind it, or spelled in full."""

import pytest

from penchant.io.formats.ballots import _speaks_of


@pytest.mark.parametrize("name", ["voter", "Voter", "voter_id", "VoterID", "voter id"])
def test_a_column_speaks_of_voters(name):
    assert _speaks_of(name, ("voter",))


def test_a_word_with_spaces_is_met_as_it_is_written():
    assert _speaks_of("Least Liked!", ("least liked!",))


@pytest.mark.parametrize("name", ["votes", "idea", "id", ""])
def test_others_do_not(name):
    assert not _speaks_of(name, ("voter",))
