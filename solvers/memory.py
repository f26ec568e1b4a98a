"""Watches on what may end a search early: the memory of this process, and the time of its steps."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAGES = Path("/proc/self/statm")  # file of Linux; elsewhere the memory is not known
SHARE_OF_A_STEP = (
    0.25  # share of the allowed memory: what a step may take in any case, beside what the process held when it began
)


def resident_bytes() -> float:
    """Return the memory that this process holds [byte]; 0 where the system does not tell."""
    try:
        return int(PAGES.read_text(encoding="ascii").split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return 0.0


def give_back() -> None:
    """Return freed memory to the system, where the C library can (glibc keeps what many small arrays held); elsewhere nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def most_for_a_step(allowed_bytes: float) -> float:
    """Return the memory of the process at which a step that begins now must end [byte]."""
    return max(allowed_bytes, resident_bytes() + SHARE_OF_A_STEP * allowed_bytes)


@dataclass(slots=True)
class MemoryWatch:
    """Tells a search that the process holds as much memory as it may, and remembers that it did so."""

    most_bytes: float
    was_full: bool = False

    def is_full(self) -> bool:
        """Tell whether the process holds more than it may, after freed memory has gone back to the system.

        A later step may begin again where what an earlier one held is free.
        """
        if resident_bytes() <= self.most_bytes:
            return False
        give_back()
        if resident_bytes() <= self.most_bytes:
            return False
        self.was_full = True
        return True


@dataclass(slots=True)
class TimeWatch:
    """Remembers that some step of a search ended because its share of the time was up: another run may then end elsewhere."""

    was_up: bool = False
