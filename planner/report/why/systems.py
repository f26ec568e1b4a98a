"""Explain the systems and networks of a plan: exhausted supplies, other designs, and the runner-up at each site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from planner.messages import commas, listed, said, say
from planner.plan.rows.fleet import Fabric
from planner.report.fleet import OWNED, RENTED
from planner.report.plan_index import PlanIndex
from planner.report.words import how_words, spread


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain binding supplies, the price of networks, and the runner-up."""
    yield from _scarce(index)
    yield from _networks(index)
    for row in index.plan.document["runner_up"]:
        if row["system"] is not None and row["how"] is not None:
            told = {"site": row["site"], "system": row["system"], "how": how_words(row["how"])}
            yield say("system_told.next", words=said(row, "words"), **told)


def _scarce(index: PlanIndex) -> Iterator[str]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for row in index.plan.document["fleet"]:
        listed_in = row["offer"].partition("[")[0]  # owned, rented, or offers of the spec or the catalog
        how = say(f"how.{listed_in}") if listed_in in (OWNED, RENTED) else row["how"]
        counts[row["system"], how] += row["count"]
    binding = {row["name"]: row for row in index.binding}
    for (system, how), count in counts.items():
        limit = binding.get(f"supply of {system} ({how})") or binding.get(f"supply of {system} ({how_words(how)})")
        if limit is not None:
            unit, code = ("system", "all_in_use") if limit["unit"] == "system" else ("token/s", "all_tokens_in_use")
            worth = index.worth(limit, unit, 1.0)
            yield say(f"system_told.{code}", count=f"{count:,}", system=system, worth=worth)


def _networks(index: PlanIndex) -> Iterator[str]:
    """Compare the price of each network per system with that of the other designs."""
    by_design: dict[str, dict[str, list[Fabric]]] = defaultdict(lambda: defaultdict(list))
    for row in index.plan.document["fabrics"]:
        if row["systems"] > 1:
            by_design[row["design"]][row["system"]].append(row)
    for design, by_system in by_design.items():
        parts = [
            say(
                "network_told.part",
                count=f"{sum(row['systems'] for row in rows):,}",
                system=system,
                price=spread([row["price"] / row["systems"] for row in rows]),
                instead=_instead(rows),
            )
            for system, rows in by_system.items()
        ]
        yield say("network_told.joins", design=design, currency=index.currency, parts=listed(parts))


def _instead(rows: Sequence[Fabric]) -> str:
    """State the price of the other designs, if the plan has it."""
    others: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for other in row.get("instead", ()):
            others[other["design"]].append(other["price_per_system"])
    parts = [say("amount.in_unit", amount=design, unit=spread(prices)) for design, prices in others.items()]
    return say("network_told.instead", others=commas(parts)) if parts else ""
