"""Compare the plan of a small question with a stored one. A change of figures or of a closed form may change it, knowingly.

After such a change, look at what moved and store the new answer:

    python tests/golden/test_golden.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SPEC, GOLDEN = HERE / "small_spec.json", HERE / "small_plan.json"
RELATIVE = 1e-6


def essence(plan) -> dict[str, Any]:
    """Extract what a reader would act upon: the fleet, the layouts, the value, the costs, and what each workload gets."""
    return {
        "status": plan.status,
        "objective": plan.objective,
        "fleet": plan["fleet"],
        "layouts": {point["id"]: [(pool["system"], pool["precision"], pool["layout"], pool["batch"]) for pool in point["pools"]]
                    for workload in plan["workloads"] for point in workload["points"]},
        "costs": plan["costs"],
        "totals": plan["totals"],
        "latency_s": {row["metric"] + "." + row["percentile"]: row["predicted_s"] for w in plan["workloads"] for row in w["slo"]},
        "cost_per_million_tokens": {w["name"]: w["cost_per_million_tokens"] for w in plan["workloads"]},
    }  # fmt: skip


def differences(found: Any, golden: Any, path: str = "") -> list[str]:
    """List where two documents differ: numbers by more than a millionth, everything else at all."""
    if isinstance(found, dict) and isinstance(golden, dict):
        return [
            line
            for key in sorted({*found, *golden})
            for line in differences(found.get(key), golden.get(key), f"{path}.{key}")
        ]
    if isinstance(found, list) and isinstance(golden, list) and len(found) == len(golden):
        return [line for i, pair in enumerate(zip(found, golden)) for line in differences(*pair, f"{path}[{i}]")]
    both_numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (found, golden))
    same = found == pytest.approx(golden, rel=RELATIVE, abs=0) if both_numbers else found == golden
    return [] if same else [f"{path.lstrip('.')}: {found!r}, was {golden!r}"]


def test_the_small_plan_is_as_it_was(small_plan):
    found = json.loads(json.dumps(essence(small_plan)))
    assert differences(found, json.loads(GOLDEN.read_text(encoding="utf-8"))) == [], "see the head of this file"


def test_a_difference_is_seen(small_plan):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for change in (
        {"status": "limit"},
        {"objective": {**golden["objective"], "value": golden["objective"]["value"] * (1 + 2e-6)}},
        {"fleet": []},
    ):
        assert len(differences({**golden, **change}, golden)) == 1


if __name__ == "__main__":
    import planner

    GOLDEN.write_text(json.dumps(essence(planner.solve(SPEC)), indent=1) + "\n", encoding="utf-8")
    print(f"written: {GOLDEN}")
