from penchant.data import Comparisons, check_all_ties, check_connected, check_never_compared


def test_a_connected_graph_needs_no_warning():
    data = Comparisons.from_pairs([0, 1], [1, 2], items=range(4))
    assert check_connected(data) is None
    assert check_all_ties(data) is None
    assert "1 of 4 items was never compared" in check_never_compared(data)


def test_groups_are_counted_among_compared_items_only():
    data = Comparisons.from_pairs(["a", "c", "d", "f", "h"], ["b", "d", "e", "g", "i"])
    message = check_connected(data)
    assert "4 groups" in message
    assert "of 3 and 2 and 2 and … items, for example 'c' and 'a' and 'f'" in message
    assert "prior alone" in message


def test_ties_connect():
    data = Comparisons.from_pairs(["a", "b"], ["b", "c"], tie=[True, True])
    assert check_connected(data) is None
    assert "every comparison is a tie" in check_all_ties(data)


def test_never_compared_in_the_plural():
    data = Comparisons.from_pairs([0], [1], items=range(9))
    assert "7 of 9 items were never compared (for example 2, 3, 4): their" in check_never_compared(
        data
    )
    assert check_never_compared(Comparisons.from_pairs([0], [1])) is None
