"""Count layouts per second on one core: GPT-3 175B on 1,024 chips, all dimensions, enumeration and selection included.

A layout counts when its step time and its memory were computed.
Run: python benchmarks/layouts.py    The last line printed is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from models.training.layouts import Layouts, LayoutSpace, enumerate_layouts
from planner.estimate.case import resolve_case
from planner.evaluate.layouts import evaluate_layouts

CASE = Path(__file__).parent.parent / "examples" / "cases" / "gpt3_a100.json"
SPACE = LayoutSpace(
    micro_batches=(1, 2, 3, 4, 6, 8, 12, 16),
    interleaves=(1, 2, 3, 4, 6, 8, 12),
    zeros=(0, 1, 2, 3),
    recomputes=(0, 1, 2),
    largest_cp=16,
    largest_pp=128,
)
ROUNDS = 7


def search(facts) -> tuple[Layouts, float]:
    """Evaluate all layouts; find the least step time among those that fit."""
    job, system = facts.job, facts.system
    layouts = enumerate_layouts(
        job.architecture, facts.case.chips, job.batch_sequences, sequence_tokens=job.spec.sequence_tokens, scaleup_chips=system.scaleup_chips,
        space=SPACE,
    )  # fmt: skip
    step = evaluate_layouts(facts.training_setup("bf16"), layouts)
    return layouts, float(np.where(step.memory_bytes <= system.hbm_bytes, step.step_s, np.inf).min())


def main() -> None:
    facts = resolve_case(json.loads(CASE.read_text()))
    search(facts)  # warm: imports and caches
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        layouts, _ = search(facts)
        times.append(time.process_time() - began)
    seconds, count = float(np.median(times)), len(layouts)
    values = {name: len(np.unique(getattr(layouts, name))) for name in Layouts.__dataclass_fields__}
    print(
        json.dumps(
            {"layouts_per_s": round(count / seconds), "layouts": count, "seconds": seconds, "per_dimension": values}
        )
    )


if __name__ == "__main__":
    main()
