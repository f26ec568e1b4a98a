"""Measure the question of reinforcement beside a service on ten thousand chips, stage by stage, in CPU seconds and by the wall clock.

    python benchmarks/reinforcement_scale.py [--points] [--time-limit 60] [--output-tokens "900B tokens/day"] [--iterations-per-hour 4]

The spec is that of examples/reinforcement.json with a service about a hundred times as large and batches of 4,096 prompts of 16 samples; 800 DGX H100 and
800 DGX H200 are on offer. `--points`: search the operating points only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.candidates.search import find_candidates
from planner.pipeline import solve_unverified
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

GAP = 0.005


def question(time_limit_s: float, output_tokens: str, iterations_per_hour: float) -> dict[str, Any]:
    """Build the spec."""
    spec: dict[str, Any] = json.loads(Path(__file__).parents[1].joinpath("examples/reinforcement.json").read_text())
    spec["name"] = "Reinforcement in the valleys of a service on ten thousand chips"
    chat, job = spec["workloads"]
    chat["demand"]["output_tokens"] = output_tokens
    job |= {"prompts": 4096, "samples": 16, "iterations_per_hour": iterations_per_hour}
    job["tools"]["environments"] = 16384
    spec["sites"] = [{"region": "us-texas", "power": "60 MW"}]
    spec["offers"] = [{"system": name, "how": "buy", "supply": 800} for name in ("DGX H100", "DGX H200")]
    spec["solver"] = {"gap": GAP, "time_limit": f"{time_limit_s} s", "replicas": "divisible"}
    spec["simplicity"] = {"within": 0}
    return spec


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", action="store_true", help="search the operating points only")
    parser.add_argument("--time-limit", type=float, default=60.0, help="of the plan, in seconds by the wall clock")
    parser.add_argument("--output-tokens", default="1300B tokens/day", help="demand of the service")
    parser.add_argument("--iterations-per-hour", type=float, default=6.0, help="of the reinforcement")
    arguments = parser.parse_args()
    spec = question(arguments.time_limit, arguments.output_tokens, arguments.iterations_per_hour)
    cpu_s, wall_s = time.process_time(), time.perf_counter()

    def say(line: str) -> None:
        print(f"{time.process_time() - cpu_s:7.1f} CPU s {time.perf_counter() - wall_s:7.1f} s  {line}", flush=True)

    if arguments.points:
        found = find_candidates(resolve_document(spec))
        say(f"{found.evaluated:,} layouts, {sum(map(len, found.training.values()))} points of reinforcement")
        return
    plan = solve_unverified(spec, progress=say)
    say(f"{plan.status}, gap {plan.gap}, {(plan['totals'] or {}).get('chips', 0):,} chips")
    if plan.has_answer:
        say(f"verify: {len(verify_plan(plan))} findings")
    for workload in plan["workloads"]:
        for point in workload["points"] if workload["kind"] == "reinforcement" else ():
            print(" + ".join(f"{p['systems_per_replica']:.0f} {p['system']} ({p['role']})" for p in point["pools"]))
            for split in point["iteration"]["splits"]:
                idle = ", ".join(f"{pool} idle {share:.0%}" for pool, share in split["idle"].items())
                print(
                    f"  {split['way']}: {split['rollout_systems']} rollout, {split['update_systems']} update, {split['iteration_s']:.0f} s, "
                    f"{split['binds']} binds, {idle}"
                )


if __name__ == "__main__":
    main()
