"""Electricity as a decision, hourly series and calendars, from the spec to the checked plan."""

from __future__ import annotations

import itertools
import json
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import planner
from catalog.contents import contents_of
from planner.cli.main import main
from planner.errors import SpecError
from planner.formulate.electricity import charged_peaks
from planner.problem.calendar import FULL_YEAR, TYPICAL_DAYS, Clock, build_calendar
from planner.resolve.demand import demand_by_hour
from planner.resolve.representative_days import k_medoids
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.spec.series import at_instants, read_series, with_series
from planner.spec.workloads import Demand
from planner.verify.plan import findings, verify_plan

YEAR = 8760
SHARE, AMOUNT = 2e-5, 1e-6


def series(year: int = 2027) -> dict:
    """A made-up year: cheap and clean at noon, dear in winter evenings, below 0 on Sundays in summer."""
    hours = [datetime(year, 1, 1) + timedelta(hours=h) for h in range(YEAR)]
    price = [
        30
        + 20 * np.cos(2 * np.pi * (t.timetuple().tm_yday / 365))
        - 25 * (10 <= t.hour <= 15)
        + (300 if (t.month, t.day, t.hour) == (1, 14, 18) else 0)
        for t in hours
    ]
    price = [p - 40 * (t.weekday() == 6 and 5 <= t.month <= 8) for p, t in zip(price, hours)]
    carbon = [400 - 200 * (10 <= t.hour <= 15) for t in hours]
    return {
        "start": f"{year}-01-01T00",
        "columns": {"price_usd_per_mwh": [round(float(p), 2) for p in price], "carbon_g_per_kwh": carbon},
    }


BLOCK = {
    "connection": "40 kW",
    "demand_charge": "15 USD/kW-month",
    "ppa": [{"name": "sun", "capacity": "100 kW", "price": "0.02 USD/kWh", "profile": "solar", "carbon": "10 g/kWh"}, {"name": "base", "capacity": "5 kW", "least": "1 kW", "price": "0.03 USD/kWh", "profile": "flat", "pays": "taken"}],
    "battery": {"energy": "200 kWh", "power": "50 kW", "energy_price": "60 USD/kWh", "power_price": "20 USD/kW", "life": "15 years"},
}  # fmt: skip
DEMAND = {"requests_per_s": 300, "profile": [1] * 8 + [3] * 12 + [1] * 4}


@pytest.fixture
def spec(tiny):
    """`spec(electricity={...}, calendar="full-year")`: the tiny spec with an hourly series and with changes."""

    def make(calendar="representative-day", days=None, demand=DEMAND, years=1, hourly=True, **site):
        document = tiny(horizon={"calendar": calendar, "years": years, **({"days": days} if days else {})})
        document["solver"]["replicas"] = "divisible"  # so that values can be compared
        document["workloads"][0]["demand"] = demand
        document["sites"][0] |= site
        if hourly:
            document["sites"][0] |= {"delivery": "0 USD/kWh", **site, "hourly": "made-up.csv"}
            document["series"] = {"made-up.csv": series()}
        return document

    return make


# -- the whole way -----------------------------------------------------------------------------------------------------


def numbers(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, (*path, index))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


@pytest.mark.parametrize(("calendar", "days"), [("representative-day", None), ("representative-days", 2)])
def test_every_number_of_the_electricity_is_checked(spec, calendar, days):
    plan = planner.solve(spec(calendar, days, electricity=BLOCK))
    document = json.loads(plan.to_json())
    problem = resolve(parse_spec(document["spec"]))
    assert findings(problem, document) == []
    sections = ("electricity", "schedule", "costs", "cost_lines", "carbon_lines", "totals")
    found = [path for section in sections for path in numbers(document[section], (section,))]
    kinds = {tuple(key for key in path if isinstance(key, str)): path for path in found}
    paths = [*kinds.values(), *found[:: max(1, len(found) // 50)]]
    assert {"grid_w", "sun", "base", "charge_w", "discharge_w", "stored_j"} <= {path[-1] for path in kinds.values()}
    missed = []
    for path, sign in itertools.product(paths, (1, -1)):
        place = document
        for key in path[:-1]:
            place = place[key]
        kept = place[path[-1]]
        place[path[-1]] = kept * (1 + sign * SHARE) if kept else sign * AMOUNT
        if not findings(problem, document):
            missed.append((path, kept))
        place[path[-1]] = kept
    assert missed == []


def test_a_missing_or_foreign_row_of_electricity_is_found(spec):
    document = json.loads(planner.solve(spec(electricity=BLOCK)).to_json())
    problem = resolve(parse_spec(document["spec"]))
    for change in (
        lambda d: d["electricity"].pop(),
        lambda d: d.pop("electricity"),
        lambda d: d["schedule"][3].pop("stored_j"),
        lambda d: d["schedule"][3]["ppa_w"].pop("sun"),
    ):
        broken = json.loads(json.dumps(document))
        change(broken)
        assert findings(problem, broken)
    without = json.loads(planner.solve(spec()).to_json())
    without["electricity"] = document["electricity"]
    assert findings(resolve(parse_spec(without["spec"])), without)


@pytest.mark.parametrize("calendar", ["representative-day", "representative-days"])
def test_an_empty_block_is_the_same_plan(spec, calendar):
    days = 3 if calendar == "representative-days" else None
    without, empty = (planner.solve(spec(calendar, days, **site)) for site in ({}, {"electricity": {}}))
    assert empty.objective["value"] == pytest.approx(without.objective["value"], rel=1e-9)
    assert empty["totals"]["carbon_kg"] == pytest.approx(without["totals"]["carbon_kg"], rel=1e-6)
    assert "electricity" not in without.document and [row["item"] for row in empty["electricity"]] == ["grid"]


def test_each_part_of_the_block_pays_for_itself(spec):
    """What may be left unused never costs more; what is owed may."""
    plain = planner.solve(spec(electricity={"demand_charge": BLOCK["demand_charge"]})).objective["value"]
    for part in ({"battery": BLOCK["battery"]}, {"ppa": BLOCK["ppa"][:1]}):
        assert planner.solve(spec(electricity={"demand_charge": BLOCK["demand_charge"], **part})).objective[
            "value"
        ] <= plain * (1 + 1e-9)
    given = {**BLOCK["battery"], "sizing": "given"}
    assert planner.solve(spec(electricity={"battery": given})).objective["value"] > plain


def test_price_and_carbon_are_separate_terms(spec):
    """Least carbon takes the dearer, cleaner electricity: a contract far too dear for least cost."""
    dear = {
        "ppa": [{"name": "clean", "capacity": "100 kW", "price": "0.50 USD/kWh", "profile": "flat", "pays": "taken"}]
    }
    cheap = planner.solve(spec(electricity=dear))
    clean = planner.solve({**spec(electricity=dear), "objective": {"minimise": "carbon"}})
    taken = {
        plan.objective["unit"]: next(row["energy_j"] for row in plan["electricity"] if row["item"] == "ppa")
        for plan in (cheap, clean)
    }
    assert taken["USD"] == 0 and taken["kg"] > 0
    assert (
        clean["totals"]["carbon_kg"] < cheap["totals"]["carbon_kg"]
        and clean["totals"]["cost"] > cheap["totals"]["cost"]
    )
    assert verify_plan(clean) == []


def test_requests_that_wait_take_fewer_systems(spec):
    at_once = planner.solve(spec(demand={**DEMAND, "requests_per_s": 2000}))
    waiting = planner.solve(spec(demand={**DEMAND, "requests_per_s": 2000, "deferral": "12 h"}))
    count = lambda plan: sum(row["count"] for row in plan["fleet"])
    assert count(waiting) < count(at_once) and verify_plan(waiting) == []
    late = json.loads(waiting.to_json())
    late["spec"]["workloads"][0]["demand"]["deferral"] = "1 h"
    assert any("requests wait" in str(finding) for finding in findings(resolve(parse_spec(late["spec"])), late))


def test_a_series_that_is_the_same_at_all_hours_says_nothing_of_which_days_are_alike():
    """Its standard deviation is a rounding, by which nothing may be divided."""
    from planner.resolve.representative_days import distances

    days = np.arange(365)
    seasons = np.repeat(np.cos(2 * np.pi * days / 365)[:, None], 24, axis=1)
    flat = np.full((365, 24), 0.0752 / 3.6e6)
    assert flat.std() > 0
    assert np.array_equal(distances([seasons, flat], days), distances([seasons], days))


def test_a_reduced_plan_is_run_through_the_year(spec):
    plan = planner.solve(
        spec("representative-days", 4, demand={**DEMAND, "week": [1, 1, 1, 1, 1, 0.6, 0.5]}, electricity=BLOCK)
    )
    found = plan["dispatch"]
    assert plan["bound_of"] == "reduced" and found["slots"] == YEAR
    assert found["unmet"] == 0 and found["unfinished"] == 0 and abs(found["difference"]) < 0.02
    assert found["cost"] == pytest.approx(plan["totals"]["cost"] * (1 + found["difference"]))
    assert verify_plan(plan) == []
    quiet = spec("representative-days", 4)
    quiet["horizon"]["dispatch"] = False
    assert "dispatch" not in planner.solve(quiet).document


def test_a_reduced_plan_with_lines_is_run_through_the_year(spec):
    document = spec("representative-days", 2, demand={**DEMAND, "week": [1, 1, 1, 1, 1, 0.6, 0.5]})
    document["sites"].append({"region": "us-texas"})
    document["workloads"][0]["spread"] = {"zones": 2}
    document["lines"] = [{"kind": "TLS"}, {"kind": "SD-WAN", "setup": "0 s"}]
    plan = planner.solve(document)
    found = plan["dispatch"]
    assert plan["placements"] and found["unmet"] == 0 and abs(found["difference"]) < 0.02
    assert verify_plan(plan) == []
    document["lines"], document["horizon"]["dispatch"] = document["lines"][1:], False
    rented = planner.solve(document)  # by capacity: what travels beside requests has no price of its own
    assert rented["costs"]["lines"] > 0 and "control" not in rented["costs"] and verify_plan(rented) == []


def test_the_default_calendar_is_the_full_problem(tiny):
    plan = planner.solve(tiny())
    assert plan["bound_of"] == "full" and "dispatch" not in plan.document and "day" not in plan["schedule"][0]


# -- calendars ---------------------------------------------------------------------------------------------------------

EDGES = (30 * 86400.0, 45.25 * 86400.0)
GROUPS = np.array([0, 100, 200])[np.minimum(np.arange(365) // 122, 2)]


@pytest.mark.parametrize("years", [1, 3])
@pytest.mark.parametrize("stands_for", [None, GROUPS, np.arange(365)])
def test_slots_fill_the_horizon(years, stands_for):
    calendar = build_calendar(years, 0.08, EDGES, date(2027, 1, 1), stands_for)
    assert calendar.seconds.sum() == pytest.approx(years * 365 * 86400)
    for window, length in enumerate(calendar.window_seconds()):
        assert calendar.seconds[calendar.window == window].sum() == pytest.approx(length)
    worth = float(calendar.seconds @ calendar.discount)
    assert worth == pytest.approx(float(calendar.window_seconds() @ calendar.window_discount()))
    assert sorted(calendar.next) == list(range(calendar.slots))


def test_a_full_year_is_one_ring_and_typical_days_are_many():
    year = build_calendar(1, 0.08, (), date(2027, 1, 1), np.arange(365))
    days = build_calendar(1, 0.08, (), date(2027, 1, 1), GROUPS)
    assert (year.kind, days.kind) == (FULL_YEAR, TYPICAL_DAYS)
    assert list(year.next) == [*range(1, YEAR), 0]
    assert days.slots == 72 and [days.next[23], days.next[47], days.next[71]] == [0, 24, 48]


def test_a_leap_day_is_a_day_like_others():
    """The 365 days from 1 January 2028 hold 29 February and leave out 31 December."""
    calendar = build_calendar(1, 0.08, (), date(2028, 1, 1), np.arange(365))
    assert calendar.days[59] == "2028-02-29" and calendar.days[-1] == "2028-12-30"
    instants = Clock(date(2028, 1, 1), True).instants()
    values = [float(h) for h in range(YEAR)]
    read = at_instants("2027-01-01T00", values, instants, False)
    assert read[59 * 24] == 60 * 24  # Tuesday 29 February 2028 reads Tuesday 2 March 2027
    leap = at_instants(
        "2024-01-01T00", [float(h) for h in range(8784)], Clock(date(2027, 1, 1), True).instants(), False
    )
    assert leap[59 * 24] == 56 * 24  # Monday 1 March 2027 reads Monday 26 February 2024


def test_local_hours_follow_daylight_saving():
    """A profile that peaks at 9 in the morning does so at 14 UTC in winter and 13 UTC in summer, in New York."""
    profile = [0.0] * 24
    profile[9] = 1.0
    by_hour = demand_by_hour(
        Demand(requests_per_s=1, profile=profile), "America/New_York", Clock(date(2027, 1, 1), True)
    ).reshape(365, 24)
    assert by_hour.mean() == pytest.approx(1)
    assert by_hour[10].argmax() == 14 and by_hour[190].argmax() == 13
    half = demand_by_hour(
        Demand(requests_per_s=1, profile=profile), "Asia/Kolkata", Clock(date(2027, 1, 1), True)
    ).reshape(365, 24)
    assert half[10, 3] == pytest.approx(half[10, 4]) and half[10].sum() == pytest.approx(half.mean() * 24)


def test_weeks_and_months_shape_the_year():
    clock = Clock(date(2027, 1, 1), True)
    demand = Demand(requests_per_s=1, week=[2, 1, 1, 1, 1, 1, 1], months=[1] * 11 + [3])
    by_day = demand_by_hour(demand, "UTC", clock).reshape(365, 24).mean(axis=1)
    assert by_day[3] / by_day[2] == pytest.approx(2)  # 4 January 2027 is a Monday
    assert by_day[360] / by_day[2] == pytest.approx(6 if date(2027, 12, 27).weekday() == 0 else 3)


def test_every_month_is_charged_once_and_by_local_time():
    calendar = build_calendar(1, 0.0, (), date(2027, 1, 1), np.arange(365))
    peaks = charged_peaks(calendar, "America/New_York")
    assert len(peaks) == 12 and sum(worth for _, _, worth in peaks) == pytest.approx(365 * 86400)
    slots = {name: np.flatnonzero(mask) for name, mask, _ in peaks}
    assert slots["month 1"][0] == 5 and set(range(5)) <= set(slots["month 12"])  # midnight in New York is 5 UTC
    typical = charged_peaks(build_calendar(1, 0.0, (30 * 86400.0,), date(2027, 1, 1)), "UTC")
    assert [name for name, _, _ in typical] == ["month 1 of phases 0, 1", "months 2-12 of phase 1"]


def test_medoids_are_the_best_of_all_sets():
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = rng.random((9, 2))
        distance = np.linalg.norm(points[:, None] - points[None], axis=2)
        best = min(distance[list(some)].min(axis=0).sum() for some in itertools.combinations(range(9), 3))
        medoids, nearest = k_medoids(distance, 3)
        assert np.array_equal(distance[medoids].argmin(axis=0), nearest)
        assert distance[medoids].min(axis=0).sum() <= best * 1.1


def test_typical_days_keep_the_peaks_and_the_means(spec):
    full = resolve(parse_spec(spec("full-year", demand={**DEMAND, "months": [1] * 11 + [1.5]})))
    few = resolve(parse_spec(spec("representative-days", 5, demand={**DEMAND, "months": [1] * 11 + [1.5]})))
    weight = few.calendar.seconds / few.calendar.seconds.sum()
    for name in ("price_per_j", "carbon_kg_per_j"):
        reduced, whole = getattr(few.sites[0], name), getattr(full.sites[0], name)
        assert reduced[few.calendar.hour] @ weight == pytest.approx(whole.mean())
    assert few.sites[0].price_per_j.max() == full.sites[0].price_per_j.max()
    rate, true = few.serving[0].requests_per_s[0], full.serving[0].requests_per_s[0]
    assert rate[few.calendar.hour] @ weight == pytest.approx(true.mean()) and rate.max() >= true.max() * (1 - 1e-9)


# -- files -------------------------------------------------------------------------------------------------------------

CSV = "timestamp_utc,price_usd_per_mwh,carbon_g_per_kwh\n" + "".join(
    f"{(datetime(2027, 1, 1) + timedelta(hours=h)):%Y-%m-%dT%H},{h % 24},{100 + h % 24}\n" for h in range(YEAR)
)


def test_a_file_beside_the_spec_or_in_a_folder_is_found(tiny, tmp_path, capsys):
    document = tiny()
    document["sites"][0] |= {"hourly": "hours.csv", "delivery": "0 USD/kWh"}
    (tmp_path / "spec.json").write_text(json.dumps(document))
    assert main(["check", str(tmp_path / "spec.json")]) == 3
    assert 'sites[0].hourly: "hours.csv" is neither beside the spec' in capsys.readouterr().err
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "hours.csv").write_text(CSV)
    assert main(["check", str(tmp_path / "spec.json"), "--hourly", str(tmp_path / "there")]) == 0
    (tmp_path / "hours.csv").write_text(CSV)
    assert main(["check", str(tmp_path / "spec.json")]) == 0
    plan = planner.solve(tmp_path / "spec.json")
    # 2 o'clock by local time is 7 UTC on 127 days, and 6 UTC on 237 with summer time; on the day of the change there is none
    price = (7 * 127 + 6 * 237) / 364 / 3.6e9
    assert (
        plan["schedule"][7]["price_per_j"] == pytest.approx(price) and verify_plan(plan) == []
    )  # the plan holds the series itself


def test_blank_hours_are_an_error_unless_filled(tiny):
    lines = CSV.splitlines()
    lines[10] = lines[10].split(",")[0] + ",,"
    document = tiny()
    document["sites"][0] |= {"hourly": "hours.csv", "delivery": "0 USD/kWh"}
    document["series"] = {"hours.csv": read_series("\n".join(lines).encode())}
    with pytest.raises(
        SpecError, match='1 hours are blank, the first is 01-01 09:00 UTC; complete the file, or write "fill": "linear"'
    ):
        resolve(parse_spec(document))
    document["sites"][0]["hourly"] = {"file": "hours.csv", "fill": "linear"}
    document["horizon"] = {"calendar": "full-year"}
    assert resolve(parse_spec(document)).sites[0].price_per_j[9] == pytest.approx(9 / 3.6e9)


@pytest.mark.parametrize(
    ("content", "message"),
    [("a,b\n1,2\n", "expected a column timestamp_utc"), ("utc,x\n2027-01-01T00,1\n2027-01-01T00,2\n", "every hour once"), ("utc,x\n2027-01-01T00,q\n", "line 2, column 2: expected a number"), ("utc,x\nsoon,1\n", "line 2: expected an hour")],
)  # fmt: skip
def test_a_file_that_is_no_series_is_told_of(tiny, tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    document = tiny()
    document["sites"][0]["hourly"] = "x.csv"
    with pytest.raises(SpecError, match=message):
        with_series(document, [tmp_path])


def test_local_time_of_a_tariff_in_every_hour(tiny):
    """A tariff that doubles from 9 to 10 local time, looked up hour by hour through both changes of the clock."""
    figures = {
        "price_low": {"value": "0.1 USD/kWh", "note": "made up"},
        "price_high": {"value": "0.2 USD/kWh", "note": "made up"},
    }
    months = list(range(1, 13))
    bands = [
        [months, "all", 0, 9, "low", "price_low"],
        [months, "all", 9, 10, "high", "price_high"],
        [months, "all", 10, 24, "low", "price_low"],
    ]
    document = tiny(
        horizon={"calendar": "full-year"},
        catalog={
            "tariffs": [
                {
                    "name": "made up",
                    "text": {"region": "us-virginia", "currency": "USD", "bands": bands},
                    "figures": figures,
                }
            ]
        },
    )
    document["sites"][0]["tariff"] = "made up"
    price = resolve(parse_spec(document)).sites[0].price_per_j
    zone = ZoneInfo("America/New_York")
    local = [moment.astimezone(zone).hour for moment in Clock(date(2027, 1, 1), True).instants()]
    assert np.allclose(price * 3.6e6, np.where(np.array(local) == 9, 0.2, 0.1))


def test_real_series_are_read_at_a_year(hourly, spec):
    """Every file of the folder, in place; blank hours filled."""
    instants = Clock(date(2027, 1, 1), True).instants()
    for file in sorted(hourly.glob("*_20*.csv")):
        read = read_series(file.read_bytes())
        for column, values in read["columns"].items():
            if any(value is not None for value in values):
                assert np.isfinite(at_instants(read["start"], values, instants, True)).all(), (file.name, column)


# -- connections and caps ----------------------------------------------------------------------------------------------


def test_a_connection_is_a_limit_like_others(spec):
    """It stands among the limits with what it is worth, and is named and repaired where it is too small."""
    free = planner.solve(spec(electricity={}))
    peak = max(row["grid_w"] for row in free["schedule"])
    storage = {"battery": {"energy": "1 MWh", "power": "100 kW", "energy_price": "200 USD/kWh"}}
    tight = planner.solve(spec(electricity={"connection": f"{peak * 0.9:.6f} W", **storage}))
    row = next(row for row in tight["limits"] if row["path"] == "sites[0].electricity.connection")
    assert row["slack"] == pytest.approx(0, abs=1e-3) and row["marginal_value"] < 0 and verify_plan(tight) == []
    dark = planner.solve(spec(electricity={"connection": "1 kW"}))
    assert dark.status == "infeasible" and verify_plan(dark) == []
    assert [found["path"] for found in dark["diagnosis"]["conflict"]] == ["sites[0].electricity.connection"]
    assert (
        dark["diagnosis"]["repair"][0]["path"] == "sites[0].electricity.connection"
        and dark["diagnosis"]["repair_checked"]
    )


def test_a_power_cap_saves_energy_where_systems_are_idle_anyway(spec):
    """Half a system's work can be done slowly: less power per request on the measured curves, which least carbon takes."""
    free = planner.solve({**spec(), "objective": {"minimise": "carbon"}})
    capped = planner.solve({**spec(power_caps=[0.8, 0.6, 0.5]), "objective": {"minimise": "carbon"}})
    points = [point for workload in capped["workloads"] for point in workload["points"]]
    assert (
        any(point.get("power_cap") for point in points) and capped["totals"]["carbon_kg"] < free["totals"]["carbon_kg"]
    )
    assert verify_plan(capped) == []
    document = json.loads(capped.to_json())
    point = next(p for p in document["workloads"][0]["points"] if p.get("power_cap"))
    for cap in (0.7, 0.8, None):
        point["power_cap"] = cap
        assert findings(resolve(parse_spec(document["spec"])), document), cap


def test_days_that_are_all_alike_are_dispatched_as_planned(tiny):
    """Without any difference between days, all hours of the year cost what the typical day says, jobs and batteries included."""
    document = tiny(horizon={"calendar": "representative-days", "days": 1})
    document["workloads"].append(
        {
            "name": "run",
            "kind": "training",
            "architecture": "Llama-3.2-1B",
            "tokens": "40B",
            "start": "10 d",
            "deadline": "100 d",
        }
    )
    document["sites"][0] |= {"electricity_price": "0.08 USD/kWh", "electricity": {"ppa": BLOCK["ppa"][1:]}}
    document["sites"][0]["region"] = document["workloads"][0]["origins"][0]["region"] = (
        "singapore"  # no daylight saving
    )
    document["catalog"] = {}
    plan = planner.solve(document)
    found = plan["dispatch"]
    assert abs(found["difference"]) < 1e-7 and found["unmet"] == found["unfinished"] == 0
    assert found["carbon_kg"] == pytest.approx(plan["totals"]["carbon_kg"], rel=1e-6)


def test_a_dispatch_says_what_a_fleet_too_small_leaves_undone(spec, monkeypatch):
    """A plan on days without the peak day of the year cannot serve that day, and says so."""
    import planner.resolve.representative_days

    monkeypatch.setattr(planner.resolve.representative_days, "_peak_day", lambda series: None)
    busy = [0.2] * 11 + [8.0]
    plan = planner.solve(spec("representative-days", 1, demand={**DEMAND, "requests_per_s": 1500, "months": busy}))
    assert plan["dispatch"]["unmet"] > 0.01


def test_the_demand_charge_of_a_tariff(tiny):
    """The first complete tariff of the catalog that leaves one apart: it is charged on the peak of every month."""
    from catalog.lookup import shipped_catalog

    catalog = shipped_catalog()
    name = next(
        n
        for n in catalog.names("tariffs")
        if (r := catalog.get("tariffs", n)).get("demand_charge") is not None
        and r.words("status") == "complete"
        and contents_of(r)["demand"] == "separate"
    )
    document = tiny()
    document["sites"][0] |= {"tariff": name, "electricity": {"demand_charge": "tariff"}}
    plan = planner.solve(document)
    peak = next(row for row in plan["electricity"] if row["item"] == "peak")
    assert peak["cost"] > 0 and verify_plan(plan) == []
    del document["sites"][0]["tariff"]
    with pytest.raises(SpecError, match="the site has no"):
        resolve(parse_spec(document))
    document["sites"][0]["electricity"]["demand_charge"] = "15 kW"
    with pytest.raises(SpecError, match=r"demand_charge: .*USD/kW-month"):
        parse_spec(document)
