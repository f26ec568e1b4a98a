"""A plan for people and for other programs: terminal tables, JSON, CSV, Markdown."""

from __future__ import annotations

import textwrap
from typing import Any

from catalog.units import DAY_S, GIGA, HOUR_S, KILO, MILLION, MWH_J, TONNE_KG, show
from planner.plan import TABLES, Plan, binds
from planner.report import electricity as electricity_report
from planner.report import grades, marginal_values, story
from planner.report import interruptions as interruption_tables
from planner.report import lines as line_report
from planner.report import phases as phase_tables
from planner.report import quality as quality_report
from planner.report import robust as robust_report
from planner.tables import as_csv, as_markdown, as_text

STATUS_WORDS = {
    "optimal": "optimal",
    "within_gap": "best found, within the asked gap",
    "limit": "stopped at the limit before the asked gap was reached",
    "infeasible": "infeasible: no plan meets all limits at once",
    "unbounded": "unbounded: nothing limits the throughput; give a budget, a site's power, or a supply for every offer",
}
COMPONENT_WORDS = {
    "systems": "systems (capital)",
    "fabric": "fabric (capital)",
    "facility": "building (capital)",
    "colocation": "rented hall",
    "energy": "electricity",
    "rent": "rent",
    "site": "fixed cost of sites",
    "egress": "traffic to users",
    "api": "tokens from APIs",
    "porting": "porting of architectures",
    "weights": "distribution of weights",
    "lines": "rent of lines",
    "control": "control of sites",
    "telemetry": "telemetry of sites",
    **electricity_report.COMPONENT_WORDS,
}

LIMITS, RUNNER_UP, FABRICS = "Limits", "What comes next at each site", "The networks between our own systems"
NOTES = {
    **robust_report.NOTES,
    **interruption_tables.NOTES,
    FABRICS: "Whole parts for the systems that stand on each, and their price. A system is charged its share of the cheapest network per "
    "system that has as many tiers and that supply and power allow, so that one which is filled in part is charged less than its switches cost.",
    LIMITS: "Worth: what one unit more of a limit changes the objective by. Fleet held: every integer is fixed. "
    "Fleet free: sites, networks and points of jobs are fixed, systems may be added in fractions; "
    "of a very large plan, as its bound has it, which takes all of these in fractions. "
    "Blank where the limit does not bind, and for latencies and deadlines, which choose among points: solve with another value.",
    RUNNER_UP: "Margins are those of the program with systems in fractions, with one system of the kind brought in.",
}


def render(plan: Plan, form: str) -> str:
    """The plan as "table", "json", "csv" (its fleet) or "md"."""
    if form == "json":
        return plan.to_json()
    if form == "csv":
        return as_csv(plan["fleet"])
    return _text(plan) if form == "table" else _markdown(plan)


def csv_tables(plan: Plan) -> dict[str, str]:
    """One CSV text per table of the plan."""
    tables = {name: as_csv(plan[name]) for name in TABLES}
    tables |= {
        name: as_csv(plan[name])
        for name in (
            *line_report.TABLES,
            *electricity_report.TABLES,
            *interruption_tables.TABLES,
            *quality_report.TABLES,
            phase_tables.PHASES,
        )
        if name in plan.document
    }
    tables["costs"] = as_csv([{"component": name, "amount": amount} for name, amount in plan["costs"].items()])
    return tables


def headline(plan: Plan) -> str:
    """Status, value and proof in one sentence."""
    words = STATUS_WORDS[plan.status]
    if not plan.has_answer:
        return words
    objective = plan.objective
    value = f"{_amount(objective['value'])} {objective['unit']}"
    of = {"reduced": " on these typical days", "fleet": " with at least this fleet"}.get(plan["bound_of"], "")
    proof = (
        f"; no plan{of} is better than {_amount(plan['bound'])} (gap {plan.gap:.3%})"
        if plan.gap is not None
        else "; no bound was proven"
    )
    return f"{words}: {_goal(plan)} {value}{proof}"


def _goal(plan: Plan) -> str:
    asked = plan["spec"].get("objective") or {"minimise": "cost"}
    return {"cost": "least cost", "carbon": "least carbon"}.get(asked.get("minimise"), "most throughput")


def _sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """(heading, rows) of what a person reads first to last."""
    currency = plan["spec"].get("currency", "USD")
    sections = [
        ("What to obtain", [_fleet_row(row) for row in plan["fleet"]]),
        (FABRICS, [_fabric_row(row) for row in plan["fabrics"]]),
        ("How it runs", _point_rows(plan)),
        ("What each workload gets", [_workload_row(w, currency) for w in plan["workloads"]]),
        *quality_report.sections(plan),
        *grades.sections(plan),
        (f"What it costs ({currency}, present value over the horizon)", _cost_rows(plan)),
        ("Who is served from where", _route_rows(plan)),
        *line_report.sections(plan),
        *electricity_report.sections(plan),
        *robust_report.sections(plan),
        *phase_tables.sections(plan),
        *interruption_tables.sections(plan),
        (LIMITS, [_limit_row(row) for row in plan["limits"]]),
        (RUNNER_UP, [_runner_up_row(row) for row in plan["runner_up"]]),
        (
            "Dropped on the way",
            [
                {"workload": w, "reason": reason, "count": n}
                for w, reasons in plan["dropped"].items()
                for reason, n in reasons.items()
            ],
        ),
        ("Assumptions", [_assumption_row(row) for row in plan["assumptions"]]),
    ]
    return [(heading, rows) for heading, rows in sections if rows]


def _text(plan: Plan) -> str:
    parts = [plan["name"], headline(plan), _totals_line(plan), robust_report.words(plan)]
    for heading, lines in (*_diagnosis(plan), *marginal_values.chapters(plan), *story.chapters(plan)):
        parts.append(
            f"{heading}\n"
            + "".join(
                textwrap.fill(line, 118, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False) + "\n"
                for line in lines
            )
        )
    for heading, rows in _sections(plan):
        note = (
            textwrap.fill(NOTES[heading], 118, initial_indent="  ", subsequent_indent="  ") + "\n"
            if heading in NOTES
            else ""
        )
        parts.append(f"{heading}\n{as_text(rows, indent='  ')}{note}")
    parts.append(_closing(plan))
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _markdown(plan: Plan) -> str:
    parts = [
        f"# {plan['name']}",
        plan["spec"].get("note", ""),
        f"**{headline(plan)}**",
        _totals_line(plan),
        robust_report.words(plan),
    ]
    parts += [
        f"## {heading}\n\n" + "".join(f"- {line}\n" for line in lines)
        for heading, lines in (*_diagnosis(plan), *marginal_values.chapters(plan), *story.chapters(plan))
    ]
    for heading, rows in _sections(plan):
        note = f"\n{NOTES[heading]}\n" if heading in NOTES else ""
        parts.append(f"## {heading}\n\n{as_markdown(rows)}{note}")
    parts.append(_closing(plan))
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _diagnosis(plan: Plan) -> list[tuple[str, list[str]]]:
    """(heading, sentences) on why there is no plan and what would give one."""
    found = plan["diagnosis"]
    if found is None:
        return []
    conflict = [f"{row['words']} ({row['path']})" for row in found["conflict"]] or [
        "which limits those are was not found in the time"
    ]
    if found.get("conflict_of") == "amounts":
        conflict.append(
            "all that is no amount was kept as stated: which of it this conflict needs was not looked for in the time"
        )
    parts = [("These limits cannot all be met" if len(conflict) > 1 else "This limit cannot be met", conflict)]
    if found["repair"]:
        checked = (
            "with this change there is a plan"
            if found["repair_checked"]
            else "whether this is enough was not found in the time"
        )
        parts.append(("The smallest change", [*(row["words"] for row in found["repair"]), checked]))
    elif found["conflict"]:
        parts.append(("The smallest change", ["no change that is enough was found"]))
    return parts


def _totals_line(plan: Plan) -> str:
    totals = plan["totals"]
    if totals is None:
        return ""
    currency = plan["spec"].get("currency", "USD")
    return (
        f"{totals['chips']:,} chips, {show(totals['peak_power_w'], 'W')} at the peak, {_amount(totals['cost'])} {currency}, "
        f"{totals['carbon_kg'] / TONNE_KG:,.0f} t CO2, {totals['energy_j'] / MWH_J:,.0f} MWh, {totals['tokens'] / 1e12:,.2f}T tokens"
    ) + electricity_report.dispatch_words(plan)


def _closing(plan: Plan) -> str:
    kinds: dict[str, int] = {}
    for row in plan["provenance"]:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    if not kinds:
        return ""
    counted = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1]))
    return f"{len(plan['provenance'])} catalog figures used ({counted}); each with its source under `provenance` in --format json."


def _fleet_row(row: dict[str, Any]) -> dict[str, Any]:
    when = "throughout" if row["phase"] is None else f"phase {row['phase']}"
    if "windows" in row:
        when = row["obtained"] or "phases {} to {}".format(*row["windows"])
    return {
        "site": row["site"],
        "system": row["system"],
        "count": row["count"],
        "how": row["how"].replace("_", " "),
        "fabric": row["fabric"],
        "when": when,
    }


def _fabric_row(row: dict[str, Any]) -> dict[str, Any]:
    """Parts of a network, and how it is to be filled."""
    return {
        "site": row["site"],
        "system": row["system"],
        "design": row["design"]
        + (
            f", {row['tiers']} tier{'s' if row['tiers'] > 1 else ''}"
            if row["tiers"] and row["design"] != "dragonfly"
            else ""
        ),
        "systems": f"{row['systems']:,} of {row['size']:,}",
        "switches": f"{row['switches']:,}",
        "links": f"{row['links']:,}",
        "optics": f"{row['optics']:,}",
        "power": show(row["power_w"], "W"),
        "price": f"{row['price']:,.0f}",
        "charged": f"{row['charged']:,.0f}",
        "bisection": show(row["bisection_bytes_per_s"], "byte/s"),
        "hops": f"{row['mean_hops']:.1f}, at most {row['most_hops']}",
    }


def _point_rows(plan: Plan) -> list[dict[str, Any]]:
    """Points that differ only in the origins they serve stand in one row, their replicas added up."""
    rows: dict[tuple, dict[str, Any]] = {}
    replicas: dict[tuple, float] = {}
    for workload in plan["workloads"]:
        for point in workload["points"]:
            row = _point_row(workload, point)
            key = tuple(row.values())
            rows[key] = row
            replicas[key] = replicas.get(key, 0.0) + point["peak_replicas"]
    return [{**row, "replicas": f"{replicas[key]:.1f}"} for key, row in rows.items()]


def _point_row(workload: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    top = max(point["breakdown"].items(), key=lambda item: item[1], default=("", 0.0))
    return {
        "workload": workload["name"],
        "site": point["site"],
        "system": " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"])),
        "layout": "; ".join(_layout(pool) for pool in point["pools"]),
        "precision": point["pools"][0]["precision"],
        "replicas": "",
        "capacity": f"{point['capacity']:,.4g} {point['capacity_unit']}",
        "mostly": f"{top[0].replace('_', ' ')} {top[1]:.0%}",
    }


def _layout(pool: dict[str, Any]) -> str:
    sizes = (
        " ".join(
            f"{key}{value}"
            for key, value in pool["layout"].items()
            if key in ("tp", "pp", "dp", "cp", "ep") and value != 1
        )
        or "1 chip"
    )
    copies = f"{pool['workers']} x " if pool["workers"] > 1 else ""
    batch = f" batch {pool['batch']}" if pool["batch"] else ""
    if pool["role"] == "api":
        return "bought tokens"
    role = "" if pool["role"] in ("serve", "train") else f"{pool['role']} "
    return f"{role}{copies}{sizes}{batch}"


def _workload_row(workload: dict[str, Any], currency: str) -> dict[str, Any]:
    slo = ", ".join(
        f"{row['metric']} {row['percentile']} {show(row['predicted_s'], 's')} of {show(row['limit_s'], 's')}"
        for row in workload["slo"]
        if row["predicted_s"] is not None
    )
    per_million = workload["cost_per_million_tokens"]
    return {
        "workload": workload["name"],
        "tokens": f"{workload['tokens'] / 1e12:,.3f}T",
        f"{currency} per million": "" if per_million is None else f"{per_million:.4f}",
        "MFU": ""
        if workload["mfu"] is None
        else f"{workload['mfu']:.1%}" + (f", HFU {workload['hfu']:.1%}" if workload.get("hfu") else ""),
        "utilisation": "" if workload["utilisation"] is None else f"{workload['utilisation']:.0%}",
        "latency at the user": slo,
        "run": "; ".join(_run(point) for point in workload["points"] if point["time_s"]),
        "ranks": "; ".join(_ranks(point["placement"]) for point in workload["points"] if point["placement"]),
    }


def _run(point: dict[str, Any]) -> str:
    """How long a job takes at full width, with its 80 % interval."""
    low, high = (show(bound, "s") for bound in point["interval_80"]["run"])
    return f"{show(point['time_s']['run'], 's')} ({low} to {high}) at goodput {point['goodput']:.1%}"


def _ranks(placement: dict[str, Any]) -> str:
    """The order of the dimensions that loads the busiest link least, and what the usual numbering would load it with."""
    order = (
        " / ".join(" ".join(along) for along in placement["order"] if along)
        if "factors" in placement
        else " ".join(placement["order"])
    )
    usual = placement["in_number_order_s"]
    against = "" if usual is None else f", {show(usual, 's')} in number order"
    return f"{order}: busiest link {show(placement['busiest_link_s'], 's')} a step{against}"


def _cost_rows(plan: Plan) -> list[dict[str, Any]]:
    total = sum(plan["costs"].values())
    rows = sorted(plan["costs"].items(), key=lambda item: -item[1])
    return [
        {
            "component": COMPONENT_WORDS[name],
            "amount": f"{amount:,.0f}",
            "share": f"{amount / total:.1%}" if total else "",
        }
        for name, amount in rows
    ]


def _route_rows(plan: Plan) -> list[dict[str, Any]]:
    """Mean output tokens per second over the horizon by workload, origin and site."""
    seconds = {row["slot"]: row["seconds"] for row in plan["schedule"]}
    total = sum(seconds.values())
    flows: dict[tuple[str, str, str, str | None], float] = {}
    for row in plan["routes"]:
        key = (row["workload"], row["origin"], row["site"], row.get("line"))
        flows[key] = flows.get(key, 0.0) + row["tokens_per_s"] * seconds[row["slot"]] / total
    return [
        {"workload": w, "from": origin, "served in": site}
        | ({} if line is None else {"line": line})
        | {"output tokens/s": f"{flow:,.0f}"}
        for (w, origin, site, line), flow in flows.items()
    ]


def _limit_row(row: dict[str, Any]) -> dict[str, Any]:
    def text(value: float) -> str:
        if row["unit"] in ("W", "kg", "byte/s"):
            return show(value, row["unit"])
        if row["unit"] == "s":
            return f"{value / HOUR_S:,.0f} h" if abs(row["limit"]) > DAY_S else show(value, "s")
        return f"{value:,.0f} {row['unit']}"

    binding = binds(row)
    return {
        "limit": row["name"],
        "used": text(row["value"]),
        "allowed": text(row["limit"]),
        "slack": "binding" if binding else text(row["slack"]),
        "worth, fleet held": _worth(row["marginal_value"], row),
        "worth, fleet free": _worth(row["marginal_value_divisible"], row),
    }


def _worth(value: float | None, row: dict[str, Any]) -> str:
    """A marginal value per kW, t or million of money, as people would say it."""
    if value is None:
        return ""
    per, size = {"W": ("kW", KILO), "kg": ("t", TONNE_KG), "byte/s": ("GB/s", GIGA), "system": ("system", 1.0)}.get(
        row["unit"], (f"1M {row['unit']}", MILLION)
    )
    amount = value * size
    return f"{amount:,.0f} {_of(row)} per {per}" if abs(amount) >= 100 else f"{amount:.3g} {_of(row)} per {per}"


def _of(row: dict[str, Any]) -> str:
    return row["marginal_unit"].partition("/")[0]


def _runner_up_row(row: dict[str, Any]) -> dict[str, Any]:
    system = "" if row["system"] is None else f"{row['system']} ({row['how'].replace('_', ' ')})"
    return {"site": row["site"], "not in use there": system, "margin": row["words"]}


def _assumption_row(row: dict[str, Any]) -> dict[str, Any]:
    value = f"{row['value']:.4g} {row['unit']}" if isinstance(row["value"], float) else str(row["value"])
    return {
        "figure": row["path"],
        "value": value,
        "share of objective": "" if row["share"] is None else f"{row['share']:.1%}",
        "why": row["reason"],
    }


def _amount(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
