"""Tables and sentences on a plan's electricity: the days at its sites, contracts, batteries and peaks, and the dispatch over all hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any

from catalog.contents import UNKNOWN
from catalog.units import DAY_S, MWH_J, TONNE_KG, YEAR_S, parse, show
from planner import messages
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.money import Meter
from planner.plan.rows.time import Slot
from planner.problem.electricity import FINANCIAL, GRID_CONTRACT
from planner.report.hours import busy_hours, by_hour
from planner.report.plan_index import PlanIndex, mean_of
from planner.report.words import amount

ELECTRICITY = "electricity"
DECIDED = "Electricity as a decision"
TABLES = (ELECTRICITY,)  # there only where the spec asks for it
ITEM_WORDS = {"grid": "from the grid", "peak": "peak of", "ppa": "contract", "battery": "battery,"}


EMPTY_TOL = 1e-3  # W or J: a contract or battery of at most this size is none
PEAK_TOL = 1e-3  # relative: a peak that is lowered by less is left out


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """List (heading, rows) of all tables."""
    currency = plan.document["spec"].get("currency", "USD")
    return [
        ("The days that stand for the year", _typical_days(plan)),
        ("The day at each site", _days(plan)),
        (DECIDED, [_item(row, currency) for row in plan.document.get("electricity", ())]),
    ]


def _days(plan: Plan) -> list[dict[str, Any]]:
    """Draw price and load by hour as bars, for each site and phase; the mean of several days."""
    groups: dict[tuple[str, int], list[Slot]] = {}
    apis = {api["name"] for api in plan.document["spec"].get("apis") or ()}
    for row in (row for row in plan.document["schedule"] if row["site"] not in apis):
        groups.setdefault((row["site"], row["window"]), []).append(row)
    rows = []
    for (site, phase), listed in groups.items():
        hours = by_hour(listed)
        prices = [row["price_per_j"] * MWH_J for row in listed]
        loads = [row["power_w"] for row in listed]
        rows.append(
            {
                "site": site,
                "phase": phase,
                "days": f"{sum(row['seconds'] for row in listed) / DAY_S:.0f}",
                "price by UTC hour": _bars([row["price_per_j"] for row in hours]),
                "load by UTC hour": _bars([row["power_w"] for row in hours]),
                "price per MWh": f"{min(prices):.0f}-{max(prices):.0f}"
                if min(prices) >= 0
                else f"{min(prices):.0f} to {max(prices):.0f}",
                "load": f"{show(min(loads), 'W')} to {show(max(loads), 'W')}",
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
                "weekday": f"{date.fromisoformat(day):%A}",
                "days a year": f"{sum(seconds.values()) / DAY_S / years:.0f}",
                "output tokens a day": f"{DAY_S * sum(tokens.get(slot, 0.0) * s for slot, s in seconds.items()) / sum(seconds.values()) / 1e9:,.1f}B",
                "highest load": show(max(sum(row["power_w"] for row in listed) for listed in slots.values()), "W"),
                "price per MWh at the load": f"{paid / energy * MWH_J:.1f}" if energy else "",
            }
        )
    return rows


def _bars(values: list[float]) -> str:
    low, high = min(values), max(values)
    steps = "▁▂▃▄▅▆▇█"
    return "".join(steps[round((value - low) / (high - low) * 7) if high > low else 3] for value in values)


def _item(row: Meter, currency: str) -> dict[str, Any]:
    return {
        "site": row["site"],
        "what": " ".join(filter(None, (ITEM_WORDS[row["item"]], row["name"]))),
        "size": show(row["size"], row["unit"]),
        "energy": "" if row["energy_j"] is None else show(row["energy_j"], "J"),
        currency: f"{row['cost']:,.0f}",
        "t CO2": "" if row["carbon_kg"] is None else f"{row['carbon_kg'] / TONNE_KG:,.1f}",
    }


def carbon_words(plan: Plan) -> str:
    """Write carbon by the grid at the place and by contracts side by side; empty without contracts. See `carbon_accounts`."""
    found = carbon_accounts(plan)
    if found is None:
        return ""
    by_place, by_market = (f"{kg / TONNE_KG:,.0f}" for kg in found)
    return Message.of("electricity.carbon", place=by_place, market=by_market).text()


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
    """Write the cost of the same fleet over all hours of the year, if the plan was made on fewer; a line of its own."""
    found = plan.document.get("dispatch")
    if found is None:
        return ""
    currency = plan.document["spec"].get("currency", "USD")
    parts = ((found["unmet"], "of the requests are not served"), (found["unfinished"], "of a job's work is not done"))
    missing = [f"{share * 100:.2g}% {words}" for share, words in parts if share]
    left_out = f", {' and '.join(found['left_out'])} not included" if found["left_out"] else ""
    return (
        f"\nThe same fleet in all {found['slots']:,} hours: {found['cost']:,.0f} {currency} ({found['difference']:+.2%}), "
        f"{found['carbon_kg'] / TONNE_KG:,.0f} t CO2; {', '.join(missing) or 'nothing is left undone'}{left_out}"
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
            messages.listed(
                Message.of(f"electricity.part_{part}").text()
                for part, state in states.items()
                if (state == UNKNOWN) == missing
            )
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
                "cost": f"{amount(row['cost'])} {currency}",
                "at": f"{amount(row['cost_at_industrial'])} {currency}",
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
    subject = f"{days} days stand" if days > 1 else "One typical day stands"
    missing = f", and leaves {found['unmet']:.2%} of the requests unserved" if found["unmet"] >= 5e-5 else ""
    yield (
        f"{subject} for the year; over all {found['slots']:,} hours the same fleet "
        f"costs {abs(found['difference']):.2%} {'more' if found['difference'] > 0 else 'less'}{missing}."
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
        peaks = show(low, "W") if high - low < 1 else f"{show(low, 'W')} to {show(high, 'W')}"
        cost = sum(row["cost"] for row in rows)
        yield f"Demand charges in {site}: {cost:,.0f} {index.currency} on monthly peaks of {peaks}."


def _contract(index: PlanIndex, site: str, row: Meter) -> str:
    name, rows = row["name"], index.schedule[site]
    if row["size"] <= EMPTY_TOL:
        return f"{name} in {site} is not contracted: the grid is cheaper in its hours."
    taken = [(r["ppa_w"][name] * r["seconds"], r["price_per_j"]) for r in rows]
    share = (row["energy_j"] or 0.0) / sum(r["energy_j"] for r in rows)
    grid = index.per_mwh(mean_of(taken) or 0.0)
    without, bought = max(r["grid_w"] + r["ppa_w"][name] for r in rows), max(r["grid_w"] for r in rows)
    peak = f"; without it the peak would be {show(without, 'W')}, not {show(bought, 'W')}" if without > bought * (1 + PEAK_TOL) else ""  # fmt: skip
    stated = next(
        contract["price"]
        for spec in index.plan.document["spec"]["sites"]
        for contract in (spec.get("electricity") or {}).get("ppa", ())
        if contract["name"] == name
    )
    return (
        f"{name} in {site}: {show(row['size'], 'W')} contracted at {stated} supply {share:.0%} of the energy used; "
        f"the grid costs {grid} in the same hours{peak}."
    )


def _battery(index: PlanIndex, site: str, energy: Meter, power: Meter) -> str:
    if energy["size"] <= EMPTY_TOL:
        return f"No battery in {site}: it would cost more than it saves."
    rows = index.schedule[site]
    years = sum(row["seconds"] for row in rows) / YEAR_S
    given_w = [row["discharge_w"] - row["charge_w"] for row in rows]
    saved = sum(w * row["seconds"] * row["price_per_j"] for w, row in zip(given_w, rows, strict=True)) / years
    before = max(row["grid_w"] + w for w, row in zip(given_w, rows, strict=True))
    after = max(row["grid_w"] for row in rows)
    hours = by_hour([{**row, "power_w": row["charge_w"], "own_power_w": row["discharge_w"]} for row in rows])
    charging = busy_hours([(row["hour_utc"], row["power_w"]) for row in hours])
    discharging = busy_hours([(row["hour_utc"], row["own_power_w"]) for row in hours])
    peak = f" and lowers the peak from {show(before, 'W')} to {show(after, 'W')}" if before > after * (1 + PEAK_TOL) else ""  # fmt: skip
    cycles, cost = (energy["energy_j"] or 0.0) / energy["size"] / years, energy["cost"] + power["cost"]
    return (
        f"The battery in {site} ({show(energy['size'], 'J')}, {show(power['size'], 'W')}) charges mostly at "
        f"{charging} and discharges at {discharging} UTC, {cycles:,.0f} times a year; "
        f"it costs {cost:,.0f} {index.currency} over the horizon{',' if peak else ' and'} saves {saved:,.0f} a year of energy{peak}."
    )
