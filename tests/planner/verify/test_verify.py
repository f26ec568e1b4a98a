"""A good plan holds; a plan with any one number or any part of it broken does not."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterable, Iterator

import pytest

import planner
import planner.verify.points.check
from planner.plan import Plan, parse_plan
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.plan import findings, verify_plan
from tests.conftest import long_run

SECTIONS = ("objective", "gap", "totals", "fleet", "workloads", "routes", "schedule", "costs", "limits")
OF_A_LIMIT = ("value", "limit", "slack")
SHARE, AMOUNT = 2e-5, 1e-6  # how far a number is bent, and by how much a zero
WHOLE_GAP = 0.03  # gap of whole replicas, and few of them, to the bound of divisible ones
SAMPLE = 200


def numbers(node, path: tuple = ()) -> Iterator[tuple]:
    """The path of every number in `node`."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, (*path, index))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


def breakable(document: dict) -> list[tuple]:
    found = [path for section in SECTIONS for path in numbers(document[section], (section,))]
    return [path for path in found if path[0] != "limits" or path[-1] in OF_A_LIMIT]


def at(document: dict, path: tuple):
    for key in path:
        document = document[key]
    return document


class Bent:
    """The document with one value changed, for the length of a `with`."""

    def __init__(self, document: dict, path: tuple, value):
        self.place, self.key, self.value = at(document, path[:-1]), path[-1], value

    def __enter__(self) -> None:
        self.kept, self.place[self.key] = self.place[self.key], self.value

    def __exit__(self, *_) -> None:
        self.place[self.key] = self.kept


def bent(value: float, sign: int) -> float:
    return value * (1 + sign * SHARE) if value else sign * AMOUNT


@pytest.fixture
def quick(monkeypatch) -> None:
    """The closed forms are pure functions of a point's row: a row that is as before is not evaluated again."""
    evaluate, known = planner.verify.points.check.evaluate_point, {}

    def remembered(problem, fleet_options, facts, row):
        key = (id(problem), json.dumps(row))
        if key not in known:
            known[key] = evaluate(problem, fleet_options, facts, row)
        return known[key]

    monkeypatch.setattr(planner.verify.points.check, "evaluate_point", remembered)


def unnoticed(document: dict, breaks: Iterable[tuple[tuple, int]]) -> list[str]:
    """Of (path, up or down), those that nobody notices. The spec stays as it is, so it is resolved once."""
    problem = resolve(parse_spec(document["spec"]))
    assert findings(problem, document) == []
    missed = []
    for path, sign in breaks:
        with Bent(document, path, bent(at(document, path), sign)):
            if not findings(problem, document):
                missed.append(f"{path} {at(document, path)}")
    assert findings(problem, document) == [], "every change was taken back"
    return missed


@pytest.fixture
def small(small_plan) -> dict:
    """A copy of the small plan, as it would be read from its file."""
    return json.loads(small_plan.to_json())


def verdict(document: dict) -> list[str]:
    return [str(finding) for finding in verify_plan(Plan(document))]


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_plan_and_its_file_hold(small_plan):
    assert small_plan.status in ("optimal", "within_gap") or small_plan["solver"]["ended_by"] == "search"
    assert small_plan.gap <= WHOLE_GAP and verify_plan(small_plan) == []
    assert verify_plan(parse_plan(small_plan.to_json())) == []


def test_every_number_of_a_small_plan_is_checked(small, quick):
    paths = breakable(small)
    assert {path[0] for path in paths} == set(SECTIONS) and len(paths) > 500
    assert unnoticed(small, itertools.product(paths, (1, -1))) == []


@long_run
def test_any_number_of_the_main_example_is_checked(main_plan, quick):
    """A few hundred of its thousands of numbers, spread over all kinds of places."""
    document = json.loads(main_plan.to_json())
    kinds: dict[tuple, list[tuple]] = {}
    for path in breakable(document):
        kinds.setdefault(tuple(key for key in path if isinstance(key, str) and "/" not in key), []).append(path)
    draw = random.Random(20270101)
    paths = [draw.choice(places) for places in kinds.values()]
    paths += draw.sample([path for path in breakable(document) if path not in paths], SAMPLE)
    assert unnoticed(document, [(path, draw.choice((1, -1))) for path in paths]) == []


@pytest.mark.parametrize("objective", [{"minimise": "carbon"}, {"maximise": "throughput"}])
def test_the_value_of_other_objectives_is_checked(tiny, objective):
    document = json.loads(planner.solve(tiny(objective=objective, limits={"budget": "1M USD"})).to_json())
    assert verdict(document) == []
    paths = [
        ("objective", "value"),
        ("gap",),
        *numbers(document["totals"], ("totals",)),
        *numbers(document["costs"], ("costs",)),
    ]
    assert unnoticed(document, itertools.product(paths, (1, -1))) == []


@pytest.mark.parametrize(
    "objective", [{"minimise": "cost", "maximise": None}, {"maximise": "throughput", "minimise": None}]
)
def test_what_an_objective_leaves_out_may_be_written_as_null(tiny, objective):
    plan = planner.solve(tiny(objective=objective, limits={"budget": "1M USD"}))
    assert plan.objective["sense"] == ("min" if objective["minimise"] else "max") and verify_plan(plan) == []


def test_verify_plan_finds_what_its_check_finds(small):
    """`unnoticed` resolves the spec only once; the whole way must come to the same verdict."""
    for path in random.Random(7).sample(breakable(small), 12):
        with Bent(small, path, bent(at(small, path), 1)):
            assert verdict(small), path


def test_a_finding_names_the_place(small):
    small["fleet"][0]["count"] += 1
    assert any("totals.chips" in line for line in verdict(small))
    small["fleet"][0]["count"] = 1.5
    assert any(line.startswith("fleet[0].count") for line in verdict(small))


@pytest.mark.parametrize("junk", [None, "x", [], {}, True, float("nan"), float("inf"), -1, 10**400])
def test_junk_in_any_place_is_a_finding_and_never_a_crash(small, junk):
    problem = resolve(parse_spec(small["spec"]))
    for path in random.Random(3).sample(breakable(small), 60):
        if at(small, path) != junk and not (junk is True and at(small, path) == pytest.approx(1.0)):
            with Bent(small, path, junk):
                assert findings(problem, small), path


# -- structure ---------------------------------------------------------------------------------------------------------


def removed(section: str, index: int = 0):
    def change(document: dict) -> None:
        del document[section][index]

    return change


def doubled(section: str):
    def change(document: dict) -> None:
        document[section].append(copy.deepcopy(document[section][0]))

    return change


def written(*path_and_value):
    def change(document: dict) -> None:
        *path, key, value = path_and_value
        at(document, tuple(path))[key] = value

    return change


def bound_beyond(document: dict) -> None:
    """A bound that the plan itself contradicts, with a gap that fits it."""
    value = document["objective"]["value"]
    document["bound"] = value * (1 + 1e-4)
    document["gap"] = abs(value - document["bound"]) / value


def bound_far(document: dict) -> None:
    """A gap wider than what was asked for, stated rightly, but called proven."""
    value = document["objective"]["value"]
    document["bound"] = value / 2
    document["gap"] = 0.5


def bound_gone(document: dict) -> None:
    document["bound"] = document["gap"] = None


def moved_to_another_phase(document: dict) -> None:
    """A job's hours moved past its deadline."""
    job = next(w for w in document["workloads"] if w["kind"] == "training")["points"][0]["id"]
    early = [row for row in document["schedule"] if job in row["active"]]
    late = [row for row in document["schedule"] if row["window"] > early[0]["window"]]
    for row, other in zip(early, late):
        other["active"][job] = row["active"].pop(job)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (removed("fleet"), ""),
        (doubled("fleet"), ""),
        (removed("workloads"), "workloads"),
        (removed("routes", 5), "serves"),
        (doubled("routes"), "serves"),
        (removed("schedule", 30), "schedule"),
        (doubled("schedule"), "schedule"),
        (removed("limits"), "limits"),
        (doubled("limits"), "limits"),
        (removed("cost_lines"), "cost_lines"),
        (removed("carbon_lines"), "carbon_lines"),
        (doubled("cost_lines"), "cost_lines"),
        (written("status", "limit"), "status"),
        (written("status", "infeasible"), "status"),
        (written("status", "splendid"), "status"),
        (written("objective", "sense", "max"), "sense"),
        (written("fleet", 0, "system", "DGX B200"), ""),
        (written("fleet", 0, "site", "us-oregon"), ""),
        (written("fleet", 0, "how", "reserved"), ""),
        (written("fleet", 0, "topology", "fat-tree"), ""),
        (written("fleet", 0, "network_size", 7), ""),
        (written("fleet", 0, "window", 0), "window"),
        (written("fleet", 0, "offer", "offers[7]"), ""),
        (written("workloads", 0, "name", "chit-chat"), "chit-chat"),
        (written("workloads", 0, "points", 0, "pools", 0, "precision", "bf16"), ""),
        (written("workloads", 0, "points", 0, "site", "us-oregon"), ""),
        (written("workloads", 0, "points", 0, "id", "chat/elsewhere/0"), ""),
        (written("workloads", 0, "slo", []), "slo"),
        (written("workloads", 0, "slo", 0, "percentile", "p50"), "slo"),
        (written("routes", 0, "site", "us-oregon"), "routes[0]"),
        (written("routes", 0, "origin", "us-oregon"), ""),
        (written("routes", 0, "slot", 47), "serves"),
        (written("routes", 0, "pool", "tune/us-virginia/0 ms"), "routes[0]"),
        (written("schedule", 0, "active", {}), ""),
        (written("costs", "tea", 0.0), "tea"),
        (written("totals", "weight", 1.0), "weight"),
        (written("limits", 0, "path", "sites[1].power"), "limits"),
        (bound_beyond, "bound"),
        (bound_far, "status"),
        (bound_gone, "bound"),
        (moved_to_another_phase, "deadline"),
    ],
)  # fmt: skip
def test_a_broken_structure_is_found(small, change, word):
    before = copy.deepcopy(small)
    change(small)
    assert small != before
    lines = verdict(small)
    assert lines and any(word in line for line in lines), lines


def test_a_system_barred_by_export_control_is_found(tiny):
    """The same plan twice: once the spec switches the rule off, once it does not."""
    spec = tiny(
        sites=[{"region": "cn-guizhou", "systems": ["DGX H100"], "electricity_price": "0.05 USD/kWh"}],
        limits={"export_control": False},
    )
    spec["workloads"][0]["origins"] = [{"region": "cn-guizhou", "share": 1}]
    document = json.loads(planner.solve(spec).to_json())
    assert document["status"] == "optimal" and verdict(document) == []
    document["spec"]["limits"]["export_control"] = True
    assert any("export control" in line for line in verdict(document))


def test_a_workload_outside_its_residency_is_found(small):
    small["spec"]["workloads"][0]["residency"] = ["us-oregon"]
    assert verdict(small)


def test_a_layout_that_does_not_fit_is_found(small):
    pool = small["workloads"][1]["points"][0]["pools"][0]
    for layout in ({"tp": 3}, {"tp": 0}, {"tp": 16}, {"dp": pool["layout"]["dp"] * 2}):
        with Bent(small, ("workloads", 1, "points", 0, "pools", 0, "layout"), {**pool["layout"], **layout}):
            assert verdict(small), layout


@pytest.mark.parametrize(
    ("limits", "word"),
    [({"budget": "90k USD"}, "budget"), ({"capital": "100k USD"}, "capital"), ({"carbon": "3 t"}, "carbon")],
)
def test_a_tighter_limit_than_the_plan_meets_is_found(small, limits, word):
    small["spec"]["limits"] = {**small["spec"]["limits"], **limits}
    assert any(word in line and "exceeds" in line for line in verdict(small))


def test_less_power_supply_or_time_than_the_plan_takes_is_found(small):
    for path, value, word in (
        (("sites", 0, "power"), "3 kW", "power"),
        (("offers", 0, "supply"), 0, "supply"),
        (("workloads", 1, "deadline"), "2 d", ""),
        (("workloads", 0, "slo", "ttft", "p95"), "100 ms", "TTFT p95"),
    ):
        with Bent(small["spec"], path, value):
            assert any(word in line for line in verdict(small)), path


# -- without an answer, and with another catalog -----------------------------------------------------------------------


def test_a_plan_without_an_answer_holds_nothing(tiny):
    document = json.loads(planner.solve(tiny(limits={"budget": "10 USD"})).to_json())
    assert document["status"] == "infeasible" and verdict(document) == []
    for change in (written("status", "optimal"), written("fleet", [{}]), written("gap", 0.1), written("routes", [{}])):
        broken = copy.deepcopy(document)
        change(broken)
        assert verdict(broken)


def test_figures_of_the_plan_stand_in_for_a_catalog_that_has_changed(tiny, tmp_path):
    """Planned with an overlay, checked without it: the digest differs, so the recorded figures are used."""
    slower = {"bandwidth": ("hbm_bytes_per_s", "2 TB/s"), "power": ("tdp_w", "650 W")}
    figures = {name: {"value": value, "note": "as if measured"} for name, value in slower.values()}
    (tmp_path / "ours.json").write_text(json.dumps({"chips": [{"name": "H100 SXM5 80GB", "figures": figures}]}))
    plan = planner.solve(tiny(), overlays=[tmp_path])
    plain = planner.solve(tiny())
    assert plan["catalog_digest"] != plain["catalog_digest"]
    assert plan["workloads"][0]["points"][0]["capacity"] != plain["workloads"][0]["points"][0]["capacity"]
    assert verify_plan(plan, overlays=[tmp_path]) == [] and verify_plan(plan) == []
    document = json.loads(plan.to_json())
    recorded = next(row for row in document["provenance"] if row["path"].endswith("hbm_bytes_per_s"))
    recorded["value"] *= 1.01
    assert verdict(document), "the recorded figure was not used"
