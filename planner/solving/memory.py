"""The memory of this process, by which a diagnosis ends before it takes more than the spec allows."""

from __future__ import annotations

import os
from pathlib import Path

PAGES = Path("/proc/self/statm")  # of Linux; elsewhere the memory is not known
SHARE_OF_A_DIAGNOSIS = (
    0.25  # of the allowed memory: what it may take in any case, beside what the process held when it began
)


def resident_bytes() -> float:
    """Return the memory that this process holds [byte]; 0 where the system does not tell."""
    try:
        return int(PAGES.read_text(encoding="ascii").split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return 0.0


def most_for_a_diagnosis(allowed_bytes: float) -> float:
    """Return the memory of the process at which a diagnosis that begins now must end [byte]."""
    return max(allowed_bytes, resident_bytes() + SHARE_OF_A_DIAGNOSIS * allowed_bytes)
