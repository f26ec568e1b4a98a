"""Compute six ratios of a plan from its rows, beside their published ranges: tokens/s per chip, kW per chip, cost per million tokens, busy share, loads a day, lead time.

Plain arithmetic on the rows of the document. A ratio outside its range has a reason that the rows tell, or is a contradiction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from catalog.units import DAY_S, parse, show
from planner.facts import ratios as published
from planner.facts.ranges import Known
from planner.facts.ratios import MILLION, WEEK_S
from planner.messages import Message, commas, say
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.plan.rows.workloads import Workload
from planner.report.words import without_tiers

if TYPE_CHECKING:
    from catalog.lookup import Catalog

API, BUY, SERVING = "api", "buy", "serving"
SHARED = 1e-9  # relative: figures that differ less are the same
LONG_PROMPTS = 8.0  # input tokens for each output token, beyond which prompts take most of the time
TIGHT_S = 0.02  # time per output token, below which batches are small
SMALL_PARAMETERS = 3e9  # used for each token by the smallest model with a published price
WITH_SERVER = 10_200 / 8 / 700  # nameplate of a DGX H100 for each chip, over that of the chip alone
EVEN = 0.9  # mean over the busiest hour, above which a load counts as even

SHOWN = {
    "token/chip s": (1.0, " tokens/s/chip"), "W/chip": (1e-3, " kW/chip"), "1": (100.0, "%"), "1/day": (1.0, "/day"), "s": (1.0 / WEEK_S, " weeks"),
}  # fmt: skip
"""Unit of a row -> the factor and the unit that people use."""


class Ratio(TypedDict):
    """State one ratio of a plan in SI beside the range that is published; `verdict`: within, explained, contradiction or unknown."""

    code: str
    ratio: str
    of: str
    value: float
    unit: str
    least: float | None
    most: float | None
    source: str
    verdict: str
    reason: str


def ratio_rows(
    plan: Plan, parameters: Mapping[str, float], per_usd: float | None, nameplates: Mapping[str, float]
) -> list[Ratio]:
    """Build the rows of the six ratios; none without an answer.

    `parameters`: those that a token uses, by architecture; `per_usd`: units of the plan's currency for a US dollar, None where no rate is known;
    `nameplates`: nameplate of a chip with its share of the system, by system [W]. An architecture or currency that is missing has no range.
    """
    if not plan.has_answer:
        return []
    work = _Work(plan)
    return [
        *_rates(plan, work, parameters, nameplates),
        *_power(plan, nameplates),
        *_costs(plan, parameters, per_usd),
        *_busy(plan, work),
        *_loads(plan),
        *_lead(plan),
    ]


def chips_of(point: Point) -> float:
    """Count the chips of a replica: the sizes of its pools' layouts, multiplied, times their workers; expert parallelism runs on the same chips.

    >>> chips_of({"pools": [{"role": "serve", "layout": {"tp": 4, "pp": 1, "dp": 2, "ep": 8}, "workers": 3}, {"role": "api", "layout": {}, "workers": 1}]})
    24.0
    """
    return float(
        sum(
            pool["workers"] * prod(size for axis, size in pool["layout"].items() if axis in ("tp", "pp", "dp", "cp"))
            for pool in point["pools"]
            if pool["role"] != API
        )
    )


class _Work:
    """Chips at work and output tokens served, added up over the slots of a plan."""

    def __init__(self, plan: Plan):
        self.seconds = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
        points = {point["id"]: (row["name"], point) for row in plan.document["workloads"] for point in row["points"]}
        bought = {point["pool"] for _, point in points.values() if any(pool["role"] == API for pool in point["pools"])}
        self.chip_s: dict[str, float] = defaultdict(float)  # by workload
        self.at_once: dict[int, float] = defaultdict(float)  # chips at work, by slot
        self.tokens: dict[str, float] = defaultdict(float)  # by workload, of chips of the fleet
        self.rate: dict[int, float] = defaultdict(float)  # output tokens/s, by slot
        for slot in plan.document["schedule"]:
            for name, active in slot["active"].items():
                workload, point = points[name]
                chips = active * chips_of(point)
                self.chip_s[workload] += chips * slot["seconds"]
                self.at_once[slot["slot"]] += chips
        for route in plan.document["routes"]:
            self.rate[route["slot"]] += route["tokens_per_s"]
            if route["pool"] not in bought:
                self.tokens[route["workload"]] += route["tokens_per_s"] * self.seconds[route["slot"]]

    @property
    def evenness(self) -> float:
        """Return the mean output rate over that of the busiest slot; 1 where nothing is served."""
        most, whole = max(self.rate.values(), default=0.0), sum(self.seconds.values())
        return sum(self.rate[slot] * seconds for slot, seconds in self.seconds.items()) / whole / most if most else 1.0


def _row(
    ratio: str, of: str, value: float, unit: str, known: Known | None, because: Iterable[tuple[bool, Message]]
) -> Ratio:
    """Build a row: outside the range, the first reason that holds explains it, or none does."""
    verdict, reason = ("unknown" if known is None else "within"), ""
    if known is not None and not known.least * (1 - SHARED) <= value <= known.most * (1 + SHARED):
        reasons = [message.text() for holds, message in because if holds]
        verdict, reason = ("explained", reasons[0]) if reasons else ("contradiction", say("ratio.contradiction"))
    return {
        "code": ratio, "ratio": say(f"ratio.{ratio}"), "of": of, "value": value, "unit": unit,
        "least": None if known is None else known.least, "most": None if known is None else known.most,
        "source": "" if known is None else known.source, "verdict": verdict, "reason": reason,
    }  # fmt: skip


def _serving(plan: Plan) -> Iterator[tuple[Workload, Mapping[str, Any]]]:
    """List the serving workloads of a plan with their blocks of the spec."""
    asked = {each["name"]: each for each in plan.document["spec"]["workloads"]}
    for row in plan.document["workloads"]:
        if row["kind"] == SERVING:
            yield row, asked.get(row.get("of", row["name"]), {})


def _architecture(row: Workload, asked: Mapping[str, Any]) -> str:
    return str(row.get("architecture") or asked.get("architecture") or "")


def _rates(
    plan: Plan, work: _Work, parameters: Mapping[str, float], nameplates: Mapping[str, float]
) -> Iterator[Ratio]:
    """Output tokens/s of a chip at work: tokens served by the fleet over the time of chips at work."""
    for row, asked in _serving(plan):
        name, used = row["name"], parameters.get(_architecture(row, asked))
        if not work.chip_s[name]:
            continue
        value = work.tokens[name] / work.chip_s[name]
        known = None if used is None else published.WORK.scaled(1.0 / used)
        systems = {pool["system"] for point in row["points"] for pool in point["pools"] if pool["role"] != API}
        most = max((nameplates.get(system, 0.0) for system in systems), default=0.0)
        tightest = min((each["limit_s"] for each in row["slo"] if each["metric"] == "tpot"), default=TIGHT_S)
        lengths = asked.get("lengths") or {}
        long = _number(lengths.get("input")) > LONG_PROMPTS * max(_number(lengths.get("output")), 1.0)
        below = known is not None and value < known.least
        yield _row(
            "rate", name, value, "token/chip s", known,
            [(below and long, Message.of("ratio.long_prompts")), (below and tightest < TIGHT_S, Message.of("ratio.tight", limit=show(tightest, "s"))),
             (below and 0.0 < most < published.POWER.least, Message.of("ratio.small_chips", most=show(most, "W")))],
        )  # fmt: skip


def _power(plan: Plan, nameplates: Mapping[str, float]) -> Iterator[Ratio]:
    """Power of a chip at the meter in the busiest hour."""
    totals, known = plan.totals, published.POWER
    if not totals["chips"]:
        return
    value = totals["peak_power_w"] / totals["chips"]
    most = max((nameplates.get(row["system"], 0.0) for row in plan.document["fleet"]), default=0.0)
    small = value < known.least and 0.0 < most < known.least
    idle = value < known.least <= most
    yield _row(
        "power", "", value, "W/chip", known,
        [(small, Message.of("ratio.small_chips", most=show(most, "W"))), (idle, Message.of("ratio.below_nameplate", most=show(most, "W")))],
    )  # fmt: skip


def _costs(plan: Plan, parameters: Mapping[str, float], per_usd: float | None) -> Iterator[Ratio]:
    """Levelised cost of an output token, in the currency of the plan."""
    currency = plan.document["spec"].get("currency") or "USD"
    known = None if per_usd is None else published.COST.scaled(per_usd)
    for row, asked in _serving(plan):
        if row["cost_per_million_tokens"] is None:
            continue
        value, used = (
            row["cost_per_million_tokens"] / MILLION,
            parameters.get(_architecture(row, asked), SMALL_PARAMETERS),
        )
        small = known is not None and value < known.least and used < SMALL_PARAMETERS
        idle = known is not None and value > known.most and (row["utilisation"] or 0.0) < published.BUSY.least
        share = f"{row['utilisation'] or 0.0:.0%}"
        yield _row(
            "cost", row["name"], value, f"{currency}/token", known,
            [(small, Message.of("ratio.small_model")), (idle, Message.of("ratio.idle_chips", share=share))],
        )  # fmt: skip


def _busy(plan: Plan, work: _Work) -> Iterator[Ratio]:
    """Chips at work, averaged over time, over the most that are held at once."""
    held, seconds = plan.totals["chips"], sum(work.seconds.values())
    if not held or not seconds:
        return
    value, known = sum(work.chip_s.values()) / held / seconds, published.BUSY
    peak = max(work.at_once.values(), default=0.0) / held
    rows = [row for row in plan.document["fleet"] if not row.get("unit")]
    jobs = any(row["kind"] != SERVING for row in plan.document["workloads"])
    yield _row(
        "busy", "", value, "1", known,
        [
            (value < known.least <= peak, Message.of("ratio.uneven", peak=f"{peak:.0%}")),
            (value < known.least and all(row["count"] == 1 for row in rows), Message.of("ratio.one_system")),
            (value > known.most and jobs, Message.of("ratio.jobs_fill")),
            (value > known.most and work.evenness > EVEN, Message.of("ratio.even", mean=f"{work.evenness:.0%}")),
        ],
    )  # fmt: skip


def _loads(plan: Plan) -> Iterator[Ratio]:
    """Loads of weights per worker and day, of workers that hold their weights."""
    deployments, seconds = (
        plan.deployments,
        sum({row["slot"]: row["seconds"] for row in plan.document["schedule"]}.values()),
    )
    workers = sum(pool["workers"] for row in deployments for pool in row["pools"])
    if not workers or not seconds:
        return
    value = sum(row["loads"] for row in deployments) / workers / (seconds / DAY_S)
    allowed = (plan.document["spec"].get("operation") or {}).get("relays_per_day")
    stated = allowed is not None and _number(allowed) > published.LOADS.most
    yield _row("loads", "", value, "1/day", published.LOADS, [(stated, Message.of("ratio.relays_stated"))])


def _lead(plan: Plan) -> Iterator[Ratio]:
    """Least time from the start of the horizon until a system that is bought may be there: its own and that of its hall."""
    spec = plan.document["spec"]
    offers = {f"offers[{i}]": offer for i, offer in enumerate(spec.get("offers") or ())}
    sites = {site["region"]: site for site in spec["sites"] if "region" in site}
    rows = [row for row in plan.document["fleet"] if row["how"] == BUY]
    waits = [
        [
            _seconds(offer.get("available_from")),
            _seconds((offer.get("delivery") or {}).get("typical")),
            _seconds(site.get("available_from")),
        ]
        for offer, site in ((offers.get(row["offer"], {}), sites.get(row["site"], {})) for row in rows)
    ]
    known = [max(each for each in pair if each is not None) for pair in waits if None not in pair]
    if not known:
        return
    value, least = min(known), published.LEAD.least
    yield _row(
        "lead", "", value, "s", published.LEAD,
        [(value == 0.0, Message.of("ratio.no_lead")), (not least <= value <= published.LEAD.most, Message.of("ratio.lead_stated"))],
    )  # fmt: skip


def _number(stated: Any) -> float:
    """Read a plain number of a spec; 0 for anything else."""
    return float(stated) if isinstance(stated, int | float) else 0.0


def _seconds(stated: Any) -> float | None:
    """Read a time from the start of the horizon; 0 where none is stated, None for a date."""
    if stated is None:
        return 0.0
    try:
        return float(stated) if isinstance(stated, int | float) else parse(str(stated), "s")
    except ValueError:
        return None


def shown(row: Ratio) -> tuple[str, str]:
    """Write the value of a row and its range, in the unit that people use.

    >>> shown({"value": 1500.0, "unit": "W/chip", "least": 810.0, "most": 2650.0})
    ('1.5 kW/chip', '0.81 … 2.65 kW/chip')
    >>> shown({"value": 0.5, "unit": "1", "least": None, "most": None})
    ('50%', '')
    """
    factor, unit = SHOWN.get(row["unit"]) or (MILLION, f" {row['unit'].replace('/token', '/1M')}")
    value, least, most = (
        "" if each is None else _rounded(each * factor) for each in (row["value"], row["least"], row["most"])
    )
    return f"{value}{unit}", f"{least} … {most}{unit}" if least else ""


def _rounded(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of the table of ratios, formatted for people."""
    rows = []
    for row in ratios(plan):
        value, span = shown(row)
        rows.append(
            {
                "ratio": row["ratio"], "workload": row["of"], "this_plan": value, "published": span, "verdict": say(f"ratio.verdict.{row['verdict']}"),
                "because": row["reason"], "source": row["source"],
            }
        )  # fmt: skip
    return [(say("heading.ratios"), rows)]


def contradictions(plan: Plan) -> str:
    """Name the ratios that lie outside their range without a reason; empty where none does."""
    names = list(dict.fromkeys(row["ratio"] for row in ratios(plan) if row["verdict"] == "contradiction"))
    return say("ratio.contradictions", names=commas(names)) if names else ""


def ratios(plan: Plan) -> list[Ratio]:
    """Build the rows of the six ratios with the figures of the catalog and of the plan's own `catalog` block; none without an answer."""
    if not plan.has_answer:
        return []
    from catalog.exchange import per_usd
    from catalog.lookup import Catalog, shipped_catalog

    spec = plan.document["spec"]
    catalog = Catalog.load((), [spec["catalog"]]) if spec.get("catalog") else shipped_catalog()
    used = {
        name: found
        for name in {_architecture(row, asked) for row, asked in _serving(plan)}
        if (found := _figure(catalog, "architectures", name, "active_parameters", "total_parameters")) is not None
    }
    nameplates = {
        name: watts
        for name in {row["system"] for row in plan.document["fleet"]}
        if (watts := _nameplate_w(catalog, without_tiers(name))) is not None
    }
    return ratio_rows(plan, used, per_usd(catalog, spec.get("currency") or "USD"), nameplates)


def _nameplate_w(catalog: Catalog, system: str) -> float | None:
    """Return the nameplate of a chip with its share of a system [W], or about as much from that of the chip alone; None where neither is known."""
    whole, chips = _figure(catalog, "systems", system, "power_w"), _figure(catalog, "systems", system, "chips")
    if whole is not None and chips:
        return whole / chips
    chip = catalog.get("systems", system).words("chip") if catalog.has("systems", system) else ""
    alone = _figure(catalog, "chips", chip, "tdp_w") if chip else None
    return None if alone is None else alone * WITH_SERVER


def _figure(catalog: Catalog, kind: str, name: str, *figures: str) -> float | None:
    """Return the first of some figures of a record; None where the catalog has neither."""
    if not catalog.has(kind, name):
        return None
    record = catalog.get(kind, name)
    return next((found.number for each in figures if (found := record.get(each)) is not None), None)
