"""Time `import planner` against `import numpy, pydantic`: the best of five fresh interpreters each, as one JSON line.

python benchmarks/import_time.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
TIMER = "import time; begin = time.perf_counter(); import {modules}; print(time.perf_counter() - begin)"


def import_s(modules: str) -> float:
    """Time the import in a fresh interpreter [s]."""
    command = [sys.executable, "-c", TIMER.format(modules=modules)]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def measure(runs: int = RUNS) -> dict[str, float]:
    """Time both imports by turns, so that a busy machine slows both alike."""
    pairs = [(import_s("planner"), import_s("numpy, pydantic")) for _ in range(runs)]
    planner_s, base_s = (min(times) for times in zip(*pairs))
    return {"planner_s": round(planner_s, 4), "base_s": round(base_s, 4), "ratio": round(planner_s / base_s, 3)}


if __name__ == "__main__":
    print(json.dumps(measure()))
