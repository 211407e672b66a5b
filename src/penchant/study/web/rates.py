"""How often somebody may do something, counted together by all web processes of a machine."""

import hashlib
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

from penchant.study.refusals import ParticipantRefusal

SLOTS = 1 << 15
"""Of a limit: whoever shares one by chance shares its limit, which is far above what people do."""

SLOT_BYTES = 16


class Rate:
    """`burst` at once, then `per_second`: a bucket a person or address, which drains in time.

    numbers: (2 SLOTS,) how full each bucket was, and when; all zero at first. Two processes that
    count at the same instant may miss one: a limit need not be exact.

    >>> rate = Rate(burst=2, per_second=0.1, clock=lambda: 100.0)
    >>> [rate.allows("ann"), rate.allows("ann"), rate.allows("ann"), rate.allows("bob")]
    [True, True, False, True]
    """

    def __init__(
        self,
        burst: float,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        numbers: memoryview | None = None,
        key: bytes = b"",
    ) -> None:
        self.burst, self.per_second, self.clock, self.key = burst, per_second, clock, key
        if numbers is None:
            numbers = memoryview(bytearray(SLOTS * SLOT_BYTES))
        self.numbers: memoryview[float] = numbers.cast("d")

    def allows(self, who: str) -> bool:
        """Whether it is allowed once more; counts it if so."""
        slot, now = self._slot(who), self.clock()
        used = self._used(slot, now)
        allowed = used + 1.0 <= self.burst
        self.numbers[slot], self.numbers[slot + 1] = used + allowed, now
        return allowed

    def would_allow(self, who: str) -> bool:
        """Whether it would be, without counting it."""
        return self._used(self._slot(who), self.clock()) + 1.0 <= self.burst

    def check(self, who: str) -> None:
        """Refuse what comes too often."""
        if not self.allows(who):
            raise ParticipantRefusal("busy", "too_often")

    def _used(self, slot: int, now: float) -> float:
        used, at = self.numbers[slot], self.numbers[slot + 1]
        if at > now:
            return 0.0  # counted before the machine started, by another clock
        return max(0.0, used - (now - at) * self.per_second)

    def _slot(self, who: str) -> int:
        """Keyed, so that nobody can look for a name that shares another's bucket."""
        digest = hashlib.blake2b(who.encode(), digest_size=8, key=self.key).digest()
        return 2 * (int.from_bytes(digest, "big") % SLOTS)


def shared_numbers(path: Path, n: int) -> list[memoryview]:
    """The numbers of n limits in a file that every process maps; it holds nothing of people."""
    size = SLOTS * SLOT_BYTES
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, n * size)
        whole = memoryview(mmap.mmap(descriptor, n * size))
    finally:
        os.close(descriptor)
    return [whole[k * size : (k + 1) * size] for k in range(n)]
