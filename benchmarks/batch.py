"""Time `flopwatt batch` with several processes against one, on small random specs. Prints one JSON line last.

    python benchmarks/batch.py [--specs N] [--jobs N]

A spec has one serving workload from two regions, one pool each, two sites, and two systems to buy.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = ("Llama-3.1-8B", "Qwen3-32B", "Llama-3.3-70B-Instruct")


def question(number: int) -> dict[str, Any]:
    """Draw a small spec with the number as its seed."""
    draw = random.Random(number)
    share = draw.choice((0.3, 0.5, 0.7))
    return {
        "id": f"question {number}",
        "name": f"Small question {number}",
        "workloads": [
            {
                "name": "chat",
                "kind": "serving",
                "architecture": draw.choice(ARCHITECTURES),
                "demand": {"requests_per_s": draw.randint(20, 400)},
                "lengths": {"input": draw.randint(300, 3000), "output": draw.randint(100, 600)},
                "origins": [{"region": "us-california", "share": share}, {"region": "us-virginia", "share": 1 - share}],
                "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": f"{draw.randint(30, 80)} ms"}},
                "disaggregation": "never",
            }
        ],
        "sites": [{"region": "us-texas", "power": "3 MW"}, {"region": "us-virginia", "power": "3 MW"}],
        "offers": [{"system": system, "how": "buy"} for system in ("DGX H100", "DGX B200")],
    }


def timed(specs: Path, jobs: int) -> tuple[float, dict[str, str]]:
    """Run one batch; return its wall time [s] and the status of each line."""
    output = specs.with_suffix(f".{jobs}.out")
    command = [
        sys.executable,
        "-m",
        "planner.cli",
        "batch",
        str(specs),
        "--jobs",
        str(jobs),
        "--output",
        str(output),
        "-q",
    ]
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    seconds = time.perf_counter() - began
    records = map(json.loads, output.read_text().splitlines())
    return seconds, {record["id"]: record["status"] for record in records}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        specs = Path(folder) / "specs.jsonl"
        specs.write_text("".join(json.dumps(question(number)) + "\n" for number in range(asked.specs)))
        alone, answers = timed(specs, 1)
        together, same = timed(specs, asked.jobs)
    if answers != same:
        raise SystemExit("the answers differ with the number of processes")
    print(
        json.dumps(
            {
                "specs": asked.specs,
                "jobs": asked.jobs,
                "processors": os.cpu_count(),
                "seconds_alone": round(alone, 2),
                "seconds_together": round(together, 2),
                "speed_up": round(alone / together, 2),
                "statuses": {status: list(answers.values()).count(status) for status in sorted(set(answers.values()))},
            }
        )
    )


if __name__ == "__main__":
    main()
