"""Who may share systems: shared fleets never cost more, and siloed ones keep to themselves."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from benchmarks.sharing import goodputs, ideal_gain, measured, profile, tokens_of_equal_work
from models.training.reliability import best_goodput, checkpoint_write_s, spares_needed
from planner.candidates.search import find_candidates
from planner.cli.main import main
from planner.formulate.formulation import formulate
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.solving.variants import Answer
from planner.spec.document import edited
from planner.studies.sharing import ON, sharing
from planner.studies.sharing_capabilities import (
    ALL_OFF,
    BY_HAND_S,
    BY_ORIGIN,
    SPARES,
    STORAGE,
    VALLEYS,
    WAITING,
    at_even_pace,
    capabilities,
    edits_without,
)
from planner.verify.plan import verify_plan
from solvers.search.joint import solve

SMALL = json.loads((Path(__file__).parents[2] / "golden" / "small_spec.json").read_text())
SMALL["solver"] |= {"replicas": "divisible"}  # as in the study
SMALL["simplicity"] = {"within": 0}


def spec(sharing: str | None) -> dict:
    document = copy.deepcopy(SMALL)
    chat = document["workloads"][0]
    chat["demand"] = {
        "requests_per_s": 60,
        "profile": [1, 1, 1, 1, 1, 1, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 6, 4, 3, 2, 2, 1, 1],
    }
    document["workloads"].append(
        chat
        | {
            "name": "agent",
            "demand": {
                "requests_per_s": 60,
                "profile": [*chat["demand"]["profile"][12:], *chat["demand"]["profile"][:12]],
            },
        }
    )
    document["sites"][0]["power"] = "200 kW"
    return document | ({"sharing": sharing} if sharing else {})


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {sharing: planner.solve(spec(sharing)) for sharing in ("all", "kind", "none")}


def test_all_share_where_nothing_is_said(plans):
    plain = planner.solve(spec(None))
    assert plain["fleet"] == plans["all"]["fleet"] and "tenant" not in plain["fleet"][0]


def test_sharing_less_never_costs_less_and_here_costs_more(plans):
    costs = [plans[sharing].objective["value"] for sharing in ("all", "kind", "none")]
    assert costs[0] < costs[1] < costs[2]
    assert verify_plan(plans["kind"]) == verify_plan(plans["none"]) == []


def test_tenants_are_kinds_or_workloads(plans):
    assert {row["tenant"] for row in plans["kind"]["fleet"]} == {"serving", "training"}
    assert {row["tenant"] for row in plans["none"]["fleet"]} == {"chat", "agent", "tune"}
    for workload in plans["none"]["workloads"]:
        assert {pool["tenant"] for point in workload["points"] for pool in point["pools"]} == {workload["name"]}


def test_supply_and_power_are_still_those_of_all(plans):
    document = spec("none")
    total = sum(row["count"] for row in plans["none"]["fleet"])
    document["offers"][0]["supply"] = total - 1
    assert planner.solve(document).status == "infeasible"


def test_verify_sees_a_workload_on_the_systems_of_another(plans):
    broken = copy.deepcopy(dict(plans["none"].document))
    broken["workloads"][0]["points"][0]["pools"][0]["tenant"] = "tune"
    assert any("sharing forbids" in str(finding) for finding in verify_plan(Plan(broken)))
    broken = copy.deepcopy(dict(plans["none"].document))
    row = next(row for row in broken["fleet"] if row["tenant"] == "chat")
    row["tenant"] = "agent"
    assert any("systems at work" in str(finding) for finding in verify_plan(Plan(broken)))


def test_each_capability_off_is_a_plan_of_its_own(plans, tmp_path, capsys):
    found = sharing(spec(None))
    rows = {row["capability"]: row for row in found.rows}
    assert rows[ON]["value"] == pytest.approx(plans["all"].objective["value"]) and rows[ON]["worse"] is None
    assert rows["one fleet for all workloads"]["value"] == pytest.approx(plans["none"].objective["value"])
    assert rows["one fleet for serving and training"]["value"] == pytest.approx(plans["kind"].objective["value"])
    assert rows[ON]["utilisation"] > rows["one fleet for all workloads"]["utilisation"]
    assert rows["resuming by itself"]["goodput"] < rows[ON]["goodput"] <= 1
    assert all(row["worse"] >= -1e-6 for name, row in rows.items() if name != ON)
    assert "One shared fleet works" in found.words[0]

    (tmp_path / "spec.json").write_text(json.dumps(spec(None)))
    assert main(["sharing", str(tmp_path / "spec.json"), "-q", "--format", "csv"]) == 0
    assert "zero-copy network" in capsys.readouterr().out


def test_utilisation_is_chips_at_work_over_chips_held(plans):
    found, plan = sharing(spec("none")).base, plans["none"]
    year = sum(row["seconds"] for row in plan["schedule"])
    held = sum(row["count"] * 8 for row in plan["fleet"]) * year
    chips = {
        point["id"]: sum(pool["systems_per_replica"] * 8 for pool in point["pools"])
        for w in plan["workloads"]
        for point in w["points"]
    }
    busy = sum(
        replicas * chips[name] * row["seconds"] for row in plan["schedule"] for name, replicas in row["active"].items()
    )
    assert found.utilisation == pytest.approx(busy / held)


# -- what "off" means ----------------------------------------------------------------------------------------------------


def filling(tokens: str = "1.8T", **job) -> dict:
    """A service that needs all its systems for eight hours of the day and hardly any in the others, and a job that would fit there."""
    document = spec(None)
    document["workloads"] = [
        document["workloads"][0],
        document["workloads"][1] | {"tokens": tokens, "deadline": "365 d"} | job,
    ]
    document["workloads"][0]["demand"] = {"requests_per_s": 700, "profile": [1] * 16 + [10] * 8}
    document["sites"][0]["power"] = "2 MW"
    document["offers"][0]["supply"] = 60
    del document["limits"]
    return document | {"solver": {"gap": 1e-4, "replicas": "divisible"}}


def test_a_job_at_even_pace_runs_alike_in_every_hour_and_does_all_its_work():
    document = filling()
    problem = resolve_document(document)
    candidates = find_candidates(problem)
    form = formulate(problem, candidates)
    solution = solve(at_even_pace(form.data))
    plan = Answer(problem, candidates, form, solution).plan(document)
    (point,) = next(w for w in plan["workloads"] if w["kind"] == "training")["points"]
    paces = [row["active"].get(point["id"], 0.0) for row in plan["schedule"]]
    assert paces == pytest.approx([paces[0]] * len(paces)) and 0 < paces[0] <= 1
    assert sum(pace * row["seconds"] for pace, row in zip(paces, plan["schedule"])) * point[
        "capacity"
    ] == pytest.approx(1.8e12)


def test_even_pace_changes_training_points_only_and_in_proportion():
    problem = resolve_document(filling())
    data = formulate(problem, find_candidates(problem)).data
    even, job = at_even_pace(data), data.point_job >= 0
    pace = even.point_capacity / data.point_capacity
    assert (pace[~job] == 1).all() and (pace[job] < 1).all()
    assert even.point_capacity[job] * data.slot_hours_s.sum() == pytest.approx(data.job_work[0])
    for scaled, plain in (
        (even.point_power_w, data.point_power_w),
        (even.point_cost["cost"][:, 0], data.point_cost["cost"][:, 0]),
    ):
        assert scaled == pytest.approx(plain * pace)


def test_without_the_valleys_a_fleet_is_larger_and_less_busy():
    rows = {row["capability"]: row for row in sharing(filling("2.4T")).rows}
    assert rows[VALLEYS]["chips"] > rows[ON]["chips"] and rows[VALLEYS]["worse"] > 0.05
    assert rows[VALLEYS]["utilisation"] < rows[ON]["utilisation"] - 0.05


def test_without_the_valleys_a_job_holds_whole_replicas_where_replicas_are_whole(tiny):
    """A job that goes on slowly is no cheaper than one that does the same work in the hours that suit it."""
    document = tiny(solver={"replicas": "whole", "gap": 1e-3})
    document["workloads"][0]["demand"] = {"requests_per_s": 40}
    job = {"name": "tune", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "20B", "deadline": "60 d"}
    document["workloads"].append(job)
    document["horizon"] = {"years": 1}
    rows = {row["capability"]: row for row in sharing(document).rows}
    assert rows[VALLEYS]["worse"] >= -1e-3 and rows[VALLEYS]["chips"] >= rows[ON]["chips"] == 16


def test_without_spares_a_job_waits_for_repairs_of_chips_only():
    problem = resolve_document(filling())
    facts = problem.constants.reliability
    rows = {row["capability"]: row for row in sharing(filling()).rows}
    off = next(c for c in capabilities(problem, filling()) if c.name == SPARES)
    assert (
        off.repair_s == pytest.approx(facts.repair_s * facts.chip_interruption_s / facts.chip_failure_s)
        and not off.restart_s
    )
    without = resolve_document(edited(filling(), edits_without(problem, off)))
    assert (
        without.constants.reliability.recovery_s == facts.recovery_s
        and without.constants.reliability.unspared_s == pytest.approx(off.repair_s, rel=1e-5)
    )
    point = find_candidates(without).training["tune"][0]
    assert sum(use.systems for use in point.uses) == -(-_chips(point) // 8)  # those at work and no more
    write_s = checkpoint_write_s(
        8.03e9, facts.checkpoint_bytes_per_parameter, _chips(point) * facts.chip_checkpoint_bytes_per_s
    )
    assert point.goodput == pytest.approx(
        best_goodput(_chips(point), facts.chip_interruption_s, write_s, facts.recovery_s + off.repair_s + write_s),
        rel=1e-4,
    )
    assert rows[SPARES]["goodput"] < rows[ON]["goodput"]


def test_without_spares_nothing_changes_on_systems_that_others_repair():
    document = filling()
    document["offers"] = [{**offer, "how": "reserved", "price": "2 USD/h"} for offer in document["offers"]]
    problem = resolve_document(document)
    off = next(c for c in capabilities(problem, document) if c.name == SPARES)
    held, without = (
        find_candidates(resolve_document(edited(document, edits))).training["tune"]
        for edits in ((), edits_without(problem, off))
    )
    assert held and [(p.capacity, p.goodput, p.uses[0].systems) for p in held] == [
        (p.capacity, p.goodput, p.uses[0].systems) for p in without
    ]


@pytest.mark.parametrize("asked, stated", [(0.5, 0.999), (0.95, None)])
def test_the_longer_a_job_is_to_have_all_its_systems_the_more_spares_it_holds(asked, stated):
    """At 7 days until a failed system is back; 95 % is what the catalog says."""

    def points(availability):
        document = filling()
        document["overrides"] = {"defaults/repair_s/value": {"value": "7 d", "note": "far away"}}
        job = next(w for w in document["workloads"] if w["kind"] == "training")
        job |= {} if availability is None else {"availability": availability}
        problem = resolve_document(document)
        return problem, find_candidates(problem).training["tune"]

    (problem, few), (_, many) = points(asked), points(stated)
    facts = problem.constants.reliability
    spares = {_chips(point): point.uses[0].spares for point in many}
    assert len(few) and all(point.uses[0].systems == -(-_chips(point) // 8) + point.uses[0].spares for point in few)
    if stated is None:
        assert all(spares[_chips(point)] == point.uses[0].spares for point in few if _chips(point) in spares)
        return
    assert all(spares[_chips(point)] > point.uses[0].spares for point in few if _chips(point) in spares)
    for chips, held in spares.items():
        assert held == spares_needed(-(-chips // 8), facts.chip_failure_s / 8, facts.repair_s, stated)


def test_a_plan_says_how_many_systems_are_spares_and_verify_holds_it_to_that():
    document = filling()
    job = next(w for w in document["workloads"] if w["kind"] == "training")
    job["availability"] = 0.999
    plan = planner.solve(document)
    (pool,) = next(w for w in plan["workloads"] if w["kind"] == "training")["points"][0]["pools"]
    assert pool["spares"] >= 1 and verify_plan(plan) == []
    pool["spares"] += 1
    assert any("spares" in str(finding) for finding in verify_plan(plan))


def _chips(point) -> int:
    (use,) = point.uses
    return math.prod(use.layout[name] for name in ("tp", "pp", "dp", "cp") if name in use.layout)


def test_users_of_each_region_are_workloads_of_their_own_with_the_same_demand_in_all():
    document = filling()
    document["workloads"][0]["origins"] = [
        {"region": "us-texas", "share": 0.25},
        {"region": "us-virginia", "share": 0.75},
    ]
    off = next(c for c in capabilities(resolve_document(document), document) if c.name == BY_ORIGIN)
    apart = resolve_document(edited(document, off.edits))
    assert {w.name for w in apart.serving} == {
        "chat in us-texas",
        "chat in us-virginia",
    } and apart.spec.sharing == "none"
    assert sum(w.spec.demand.requests_per_s for w in apart.serving) == pytest.approx(700)
    document["workloads"][0]["demand"] = {"output_tokens": "10B tokens/day"}
    apart = resolve_document(
        edited(
            document, next(c for c in capabilities(resolve_document(document), document) if c.name == BY_ORIGIN).edits
        )
    )
    assert sum(w.spec.demand.output_tokens for w in apart.serving) == pytest.approx(10e9 / 86400)


def test_all_off_is_no_better_than_any_of_them_off_and_restarts_add_up():
    document = filling()
    document["workloads"][0]["demand"]["deferral"] = "2 h"
    document["overrides"] = {"defaults/repair_s/value": {"value": "2 d", "note": "far away"}}
    problem = resolve_document(document)
    known = {c.name: c for c in capabilities(problem, document)}
    assert WAITING in known and known[ALL_OFF].even_pace
    assert (
        known[ALL_OFF].restart_s == pytest.approx(BY_HAND_S - problem.constants.reliability.recovery_s)
        and known[ALL_OFF].repair_s == known[SPARES].repair_s > 0
    )
    changed = resolve_document(edited(document, edits_without(problem, known[ALL_OFF])))
    assert changed.constants.reliability.repair_s == 2 * 86400 and changed.spec.sharing == "none"
    del document["workloads"][0]["demand"]["deferral"]
    rows = {row["capability"]: row for row in sharing(document).rows}
    assert all(rows[ALL_OFF]["value"] >= row["value"] * (1 - 2e-4) for row in rows.values())


def test_what_cannot_be_done_without_is_said():
    document = filling("2.4T")
    document["offers"][0]["supply"] = planner.solve(document)["fleet"][0]["count"]
    found = sharing(document)
    rows = {row["capability"]: row for row in found.rows}
    assert rows[VALLEYS]["status"] == "infeasible" and rows[VALLEYS]["utilisation"] is None
    assert found.words[-1].startswith("There is no plan without ") and VALLEYS in found.words[-1]


def test_without_fast_storage_a_site_that_limits_it_has_a_tenth():
    document = filling()
    document["sites"][0]["storage_bandwidth"] = "40 GB/s"
    problem = resolve_document(document)
    off = next(c for c in capabilities(problem, document) if c.name == STORAGE)
    without = resolve_document(edited(document, edits_without(problem, off)))
    assert without.sites[0].storage_bytes_per_s == pytest.approx(4e9)
    assert without.constants.reliability.chip_checkpoint_bytes_per_s == pytest.approx(
        problem.constants.reliability.chip_checkpoint_bytes_per_s / 10
    )


# -- under which load (benchmarks/sharing.py) ----------------------------------------------------------------------------


@given(st.floats(0, 2), st.floats(0, 4))
@settings(derandomize=True, deadline=None)
def test_half_as_busy_again_needs_peaks_of_twice_the_mean_and_work_that_fills_the_valleys(swing, job):
    """(p + j) / max(p, 1 + j) >= 3/2 where p >= 2 and p/2 <= j <= 2p - 3, with p = 1 + swing; for peaks that fill each other's valleys j <= 2p - 3."""
    peak = 1 + swing
    assert sum(profile(swing, 5)) == pytest.approx(24) and max(profile(swing, 5)) == pytest.approx(peak)
    alone, three = ideal_gain(swing, job, 1), ideal_gain(swing, job, 3)
    assert -1e-12 <= alone <= (peak - 1) / peak + 1e-9
    if abs(alone - 0.5) > 1e-9:
        assert (alone > 0.5) == (peak >= 2 and peak / 2 <= job <= 2 * peak - 3)
    if abs(three - 0.5) > 1e-9:
        assert (three > 0.5) == (job <= 2 * peak - 3)


def test_a_measured_gain_is_near_the_rule():
    row = measured(1.0, 1.0, 1, tokens_of_equal_work())
    assert row["ideal_gain"] == pytest.approx(0.5) and row["gain"] == pytest.approx(0.5, abs=0.15) and row["cost"] > 0.3


def test_training_is_twice_as_efficient_from_some_thousand_chips_on():
    rows = {row["chips"]: row for row in goodputs()}
    assert rows[1024]["gain, all off"] < 1 < rows[2048]["gain, all off"]
    assert rows[8192]["gain, by hand"] < 1 < rows[16384]["gain, by hand"] and rows[16384]["gain, slow storage"] < 1
