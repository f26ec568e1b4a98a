"""Electricity by the hour with its charges, contracts, battery and carbon; lines, traffic and porting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plans.money.sheets import (
    CHIPS,
    KWH_J,
    Document,
    Sheet,
    annuity,
    carbon,
    check,
    cost,
    later,
    left,
    meter,
    owned_question,
    worth,
)

W3 = worth(3)
REGION = "us-arizona"  # its clocks stay the year round, so that an hour of the file is that hour of a typical day
MARKET = [0.03] * 12 + [0.09] * 12  # USD/kWh by UTC hour
GRAMS = [200.0] * 12 + [500.0] * 12  # g/kWh
DELIVERY, LEVIES, DEMAND = 0.02, 0.01, 12.0  # USD/kWh, USD/kWh, USD/kW-month
CHARGED = {"delivery": f"{DELIVERY} USD/kWh", "levies": f"{LEVIES} USD/kWh", "demand": f"{DEMAND} USD/kW-month"}
FREE = {f"regions/{REGION}/construction_cost": {"value": "0.000001 USD/W", "note": "none"}}


def metered(electricity: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Ask for a server whose electricity is bought by the hour, with all charges stated."""
    asked = owned_question(3, {}, overrides=FREE, **changes)
    work, site = asked["workloads"][0], asked["sites"][0]
    work["origins"] = [{"region": REGION, "share": 1}]
    work["demand"] = {"requests_per_s": 40, "profile": [0.4] * 12 + [1.6] * 12}
    del site["electricity_price"]
    site.update(region=REGION, hourly="market.csv", contents=CHARGED, electricity=electricity)
    columns = {"price_usd_per_mwh": [1000 * price for price in MARKET] * 365, "carbon_g_per_kwh": GRAMS * 365}
    asked["series"] = {"market.csv": {"start": "2027-01-01T00", "columns": columns}}
    return asked


def grid() -> dict[str, Any]:
    return metered({})


def plant(**terms: Any) -> dict[str, Any]:
    contract = {"name": "plant", "profile": "flat", "carbon": "15 g/kWh", **terms}
    return metered({"ppa": [{"least": contract["capacity"], **contract}]})


def on_site() -> dict[str, Any]:
    """Half of 6 kW, paid for as it is produced."""
    return plant(kind="on-site", capacity="6 kW", price="0.04 USD/kWh", capacity_factor=0.5)


def over_the_grid() -> dict[str, Any]:
    return plant(kind="grid", capacity="3 kW", price="0.01 USD/kWh", pays="taken")


def financial() -> dict[str, Any]:
    return plant(kind="financial", capacity="5 kW", price="0.05 USD/kWh")


def sold() -> dict[str, Any]:
    return plant(kind="on-site", capacity="30 kW", price="0.025 USD/kWh", sale_fee="5 USD/MWh")


BATTERY = {
    "energy": "20 kWh", "power": "5 kW", "sizing": "given", "energy_price": "300 USD/kWh", "power_price": "100 USD/kW", "round_trip": 0.81,
    "life": "10 years",
}  # fmt: skip


def stored() -> dict[str, Any]:
    return metered({"battery": BATTERY})


def least_carbon() -> dict[str, Any]:
    contract = {"name": "plant", "kind": "on-site", "profile": "flat", "capacity": "3 kW", "price": "0.5 USD/kWh", "carbon": "15 g/kWh"}  # fmt: skip
    return metered({"ppa": [contract]}, objective={"minimise": "carbon"})


Hourly = list[tuple[int, float]]


def hourly(plan: Document, key: str) -> Hourly:
    """List (hour, kW) of one flow of the schedule."""
    rows = plan["schedule"]
    assert [row["hour_utc"] for row in rows] == list(range(24))
    flow = [row[key] for row in rows]
    return [(h, (watts["plant"] if isinstance(watts, dict) else watts) / 1000) for h, watts in enumerate(flow)]


def yearly(flow: Hourly, rate: list[float]) -> float:
    """Sum energy times a rate by hour over a year of equal days."""
    return 365 * sum(kw * rate[h] for h, kw in flow)


ALL_IN = [price + DELIVERY + LEVIES for price in MARKET]
ON_TOP = [DELIVERY + LEVIES] * 24
EVEN = [1.0] * 24


def bought(plan: Document) -> float:
    return yearly(hourly(plan, "grid_w"), ALL_IN) * W3


def peaks(plan: Document, *flows: str) -> float:
    """The largest hour of each month, which is that of the day, at the demand charge."""
    sums = [sum(hourly(plan, flow)[h][1] for flow in flows) for h in range(24)]
    return 12 * DEMAND * max(sums) * W3


def surplus(plan: Document) -> float:
    """30 kW are paid for; what is not taken earns the market's price less the fee."""
    made = 30 * 8760 * 0.025
    return (made - 365 * sum((30 - kw) * (MARKET[h] - 0.005) for h, kw in hourly(plan, "ppa_w"))) * W3


def grid_kg(plan: Document) -> float:
    return 3 * yearly(hourly(plan, "grid_w"), GRAMS) / 1000


def plant_kg(plan: Document) -> float:
    return 3 * yearly(hourly(plan, "ppa_w"), [15.0] * 24) / 1000


SITE_KG = 318 * CHIPS * 3 / 5

NIGHT_PRICE, EVENING_PRICE = 0.05, 0.5  # USD/kWh, the second from 17 to 20 local time
TARIFF = {
    "name": "evening", "text": {"region": "Virginia", "currency": "USD", "status": "complete", "bands": [
        [list(range(1, 13)), "all", begin, end, name, f"price_{name}"] for begin, end, name in ((0, 17, "v"), (17, 20, "p"), (20, 24, "v"))
    ]},
    "figures": {
        "price_v": {"value": NIGHT_PRICE, "unit": "USD/kWh", "note": "test"}, "price_p": {"value": EVENING_PRICE, "unit": "USD/kWh", "note": "test"},
    },
}  # fmt: skip


def evening(start: str) -> dict[str, Any]:
    """Ask for demand by local hour where electricity is priced by local hour, and clocks move."""
    asked = owned_question(3, {}, catalog={"tariffs": [TARIFF]})
    asked["horizon"]["start"] = start
    asked["workloads"][0]["demand"] = {"requests_per_s": 5, "profile": [7 if 17 <= h < 20 else 0.01 for h in range(24)]}
    del asked["sites"][0]["electricity_price"]
    asked["sites"][0]["tariff"] = "evening"
    return asked


def in_winter() -> dict[str, Any]:
    return evening("2027-01-01")


def in_summer() -> dict[str, Any]:
    return evening("2027-07-01")


def of_tariff(plan: Document, behind: int) -> float:
    """Energy of each hour at the price of its local hour, which is so many behind UTC."""
    prices = [EVENING_PRICE if 17 <= (h - behind) % 24 < 20 else NIGHT_PRICE for h in range(24)]
    return yearly(hourly(plan, "power_w"), prices) * W3


UNIT, PER_GB, TOKEN_BYTES = 1000.0, 0.02, 4.0
UPDATES = 12
# Llama 3.1 8B in one byte each: attention and feed-forward of 32 layers, and two tables of 128,256 tokens.
WEIGHTS = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14_336) + 2 * 128_256 * 4096


def far_away() -> dict[str, Any]:
    """Users in another region than the server, over lines that are rented."""
    asked = owned_question(3, {})
    asked["workloads"][0].update(
        origins=[{"region": "us-texas", "share": 1}], slo={"ttft": {"p95": "5 s"}, "tpot": {"p95": "100 ms"}},
        security="private", weight_updates_per_year=UPDATES, traffic={"telemetry": {"rate": "100 kbit/s"}, "control": {"rate": "10 kbit/s"}},
    )  # fmt: skip
    asked["lines"] = [{"kind": "dedicated line", "capacity": "1 Gbit/s", "price": f"{UNIT} USD/month", "price_per_byte": f"{PER_GB} USD/GB", "setup": "0 s"}]  # fmt: skip
    return asked


def ported() -> dict[str, Any]:
    asked = owned_question(3, {})
    asked["porting"] = [{"family": "hopper", "hours": 100, "rate": "120 USD/h"}]
    return asked


def traffic(bytes_per_s: float) -> float:
    """Price a flow that does not rest."""
    return bytes_per_s * 3600 * 8760 * PER_GB / 1e9 * W3


def units(plan: Document) -> int:
    return sum(row["units"] for row in plan["lines"])


SHEETS = [
    Sheet("energy with delivery and levies", grid, lambda d: cost(d, "energy"), bought),
    Sheet("demand charge", grid, lambda d: cost(d, "demand charge"), lambda d: peaks(d, "grid_w")),
    Sheet("energy on the meter", grid, lambda d: meter(d, "grid")["energy_j"] / KWH_J, lambda d: 3 * yearly(hourly(d, "grid_w"), EVEN)),
    Sheet("power on the meter", grid, lambda d: sum(kw for _, kw in hourly(d, "grid_w")), lambda d: sum(row["power_w"] for row in d["schedule"]) / 1000),
    Sheet("carbon of the grid by the hour", grid, lambda d: carbon(d, "operation"), grid_kg),
    Sheet("carbon of all", grid, lambda d: d["totals"]["carbon_kg"], lambda d: grid_kg(d) + SITE_KG),
    Sheet("contract that pays what is produced", on_site, lambda d: cost(d, "ppa"), lambda d: 6 * 0.5 * 8760 * 0.04 * W3),
    Sheet("energy beside a plant on site", on_site, lambda d: cost(d, "energy"), bought),
    Sheet("demand charge behind a plant on site", on_site, lambda d: cost(d, "demand charge"), lambda d: peaks(d, "grid_w")),
    Sheet("carbon of a plant on site", on_site, lambda d: carbon(d, "ppa"), plant_kg),
    Sheet("contract over the grid", over_the_grid, lambda d: cost(d, "ppa", "energy"), lambda d: bought(d) + yearly(hourly(d, "ppa_w"), [0.01 + rate for rate in ON_TOP]) * W3),
    Sheet("demand charge over the grid", over_the_grid, lambda d: cost(d, "demand charge"), lambda d: peaks(d, "grid_w", "ppa_w")),
    Sheet("financial contract", financial, lambda d: cost(d, "ppa"), lambda d: 365 * sum(5 * (0.05 - price) for price in MARKET) * W3),
    Sheet("energy beside a financial contract", financial, lambda d: cost(d, "energy"), bought),
    Sheet("surplus that is sold", sold, lambda d: cost(d, "ppa"), surplus),
    Sheet("price of a battery", stored, lambda d: cost(d, "battery"), lambda d: (300 * 20 + 100 * 5) * annuity(10) * W3),
    Sheet("energy with a battery", stored, lambda d: cost(d, "energy"), bought),
    Sheet("demand charge with a battery", stored, lambda d: cost(d, "demand charge"), lambda d: peaks(d, "grid_w")),
    Sheet("round trip of a battery", stored, lambda d: sum(kw for _, kw in hourly(d, "discharge_w")), lambda d: 0.81 * sum(kw for _, kw in hourly(d, "charge_w"))),
    Sheet("least carbon", least_carbon, lambda d: d["objective"]["value"], lambda d: grid_kg(d) + plant_kg(d) + SITE_KG),
    Sheet("tariff of a typical day in winter", in_winter, lambda d: cost(d, "energy"), lambda d: of_tariff(d, 5)),
    Sheet("tariff of a typical day in summer", in_summer, lambda d: cost(d, "energy"), lambda d: of_tariff(d, 4)),
    Sheet("lines that are rented", far_away, lambda d: cost(d, "lines"), lambda d: units(d) * UNIT * 12 * W3),
    Sheet("answers over a line", far_away, lambda d: cost(d, "egress"), lambda d: traffic(5 * 100 * TOKEN_BYTES)),
    Sheet("telemetry", far_away, lambda d: cost(d, "telemetry"), lambda d: traffic(100e3 / 8)),
    Sheet("control", far_away, lambda d: cost(d, "control"), lambda d: traffic(10e3 / 8)),
    Sheet("updates of weights", far_away, lambda d: cost(d, "weights"), lambda d: UPDATES * WEIGHTS * PER_GB / 1e9 * W3),
    Sheet("porting", ported, lambda d: cost(d, "porting"), lambda d: 100 * 120),
    Sheet("systems beside porting", ported, lambda d: cost(d, "systems"), lambda d: 300_000 * (1 - left(3) * later(3))),
]  # fmt: skip


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_an_amount_of_electricity_or_traffic_is_that_of_its_sheet(sheet):
    check(sheet)


ELSEWHERE = {"environments": "planner/verify/test_reinforcement.py"}


def test_every_component_of_a_cost_has_a_sheet():
    """A component that is added needs a sheet here, or a test by hand that is named above."""
    folder = Path(__file__).parent
    sheets = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("test_*.py")))
    words = json.loads((folder.parents[2] / "planner/messages/en/components.json").read_text(encoding="utf-8"))
    names = {code.removeprefix("component.") for code in words if code.startswith("component.")}
    assert len(names) > 20
    assert {name for name in names if f'cost(d, "{name}"' not in sheets} == set(ELSEWHERE)
    for name, place in ELSEWHERE.items():
        assert f'["costs"]["{name}"]' in (folder.parents[1] / place).read_text(encoding="utf-8")
