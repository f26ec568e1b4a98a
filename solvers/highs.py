"""HiGHS as it is used here: without a word on the standard output, and with one number of threads at a time."""

from __future__ import annotations

from functools import cache
from typing import Any

_threads_in_use: int | None = None


@cache
def _silent() -> type:
    import highspy

    class Silent(highspy.Highs):
        """From 1.16 on it says who it is as soon as callbacks are enabled, which its constructor does: no option can be set before."""

        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Silent


def new_highs() -> Any:
    """A HiGHS that prints nothing."""
    return _silent()()


def take_threads(threads: int | None = None) -> int:
    """Makes HiGHS ready for so many threads, or for as many as it was used with last."""
    import highspy

    global _threads_in_use
    wanted = threads or _threads_in_use or 1
    if _threads_in_use not in (None, wanted):
        highspy.Highs.resetGlobalScheduler(True)  # a second number of threads in one process is refused otherwise
    _threads_in_use = wanted
    return wanted
