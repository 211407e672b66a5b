"""Warnings about data that leave utilities to the prior."""

import numpy as np

from penchant.data.comparisons import Comparisons

_EXAMPLES = 3  # items or groups that a warning names


def check_connected(data: Comparisons) -> str | None:
    """Return a warning where comparisons do not connect all compared items, else None.

    >>> check_connected(Comparisons.from_pairs(["a", "b"], ["b", "c"])) is None
    True
    >>> check_connected(Comparisons.from_pairs(["a", "x"], ["b", "y"]))
    "the comparisons fall into 2 groups of items that were never compared with each other (of
    2 and 2 items, for example 'a' and 'x'): the order within a group is learned, the order
    between groups comes from the prior alone; compare items across groups, or give features
    or relations that link them"
    """
    _, labels = data.components()
    used = data.compared()
    groups, first, size = np.unique(labels[used], return_index=True, return_counts=True)
    if len(groups) < 2:
        return None
    largest = np.argsort(-size, kind="stable")[:_EXAMPLES]
    sizes = [str(size[g]) for g in largest] + (["…"] if len(groups) > _EXAMPLES else [])
    examples = [repr(data.items[used[first[g]]]) for g in largest]
    return (
        f"the comparisons fall into {len(groups)} groups of items that were never compared with "
        f"each other (of {' and '.join(sizes)} items, for example {' and '.join(examples)}): the "
        "order within a group is learned, the order between groups comes from the prior alone; "
        "compare items across groups, or give features or relations that link them"
    )


def check_never_compared(data: Comparisons) -> str | None:
    """Return a warning where some items occur in no comparison, else None.

    >>> check_never_compared(Comparisons.from_pairs([0], [1], items=range(3)))
    '1 of 3 items was never compared (for example 2): its utility comes from the prior alone;
    compare it, or give features or relations that link it to the others'
    """
    never = np.setdiff1d(np.arange(data.n_items), data.compared())
    if not len(never):
        return None
    one = len(never) == 1
    examples = ", ".join(repr(data.items[i]) for i in never[:_EXAMPLES])
    return (
        f"{len(never)} of {data.n_items} items {'was' if one else 'were'} never compared (for "
        f"example {examples}): {'its utility comes' if one else 'their utilities come'} from the "
        f"prior alone; compare {'it' if one else 'them'}, or give features or relations that link "
        f"{'it' if one else 'them'} to the others"
    )


def check_all_ties(data: Comparisons) -> str | None:
    """Return a warning where every comparison is a tie, else None.

    >>> check_all_ties(Comparisons.from_pairs(["a"], ["b"], tie=[True]))
    'every comparison is a tie: nothing tells the items apart, so the ranking is arbitrary; check
    how ties are marked, or ask for a choice where items are close'
    """
    if not data.tie.all():
        return None
    return (
        "every comparison is a tie: nothing tells the items apart, so the ranking is arbitrary; "
        "check how ties are marked, or ask for a choice where items are close"
    )
