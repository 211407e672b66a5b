"""What models say, as rows of tables: questions, communities, members, disagreements."""

from typing import Any

SHOWN = 3


def questions(
    model: Any, k: int, criterion: str = "variance_ratio", user: Any = None
) -> list[dict[str, Any]]:
    """The pairs to compare next (fewer where there are not so many), and what is expected.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> (row,) = questions(pc.PreferenceGP(optimize=None).fit(None, data), 1)
    >>> row["first"], row["second"], round(row["probability"], 2)
    ('milk', 'water', 0.5)
    """
    n = model.comparisons_.n_items
    pairs = model.ask(min(k, n * (n - 1) // 2), criterion, user=user)
    return [
        {"first": a, "second": b, "probability": float(p)}
        for (a, b), p in zip(pairs, model.predict_proba(pairs, user), strict=True)
    ]


def sets_to_ask(
    model: Any, k: int, k_items: int, criterion: str = "variance_ratio", user: Any = None
) -> list[dict[str, Any]]:
    """The sets to let somebody choose from next, an item a column.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> (row,) = sets_to_ask(pc.PreferenceGP(optimize=None).fit(None, data), 1, 3)
    >>> sorted(row.values()), list(row)
    (['milk', 'tea', 'water'], ['item_1', 'item_2', 'item_3'])
    """
    n = model.comparisons_.n_items
    sets = model.ask(min(k, n * (n - 1) // 2), criterion, k_items=k_items, user=user)
    return [{f"item_{i + 1}": name for i, name in enumerate(items)} for items in sets]


def groups(model: Any) -> list[dict[str, Any]]:
    """What is particular to each community, the largest first."""
    return [
        {
            "community": community.number,
            "size": community.size,
            "share": community.share,
            "likes": [row.item for row in community.ranking[:SHOWN]],
            "dislikes": [row.item for row in community.ranking[::-1][:SHOWN]],
            "more_than_others": list(community.representative[:SHOWN]),
            "drawn_to": [_told(trait) for trait in community.attributes[:SHOWN]],
            "members": [_told(trait) for trait in community.user_features[:SHOWN]],
        }
        for community in model.communities_
    ]


def disagreements(model: Any) -> list[dict[str, Any]]:
    """The main directions along which people differ, the widest first."""
    return [
        {
            "direction": direction.number + 1,
            "share": direction.share,
            "toward": list(direction.toward[:SHOWN]),
            "away": list(direction.away[:SHOWN]),
        }
        for direction in model.disagreement()
    ]


def members(model: Any) -> list[dict[str, Any]]:
    """Everybody's most probable community, and how probable it is."""
    best = model.membership_.argmax(axis=1)
    return [
        {"user": user, "community": int(number), "probability": float(row[number])}
        for user, number, row in zip(model.comparisons_.users, best, model.membership_, strict=True)
    ]


def _told(trait: Any) -> str:
    return f"{'more' if trait.strength > 0 else 'less'} {trait.name}"
