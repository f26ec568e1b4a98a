"""Fuzz for long: `python -m tests.fuzz.run [--seed N] [--seconds S] [TARGET ...]`; ends with 1 if a seed failed.

A seed that fails belongs into `SEEDS` of `tests/fuzz/test_fuzz.py`, with the fix.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from tests.fuzz.targets import TARGETS, errors_of

COUNTS = {
    "specs": 50_000,
    "cases": 2_000,
    "overlays": 2_000,
    "series": 2_000,
    "plans": 2_000,
    "options": 2_000,
    "solves": 1_000,
}
SLOW_S = 3.0 + 20.0  # processor time: the limit of a solve, and what may come on top


def main() -> int:
    """Fuzz each target in turn and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most time for each target")
    arguments = parser.parse_args()
    failures = 0
    for name in arguments.targets:
        began, done, slowest = time.monotonic(), 0, 0.0
        while done < COUNTS[name] and time.monotonic() - began < arguments.seconds:
            start, seed = time.process_time(), arguments.seed + done
            done += 1
            wrong = errors_of(name, seed)
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            if wrong is None and seconds > SLOW_S:
                wrong = f"took {seconds:.0f} s"
            if wrong is not None:
                failures += 1
                print(f"{name} {seed}: {wrong[:300]}", flush=True)
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: {done} seeds, slowest {slowest:.1f} s, most memory {memory_mb:.0f} MB", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
