"""Measure how much faster a solved plan answers a changed question than a fresh solve, and what a frontier gains by keeping its program.

    python benchmarks/whatif.py [SPEC] [--change PATH=VALUE ...] [--points N] [--write]

Each change is answered by a kept plan and then from nothing, one after the other in one process; wall time and processor time of both,
and their ratio. `cold_solve_s` is the part of the program alone. The last line is one JSON object. `--write`: benchmarks/whatif.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planner.pipeline import solve
from planner.resolve.resolver import resolve_document
from planner.spec.changes import scaled
from planner.spec.document import at, edited, path_parts, read_spec
from planner.studies.frontier import CARBON, THROUGHPUT, frontier
from planner.studies.whatif import Changes, WhatIf
from planner.verify.plan import verify_plan
from solvers.search import joint

SPEC = ROOT / "examples" / "mixed_fleet.json"
REPORT = Path(__file__).with_suffix(".md")
SHARE = 0.1  # by which prices move
ASKED = 5.0  # times quicker
WH_J = 3600.0


def price_changes(document: dict[str, Any]) -> list[Changes]:
    """List a tenth up and a tenth down of every price, stated or from the catalog: of each offer, and of electricity at each site."""
    problem = resolve_document(document)
    currency, found = document.get("currency", "USD"), []
    for sign in (1.0, -1.0):
        factor = 1.0 + sign * SHARE
        for i, offer in enumerate(problem.offers):
            stated = at(document, f"offers[{i}].price")
            mean = statistics.fmean(offer.prices.values())
            told = (
                f"{mean * factor:.9g} {currency}" if offer.how == "buy" else f"{mean * 3600 * factor:.9g} {currency}/h"
            )
            found.append({f"offers[{i}].price": told if stated is None else scaled(stated, factor)})
        for i, site in enumerate(problem.sites):
            found.append(
                {
                    f"sites[{i}].electricity_price": f"{float(site.price_per_j.mean()) * 1e6 * WH_J * factor:.9g} {currency}/MWh"
                }
            )
    return found


def asked(text: str) -> Changes:
    path, _, value = text.partition("=")
    assert path_parts(path)
    return {path: value}


class Clock:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


def compare(kept: WhatIf, changes: Changes) -> dict[str, Any]:
    clock = Clock()
    plan = kept.plan(changes)
    wall, cpu = clock.read()
    solving = []
    plain = joint.solve

    def timed(*arguments):
        begin = Clock()
        found = plain(*arguments)
        solving.append(begin.read()[0])
        return found

    joint.solve = timed
    try:
        clock = Clock()
        cold = solve(edited(kept.document, tuple(changes.items())))
        cold_wall, cold_cpu = clock.read()
    finally:
        joint.solve = plain
    assert plan.status == cold.status or {plan.status, cold.status} <= {"optimal", "within_gap"}, (
        plan.status,
        cold.status,
    )
    assert not verify_plan(plan)
    one, other = plan.objective["value"], cold.objective["value"]
    assert abs(one - other) <= (plan.gap + cold.gap + 1e-6) * abs(other), (one, other)
    return {
        "change": ", ".join(f"{path} = {value}" for path, value in changes.items()), "how": kept.timing.how, "kept_s": wall, "cold_s": cold_wall,
        "cold_solve_s": sum(solving), "ratio": cold_wall / wall, "kept_cpu_s": cpu, "cold_cpu_s": cold_cpu, "cpu_ratio": cold_cpu / cpu,
        "kept_gap": plan.gap, "cold_gap": cold.gap, "difference": one / other - 1,
    }  # fmt: skip


def of_frontier(document: dict[str, Any], against: str, points: int) -> dict[str, Any]:
    """Time a frontier with its kept program, and each of its points from nothing."""
    clock = Clock()
    found = frontier(document, against, points)
    wall, cpu = clock.read()
    own = sum(point.seconds for point in found.points if point.changes)
    clock = Clock()
    for point in found.points:
        if point.changes:
            solve(edited(document, tuple(point.changes.items())))
    cold_wall, cold_cpu = clock.read()
    hows = [point.how for point in found.points]
    return {
        "against": against, "points": len(found.points), "in_place": hows.count("in place"), "frontier_s": wall, "frontier_cpu_s": cpu, "limited_points_s": own,
        "limited_points_cold_s": cold_wall, "limited_points_cold_cpu_s": cold_cpu, "ratio": cold_wall / own if own else None, "cpu_ratio": cold_cpu / cpu,
    }  # fmt: skip


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spec", nargs="?", default=str(SPEC))
    parser.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="one change to measure; without any, every price a tenth up and down",
    )
    parser.add_argument("--points", type=int, default=6, help="of the frontiers of carbon and of throughput; 0: none")
    parser.add_argument("--write", action="store_true", help="write benchmarks/whatif.md")
    arguments = parser.parse_args()
    document = read_spec(arguments.spec, [])
    clock = Clock()
    kept = WhatIf(document)
    first = clock.read()
    print(f"first plan, with what is kept: {first[0]:.2f} s")
    rows = []
    for changes in [asked(text) for text in arguments.change] or price_changes(document):
        rows.append(compare(kept, changes))
        row = rows[-1]
        print(
            f"{row['change']:<48} {row['how']:<9} {row['kept_s']:6.2f} s, cold {row['cold_s']:6.2f} s (program {row['cold_solve_s']:.2f} s): {row['ratio']:5.1f} x, "
            f"processor {row['cpu_ratio']:5.1f} x; gap {row['kept_gap']:.1e}, cold {row['cold_gap']:.1e}",
            flush=True,
        )
    told = {
        "first_plan_cpu_s": first[1], "changes": len(rows), "share_cpu_5x": sum(row["cpu_ratio"] >= ASKED for row in rows) / len(rows),
        "share_5x": sum(row["ratio"] >= ASKED for row in rows) / len(rows), "in_place": sum(row["how"] == "in place" for row in rows),
        **{name: fold(row[key] for row in rows) for name, key, fold in (
            ("ratio_median", "ratio", statistics.median), ("ratio_least", "ratio", min), ("cpu_ratio_median", "cpu_ratio", statistics.median),
            ("cpu_ratio_least", "cpu_ratio", min), ("largest_difference", "difference", lambda values: max(map(abs, values))),
        )},
        "ratio_of_sums": sum(row["cold_s"] for row in rows) / sum(row["kept_s"] for row in rows),
        "cpu_ratio_of_sums": sum(row["cold_cpu_s"] for row in rows) / sum(row["kept_cpu_s"] for row in rows),
    }  # fmt: skip
    if arguments.points:
        told["frontiers"] = [of_frontier(document, against, arguments.points) for against in (CARBON, THROUGHPUT)]
    if arguments.write:
        REPORT.write_text(report(rows, told), encoding="utf-8")
    print(json.dumps(told))


def report(rows: list[dict[str, Any]], told: dict[str, Any]) -> str:
    lines = [
        "# Questions to a solved plan", "",
        f"Written by `python {' '.join(['benchmarks/whatif.py', *sys.argv[1:]])}`. Each change is asked of a kept plan and then from nothing, one after the other in one",
        "process. Processor seconds of the whole answer, from the spec to the plan with its marginal values; ratios of processor time and of wall time.",
        "The two answers agree within their proven gaps, and each kept one is re-checked.", "",
        "| change | program | kept | from nothing | times quicker | by the wall clock | gap | gap from nothing |", "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {row['change']} | {row['how']} | {row['kept_cpu_s']:.2f} s | {row['cold_cpu_s']:.2f} s | {row['cpu_ratio']:.1f} | {row['ratio']:.1f} | {row['kept_gap']:.2%} | {row['cold_gap']:.2%} |" for row in rows), "",
        f"Times quicker: median {told['cpu_ratio_median']:.1f}, least {told['cpu_ratio_least']:.1f}, {ASKED:g} or more for {told['share_cpu_5x']:.0%} of {len(rows)} changes; of all times together {told['cpu_ratio_of_sums']:.1f}.",
        f"By the wall clock: median {told['ratio_median']:.1f}, least {told['ratio_least']:.1f}, {ASKED:g} or more for {told['share_5x']:.0%}. The first plan took {told['first_plan_cpu_s']:.1f} s.",
    ]  # fmt: skip
    for each in told.get("frontiers", ()):
        took = f"{each['limited_points_s']:.1f} s with the kept program, {each['limited_points_cold_s']:.1f} s from nothing ({each['ratio']:.1f} times as long)"
        lines += [
            "",
            f"A frontier against {each['against']} of {each['points']} points: its limited points took {took}, all of it {each['frontier_s']:.1f} s (wall clock).",
        ]
    if told.get("frontiers"):
        lines += ["", "The ends of a frontier against carbon are made least by carbon, for which no program is kept."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run()
