"""Lines, spread and failures of zones in a plan: every number of them is checked, wrong questions are told, and without the blocks
nothing changes."""

from __future__ import annotations

import copy
import json
import random

import pytest

import planner
import planner.verify.points.check
from catalog.units import DAY_S
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.outputs.sections import csv_tables
from planner.report.report import render
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.plan import findings, verify_plan

SPEC = {
    "name": "two zones",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 100, "profile": [1] * 12 + [3] * 12},
            "lengths": {"input": 1000, "output": 250}, "origins": [{"region": "us-texas", "share": 0.6}, {"region": "us-california", "share": 0.4}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never", "security": "encrypted",
            "traffic": {"telemetry": {"rate": "300 Mbit/s"}}, "spread": {"zones": 2, "largest_share": 0.7, "survive": 1},
        },
    ],
    "sites": [
        {"region": "us-oregon", "systems": ["DGX H100"]}, {"region": "us-texas", "systems": ["DGX H100"], "power": "60 kW", "zone": "south"},
        {"region": "us-arizona", "systems": ["DGX H100"], "zone": "south"},
    ],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
    "lines": [
        {"kind": "dedicated line", "setup": "0 s", "units": 4}, {"kind": "IPSec VPN", "between": ["us-texas", "us-oregon"], "capacity": "200 Mbit/s"},
        {"kind": "SD-WAN"}, {"kind": "TLS"},
    ],
    "solver": {"gap": 0.01},
}  # fmt: skip
OWN = ("lines", "placements", "spread", "failures")


def spec(**changes):
    return {**copy.deepcopy(SPEC), **changes}


def chat(**changes):
    return [{**copy.deepcopy(SPEC["workloads"][0]), **changes}]


@pytest.fixture(scope="module")
def plan():
    return planner.solve(spec())


@pytest.fixture
def document(plan):
    return json.loads(plan.to_json())


@pytest.fixture
def quick(monkeypatch):
    """The closed forms are pure functions of a point's row: a row that is as before is not evaluated again."""
    evaluate, known = planner.verify.points.check.evaluate_point, {}

    def remembered(problem, fleet_options, facts, row):
        key = (id(problem), json.dumps(row))
        if key not in known:
            known[key] = evaluate(problem, fleet_options, facts, row)
        return known[key]

    monkeypatch.setattr(planner.verify.points.check, "evaluate_point", remembered)


def numbers(node, path=()):
    if isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from numbers(value, (*path, key))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


def at(node, path):
    for key in path:
        node = node[key]
    return node


# -- a plan with everything --------------------------------------------------------------------------------------------


def test_the_plan_holds_and_says_what_travels_where(plan):
    assert plan.status in ("optimal", "within_gap") and verify_plan(plan) == []
    assert all(plan[table] for table in OWN) and {"lines", "telemetry", "control"} <= set(plan["costs"])
    assert {row["line"] for row in plan["routes"]} <= {"", "dedicated line", "IPSec VPN", "SD-WAN"}, (
        "TLS is not safe enough"
    )
    assert {row["traffic"] for row in plan["placements"]} == {"control", "telemetry", "weights"}
    for row in plan["lines"]:
        assert row["units"] is None or row["peak_bytes_per_s"] <= row["capacity_bytes_per_s"] * (1 + 1e-9)


def test_a_line_is_used_from_the_day_it_is_ready(plan):
    window = {row["slot"]: row["window"] for row in plan["schedule"]}
    early = [row["line"] for row in plan["routes"] if window[row["slot"]] == 0] + [
        row["kind"] for row in plan["placements"] if 0 in row["windows"]
    ]
    assert "SD-WAN" not in early, "it takes a week"
    assert resolve(parse_spec(spec())).calendar.edges_s[1] == 7 * DAY_S


def test_zones_hold_their_shares(plan):
    assert {row["zone"]: row["sites"] for row in plan["spread"]} == {
        "us-oregon": ["us-oregon"],
        "south": ["us-texas", "us-arizona"],
    }
    rounding = 1e-8  # rows hold to the solver's tolerance, which is wider
    assert all(0.1 - rounding <= row["least_share"] <= row["largest_share"] <= 0.7 + rounding for row in plan["spread"])
    limit = next(row for row in plan["limits"] if row["path"] == "workloads[0].spread.largest_share")
    assert limit["limit"] == 0.7 and limit["note"] == ""


def test_each_zone_may_fail(plan):
    for row in plan["failures"]:
        zone = {site for other in plan["spread"] if other["zone"] == row["zone"] for site in other["sites"]}
        assert row["routes"] and not zone & {route["site"] for route in row["routes"]}


def test_every_number_is_checked(document, quick):
    problem = resolve(parse_spec(document["spec"]))
    assert findings(problem, document) == []
    own = [path for table in OWN for path in numbers(document[table], (table,))]
    more = [
        path
        for table in ("costs", "cost_lines", "routes", "workloads", "totals")
        for path in numbers(document[table], (table,))
    ]
    missed = []
    for path in own + random.Random(11).sample(more, 120):
        place, key = at(document, path[:-1]), path[-1]
        kept = place[key]
        for sign in (1, -1):
            place[key] = kept * (1 + sign * 2e-5) if kept else sign * 1e-6
            if not findings(problem, document):
                missed.append((path, kept))
        place[key] = kept
    assert missed == [] and len(own) > 50


@pytest.mark.parametrize("table", OWN)
def test_no_row_may_be_missing(document, table):
    for i in range(len(document[table])):
        broken = document | {table: document[table][:i] + document[table][i + 1 :]}
        assert verify_plan(Plan(broken)), (table, i)
    assert verify_plan(Plan({key: value for key, value in document.items() if key != table}))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [("routes", "line", "internet TLS"), ("placements", "kind", "internet TLS"), ("placements", "from", "us-california"), ("placements", "to", "us-texas"),
     ("lines", "kind", "internet TLS"), ("lines", "busiest_from", "us-virginia"), ("spread", "zone", "north"), ("failures", "zone", "north")],
)  # fmt: skip
def test_every_word_is_checked(document, table, key, value):
    for i, row in enumerate(document[table]):
        if row[key] not in (value, ""):
            rows = [*document[table][:i], row | {key: value}, *document[table][i + 1 :]]
            assert verify_plan(Plan(document | {table: rows})), (i, row)


def test_people_and_programs_read_it(plan):
    text = render(plan, "table")
    assert "Lines to rent" in text and "When a zone fails" in text and "rent of lines" in text
    assert set(OWN) <= set(csv_tables(plan)) and render(plan, "md")


# -- without the blocks ------------------------------------------------------------------------------------------------


def test_without_the_blocks_nothing_of_them_is_there(tiny):
    one = planner.solve(tiny())
    assert (
        not set(OWN) & set(one.document)
        and "line" not in one["routes"][0]
        and not {"lines", "control"} & set(one["costs"])
    )


def test_lines_that_nothing_needs_cost_nothing(tiny):
    """One site where the users are: nothing travels, and the plan is the same."""
    without, within = planner.solve(tiny()), planner.solve(tiny(lines=[{"kind": "IPSec VPN"}]))
    assert without.objective == within.objective and without["fleet"] == within["fleet"] and within["lines"] == []
    assert verify_plan(within) == []


def test_a_plan_that_claims_lines_nobody_asked_about_does_not_hold(tiny):
    one = json.loads(planner.solve(tiny()).to_json())
    for table in OWN:
        assert verify_plan(Plan(one | {table: []}))


# -- what the choice depends on ----------------------------------------------------------------------------------------


def simple(line: dict, **changes):
    """Users in Texas, systems in Oregon."""
    workload = chat(
        **(
            {
                "spread": None,
                "traffic": {},
                "origins": [{"region": "us-texas", "share": 1}],
                "demand": {"requests_per_s": 20},
            }
            | changes
        )
    )
    return planner.solve(spec(workloads=workload, sites=SPEC["sites"][:1], lines=[line, {"kind": "TLS"}]))


def test_class_and_availability_choose_the_line():
    kinds = lambda plan: {row["line"] for row in plan["routes"]}
    free = {"kind": "dedicated line", "setup": "0 s"}
    assert kinds(simple(free, security="public")) == {"internet TLS"}
    assert kinds(simple(free, security="private")) == {"dedicated line"}
    assert kinds(simple(free, security="public", availability=0.9999)) == {"dedicated line"}
    assert kinds(simple({"kind": "SD-WAN", "security": "private", "setup": "0 s"}, security="private")) == {"SD-WAN"}


def test_the_round_trip_of_the_line_counts():
    """TLS takes 1.3 times the path's round trip, which is more than this limit leaves."""
    problem = resolve(parse_spec(spec()))
    rtt = {kind: way.rtt_s for kind, way in problem.routes("chat", "us-texas", "us-oregon").items()}
    assert rtt["dedicated line"] < rtt["SD-WAN"] < rtt["IPSec VPN"]
    wide = simple({"kind": "dedicated line", "setup": "0 s"}, security="public")
    predicted = wide["workloads"][0]["slo"][0]["predicted_s"]
    assert {row["line"] for row in wide["routes"]} == {"internet TLS"}
    slow = simple({"kind": "dedicated line", "setup": "0 s", "added_latency": "1 s"}, security="private")
    assert slow["workloads"][0]["slo"][0]["predicted_s"] >= min(predicted, 1.0)


def test_a_tighter_question_never_costs_less():
    costs = [
        simple({"kind": "dedicated line", "setup": "0 s"}, security=security).objective["value"]
        for security in ("public", "encrypted", "private")
    ]
    assert costs == sorted(costs)


def test_shares_are_those_of_what_is_served_where_requests_may_wait():
    demand = {**SPEC["workloads"][0]["demand"], "deferral": "6 h"}
    found = planner.solve(
        spec(workloads=chat(demand=demand), sites=[{**site, "power": "40 kW"} for site in SPEC["sites"]])
    )
    assert found.status in ("optimal", "within_gap") and verify_plan(found) == []
    assert all(row["largest_share"] <= 0.7 + 1e-6 for row in found["spread"])
    served, asked = (
        [sum(row["tokens_per_s"] for row in found["routes"] if row["slot"] == t) / 250 for t in range(24)],
        [100 * (1 if t < 12 else 3) / 2 for t in range(24)],
    )
    assert sum(served) == pytest.approx(sum(asked)) and served != pytest.approx(asked)


def test_lines_and_shares_hold_in_all_hours_of_the_year():
    """Days that are all alike cost in the year what the typical day says."""
    found = planner.solve(
        spec(
            workloads=chat(spread={"zones": 2, "largest_share": 0.7}),
            horizon={"calendar": "representative-days", "days": 1},
        )
    )
    assert verify_plan(found) == [] and found["dispatch"]["left_out"] == []
    assert abs(found["dispatch"]["difference"]) < 1e-5 and found["dispatch"]["unmet"] == 0


# -- wrong and impossible questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"lines": None}, "workloads[0].security"),
        ({"lines": [{"kind": "smoke signals"}]}, "lines[0].kind"),
        ({"lines": [{"kind": "TLS", "between": ["us-texas", "us-texas"]}]}, "lines[0].between"),
        ({"lines": [{"kind": "TLS", "price": "3 USD/month"}]}, "lines[0].price"),
        ({"lines": [{"kind": "TLS"}, {"kind": "internet TLS"}]}, "lines[1]"),
        ({"lines": [{"kind": "TLS", "between": ["us-texas", "nowhere"]}]}, "lines[0].between[1]"),
        ({"workloads": chat(spread={"zones": 3, "least_share": 0.5})}, "workloads[0].spread"),
    ],
)
def test_wrong_specs_are_told(changes, path):
    with pytest.raises(SpecError) as told:
        resolve(parse_spec(spec(**changes)))
    assert path in {problem.path for problem in told.value.problems}


def diagnosis(**changes):
    found = planner.solve(spec(**changes))
    assert found.status == "infeasible" and verify_plan(found) == []
    return found["diagnosis"]


def test_a_class_that_no_line_has_is_named():
    found = diagnosis(workloads=chat(spread=None), sites=SPEC["sites"][:1], lines=[{"kind": "TLS"}])
    assert {row["path"] for row in found["conflict"]} == {"workloads[0].security", "lines"}
    assert found["repair"] and found["repair_checked"]


def test_a_line_that_comes_too_late_is_named():
    found = diagnosis(
        workloads=chat(spread=None, security="private"), sites=SPEC["sites"][:1], lines=[{"kind": "dedicated line"}]
    )
    assert "lines[0].setup" in {row["path"] for row in found["conflict"]} and found["repair_checked"]


def test_a_spread_that_the_sites_do_not_allow_is_named():
    found = diagnosis(workloads=chat(spread={"largest_share": 0.6}), sites=SPEC["sites"][:1])
    assert {row["path"] for row in found["conflict"]} == {"workloads[0].spread.largest_share"}
    assert found["repair"][0]["to"] == 1.0 and found["repair_checked"]


def test_weights_cross_the_sea_once():
    """Two far sites need them, and a third, where nothing is served but the fixed cost is paid, is near both."""
    near = {"kind": "dedicated line", "setup": "0 s", "price": "1 USD/month"}
    quiet = {"rate": "1 kbit/s"}
    workload = chat(
        origins=[{"region": "us-oregon", "share": 0.5}, {"region": "us-california", "share": 0.5}], weights_from="de-frankfurt",
        weight_updates_per_year="10000", security="public", traffic={"control": quiet, "telemetry": quiet}, spread={"zones": 2, "least_share": 0.3},
    )  # fmt: skip
    sites = [{"region": "us-virginia", "fixed_cost": "100 USD/year", "systems": ["DGX H100"], "power": "1 kW"}]
    sites += [{"region": region, "systems": ["DGX H100"]} for region in ("us-oregon", "us-california")]
    lines = [
        {"kind": "TLS"},
        *(near | {"between": ["us-virginia", region]} for region in ("us-oregon", "us-california")),
    ]
    plan = planner.solve(spec(workloads=workload, sites=sites, lines=lines, solver={"gap": 1e-4}))
    tree = {(row["from"], row["to"]) for row in plan["placements"] if row["traffic"] == "weights"}
    assert tree == {("de-frankfurt", "us-virginia"), ("us-virginia", "us-oregon"), ("us-virginia", "us-california")}
    assert {row["site"] for row in plan["fleet"]} == {"us-oregon", "us-california"} and plan["costs"]["site"] > 0
    assert verify_plan(plan) == []


def test_a_site_that_passes_weights_on_for_a_time_holds_a_copy_throughout():
    """Until the direct line is ready, after 30 days, weights from Oregon reach Texas over Arizona, whose copy is kept up to date from then on."""
    asked = spec(
        workloads=chat(
            origins=[{"region": "us-texas", "share": 1}],
            spread=None,
            demand={"requests_per_s": 20},
            weights_from="us-oregon",
            traffic={},
        ),
        sites=[
            {"region": "us-oregon", "power": "1 kW"},
            {"region": "us-arizona", "power": "1 kW"},
            {"region": "us-texas", "systems": ["DGX H100"]},
        ],
        lines=[
            {"kind": "IPSec VPN", "between": ["us-oregon", "us-arizona"], "price_per_byte": "10 USD/GB"},
            {"kind": "IPSec VPN", "between": ["us-arizona", "us-texas"], "price_per_byte": "10 USD/GB"},
            {
                "kind": "SD-WAN",
                "between": ["us-oregon", "us-texas"],
                "price": "1 USD/month",
                "price_per_byte": "0 USD/GB",
                "setup": "30 days",
            },
        ],
    )
    plan = planner.solve(asked)
    assert verify_plan(plan) == []
    sent = {(row["from"], row["to"]): row["windows"] for row in plan["placements"] if row["traffic"] == "weights"}
    assert sent == {
        ("us-oregon", "us-arizona"): [0, 1],
        ("us-arizona", "us-texas"): [0],
        ("us-oregon", "us-texas"): [1],
    }
    assert plan.document["bound"] <= plan.value * (1 + 1e-9)
    stale = json.loads(plan.to_json())
    for row in stale["placements"]:
        if row["to"] == "us-arizona":
            row["windows"] = [0]
    assert any("us-arizona" in finding.message for finding in verify_plan(Plan(stale)))
