"""Check what a plan states that its prices of electricity hold: against the records of the catalog and the spec, and the costs at industrial averages.

Shares no code with `planner.resolve.money.contents` and `planner.interpret.money.contents` but the reading of a statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.contents import read_contents
from catalog.lookup import Catalog
from catalog.records import Record
from planner.problem.facts import SiteFacts
from planner.resolve.names import catalog_of
from planner.verify.checked_plan import CheckedPlan
from planner.verify.timing import risen_by_slot

ALL = ("energy", "delivery", "demand", "levies")
WORDS = ("included", "separate", "unknown")
Spec = Mapping[str, Any]


def statements(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Read what the plan says that the price of each site holds, by the site's place in the spec; none in plans of earlier releases."""
    rows = [row for row in document["assumptions"] if row["path"].endswith("].contents")]
    return {row["path"].removesuffix(".contents"): read_contents(row["value"]) for row in rows}


def check_price_contents(plan: CheckedPlan) -> None:
    """Compute the rows of `price_contents` again, from statements, hours and demand charges of the plan."""
    stated = {row["site"]: row for row in plan.document.get("price_contents", ())}
    told = statements(plan.document)
    wanted = [site for site in plan.problem.sites if "unknown" in told.get(site.path, {}).values()]
    if list(stated) != [site.region for site in wanted] or len(stated) < len(plan.document.get("price_contents", ())):
        plan.say("price_contents", "verify.contents_in_order")
        return
    for site in wanted:
        row = {"path": f"{site.path}.contents", "site": site.region, **told[site.path], **_costs(plan, site)}
        plan.equal(f"price_contents {site.region}", stated[site.region], row)


def _costs(plan: CheckedPlan, site: SiteFacts) -> dict[str, Any]:
    """Add up the plan's cost with every joule from the grid at the industrial average, which holds demand charges."""
    hours = [row for row in plan.document["schedule"] if row["site"] == site.region]
    calendar, total = plan.problem.calendar, sum(plan.sums.lines.values())
    moved, drawn = 0.0, 0.0
    rise = risen_by_slot(calendar, plan.problem.economics.escalation.electricity)
    for row in hours:
        joules = row.get("grid_w", row["own_power_w"]) * row["seconds"]
        drawn += joules
        industrial_per_j = site.contents.industrial_per_j * rise[row["slot"]]
        moved += joules * (industrial_per_j - row["price_per_j"]) * float(calendar.discount[row["slot"]])
    for (component, place, *_), amount in plan.sums.lines.items():
        if component == "demand charge" and place == site.region:
            moved -= amount
    seconds = [float(s) for s in calendar.seconds]
    prices = [float(site.price_per_j[int(hour)]) for hour in calendar.hour]
    return {
        "price_per_j": sum(s * price for s, price in zip(seconds, prices, strict=True)) / sum(seconds),
        "industrial_per_j": site.contents.industrial_per_j,
        "industrial_source": site.contents.industrial_source,
        "energy_j": drawn,
        "cost": total,
        "cost_at_industrial": total + moved,
    }


class ContentsCheck:
    """Derive the contents of every price from the spec and the catalog, and that a demand charge stands beside none that holds it."""

    def __init__(self, plan: CheckedPlan, overlays: Sequence[Path]):
        self.plan, self.document = plan, plan.document
        self.catalog: Catalog = catalog_of(plan.problem.spec, overlays, {})
        self.told = statements(plan.document)

    def run(self) -> None:
        """Check every site of the spec; a plan without an answer assumes nothing."""
        if self.document["objective"]["value"] is None:
            return
        for i, site in enumerate(self.document["spec"]["sites"]):
            path = f"sites[{i}]"
            states, by_peak = self._states(site, path)
            self.plan.equal(f"assumptions {path}.contents", self.told.get(path), states)
            charged = any(
                row["item"] == "peak" and row["site"] == self.catalog.get("regions", site["region"]).name
                for row in self.document.get("electricity", ())
            )
            passing = [c for c in (site.get("electricity") or {}).get("ppa") or () if c.get("kind", "grid") == "grid"]
            if charged and not by_peak and not passing:
                self.plan.say(f"electricity {site['region']}/peak", "verify.demand_counted")

    def _states(self, site: Spec, path: str) -> tuple[dict[str, str], bool]:
        """Return (state of each part, whether a demand charge stands beside the price)."""
        own, region = site.get("contents") or {}, self.catalog.get("regions", site["region"])
        peak = (site.get("electricity") or {}).get("demand_charge") or _figure(own, "demand")
        price = dict(self._price(site, path, region, peak is not None))
        price.update({part: value if value in WORDS else "separate" for part, value in own.items() if value})
        on_top: set[str] = set()
        said = {part for part, value in own.items() if value not in (None, "separate")}
        if site.get("delivery") is not None or _figure(own, "delivery") is not None:
            on_top = {"delivery", *({"demand", "levies"} - said - ({"demand"} if peak else set()))}
        elif price["delivery"] == "separate" and region.get("electricity_delivery") is not None:
            on_top = set(_held(region, "electricity_delivery_contents") or ("delivery",))
        by_peak = price["demand"] != "included" and "demand" not in on_top
        if _figure(own, "levies") is not None or (
            price["levies"] == "separate" and region.get("electricity_levies") is not None
        ):
            on_top.add("levies")
        if peak is not None:
            on_top.add("demand")
        found = {
            part: "included" if price[part] == "included" else "separate" if part in on_top else "unknown"
            for part in ALL
        }
        return found, by_peak

    def _price(self, site: Spec, path: str, region: Record, peak: bool) -> Iterator[tuple[str, str]]:
        """Yield (part, state) of the price alone: the user's, a tariff's, a market's or the region's."""
        assumed = {row["path"] for row in self.document["assumptions"]}
        if site.get("electricity_price") is not None:
            apart = {"delivery": site.get("delivery") is not None, "demand": peak}
            yield from ((part, "separate" if apart.get(part) else "included") for part in ALL)
        elif f"{path}.hourly.price" in assumed:
            yield from ((part, "included" if part == "energy" else "separate") for part in ALL)
        else:
            yield from self._record(site, path, region).items()

    def _record(self, site: Spec, path: str, region: Record) -> dict[str, str]:
        """Return the statement of the record that the price comes from."""
        names = {row["path"]: row["value"] for row in self.document["assumptions"]}
        text = ""
        if f"{path}.tariff" in names:
            tariff = self.catalog.get("tariffs", str(names[f"{path}.tariff"]))
            if any(name.startswith("price_") for name in tariff.figures):
                return _read(tariff.words("contents"))
        elif region.get("price_profile") is not None:
            return _read(region.words("price_profile_contents"))
        if region.get("electricity_price") is not None:
            text = region.words("electricity_price_contents")
        else:
            text = self.catalog.get("defaults", "china_electricity_price").words("contents")
        return _read(text)


def _figure(own: Spec, part: str) -> Any:
    """Return the figure that the user states for a part; None for a state."""
    return None if own.get(part) in WORDS else own.get(part)


def _read(text: str) -> dict[str, str]:
    """Read a statement; energy alone where a record has none."""
    return read_contents(text) if text else {part: "included" if part == "energy" else "unknown" for part in ALL}


def _held(region: Record, key: str) -> list[str]:
    """Name the parts that a figure holds."""
    text = region.words(key)
    return [part for part, state in read_contents(text).items() if state == "included"] if text else []
