"""Read the stored plans and the data of the gallery of announced systems, solve the specs anew, and compute the figures that stand beside claims.

Not here: the pages (`docs/build_gallery.py`).
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from catalog.units import DAY_S, MEGA, TONNE_KG
from planner.audit import Audit, audit
from planner.files import write_file
from planner.plan import Plan, parse_plan
from planner.report.why.ratios import ratios

HOME = Path(__file__).resolve().parents[1]
SYSTEMS = HOME / "examples" / "systems"
STUDIES = SYSTEMS / "studies"
CPU = SYSTEMS / "plans" / "solved.json"
Data = Mapping[str, Any]


# -- what is stored ------------------------------------------------------------------------------------------------------


def systems() -> dict[str, Data]:
    """Read the data of every page, in the order S1, S2, ... S12."""
    files = sorted((SYSTEMS / "pages").glob("S*.json"), key=lambda path: int(path.stem[1:]))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


def spec_file(name: str) -> Path:
    """Find the spec of a plan: of this folder, or an example of the folder above."""
    own = SYSTEMS / f"{name}.json"
    return own if own.is_file() else SYSTEMS.parent / f"{name}.json"


def plan_file(name: str) -> Path:
    """Find where the plan of a spec is stored."""
    return spec_file(name).parent / "plans" / f"{name}.json.gz"


@cache
def plan_of(name: str) -> Plan:
    """Read a stored plan."""
    return parse_plan(gzip.decompress(plan_file(name).read_bytes()), name)


@cache
def judged() -> Audit:
    """Judge all claims."""
    return audit()


def solved() -> dict[str, float]:
    """Read the CPU seconds in which the plans of this folder were solved."""
    return json.loads(CPU.read_text(encoding="utf-8")) if CPU.is_file() else {}


def solve_again(name: str) -> str:
    """Solve a spec of this folder, and store its plan; returns what came of it in a line."""
    from planner import solve, verify_plan

    began = time.process_time()
    plan = solve(spec_file(name))
    seconds = time.process_time() - began
    if not plan.has_answer:
        return f"{name}: no plan in the time of its spec"
    if findings := verify_plan(plan):
        return f"{name}: fails its verification: {findings[0]}"
    told = f"{name}: {plan.status}, gap {plan.gap or 0.0:.2%}, {seconds:.0f} CPU s"
    if plan_file(name).is_file():
        before = plan_of(name)
        apart = abs(plan.value - before.value) / abs(before.value)
        allowed = (plan.gap or 0.0) + (before.gap or 0.0)
        told += f", {apart:.2%} from the stored one" + ("" if apart <= allowed else ", MORE THAN BOTH GAPS")
    plan_file(name).parent.mkdir(exist_ok=True)
    write_file(plan_file(name), gzip.compress(plan.to_json().encode(), mtime=0))
    write_file(CPU, json.dumps({**solved(), name: round(seconds, 1)}, indent=1, sort_keys=True) + "\n")
    plan_of.cache_clear()
    return told


@cache
def study_of(name: str) -> Data:
    """Read the stored answer of a study whose solves take long: its `command` and its `document`."""
    found: Data = json.loads((STUDIES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def study_again(name: str, command: list[str]) -> str:
    """Run the command of a study anew, and store its answer without the plans' times; returns what came of it in a line."""
    import io
    from contextlib import redirect_stdout

    from planner.cli.main import main

    stream, began = io.StringIO(), time.process_time()
    with redirect_stdout(stream):
        code = main([command[0], str(HOME / command[1]), *command[2:], "--quiet", "--format", "json"])
    document = json.loads(stream.getvalue())
    STUDIES.mkdir(exist_ok=True)
    write_file(STUDIES / f"{name}.json", json.dumps({"command": command, "document": document}, indent=1, ensure_ascii=False) + "\n")
    study_of.cache_clear()
    return f"{name}: exit code {code}, {time.process_time() - began:.0f} CPU s"


# -- figures that stand beside claims ------------------------------------------------------------------------------------


def _workload(plan: Plan, name: str) -> Mapping[str, Any]:
    return next(row for row in plan.document["workloads"] if row["name"] == name)


def currency_of(plan: Plan) -> str:
    return plan.document["spec"].get("currency", "USD")


def _busy(plan: Plan) -> float:
    return next(row["value"] for row in ratios(plan) if row["code"] == "busy")


def _days(plan: Plan, workload: str) -> float:
    return min(point["time_s"]["run"] for point in _workload(plan, workload)["points"]) / DAY_S


def _per_hour(plan: Plan, workload: str) -> float:
    return sum(point["iteration"]["iterations_per_hour"] for point in _workload(plan, workload)["points"])


def _goodput(plan: Plan, workload: str) -> float:
    return min(point["goodput"] for point in _workload(plan, workload)["points"])


def _tpot(plan: Plan, workload: str) -> float:
    return 1.0 / max(row["predicted_s"] for row in _workload(plan, workload)["slo"] if row["metric"] == "tpot")


def _tokens_a_day(plan: Plan, workload: str) -> float:
    """Count the tokens of prompts and answers in a day, of one workload or of all that are served."""
    asked = {each["name"]: each for each in plan.document["spec"]["workloads"]}
    total = 0.0
    for row in plan.document["workloads"]:
        if row["kind"] == "serving" and workload in ("", row["name"]):
            lengths = asked[row.get("of", row["name"])]["lengths"]
            total += row["tokens"] * (1 + lengths["input"] / lengths["output"])
    return total / _horizon_days(plan)


def _horizon_days(plan: Plan) -> float:
    return 365.0 * plan.document["spec"].get("horizon", {}).get("years", 1)


def _cost_of_all(plan: Plan, _: str) -> float:
    served = sum(row["tokens"] for row in plan.document["workloads"])
    return plan.totals["cost"] / served * 1e6


FIGURES: dict[str, tuple[Callable[[Plan, str], float], str]] = {
    "chips": (lambda plan, _: plan.totals["chips"], "chips"),
    "power": (lambda plan, _: plan.totals["peak_power_w"] / MEGA, "MW"),
    "cost": (lambda plan, _: plan.totals["cost"], "CURRENCY"),
    "carbon": (lambda plan, _: plan.totals["carbon_kg"] / TONNE_KG, "t"),
    "price": (lambda plan, name: _workload(plan, name)["cost_per_million_tokens"], "CURRENCY/1M tokens"),
    "price of all": (_cost_of_all, "CURRENCY/1M tokens"),
    "tokens a day": (_tokens_a_day, "tokens/day"),
    "at work": (lambda plan, _: 100.0 * _busy(plan), "%"),
    "mfu": (lambda plan, name: 100.0 * _workload(plan, name)["mfu"], "%"),
    "days": (_days, "days"),
    "iterations": (_per_hour, "iterations/h"),
    "goodput": (lambda plan, name: 100.0 * _goodput(plan, name), "%"),
    "decode": (_tpot, "tokens/s"),
    "sites": (lambda plan, _: len({row["site"] for row in plan.document["fleet"]}), "sites in use"),
    "throughput": (lambda plan, _: plan.value, "times the demand"),
}
"""Figures of a plan by the name that data give them: how it is computed (of the workload named, if any), and its unit."""


def figure(row: Data) -> tuple[float, str]:
    """Compute (value, unit) of a figure as data name it; beside another plan as the share by which it is less, in percent."""
    compute, unit = FIGURES[row["figure"]]
    plan, name = plan_of(row["plan"]), row.get("workload", "")
    value = float(compute(plan, name))
    if "less than" in row:
        other = float(compute(plan_of(row["less than"]), name))
        return 100.0 * (1 - value / other), "% less"
    return value, unit.replace("CURRENCY", currency_of(plan))
