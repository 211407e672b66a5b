"""Pairs out of choices that are answers of their own, where only pairs will do.

The pairs that a ranking holds follow from each other: taken for separate answers they agree with
themselves, which looks like a taste of one's own. But of "T out of S", let one item of T and one
of the others be drawn. Under a softmax i was drawn as taken and j as left with probability
e^(x_i − x_j) times that of the reverse, so that this is a pair's answer, exactly; and the choices
of a ranking are independent given utilities. What the other items tell is left out.
"""

import numpy as np

from penchant.communities.content import keys_of
from penchant.data import ChoiceStages, Comparisons, Table
from penchant.numerics.random import ContentKeys, KeyArray, mixed
from penchant.numerics.types import BoolArray, IntArray


def separate_pairs(data: Comparisons) -> Comparisons:
    """The single pairs, and one pair of every choice, drawn by what was answered.

    >>> data = Comparisons.from_rankings([["tea", "milk", "water"]], users=["ann"])
    >>> len(data.as_pairs()), len(separate_pairs(data))
    (3, 2)
    """
    if data.rankings is None or data.rankings.user is None:
        return data.as_pairs()
    content = keys_of(data.as_pairs())
    drawn = [_drawn(stage, content) for stage in data.rankings.stages()]
    winner, loser, user = np.hstack(drawn)
    one, no_tie = np.ones_like(winner), np.zeros(len(winner), dtype=bool)
    table = Table(winner, loser, one, user, no_tie, None).merge()
    return data.bare().single_pairs().extend(Comparisons.from_table(table, data.items, data.users))


def _drawn(stage: ChoiceStages, content: ContentKeys) -> tuple[IntArray, IntArray, IntArray]:
    """Winner, loser and user of a pair for every time that a choice was made."""
    rows = np.repeat(np.arange(len(stage.count)), stage.count)
    item, chosen = stage.item[rows], stage.chosen[rows]
    copy = np.arange(len(rows)) - np.repeat(np.cumsum(stage.count) - stage.count, stage.count)
    at = np.arange(len(rows))
    user = np.zeros(len(rows), dtype=np.intp) if stage.user is None else stage.user[rows]
    of_item = content.item[item]
    of_choice = mixed(content.user[user], of_item.sum(axis=1), copy)
    keys = mixed(of_item.ravel() + np.repeat(of_choice, item.shape[1])).reshape(item.shape)
    return item[at, _one_of(chosen, keys)], item[at, _one_of(~chosen, keys)], user


def _one_of(marked: BoolArray, keys: KeyArray) -> IntArray:
    """(G,) a marked column of each row, all alike likely."""
    return np.asarray(np.where(marked, keys, 0).argmax(axis=1), dtype=np.intp)
