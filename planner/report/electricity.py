"""Tables and sentences on a plan's electricity: the days at its sites, contracts, batteries and peaks, and the dispatch over all hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any

from catalog.contents import UNKNOWN
from catalog.units import DAY_S, MWH_J, TONNE_KG, YEAR_S, parse, show
from planner.messages import Message, commas, listed, named, say
from planner.plan import Plan
from planner.plan.rows.money import Meter
from planner.plan.rows.time import Slot
from planner.problem.electricity import FINANCIAL, GRID_CONTRACT
from planner.report.hours import busy_hours, by_hour
from planner.report.plan_index import PlanIndex, mean_of
from planner.report.words import between, whole, with_unit

ELECTRICITY = "electricity"
TABLES = (ELECTRICITY,)  # there only where the spec asks for it
EMPTY_TOL = 1e-3  # W or J: a contract or battery of at most this size is none
PEAK_TOL = 1e-3  # relative: a peak that is lowered by less is left out


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """List (heading, rows) of all tables."""
    return [
        (say("heading.typical_days"), _typical_days(plan)),
        (say("heading.days"), _days(plan)),
        (say("heading.electricity"), [_item(row) for row in plan.document.get("electricity", ())]),
    ]


def _days(plan: Plan) -> list[dict[str, Any]]:
    """Draw price and load by hour as bars, for each site and phase; the mean of several days."""
    groups: dict[tuple[str, int], list[Slot]] = {}
    apis = {api["name"] for api in plan.document["spec"].get("apis") or ()}
    for row in (row for row in plan.document["schedule"] if row["site"] not in apis):
        groups.setdefault((row["site"], row["window"]), []).append(row)
    rows = []
    for (site, phase), slots in groups.items():
        hours = by_hour(slots)
        prices = [row["price_per_j"] * MWH_J for row in slots]
        loads = [row["power_w"] for row in slots]
        rows.append(
            {
                "site": site,
                "phase": phase,
                "days": f"{sum(row['seconds'] for row in slots) / DAY_S:.0f}",
                "price_by_utc_hour": _bars([row["price_per_j"] for row in hours]),
                "load_by_utc_hour": _bars([row["power_w"] for row in hours]),
                "price_per_mwh": f"{min(prices):.0f}-{max(prices):.0f}"
                if min(prices) >= 0
                else between(f"{min(prices):.0f}", f"{max(prices):.0f}"),
                "load": between(show(min(loads), "W"), show(max(loads), "W")),
            }
        )
    return rows


def _typical_days(plan: Plan) -> list[dict[str, Any]]:
    """List the days of the plan, with the number of days of a year that each represents; none for one typical day or a full year."""
    days: dict[str, dict[int, list[Slot]]] = {}
    for row in plan.document["schedule"]:
        if "day" in row:
            days.setdefault(row["day"], {}).setdefault(row["slot"], []).append(row)
    if not 0 < len(days) < 365:
        return []
    years = sum(slots[0]["seconds"] for of_day in days.values() for slots in of_day.values()) / YEAR_S
    tokens: dict[int, float] = {}
    for route in plan.document["routes"]:
        tokens[route["slot"]] = tokens.get(route["slot"], 0.0) + route["tokens_per_s"]
    rows = []
    for day, slots in sorted(days.items()):
        seconds = {slot: listed[0]["seconds"] for slot, listed in slots.items()}
        energy = sum(row["energy_j"] for listed in slots.values() for row in listed)
        paid = sum(row["energy_j"] * row["price_per_j"] for listed in slots.values() for row in listed)
        rows.append(
            {
                "day": day,
                "weekday": say(f"weekday.{date.fromisoformat(day):%u}"),
                "days_a_year": f"{sum(seconds.values()) / DAY_S / years:.0f}",
                "output_tokens_a_day": f"{DAY_S * sum(tokens.get(slot, 0.0) * s for slot, s in seconds.items()) / sum(seconds.values()) / 1e9:,.1f}B",
                "highest_load": show(max(sum(row["power_w"] for row in listed) for listed in slots.values()), "W"),
                "price_per_mwh_at_the_load": f"{paid / energy * MWH_J:.1f}" if energy else "",
            }
        )
    return rows


def _bars(values: list[float]) -> str:
    low, high = min(values), max(values)
    steps = "▁▂▃▄▅▆▇█"
    return "".join(steps[round((value - low) / (high - low) * 7) if high > low else 3] for value in values)


def _item(row: Meter) -> dict[str, Any]:
    what = say(f"meter.{row['item']}", name=named("battery_part", row["name"] or "")).strip()
    return {
        "site": row["site"],
        "what": what,
        "size": show(row["size"], row["unit"]),
        "energy": "" if row["energy_j"] is None else show(row["energy_j"], "J"),
        "amount_in_currency": whole(row["cost"]),
        "t_co2": "" if row["carbon_kg"] is None else f"{row['carbon_kg'] / TONNE_KG:,.1f}",
    }


def carbon_words(plan: Plan) -> str:
    """Write carbon by the grid at the place and by contracts side by side; empty without contracts. See `carbon_accounts`."""
    found = carbon_accounts(plan)
    if found is None:
        return ""
    by_place, by_market = (whole(kg / TONNE_KG) for kg in found)
    return say("electricity.carbon", place=by_place, market=by_market)


def carbon_accounts(plan: Plan) -> tuple[float, float] | None:
    """Return (location-based, market-based) carbon of a plan with contracts [kg], None without.

    By location every joule through the meter has the carbon of the grid in its hour, and only plants on site their own. By market the energy
    of a contract has the contract's carbon; a financial one counts up to the purchases from the grid over the horizon, at their mean carbon.
    """
    bought = {(row["site"], row["name"]): row for row in plan.document.get("electricity", ()) if row["item"] == "ppa"}
    if not bought:
        return None
    by_place = by_market = plan.totals["carbon_kg"]
    grid = {row["site"]: row for row in plan.document["electricity"] if row["item"] == "grid"}
    for site, name, contract in _contracts(plan):
        row = bought[site, name]
        if contract.get("kind", GRID_CONTRACT) == GRID_CONTRACT:
            hours = [row for row in plan.document["schedule"] if row["site"] == site]
            of_grid = sum(hour["ppa_w"][name] * hour["seconds"] * hour["carbon_kg_per_j"] for hour in hours)
            by_place += of_grid - (row["carbon_kg"] or 0.0)
        elif contract["kind"] == FINANCIAL and (joules := grid[site]["energy_j"]):
            covered = min(row["energy_j"] or 0.0, joules)
            by_market += covered * (
                parse(contract.get("carbon", "0 g/kWh"), "kg/J") - (grid[site]["carbon_kg"] or 0.0) / joules
            )
    return by_place, by_market


def _contracts(plan: Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (site as the plan names it, contract, its block in the spec) of every contract."""
    metered = dict.fromkeys(row["site"] for row in plan.document["electricity"])
    asked = [spec["electricity"] for spec in plan.document["spec"]["sites"] if spec.get("electricity") is not None]
    for site, block in zip(metered, asked, strict=True):
        for contract in block.get("ppa") or ():
            yield site, contract["name"], contract


def dispatch_words(plan: Plan) -> str:
    """Write the cost of the same fleet over all hours of the year; empty if the plan was made on all of them."""
    found = plan.document.get("dispatch")
    if found is None:
        return ""
    currency = plan.document["spec"].get("currency", "USD")
    parts = ((found["unmet"], "unmet"), (found["unfinished"], "unfinished"))
    missing = commas(say(f"dispatch_year.{code}", share=f"{share * 100:.2g}%") for share, code in parts if share)
    left_out = ""
    if found["left_out"]:
        left_out = say(
            "dispatch_year.left_out", names=listed((named("left_out", name) for name in found["left_out"]), "and")
        )
    return say(
        "dispatch_year.cost",
        hours=f"{found['slots']:,}",
        cost=whole(found["cost"]),
        currency=currency,
        difference=f"{found['difference']:+.2%}",
        carbon=whole(found["carbon_kg"] / TONNE_KG),
        undone=missing or say("dispatch_year.complete"),
        left_out=left_out,
    )


def incomplete_prices(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield as notes the prices of electricity of which a part is unknown, with the plan's cost at what industry pays there."""
    currency = plan.document["spec"].get("currency", "USD")
    for row in plan.document.get("price_contents", ()):
        states = {
            "energy": row["energy"],
            "delivery": row["delivery"],
            "demand": row["demand"],
            "levies": row["levies"],
        }
        held, unknown = (
            listed(say(f"electricity.part_{part}") for part, state in states.items() if (state == UNKNOWN) == missing)
            for missing in (False, True)
        )
        found: dict[str, Any] = {
            "site": row["site"],
            "held": held,
            "unknown": unknown,
            "price": f"{row['price_per_j'] * MWH_J:,.1f} {currency}/MWh",
            "industrial": f"{row['industrial_per_j'] * MWH_J:,.1f} {currency}/MWh",
        }
        if row["energy_j"]:
            found |= {
                "cost": with_unit(row["cost"], currency),
                "at": with_unit(row["cost_at_industrial"], currency),
            }
        used = "used" if row["energy_j"] else "unused"
        yield {
            **Message.of(f"electricity.unknown_{used}", **found).row(),
            "path": row["path"],
            "source": row["industrial_source"],
        }


# -- sentences ---------------------------------------------------------------------------------------------------------


def dispatch_sentences(index: PlanIndex) -> Iterator[str]:
    """Compare the plan's cost with that of the same fleet over all hours."""
    found = index.document.get("dispatch")
    if found is None:
        return
    days = len({row["day"] for row in index.plan.document["schedule"] if "day" in row})
    stands = say("dispatch_year.days", days=f"{days}") if days > 1 else say("dispatch_year.one_day")
    unserved = say("dispatch_year.unserved", share=f"{found['unmet']:.2%}") if found["unmet"] >= 5e-5 else ""
    yield say(
        f"dispatch_year.costs_{'more' if found['difference'] > 0 else 'less'}",
        stands=stands,
        hours=f"{found['slots']:,}",
        share=f"{abs(found['difference']):.2%}",
        unserved=unserved,
    )


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain the peaks, contracts and battery of each site."""
    items: dict[str, list[Meter]] = defaultdict(list)
    for row in index.document.get("electricity", ()):
        items[row["site"]].append(row)
    for site, rows in items.items():
        yield from _peaks(index, site, [row for row in rows if row["item"] == "peak"])
        for row in rows:
            if row["item"] == "ppa":
                yield _contract(index, site, row)
        battery = {row["name"]: row for row in rows if row["item"] == "battery"}
        if battery:
            yield _battery(index, site, battery["energy"], battery["power"])


def _peaks(index: PlanIndex, site: str, rows: list[Meter]) -> Iterator[str]:
    if rows:
        low, high = min(row["size"] for row in rows), max(row["size"] for row in rows)
        peaks = show(low, "W") if high - low < 1 else between(show(low, "W"), show(high, "W"))
        cost = sum(row["cost"] for row in rows)
        yield say("meter.demand_charges", site=site, cost=whole(cost), currency=index.currency, peaks=peaks)


def _contract(index: PlanIndex, site: str, row: Meter) -> str:
    name, rows = row["name"], index.schedule[site]
    if row["size"] <= EMPTY_TOL:
        return say("meter.not_contracted", name=name, site=site)
    taken = [(r["ppa_w"][name] * r["seconds"], r["price_per_j"]) for r in rows]
    share = (row["energy_j"] or 0.0) / sum(r["energy_j"] for r in rows)
    grid = index.per_mwh(mean_of(taken) or 0.0)
    without, bought = max(r["grid_w"] + r["ppa_w"][name] for r in rows), max(r["grid_w"] for r in rows)
    lowers = without > bought * (1 + PEAK_TOL)
    peak = say("meter.contract_peak", without=show(without, "W"), peak=show(bought, "W")) if lowers else ""
    stated = next(
        contract["price"]
        for spec in index.plan.document["spec"]["sites"]
        for contract in (spec.get("electricity") or {}).get("ppa", ())
        if contract["name"] == name
    )
    told = {"size": show(row["size"], "W"), "price": str(stated), "share": f"{share:.0%}", "grid": grid, "peak": peak}
    return say("meter.contracted", name=name, site=site, **told)


def _battery(index: PlanIndex, site: str, energy: Meter, power: Meter) -> str:
    if energy["size"] <= EMPTY_TOL:
        return say("meter.no_battery", site=site)
    rows = index.schedule[site]
    years = sum(row["seconds"] for row in rows) / YEAR_S
    given_w = [row["discharge_w"] - row["charge_w"] for row in rows]
    saved = sum(w * row["seconds"] * row["price_per_j"] for w, row in zip(given_w, rows, strict=True)) / years
    before = max(row["grid_w"] + w for w, row in zip(given_w, rows, strict=True))
    after = max(row["grid_w"] for row in rows)
    hours = by_hour([{**row, "power_w": row["charge_w"], "own_power_w": row["discharge_w"]} for row in rows])
    charging = busy_hours([(row["hour_utc"], row["power_w"]) for row in hours])
    discharging = busy_hours([(row["hour_utc"], row["own_power_w"]) for row in hours])
    cycles, cost = (energy["energy_j"] or 0.0) / energy["size"] / years, energy["cost"] + power["cost"]
    told = {
        "site": site,
        "energy": show(energy["size"], "J"),
        "power": show(power["size"], "W"),
        "cycles": f"{cycles:,.0f}",
    }
    told |= {"charging": charging, "discharging": discharging, "cost": whole(cost), "currency": index.currency}
    told |= {"saved": whole(saved)}
    if before > after * (1 + PEAK_TOL):
        return say("meter.battery_lowers_peak", before=show(before, "W"), after=show(after, "W"), **told)
    return say("meter.battery_works", **told)
