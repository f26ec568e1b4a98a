"""Time specs that differ in prices, limits or demand from one kept program against each alone, in one process. Prints one JSON line last.

    python benchmarks/kept.py [--specs N] [--seed N]

The specs are `examples/components.json` and one of `benchmarks/batch.py`, whose figures of one kind are multiplied by factors between 0.75
and 1.25. The time is that of the processor; the plans that lead (`planner.studies.batches.groups`) count.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

from batch import question

from planner.pipeline import solve_document
from planner.plan import Plan
from planner.spec.changes import scaled
from planner.spec.document import Edits, at, edited, read_spec
from planner.studies.batches.groups import in_turn

ROOT = Path(__file__).resolve().parents[1]
COMPONENTS = {
    "prices": ("offers[0].components.server", "offers[0].components.board"),
    "limits": ("sites[0].power",),
    "demand": ("workloads[0].demand.output_tokens",),
}
QUESTION = {
    "prices": ("offers[0].price", "offers[1].price"),
    "limits": ("limits.budget", "sites[0].power"),
    "demand": ("workloads[0].demand.requests_per_s",),
}
STATED: Edits = (("offers[0].price", "300000 USD"), ("offers[1].price", "500000 USD"), ("limits.budget", "30M USD"))


def variants(document: dict[str, Any], paths: tuple[str, ...], count: int, seed: int) -> list[dict[str, Any]]:
    """Draw specs that differ at the paths."""
    draw = random.Random(seed)
    return [
        edited(
            document, tuple((path, scaled(at(document, path), round(draw.uniform(0.75, 1.25), 4))) for path in paths)
        )
        for _ in range(count)
    ]


def measured(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer specs both ways: seconds, their ratio, and how far values are apart."""
    solve_document(documents[0], threads=1)  # the catalog is read once by either
    begun = time.process_time()
    alone = [solve_document(document, threads=1) for document in documents]
    first_s, begun = time.process_time() - begun, time.process_time()
    kept: dict[int, Plan] = {}
    for position, shared in in_turn(documents):
        kept[position] = solve_document(documents[position], threads=1, kept=shared)
    second_s = time.process_time() - begun
    pairs = [(one, kept[n]) for n, one in enumerate(alone)]
    both = [(one.value, other.value) for one, other in pairs if one.has_answer and other.has_answer]
    return {
        "specs": len(documents),
        "alone_s": round(first_s, 2),
        "kept_s": round(second_s, 2),
        "ratio": round(first_s / second_s, 2),
        "most_apart": max((abs(one / other - 1.0) for one, other in both), default=0.0),
        "one_without_plan": sum(one.has_answer != other.has_answer for one, other in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    cases = (
        ("components", read_spec(ROOT / "examples/components.json", ()), COMPONENTS),
        ("question", edited(question(5), STATED), QUESTION),
    )
    for name, document, kinds in cases:
        for kind, paths in kinds.items():
            found[f"{name}, {kind}"] = measured(variants(document, paths, asked.specs, asked.seed))
            print(f"{name}, {kind}: {found[f'{name}, {kind}']}", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
