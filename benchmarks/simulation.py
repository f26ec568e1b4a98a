"""Hold closed forms of serving against an event simulation with memory by tokens, ranks, stages, links and prefixes, at sixty points.

Prints predicted over simulated less one: throughput (of an open loop at the batch that was simulated), and median and p95 of the time per
output token and to the first token. Limits, points and what is known of those beyond the limits: benchmarks/simulation.md.
Run: python benchmarks/simulation.py [--requests 16000] [--seeds 1] [--write]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

from tests.models.serving.event_cases import cases, errors, limits

TARGET = ROOT / "benchmarks/simulation.md"
BEGINS = "<!-- table: written by benchmarks/simulation.py -->"


def table(requests: int, seeds: int) -> str:
    """Write the table of all points, those beyond a limit in bold, and how many keep each limit."""
    most = limits()
    names = [name.replace("0.5", "p50").replace("0.95", "p95") for name in most]
    lines = [f"| point | {' | '.join(names)} |", "|---|" + "---|" * len(most)]
    kept = dict.fromkeys(most, 0)
    every = list(cases())
    for case in every:
        count = requests if case.clients > 1 or case.utilisation >= 0.5 else requests // 4  # few at a time take long
        runs = [errors(case, count, 7 + i) for i in range(seeds)]
        cells = []
        for name, limit in most.items():
            error = float(np.mean([run[name] for run in runs]))
            inside = abs(error) <= limit
            kept[name] += inside
            cells.append(f"{error:+.0%}" if inside else f"**{error:+.0%}**")
        lines.append(f"| {case} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines.append(f"| within {', '.join(f'{limit:.0%}' for limit in most.values())} | {' | '.join(f'{n} of {len(every)}' for n in kept.values())} |")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=16_000, help="requests of a run; a quarter of them at low load")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each point, whose errors are averaged")
    parser.add_argument("--write", action="store_true", help=f"write the table into {TARGET.relative_to(ROOT)}")
    asked = parser.parse_args()
    found = table(asked.requests, asked.seeds)
    if asked.write:
        head = TARGET.read_text("utf-8").partition(BEGINS)[0]
        TARGET.write_text(f"{head}{BEGINS}\n\n{found}\n", "utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
