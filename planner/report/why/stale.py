"""List the dated figures that carry the cost of a plan, with their age, and what the same fleet costs at the low and at the high of each.

Amounts are arithmetic on the cost lines of the plan: cost(figure x) = cost + amount (x / value - 1), where `amount` is the part of the cost that
moves in proportion to the figure. The fleet stays; `flopwatt sensitivity` solves the question again at each figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.dates import age_months, last_month
from catalog.units import show
from planner.facts.offers import OLD_MONTHS
from planner.messages import listed, say
from planner.plan import Plan
from planner.plan.rows.framing import Provenance
from planner.report.why.oldest import BUY, FOLLOWS, carried_by_offers
from planner.spec.document import at

_ENTRY = re.compile(r"(?:offers|rented)\[\d+\]")
CARRIES = 0.01  # share of the cost: figures behind a smaller part decide little
SITE_FIGURES = {
    "energy": re.compile(r"regions/(.+)/(?:electricity_price|price_profile|electricity_delivery)"),
    "facility": re.compile(r"regions/(.+)/construction_cost"),
}
"""Component -> figures of the region of a site, in proportion to which the component moves there."""
SHARED_FIGURES = {
    "fabric": re.compile(r"fabrics/.+price.*"),
    "staff": re.compile(r"defaults/staff_per_.+"),
    "maintenance": re.compile(r"defaults/maintenance_fraction/value"),
    "spare parts": re.compile(r"defaults/spare_parts/value"),
    "software": re.compile(r"defaults/software_per_.+"),
    "egress": re.compile(r"wan/.+price.*|defaults/internet_egress_price/value"),
}
"""Component -> figures of the whole plan behind the component."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A figure behind a plan.

    `amount`: the part of the cost that moves with the figure [plan currency]; `alone`: whether in proportion to the figure, other than together
    with others; `at_low`, `at_high`: cost of the same fleet there, None where the figure has no such bound or does not move the amount alone.
    """

    row: Provenance
    amount: float
    share: float
    alone: bool
    at_low: float | None
    at_high: float | None

    def age(self, now: str) -> int | None:
        """Return the age at a day [month]; None without a date."""
        return age_months(self.row["date"], now)

    def told(self, now: str, unit: str) -> dict[str, Any]:
        """Write the figure as a row of a table."""
        value, age = self.row["value"], self.age(now)
        shown = (
            show(value, self.row["unit"])
            if isinstance(value, int | float)
            else value
            if isinstance(value, str)
            else f"{_mean(value):.4g} {self.row['unit']}"
        )
        return {
            "figure": self.row["path"].removesuffix("/value"),
            "value": shown,
            "date": self.row["date"] or "",
            "age_months": "" if age is None else age,
            "carries": f"{self.share:.1%}",
            f"at_low_{unit}": "" if self.at_low is None else round(self.at_low),
            f"at_high_{unit}": "" if self.at_high is None else round(self.at_high),
            "note": listed([self._doubt(age), "" if self.alone else say("market.together")]),
        }

    def _doubt(self, age: int | None) -> str:
        if age is None:
            return say("market.undated")
        return say("market.old", age=age) if age > OLD_MONTHS else ""


def stale(plan: Plan) -> list[Stale]:
    """List the figures that carry at least a hundredth of the cost: without a date first, such as prices of the spec, then the oldest."""
    total = plan.totals["cost"]
    if not total > 0.0:
        return []
    rows = {row["path"]: row for row in plan.document["provenance"]}
    found = [_figure(each.row, each.amount, total, alone=True) for each in carried_by_offers(plan)]
    found += list(_own_prices(plan, total))
    for component, region, amount in _amounts(plan):
        found += _behind(component, region, amount, list(rows.values()), total)
    carrying = [each for each in found if each.share >= CARRIES]
    return sorted(carrying, key=lambda each: (last_month(each.row["date"]) or 0, -each.amount, each.row["path"]))


def _own_prices(plan: Plan, total: float) -> Iterator[Stale]:
    """Yield the prices that the spec states, which have no date, by which systems in the fleet are had."""
    entries: dict[tuple[str, str, str], set[str]] = {}
    for row in plan.document["fleet"]:
        entries.setdefault((row["site"], row["system"], row["how"]), set()).add(row["offer"])
    amounts: dict[tuple[str, ...], float] = {}
    for line in plan.document["cost_lines"]:
        if line["component"] in FOLLOWS[BUY if line["how"] == BUY else ""]:
            paths = tuple(sorted(entries.get((line["site"], line["system"], line["how"]), ())))
            amounts[paths] = amounts.get(paths, 0.0) + line["amount"]
    for paths, amount in amounts.items():
        stated = {path: at(plan.document["spec"], f"{path}.price") for path in paths if _ENTRY.fullmatch(path)}
        for path, price in stated.items():
            if price is not None:
                own = Provenance(
                    path=f"{path}.price", value=str(price), unit="", source=[], date=None, confidence="", kind="stated"
                )
                yield _figure(own, amount, total, alone=len(paths) == 1)


def _amounts(plan: Plan) -> Iterator[tuple[str, str, float]]:
    """Yield (component, region, amount) of components that move by site, and (component, "", amount) of the others."""
    regions = {str(site.get("name") or site["region"]): str(site["region"]) for site in plan.document["spec"]["sites"]}
    sums: dict[tuple[str, str], float] = {}
    for line in plan.document["cost_lines"]:
        component = line["component"]
        if component in SITE_FIGURES or component in SHARED_FIGURES:
            key = component, regions.get(line["site"], "") if component in SITE_FIGURES else ""
            sums[key] = sums.get(key, 0.0) + line["amount"]
    for (component, region), amount in sums.items():
        yield component, region, amount


def _behind(component: str, region: str, amount: float, rows: Sequence[Provenance], total: float) -> Iterator[Stale]:
    """Yield the figures behind an amount: prices of electricity by their part of the whole price, others together."""
    if component in SITE_FIGURES:
        pattern = SITE_FIGURES[component]
        behind = [row for row in rows if (named := pattern.fullmatch(row["path"])) and named[1] == region]
    else:
        behind = [row for row in rows if SHARED_FIGURES[component].fullmatch(row["path"])]
    if component == "energy":
        whole = sum(_mean(row["value"]) for row in behind)
        for row in behind:
            yield _figure(row, amount * _mean(row["value"]) / whole if whole else 0.0, total, alone=True)
        return
    for row in behind:
        yield _figure(row, amount, total, alone=len(behind) == 1)


def _figure(row: Provenance, amount: float, total: float, *, alone: bool) -> Stale:
    value = row["value"]

    def cost_at(bound: float | None) -> float | None:
        if not alone or bound is None or not isinstance(value, int | float) or not value:
            return None
        return total + amount * (bound / value - 1.0)

    return Stale(row, amount, amount / total, alone, cost_at(row.get("low")), cost_at(row.get("high")))


def _mean(value: Any) -> float:
    """Return a number, or the mean of a profile; 0 for text."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sum(value) / len(value) if value else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def as_rows(found: Sequence[Stale], plan: Plan, now: str) -> list[Mapping[str, Any]]:
    """Write the figures as rows of a table, at a day such as "2026-11-27"."""
    unit = str(plan.document["spec"].get("currency") or "USD")
    return [each.told(now, unit) for each in found]
