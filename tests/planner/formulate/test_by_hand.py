"""Program data of lines, meters, ports and choices, derived by hand without solving."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from planner.candidates.search import find_candidates
from planner.formulate.electricity import bought_in, charged_peaks, metered_sites
from planner.formulate.formulation import formulate
from planner.formulate.lines import listed_sends, network_of, stages, stream_side, update_price, usable_windows
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

YEAR_S, HOURS, KWH_J = 8760 * 3600.0, 8760, 3.6e6
NS = SimpleNamespace


def formed(document):
    problem = resolve(parse_spec(document))
    return problem, formulate(problem, find_candidates(problem))


# -- lines -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wired(tiny):
    """Two sites; a dedicated line that is ready after half of the single year, and a tunnel at 0.02 USD/GB from the start."""
    document = tiny(horizon={"years": 1, "discount_rate": 0.1})
    document["workloads"][0] |= {"weights_from": "us-virginia", "weight_updates_per_year": 12, "security": "encrypted"}
    document["sites"] = [{"region": region, "systems": ["DGX H100"]} for region in ("us-virginia", "us-texas")]
    document["lines"] = [
        {"kind": "dedicated line", "setup": "4380 h", "units": 4},
        {"kind": "IPSec VPN", "capacity": "200 Mbit/s", "price_per_byte": "0.02 USD/GB"},
    ]
    return formed(document)


def test_a_line_is_paid_for_from_when_it_is_ready(wired):
    problem, form = wired
    lines, ready = network_of(problem).lines, usable_windows(problem)
    worth = np.bincount(problem.calendar.window, problem.calendar.seconds * problem.calendar.discount)
    for i, line in enumerate(lines):
        share = 0.5 if line.kind == "dedicated line" else 1.0
        assert worth[ready[i]].sum() == pytest.approx(share * YEAR_S / 1.1, rel=1e-6)
        cost = line.unit_price_per_s * share * YEAR_S / 1.1
        assert form.data.lines.line_cost["cost"][i] == pytest.approx(cost, rel=1e-6)
    assert form.data.lines.channel_line.tolist() == np.repeat(np.arange(len(lines)), 2).tolist()


def test_stages_begin_when_a_line_is_ready(wired):
    problem, _ = wired
    assert stages(problem).begins_s == pytest.approx((0.0, YEAR_S / 2))


def test_twelve_updates_a_year_cost_their_bytes(wired):
    problem, form = wired
    weights, lines = problem.serving[0].weights_bytes, network_of(problem).lines
    tunnel = next(i for i, line in enumerate(lines) if line.kind == "IPSec VPN")
    price = lines[tunnel].price_per_byte  # as stated, beside the internet's own price under the tunnel
    assert price >= 0.02 / 1e9
    assert update_price(problem, 0, tunnel) * YEAR_S / 2 == pytest.approx(6 * weights * price)
    _, sends = listed_sends(problem, stages(problem))
    cost = {(g, line): c for (_, g, line, _), c in zip(sends, form.data.lines.send_cost["cost"], strict=True)}
    assert cost[0, tunnel] == pytest.approx(6 * weights * price / 1.1, rel=1e-6)


def test_control_leaves_the_source_and_telemetry_comes_back():
    assert [stream_side("control", side) for side in (0, 1)] == [0, 1]
    assert [stream_side("telemetry", side) for side in (0, 1)] == [1, 0]


# -- meters ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metered(tiny):
    document = tiny(horizon={"years": 1, "discount_rate": 0.1})
    document["sites"][0] |= {
        "electricity_price": "0.10 USD/kWh",
        "electricity": {
            "connection": "40 kW", "demand_charge": "15 USD/kW-month",
            "ppa": [{"name": "base", "capacity": "5 kW", "least": "1 kW", "price": "0.03 USD/kWh", "profile": "flat", "pays": "taken"},
                    {"name": "sun", "capacity": "100 kW", "price": "0.02 USD/kWh", "profile": "solar", "carbon": "10 g/kWh"}],
            "battery": {"energy": "200 kWh", "power": "50 kW", "energy_price": "60 USD/kWh", "power_price": "20 USD/kW", "life": "15 years"},
        },
    }  # fmt: skip
    return formed(document)


def test_a_watt_from_grid_contract_or_battery_costs_what_is_stated(metered):
    problem, form = metered
    meters, seconds = form.data.meters, YEAR_S / 24
    assert meters.grid_cost["cost"] == pytest.approx(np.full((1, 24), 0.10 / KWH_J * seconds / 1.1))
    assert meters.grid_upper_w == pytest.approx([40e3])
    assert meters.taken_cost["cost"][0] == pytest.approx(np.full(24, 0.03 / KWH_J * seconds / 1.1))
    assert not meters.taken_cost["cost"][1].any() and meters.contract_cost["cost"][0] == 0.0
    output = float(meters.contract_share[1].sum()) * seconds  # joules a year of one watt of capacity
    assert meters.contract_cost["cost"][1] == pytest.approx(0.02 / KWH_J * output / 1.1)
    assert meters.taken_cost["carbon_kg"][1] == pytest.approx(np.full(24, 0.010 / KWH_J * seconds))
    assert meters.battery_energy_cost["capital"] == pytest.approx([60 / KWH_J])
    assert meters.battery_power_cost["capital"] == pytest.approx([20 / 1e3])
    assert (meters.contract_least_w.tolist(), meters.contract_upper_w.tolist()) == ([1e3, 0.0], [5e3, 100e3])
    assert [site.region for _, site, _ in metered_sites(problem)] == ["us-virginia"]


def test_a_year_has_twelve_demand_charges(metered):
    problem, form = metered
    peaks = charged_peaks(problem.calendar, problem.sites[0].electricity.timezone)
    month_s = YEAR_S / 12
    assert sum(worth for _, _, worth in peaks) == pytest.approx(12 * month_s / 1.1)
    assert form.data.meters.peak_cost["cost"].sum() == pytest.approx(12 * 15 / 1e3 / 1.1)


def test_a_battery_is_bought_again_after_each_life():
    whole, later = NS(start_s=0.0, end_s=10 * YEAR_S), NS(start_s=5 * YEAR_S, end_s=10 * YEAR_S)
    assert [bought_in(phase, 4.0, 10 * YEAR_S) for phase in (whole, later)] == [3, 1]  # at 0, 4 and 8 years


# -- ports -------------------------------------------------------------------------------------------------------------


def test_a_port_is_paid_once_for_a_family(tiny):
    document = tiny()
    document["porting"] = [{"family": "hopper", "cost": "2M USD"}]
    _, form = formed(document)
    assert form.data.ports.cost["cost"].tolist() == [2e6]
    assert form.data.ports.member.tolist() == [[p, 0] for p in range(len(form.points))]
