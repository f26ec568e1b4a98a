"""What makes two plans differ, from their documents alone: the largest part of the objective first, and in words.

Not here: the differences of the two specs (`planner.spec.changes`), and whether either plan holds (`planner.verify.plan`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.units import HOUR_S, MILLION, show
from planner.errors import Problem, SpecError
from planner.plan import Plan, binds
from planner.report.report import COMPONENT_WORDS, STATUS_WORDS
from planner.spec.changes import MISSING, either, spec_changes

Row = dict[str, Any]

SAME = 1e-9  # relative differences below this are rounding
MOST_OF_IT = 0.9  # parts are named in words until they make up this share of all movement
NAMED = 5  # at most so many
PRINTED = 20  # rows of a table that people read; JSON and CSV have them all
TOTALS = {"cost": "", "carbon_kg": "kg", "energy_j": "J", "tokens": "token", "chips": "chip", "peak_power_w": "W"}
TABLES = {
    "totals": "Totals",
    "parts": "Parts of the objective",
    "systems": "By system and way to obtain it",
    "sites": "By site",
    "lines": "By part, site and system, the largest first",
    "fleet": "Fleet",
    "points": "How it runs",
    "routes": "Who is served from where",
    "quality": "Which architecture answers",
    "jobs": "Jobs",
    "limits": "Limits that bind in one only",
    "spec": "The questions",
    "figures": "Assumed figures",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`document`: `first`, `second` (name, status, objective, bound, catalog_digest), `difference`, `words`, and a list for each of TABLES.

    Rows hold `first`, `second` and `difference` (second less first); `share`: of the objective of the first.
    """

    document: Mapping[str, Any]

    @property
    def words(self) -> list[str]:
        return self.document["words"]

    @property
    def same(self) -> bool:
        return not any(self.document[table] for table in TABLES)

    @property
    def rows(self) -> list[Row]:
        """All differences as one table: of what kind, of what, and by how much."""
        found = []
        for table in TABLES:
            for row in self.document[table]:
                what = ", ".join(
                    str(value)
                    for key, value in row.items()
                    if key not in ("first", "second", "difference", "share", "unit") and value not in (None, "")
                )
                found.append(
                    {
                        "table": table,
                        "what": what,
                        "first": row["first"],
                        "second": row["second"],
                        "difference": row.get("difference"),
                        "unit": row.get("unit", ""),
                        "share": row.get("share"),
                    }
                )
        return found

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        return [
            (heading, [_printed(row) for row in self.document[table][:PRINTED]]) for table, heading in TABLES.items()
        ]


def compare(first: Plan, second: Plan) -> Comparison:
    """All differences between two plans. Raises SpecError where their amounts are in different currencies."""
    currencies = [plan["spec"].get("currency", "USD") for plan in (first, second)]
    if currencies[0] != currencies[1]:
        raise SpecError(
            [
                Problem(
                    "currency",
                    f'amounts of the plans are in {currencies[0]} and {currencies[1]}; solve one of them with --set currency="{currencies[0]}"',
                )
            ]
        )
    plans = (first, second)
    comparable = first.has_answer and second.has_answer and first.objective["unit"] == second.objective["unit"]
    key = "carbon_lines" if first.objective["unit"] == second.objective["unit"] == "kg" else "cost_lines"
    unit = "kg" if key == "carbon_lines" else currencies[0]
    whole = sum(line["amount"] for line in first[key])
    found: dict[str, Any] = {
        "first": _head(first),
        "second": _head(second),
        "difference": second.objective["value"] - first.objective["value"] if comparable else None,
        "totals": _totals(plans, currencies[0]),
        "parts": _amounts(plans, key, ("component",), unit, whole),
        "systems": _amounts(plans, key, ("system", "how"), unit, whole),
        "sites": _amounts(plans, key, ("site",), unit, whole),
        "lines": _amounts(plans, key, ("component", "site", "system", "how"), unit, whole),
        "fleet": _counted(plans, _fleet, ("site", "system", "how", "fabric", "phase"), "system"),
        "points": _counted(plans, _points, ("workload", "site", "runs"), "replica at the peak"),
        "routes": _counted(plans, _routes, ("workload", "origin", "site"), "share of the origin's tokens"),
        "quality": _different(plans, _quality, ("workload", "fact")),
        "jobs": _different(plans, _jobs, ("job", "fact")),
        "limits": _different(plans, _limits, ("path", "name")),
        "spec": spec_changes(first["spec"], second["spec"]),
        "figures": _different(plans, _figures, ("path",)),
    }
    return Comparison({**found, "words": _words(first, second, found)})


def _head(plan: Plan) -> Row:
    return {key: plan[key] for key in ("name", "status", "objective", "bound", "gap", "catalog_digest")}


# -- tables ------------------------------------------------------------------------------------------------------------

Keyed = dict[tuple[Hashable, ...], Any]


def _joined(plans: tuple[Plan, Plan], read, names: tuple[str, ...]) -> Iterable[tuple[Row, Any, Any]]:
    """(key as a row, value in the first, value in the second) of whatever either has."""
    first, second = (read(plan) for plan in plans)
    for key in dict.fromkeys((*first, *second)):
        yield dict(zip(names, key, strict=True)), first.get(key), second.get(key)


def _counted(plans: tuple[Plan, Plan], read, names: tuple[str, ...], unit: str) -> list[Row]:
    """Numbers that differ, the largest difference first."""
    rows = [
        {**key, "first": a or 0, "second": b or 0, "difference": (b or 0) - (a or 0), "unit": unit}
        for key, a, b in _joined(plans, read, names)
        if abs((b or 0) - (a or 0)) > SAME * max(abs(a or 0), abs(b or 0))
    ]
    return sorted(rows, key=lambda row: -abs(row["difference"]))


def _different(plans: tuple[Plan, Plan], read, names: tuple[str, ...]) -> list[Row]:
    return [{**key, "first": a, "second": b} for key, a, b in _joined(plans, read, names) if a != b]


def _amounts(plans: tuple[Plan, Plan], key: str, names: tuple[str, ...], unit: str, whole: float) -> list[Row]:
    def read(plan: Plan) -> Keyed:
        sums: Keyed = defaultdict(float)
        for line in plan[key]:
            sums[tuple(line[name] for name in names)] += line["amount"]
        return sums

    return [
        {**row, "share": row["difference"] / whole if whole else None} for row in _counted(plans, read, names, unit)
    ]


def _totals(plans: tuple[Plan, Plan], currency: str) -> list[Row]:
    found = [plan["totals"] or {} for plan in plans]
    rows = [
        {"total": name, "first": found[0].get(name), "second": found[1].get(name), "unit": unit or currency}
        for name, unit in TOTALS.items()
    ]
    rows = [
        row | {"difference": None if None in (row["first"], row["second"]) else row["second"] - row["first"]}
        for row in rows
    ]
    return [
        row
        for row in rows
        if (
            row["first"] != row["second"]
            if row["difference"] is None
            else abs(row["difference"]) > SAME * abs(row["first"])
        )
    ]


def _fleet(plan: Plan) -> Keyed:
    counts: Keyed = defaultdict(int)
    for row in plan["fleet"]:
        counts[row["site"], row["system"], row["how"], row["fabric"], row["phase"]] += row["count"]
    return counts


def _points(plan: Plan) -> Keyed:
    replicas: Keyed = defaultdict(float)
    for workload in plan["workloads"]:
        for point in workload["points"]:
            runs = " + ".join(f"{pool['system']} {_layout(pool)}" for pool in point["pools"])
            replicas[workload["name"], point["site"], runs] += point["peak_replicas"]
    return replicas


def _layout(pool: Mapping[str, Any]) -> str:
    sizes = " ".join(f"{name}{size}" for name, size in pool["layout"].items() if size != 1) or "1 chip"
    batch = f" batch {pool['batch']}" if pool["batch"] else ""
    return f"{pool['role']} {pool['workers']} x {sizes}{batch} {pool['precision']}"


def _routes(plan: Plan) -> Keyed:
    """Share of each origin's output tokens over the horizon that each site serves."""
    seconds = {row["slot"]: row["seconds"] for row in plan["schedule"]}
    flows, totals = defaultdict(float), defaultdict(float)
    for row in plan["routes"]:
        tokens = row["tokens_per_s"] * seconds[row["slot"]]
        flows[row["workload"], row["origin"], row["site"]] += tokens
        totals[row["workload"], row["origin"]] += tokens
    return {key: tokens / totals[key[:2]] for key, tokens in flows.items() if totals[key[:2]]}


def _quality(plan: Plan) -> Keyed:
    """Who answers each workload that has a quality floor, and how well."""
    facts: Keyed = {}
    for row in plan.document.get("quality", ()):
        facts[row["workload"], "architectures"] = ", ".join(
            f"{each['architecture']} {each['share']:.1%}" for each in row["architectures"] if each["name"] is not None
        )
        facts[row["workload"], "quality"] = f"{row['reached']:.6g} ({row['source']})"
    return facts


def _jobs(plan: Plan) -> Keyed:
    """Where each job runs, how long at full width, and when: the hours of the day in which it is at work."""
    facts: Keyed = {}
    for workload in plan["workloads"]:
        if workload["kind"] != "training":
            continue
        points = {point["id"]: point for point in workload["points"]}
        slots = [row for row in plan["schedule"] if not points.keys().isdisjoint(row["active"])]
        facts[workload["name"], "site"] = (
            either(dict.fromkeys(point["site"] for point in points.values()), "and") if points else None
        )
        facts[workload["name"], "time at full width"] = "; ".join(
            show(point["time_s"]["run"], "s") for point in points.values()
        )
        facts[workload["name"], "hours at work"] = f"{sum(row['seconds'] for row in slots) / HOUR_S:,.0f}"
        facts[workload["name"], "hours of the day (UTC)"] = _spans(sorted({int(row["hour_utc"]) for row in slots}))
        facts[workload["name"], "phases"] = ", ".join(map(str, sorted({row["phase"] for row in slots})))
    return facts


def _spans(hours: list[int]) -> str:
    """
    >>> _spans([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    spans: list[list[int]] = []
    for hour in hours:
        if spans and hour == spans[-1][1] + 1:
            spans[-1][1] = hour
        else:
            spans.append([hour, hour])
    return ", ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in spans)


def _limits(plan: Plan) -> Keyed:
    """Limits that bind; latencies bind where they chose, which slack does not say, so theirs are left out."""
    rows = (row for row in plan["limits"] if row["marginal_unit"])
    return {(row["path"], row["name"]): "binds" for row in rows if binds(row)}


def _figures(plan: Plan) -> Keyed:
    return {
        (row["path"],): row["value"] if isinstance(row["value"], str) else f"{row['value']:.6g} {row['unit']}"
        for row in plan["assumptions"]
    }


# -- words -------------------------------------------------------------------------------------------------------------


def _words(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    if found["difference"] is None:
        both = f"{first['name']}: {STATUS_WORDS[first.status]}; {second['name']}: {STATUS_WORDS[second.status]}."
        reason = (
            ""
            if not (first.has_answer and second.has_answer)
            else f" They ask for different things ({first.objective['unit']}, {second.objective['unit']}), so only costs are set side by side."
        )
        return [both + reason, *_causes(first, second, found)]
    words, difference, base, unit = [], found["difference"], first.objective["value"], first.objective["unit"]
    if abs(difference) <= SAME * abs(base):
        words.append(f"Both come to {_money(base, unit)}.")
    else:
        more = "more" if difference > 0 else "less"
        words.append(
            f"The second comes to {_money(abs(difference), unit)} {more} than the first ({abs(difference / base):.2%} of {_money(base, unit)})."
        )
        doubt = sum(
            abs(plan["bound"] - plan.objective["value"]) for plan in (first, second) if plan["bound"] is not None
        )
        if abs(difference) <= doubt:
            words.append(
                f"That is within what the two proofs leave open ({_money(doubt, unit)}): a smaller --gap would tell."
            )
    return [*words, *_drivers(found), *_causes(first, second, found)]


def _drivers(found: Mapping[str, Any]) -> list[str]:
    """Parts and places that make up most of the movement."""
    words = []
    if parts := _most(found["parts"]):
        told = [
            f"{COMPONENT_WORDS.get(row['component'], row['component'])} {_signed(row['difference'], row['unit'])}"
            for row in parts
        ]
        words.append(f"What drives it: {either(told, 'and')}.")
    if kinds := _most([row for row in found["systems"] if row["system"]]):
        told = [
            f"{row['system']} ({row['how'].replace('_', ' ')}) {_signed(row['difference'], row['unit'])}"
            for row in kinds
        ]
        words.append(f"By system, all parts together: {either(told, 'and')}.")
    if fleet := found["fleet"][:NAMED]:
        told = [
            f"{abs(row['difference'])} {'more' if row['difference'] > 0 else 'fewer'} {row['system']} ({row['how'].replace('_', ' ')}) in {row['site']}"
            for row in fleet
        ]
        words.append(
            f"The fleet of the second has {either(told, 'and')}{', and more changes' if len(found['fleet']) > NAMED else ''}."
        )
    elif found["parts"]:
        words.append("The fleets are the same.")
    return words


def _causes(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    words = []
    for side, where in (("first", "first"), ("second", "second")):
        if names := [row["name"] for row in found["limits"] if row[side] == "binds"]:
            words.append(f"Binding in the {where} only: {either(names[:NAMED], 'and')}.")
    if changes := found["spec"]:
        told = [f"{row['path']} ({_said(row['first'])}, {_said(row['second'])})" for row in changes[:NAMED]]
        words.append(
            f"The questions differ in {either(told, 'and')}{f' and {len(changes) - NAMED} more places' if len(changes) > NAMED else ''}."
        )
    for row in found["quality"]:
        if row["fact"] == "architectures" and row["first"] and row["second"]:
            words.append(
                f"{row['workload']} is answered by {row['first']} in the first, by {row['second']} in the second."
            )
    if first["catalog_digest"] != second["catalog_digest"]:
        words.append("They were made from different catalogs.")
    if not words and not any(found[table] for table in TABLES):
        words.append("The plans are the same.")
    return words


def _most(rows: list[Row]) -> list[Row]:
    """The largest rows that together make up most of all movement."""
    left, taken = sum(abs(row["difference"]) for row in rows) * MOST_OF_IT, []
    for row in rows[:NAMED]:
        if left <= 0:
            break
        taken.append(row)
        left -= abs(row["difference"])
    return taken


def _money(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:,.4g} {unit}"


def _signed(value: float, unit: str) -> str:
    return ("+" if value > 0 else "-") + _money(abs(value), unit)


def _said(value: Any) -> str:
    text = "not there" if value == MISSING else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _printed(row: Row) -> Row:
    """A row as people read it."""
    unit = row.get("unit", "")

    def text(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _said(value)
        if unit.startswith("share"):
            return f"{value:.1%}"
        if unit in ("W", "J"):
            return show(value, unit)
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"

    told = {
        key: COMPONENT_WORDS.get(value, value) if key == "component" else "" if value is None else value
        for key, value in row.items()
        if key not in ("share", "unit")
    }
    told |= {key: text(row[key]) for key in ("first", "second", "difference") if key in row}
    if unit and not unit.startswith("share"):
        told["unit"] = unit
    return told | ({"of objective": f"{row['share']:+.2%}"} if row.get("share") is not None else {})


@dataclass(frozen=True, slots=True)
class SideBySide:
    """`rows`: `table` ("cost" or "totals"), `what`, `unit`, and a value for each of `names`; None where a plan has none."""

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: list[Row]

    @property
    def document(self) -> Row:
        return {
            "plans": [{"name": name, "status": status} for name, status in zip(self.names, self.statuses, strict=True)],
            "rows": self.rows,
        }

    @property
    def words(self) -> list[str]:
        return [
            f"{number}: {name}, {STATUS_WORDS[status]}."
            for number, (name, status) in enumerate(zip(self.names, self.statuses, strict=True), 1)
        ]

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        return [
            (heading, [self._printed(row) for row in self.rows if row["table"] == table])
            for table, heading in (("cost", "What each costs, by component"), ("totals", "What each comes to"))
        ]

    def _printed(self, row: Row) -> Row:
        told = {"component" if row["table"] == "cost" else "total": COMPONENT_WORDS.get(row["what"], row["what"])}
        for number, name in enumerate(self.names, 1):
            value = row[name]
            told[str(number)] = (
                ""
                if value is None
                else show(value, row["unit"])
                if row["unit"] in ("W", "s")
                else f"{value:,.4g}"
                if abs(value) < 1000
                else f"{value:,.0f}"
            )
        return told | {"unit": "" if row["unit"] in ("W", "s") else row["unit"]}


def side_by_side(plans: Sequence[Plan]) -> SideBySide:
    """Raises SpecError where amounts are in different currencies or two plans have one name."""
    currencies, names = {plan["spec"].get("currency", "USD") for plan in plans}, tuple(plan["name"] for plan in plans)
    if len(currencies) > 1:
        raise SpecError(
            [Problem("currency", f"amounts of the plans are in {' and '.join(sorted(currencies))}; solve them in one")]
        )
    if len(set(names)) < len(names):
        raise SpecError([Problem("name", "two plans have one name; solve one of them with --set name=...")])
    currency = currencies.pop()
    components = list(dict.fromkeys(component for plan in plans for component in plan["costs"]))
    rows = [
        _row(
            "cost",
            component,
            currency,
            names,
            [plan["costs"].get(component, 0.0) if plan.has_answer else None for plan in plans],
        )
        for component in components
    ]
    rows.sort(key=lambda row: -sum(row[name] or 0.0 for name in names))
    rows.append(_row("cost", "all", currency, names, _each(plans, lambda plan: plan["totals"]["cost"])))
    for what, unit, read in (
        ("purchase price", currency, lambda plan: _of_phases(plan, "capital")),
        ("worth at the end", currency, lambda plan: _of_phases(plan, "residual")),
        ("cost with purchases paid in full", currency, lambda plan: _of_phases(plan, "paid")),
        ("chips", "chip", lambda plan: plan["totals"]["chips"]),
        ("power at the peak", "W", lambda plan: plan["totals"]["peak_power_w"]),
        ("first work after", "s", _begins_s),
        ("tokens", "1T", lambda plan: plan["totals"]["tokens"] / MILLION**2),
        (
            "cost per million tokens",
            currency,
            lambda plan: (
                plan["totals"]["cost"] * MILLION / plan["totals"]["tokens"] if plan["totals"]["tokens"] else None
            ),
        ),
    ):
        rows.append(_row("totals", what, unit, names, _each(plans, read)))
    return SideBySide(
        names,
        tuple(plan.status for plan in plans),
        [row for row in rows if row["what"] == "all" or any(row[name] for name in names)],
    )


def _each(plans: Sequence[Plan], read: Callable[[Plan], float | None]) -> list[float | None]:
    return [read(plan) if plan.has_answer else None for plan in plans]


def _row(table: str, what: str, unit: str, names: Sequence[str], values: Sequence[float | None]) -> Row:
    return {"table": table, "what": what, "unit": unit, **dict(zip(names, values, strict=True))}


def _of_phases(plan: Plan, key: str) -> float | None:
    """Known where the spec has phases, but what is paid not where electricity is a decision."""
    rows = plan.document.get("phases") or ()
    return sum(row[key] for row in rows) if rows and all(row.get(key) is not None for row in rows) else None


def _begins_s(plan: Plan) -> float | None:
    """Time from the start of the horizon to the first window in which anything runs."""
    running = {row["phase"] for row in plan["schedule"] if any(row["active"].values())}
    if not running:
        return None
    site = plan["schedule"][0]["site"]
    return sum(row["seconds"] for row in plan["schedule"] if row["site"] == site and row["phase"] < min(running))
