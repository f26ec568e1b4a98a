"""Say which of the prices that carry a plan are oldest, and what its fleet costs at the highest that the market is known to ask.

The amounts are arithmetic on the cost lines of the plan: the fleet stays. `flopwatt sensitivity` solves the question again at each figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.dates import last_month
from catalog.units import show
from planner.messages import listed, say
from planner.plan import Plan
from planner.plan.rows.framing import Provenance
from planner.report.words import with_unit

SHOWN = 2
CARRIES = 0.01  # share of the cost: prices behind a smaller part carry little
BUY = "buy"
FOLLOWS = {BUY: ("systems", "maintenance", "spare parts"), "": ("rent", "early exit")}
"""Components that move in proportion to a purchase price, or to a rent."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A price of the catalog, with the part of a plan's cost that moves in proportion to the price [plan currency]."""

    row: Provenance
    amount: float

    @property
    def age(self) -> tuple[int, float]:
        """Sort the oldest first, and of these the one that carries most."""
        return last_month(self.row["date"]) or 0, -self.amount

    def more_at_the_high(self) -> float:
        """Compute how much more the same fleet costs at the high of the price; 0 where no higher one is known."""
        high, value = self.row.get("high"), self.row["value"]
        if high is None or not isinstance(value, int | float) or not 0.0 < value < high:
            return 0.0
        return self.amount * (high / value - 1.0)


def entries(plan: Plan) -> list[tuple[str, str, str, str]]:
    """List (offer, price, share of the cost, sentence) for the oldest prices, and for the price whose highest known figure costs most."""
    total, unit = plan.totals["cost"], plan.document["spec"].get("currency") or "USD"
    carried = carrying(plan)
    old, dear = carried[:SHOWN], dearest(carried)
    found = []
    for one in [*old, *([dear] if dear is not None and dear not in old else [])]:
        row, more = one.row, one.more_at_the_high()
        told = [say("market.oldest", date=row["date"] or "")] if one in old else []
        if more > 0.0:
            high, then = show(row["high"], row["unit"]), with_unit(total + more, unit)
            told.append(say("market.at_the_high", high=high, then=then))
        name = row["path"].removeprefix("offers/").removesuffix("/price")
        found.append((name, _price(row), f"{one.amount / total:.1%}", listed(told)))
    return found


def _price(row: Provenance) -> str:
    value = row["value"]
    return show(value, row["unit"]) if isinstance(value, int | float) else str(value)


def carrying(plan: Plan) -> list[Carried]:
    """Return the dated prices of the catalog that carry at least a hundredth of the cost, the oldest first."""
    total = plan.totals["cost"]
    found = [
        one
        for one in carried_by_offers(plan)
        if total > 0.0 and one.amount >= CARRIES * total and last_month(one.row["date"])
    ]
    return sorted(found, key=lambda one: one.age)


def dearest(carried: Sequence[Carried]) -> Carried | None:
    """Return the price at whose highest known figure the fleet costs most; None where no higher figure is known."""
    moving = [one for one in carried if one.more_at_the_high() > 0.0]
    return max(moving, key=lambda one: one.more_at_the_high(), default=None)


def carried_by_offers(plan: Plan) -> Iterator[Carried]:
    """Yield each price of an offer of the catalog by which systems in the fleet are had."""
    amounts: dict[str, float] = {}
    rows = {row["path"]: row for row in plan.document["provenance"] if row["path"].startswith("offers/")}
    for line in plan.document["cost_lines"]:
        if line["component"] in FOLLOWS[BUY if line["how"] == BUY else ""]:
            path = _offer(rows, line["system"], line["how"], line["site"])
            if path is not None:
                amounts[path] = amounts.get(path, 0.0) + line["amount"]
    for path, carried in amounts.items():
        yield Carried(rows[path], carried)


def _offer(rows: Mapping[str, Provenance], system: str, how: str, site: str) -> str | None:
    """Find the price that the catalog gave for a system at a site: its offers are named by system, way to obtain, and region."""
    named = [path for path in rows if path.endswith("/price") and path.startswith(f"offers/{system}, {how}")]
    here = [path for path in named if f", {site}, " in path]
    return next(iter(here or named), None)
