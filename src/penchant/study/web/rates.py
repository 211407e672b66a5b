"""How often somebody may do something, counted together by all web processes of a machine."""

import hashlib
import logging
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

from penchant.study.refusals import ParticipantRefusal

SLOTS = 1 << 15
"""Of a limit: whoever shares one by chance shares its limit, which is far above what people do."""

SLOT_BYTES = 16
log = logging.getLogger("penchant.study")


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
    """The numbers of n limits in a file that every process maps; it holds nothing of people.

    The disk's room for it is taken at once: the system kills whoever writes into a hole of a mapped
    file when the disk is full. Where there is no room now, each process counts for itself.
    """
    size = SLOTS * SLOT_BYTES
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, n * size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, n * size)
            whole = memoryview(mmap.mmap(descriptor, n * size))
        finally:
            os.close(descriptor)
    except OSError as error:
        log.warning("limits are counted apart by each web process: %s", error.strerror)
        whole = memoryview(bytearray(n * size))
    return [whole[k * size : (k + 1) * size] for k in range(n)]
