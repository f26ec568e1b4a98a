"""Hours in which electricity has a negative price: idle systems of our own earn nothing, so that holding more of them never pays."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import planner

SPEC: dict[str, Any] = {
    "name": "negative",
    "workloads": [{
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 20},
        "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}], "precision": ["fp8"],
        "disaggregation": "never",
    }],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "hourly": "h.csv", "delivery": "0 USD/kWh", "power": "1 MW"}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "10000 USD"}],
    "simplicity": {"within": 0}, "solver": {"gap": 1e-6},
}  # fmt: skip
HALF = [-1000.0] * 12 + [60.0] * 12
PHASES = [
    {"name": "first", "start": "0 d", "budget": "9M USD"},
    {"name": "second", "start": "2028-01-01", "budget": "9M USD"},
]


@pytest.fixture(scope="module", params=["always", "by day"])
def folder(request, tmp_path_factory):
    """A folder with hourly prices of 2025: -1,000 USD/MWh at all times, or until noon."""
    made = tmp_path_factory.mktemp("prices")
    prices = [-1000.0] * 24 if request.param == "always" else HALF
    stamps = np.datetime_as_string(np.datetime64("2025-01-01T00", "h") + np.arange(8760), unit="m")
    rows = [f"{stamp}Z,{prices[i % 24]:g},300" for i, stamp in enumerate(stamps)]
    (made / "h.csv").write_text("timestamp_utc,price_usd_per_mwh,carbon_g_per_kwh\n" + "\n".join(rows) + "\n")
    return made


def asked(metered: bool = False, **changes: Any) -> dict[str, Any]:
    spec = copy.deepcopy(SPEC | changes)
    if metered:
        spec["sites"][0]["electricity"] = {}
    return spec


def cost(spec: dict[str, Any], folder) -> float:
    """Solve and verify."""
    plan = planner.solve(spec, hourly=[folder])
    assert plan.status == "optimal", plan.status
    return float(plan.document["objective"]["value"])


@pytest.mark.parametrize("metered", [False, True], ids=["priced", "metered"])
def test_a_tighter_limit_never_earns_more(folder, metered):
    free = cost(asked(metered), folder)
    tighter = {
        "at least 50 bought": asked(metered, offers=[{**SPEC["offers"][0], "least": 50}]),
        "at most 30 kW": asked(metered, sites=[{**SPEC["sites"][0], "power": "30 kW"}]),
        "one system": asked(metered, offers=[{**SPEC["offers"][0], "supply": 1}]),
    }
    for name, spec in tighter.items():
        assert cost(spec, folder) >= free - 1e-6 * abs(free), name


def test_a_meter_bills_idle_systems_as_the_price_alone_does(folder):
    assert cost(asked(True), folder) == pytest.approx(cost(asked(), folder), rel=1e-6)


def test_what_is_held_is_paid_for_whatever_the_price(folder):
    """The work of the systems earns, their idle draw does not: twice the systems cost twice all but the energy of the work."""
    plans = [
        planner.solve(asked(offers=[{**SPEC["offers"][0], "least": n}]), hourly=[folder]).document for n in (20, 40)
    ]
    lines = [{row["component"]: row["amount"] for row in plan["cost_lines"]} for plan in plans]
    assert [plan["fleet"][0]["count"] for plan in plans] == [20, 40]
    for name in set(lines[0]) - {"energy"}:
        assert lines[1][name] == pytest.approx(2 * lines[0][name]), name
    assert lines[1]["energy"] >= lines[0]["energy"] - 1e-6


@pytest.mark.parametrize("metered", [False, True], ids=["priced", "metered"])
def test_phases_pay_the_same(folder, metered):
    """The payments of phases and of the whole are added up apart, and by `verify` again."""
    spec = asked(metered, horizon={"start": "2027-01-01", "years": 2}, phases=PHASES)
    assert cost(spec, folder) > 0
