"""A few lines that tell what a set of comparisons holds."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penchant.data.comparisons import Comparisons


def describe(data: "Comparisons") -> str:
    """Return the text behind `Comparisons.describe`."""
    total = data.n_comparisons
    people = "1 user" if data.n_users == 1 else f"{data.n_users} users"
    who = f" by {people}" if data.users else ""
    lines = [f"{total} comparisons ({len(data)} distinct) between {data.n_items} items{who}"]
    if data.user is not None:
        per_user = np.bincount(data.user, weights=data.count, minlength=data.n_users)
        lines.append(
            f"comparisons per user: {per_user.min():.0f} to {per_user.max():.0f}, "
            f"median {np.median(per_user):g}"
        )
    ties = int(data.count[data.tie].sum())
    lines.append(f"ties: {ties} ({ties / max(total, 1):.0%})")
    _, labels = data.components()
    used = data.compared()
    lines.append(f"groups connected by comparisons: {len(np.unique(labels[used]))}")
    if len(used) < data.n_items:
        lines.append(f"items never compared: {data.n_items - len(used)}")
    times = np.bincount(data.winner, data.count, data.n_items)
    times += np.bincount(data.loser, data.count, data.n_items)
    most, least = int(times.argmax()), int(times.argmin())
    lines.append(
        f"most compared: {data.items[most]} ({times[most]:.0f}); "
        f"least compared: {data.items[least]} ({times[least]:.0f})"
    )
    return "\n".join(lines)
