"""Comparisons that need not fit in memory: users are split into buckets, one file a bucket.

A user's bucket is a stable 64-bit hash of the name, and a shard is some consecutive buckets.
Sums over users are taken bucket by bucket, so that they do not depend on the number of shards.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penchant.data.comparisons import Comparisons
from penchant.data.names import Names
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.types import IntArray

N_BUCKETS = 64
"""Buckets of a data set with at most so many shards; more shards have more buckets."""


def n_buckets(shards: int) -> int:
    """Return the number of buckets: a power of two, N_BUCKETS for up to as many shards.

    >>> n_buckets(1), n_buckets(64), n_buckets(65)
    (64, 64, 128)
    """
    return max(N_BUCKETS, 1 << (shards - 1).bit_length())


def bucket_of(name: Any, of: int) -> int:
    """Return the bucket of a user: the first 64 bits of the MD5 of the name as text, modulo `of`.

    >>> 0 <= bucket_of("ann", 64) < 64, bucket_of("ann", 64) == bucket_of("ann", 64)
    (True, True)
    """
    digest = hashlib.md5(str(name).encode(), usedforsecurity=False).hexdigest()
    return int(digest[:16], 16) % of


@dataclass(frozen=True)
class BucketFiles:
    """The folder of the buckets and the names of the items: all that a worker needs to read one.

    >>> import tempfile, penchant as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "votes.csv")
    ...     _ = path.write_text("user,winner,loser\\nann,tea,milk\\nbob,milk,tea\\n")
    ...     with pc.scan_comparisons(path) as votes:
    ...         votes.files.load(bucket_of("ann", len(votes.sizes))).users
    ('ann',)
    """

    folder: Path
    items: Names

    def load(self, number: int) -> Comparisons:
        """Read the comparisons of one bucket; users are numbered within it."""
        path = self.folder / f"bucket-{number:05d}.npz"
        known = read_arrays(
            path,
            "the folder of scanned comparisons must stay as it is while they are used; scan the "
            "files again",
        )
        winner, loser, user = (known[n].astype(np.intp) for n in ("winner", "loser", "user"))
        table = Table(winner, loser, known["count"], user, known["tie"], None)
        names = tuple(json.loads(known["names"].tobytes()))
        return Comparisons.from_table(table, self.items, names)

    def save(self, number: int, data: Comparisons) -> None:
        """Write the comparisons of one bucket's users."""
        if data.user is None:
            raise DataError("a bucket holds comparisons of users: these do not say who made them")
        columns: dict[str, NDArray[Any]] = {
            "winner": data.winner.astype(np.int32),
            "loser": data.loser.astype(np.int32),
            "user": data.user.astype(np.int32),
            "count": data.count.astype(np.int64),
            "tie": data.tie,
            "names": np.frombuffer(json.dumps(data.users).encode(), dtype=np.uint8),
        }
        write_arrays(self.folder / f"bucket-{number:05d}.npz", columns)


def side_by_side(parts: Sequence[Comparisons], items: Names) -> Comparisons:
    """Join comparisons of different users; the users of a part follow those of the part before."""
    starts = np.cumsum([0, *(part.n_users for part in parts)])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("winner", "loser", "count", "tie", "user")
    }
    columns["user"] += np.repeat(starts[:-1], [len(part) for part in parts])
    users = tuple(name for part in parts for name in part.users)
    return Comparisons.from_table(Table(margin=None, **columns), items, users)


def picked_users(data: Comparisons, users: Sequence[Any]) -> tuple[Comparisons, IntArray]:
    """Return the comparisons of some users, in their order in `data`, and the rows they are."""
    place = np.sort(np.atleast_1d(data.user_index(list(users))))
    code = np.full(data.n_users, -1, dtype=np.intp)
    code[place] = np.arange(len(place))
    rows = np.flatnonzero(code[data.user] >= 0)
    columns = {name: getattr(data, name)[rows] for name in ("winner", "loser", "count", "tie")}
    table = Table(user=code[data.user][rows], margin=None, **columns)
    names = tuple(data.users[number] for number in place)
    return Comparisons.from_table(table, data.items, names), rows


@dataclass(frozen=True, eq=False)
class ShardedComparisons:
    """Comparisons on disk, user by user in shards: what `scan_comparisons` returns.

    files: the buckets. sizes: (b, 3) users, distinct answers and comparisons of each bucket.
    pooled: the comparisons of all users together. n_shards: how many groups of buckets are
    processed in parallel. max_memory: bytes of the data that a process holds. source: how the
    files were read. is_kept: whether the folder stays, so that an interrupted fit can resume.

    It is a context manager: `close` deletes the folder unless `resume=` named it.

    >>> import tempfile, penchant as pc
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "votes.csv")
    ...     _ = path.write_text("user,winner,loser\\nann,tea,milk\\nbob,milk,tea\\n")
    ...     with pc.scan_comparisons(path) as votes:
    ...         votes.items, votes.pooled.n_comparisons
    (('milk', 'tea'), 2)
    """

    files: BucketFiles
    sizes: IntArray
    pooled: Comparisons
    n_shards: int
    max_memory: int
    source: str = ""
    is_kept: bool = False
    _finish: Callable[[], None] | None = field(default=None, repr=False)

    @property
    def items(self) -> Names:
        """The names of the items, in index order."""
        return self.files.items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.sizes[:, 0].sum())

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons, repeated ones counted."""
        return int(self.sizes[:, 2].sum())

    def __len__(self) -> int:
        """Distinct answers of users."""
        return int(self.sizes[:, 1].sum())

    def __repr__(self) -> str:
        return (
            f"ShardedComparisons({self.n_comparisons:,} comparisons of {self.n_items:,} items by "
            f"{self.n_users:,} users, {self.n_shards} shards)"
        )

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The buckets of each shard."""
        every = np.array_split(np.arange(len(self.sizes)), self.n_shards)
        return tuple(tuple(map(int, group)) for group in every)

    def shards(self) -> Iterator[Comparisons]:
        """Shard after shard: the comparisons of its users, over all items."""
        for group in self.groups:
            yield self.buckets(group)

    def buckets(self, numbers: Sequence[int]) -> Comparisons:
        """The comparisons of the users of some buckets, one bucket after the other."""
        return side_by_side([self.files.load(number) for number in numbers], self.items)

    def first_buckets(self, most: int) -> tuple[int, ...]:
        """The first buckets that hold at most so many distinct answers together; at least one
        that holds any."""
        total = np.cumsum(self.sizes[:, 1])
        least = int(np.argmax(total > 0)) + 1
        return tuple(range(max(least, int(np.searchsorted(total, most, side="right")))))

    def close(self) -> None:
        """Delete the folder of this data set, unless `resume=` named it."""
        if self._finish is not None:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
