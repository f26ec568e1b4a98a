"""Fuzz for long: `python -m tests.fuzz.run [--seed N] [--count N] [--seconds S] [TARGET ...]`; ends with 1 if a seed failed.

A seed that fails belongs into `SEEDS` of `tests/fuzz/test_fuzz.py`, with the fix.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from types import FrameType

from tests.fuzz.targets import TARGETS, errors_of

COUNTS = {
    "specs": 100_000,
    "cases": 2_000,
    "overlays": 2_000,
    "series": 2_000,
    "plans": 2_000,
    "options": 2_000,
    "solves": 2_000,
    "tampered": 5_000,
    "consistency": 200,
    "links": 2_500,
    "uploads": 2_500,
}
SLOW_S = 3.0 + 20.0  # processor time: the limit of a solve, and what may come on top
HUNG_S = 120.0  # processor time after which a seed is given up
TIMES = {"consistency": 30}  # solves of a seed, where it is not one


class Hung(BaseException):
    """A seed took `HUNG_S`; nothing that handles errors catches it."""


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Hung


def main() -> int:
    """Fuzz each target in turn and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="seeds of each target")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most time for each target")
    arguments = parser.parse_args()
    failures = 0
    signal.signal(signal.SIGPROF, _give_up)
    for name in arguments.targets:
        began, done, slowest = time.monotonic(), 0, 0.0
        count = COUNTS[name] if arguments.count is None else arguments.count
        while done < count and time.monotonic() - began < arguments.seconds:
            start, seed = time.process_time(), arguments.seed + done
            done += 1
            signal.setitimer(signal.ITIMER_PROF, HUNG_S * TIMES.get(name, 1))
            try:
                wrong = errors_of(name, seed)
            except Hung:
                wrong = f"still at work after {HUNG_S * TIMES.get(name, 1):.0f} s"
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            if wrong is None and seconds > SLOW_S * TIMES.get(name, 1):
                wrong = f"took {seconds:.0f} s"
            if wrong is not None:
                failures += 1
                print(f"{name} {seed}: {wrong[:300]}", flush=True)
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: {done} seeds, slowest {slowest:.1f} s, most memory {memory_mb:.0f} MB", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
