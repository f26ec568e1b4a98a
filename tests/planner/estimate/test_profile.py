"""Profiles of cases: they agree with plans and with `estimate`, their parts add up, and what they call impossible is."""

import copy
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from catalog.lookup import shipped_catalog
from planner.dashboard import running
from planner.dashboard.running import Settings
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.estimate.case import best_layouts
from planner.estimate.profile.cases import points_at_work
from planner.estimate.profile.pooled import on_front
from planner.estimate.profile.profile import profile
from planner.evaluate.serving import BATCHES
from planner.messages import languages, named
from planner.report.charts.interactivity import interactivity_chart
from planner.report.charts.roofline import roofline_chart
from planner.report.charts.running import gap_chart, layouts_chart, memory_chart
from planner.report.locale import Words

CATALOG = shipped_catalog()
TINY = json.loads((Path(__file__).parents[1] / "dashboard" / "tiny.json").read_text())
SERVING = {
    "workload": {
        "kind": "serving",
        "architecture": "Llama-3.3-70B-Instruct",
        "lengths": {"input": 1200, "output": 300},
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}},
        "precision": ["fp8"],
        "disaggregation": "never",
        "memory_utilisation": 0.85,
    },
    "system": "DGX H100",
    "chips": 8,
    "load": "max",
}
TRAINING = {
    "workload": {
        "name": "job",
        "kind": "training",
        "architecture": "Qwen3-32B",
        "tokens": "100B",
        "deadline": "60 d",
        "batch_tokens": "1048576",
    },
    "system": "DGX H100",
    "chips": 64,
    "topology": "provider",
}
CHARTS = (interactivity_chart, roofline_chart, gap_chart, memory_chart, layouts_chart)


@pytest.fixture(scope="module")
def plan():
    """A plan with two pools, one pool on a part of a system, and training."""
    spec = copy.deepcopy(TINY)
    (chat,) = spec["workloads"]
    spec["workloads"] = [
        {**chat, "disaggregation": "always"},
        {**chat, "name": "whole", "demand": {"requests_per_s": 5}},
        {**TRAINING["workload"], "architecture": "llama-3.1-8b", "tokens": "2B", "deadline": "30 d"},
    ]
    spec["solver"] = {"gap": 0.05, "replicas": "divisible"}
    return planner.solve(spec)


@pytest.fixture(scope="module")
def profiles():
    return {"serving": profile(SERVING, CATALOG), "training": profile(TRAINING, CATALOG)}


def test_points_of_a_plan_are_found_again(plan):
    rows = {point["id"]: (w, point) for w in plan["workloads"] for point in w["points"]}
    found = {at.id: at for at in points_at_work(plan, CATALOG)}
    assert set(found) == set(rows)
    kinds = {(w["kind"], len(point["pools"])): name for name, (w, point) in rows.items()}
    assert set(kinds) == {("serving", 1), ("serving", 2), ("training", 1)}
    for name in kinds.values():
        workload, point = rows[name]
        at = profile(found[name].case, CATALOG, found[name].away_s)["at"]
        if workload["kind"] == "training":
            assert at["step_s"] == pytest.approx(point["time_s"]["step"], rel=1e-9)
            assert at["step_80"] == pytest.approx(point["interval_80"]["step"], rel=1e-9)
            continue
        assert at["user"] == pytest.approx(1 / point["latency_s"]["tpot.p95"], rel=1e-6)
        assert at["user_80"] == pytest.approx([1 / s for s in reversed(point["interval_80"]["tpot.p95"])], rel=1e-6)
        chips = sum(int(p["workers"]) * np.prod([p["layout"][n] for n in ("tp", "pp", "dp")]) for p in point["pools"])
        output = next(w for w in plan["spec"]["workloads"] if w["name"] == workload["name"])["lengths"]["output"]
        assert at["chip"] == pytest.approx(point["capacity"] * output / chips, rel=1e-6)
        assert at["meets_slo"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_the_front_is_what_no_other_point_beats(points):
    x, y = (np.array(axis, float) for axis in zip(*points, strict=True))
    kept = {points[i] for i in np.flatnonzero(on_front(x, y))}
    best = {p for p in points if not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in points)}
    assert kept == best


POOLED = {
    **SERVING,
    "workload": {
        **SERVING["workload"],
        "disaggregation": "allowed",
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "30 ms"}},
    },
    "chips": 32,
}


def test_pooled_points_are_those_of_estimates_and_the_point_at_work_is_not_above_the_front():
    found = profile(POOLED, CATALOG)
    columns, at = found["points"], found["at"]
    assert at["mode"] == "disaggregated"  # so that a front of one pool alone would be below it
    reached = [chip for user, chip in zip(columns["user"], columns["chip"], strict=True) if user >= at["user"]]
    alone = profile({**POOLED, "workload": {**POOLED["workload"], "disaggregation": "never"}}, CATALOG)["points"]
    below = [chip for user, chip in zip(alone["user"], alone["chip"], strict=True) if user >= at["user"]]
    assert max(below) < at["chip"] <= max(reached)
    rows = [i for i, layout in enumerate(columns["layout"]) if " + " in layout]
    assert any(columns["front"][i] for i in rows) and any(not columns["meets"][i] for i in rows)
    for i in rows[:: len(rows) // 5]:
        sides = [side.split("×") for side in columns["layout"][i].split("+")]
        pools = {
            name: {"workers": int(count), "layout": {n: int(v) for n, v in re.findall(r"([a-z]+)(\d+)", sizes)}}
            for name, (count, sizes) in zip(("prefill", "decode"), sides, strict=True)
        }
        chips = sum(
            pool["workers"] * math.prod(pool["layout"][n] for n in pool["layout"] if n != "ep")
            for pool in pools.values()
        )
        assert chips <= POOLED["chips"]
        load = {"requests_per_s": columns["chip"][i] * chips / 300 * (1 - 1e-6)}
        answer = estimate({**POOLED, "pools": pools, "load": load}).answer
        assert answer["tokens_per_s_per_chip"] == pytest.approx(columns["chip"][i], rel=1e-3)
        assert 1 / answer["latency_s"]["tpot"]["p95"] == pytest.approx(columns["user"][i], rel=1e-2)
        assert answer["meets_slo"] or not columns["meets"][i]


def test_points_within_the_limits_are_those_that_an_estimate_finds(profiles):
    columns = profiles["serving"]["points"]
    good = [chip for chip, meets in zip(columns["chip"], columns["meets"], strict=True) if meets]
    assert all(user >= 1 / 0.06 for user, meets in zip(columns["user"], columns["meets"], strict=True) if meets)
    best = estimate(SERVING).answer
    finer = BATCHES[best["batch"] < BATCHES].min() / BATCHES[best["batch"] >= BATCHES].max()
    assert max(good) <= best["tokens_per_s_per_chip"] * (1 + 1e-9) <= max(good) * finer  # it tries batches between
    for i in range(0, len(columns["user"]), 120):
        sizes = {name: int(size) for name, size in re.findall(r"([a-z]+)(\d+)", columns["layout"][i])}
        rate = columns["chip"][i] / 300 * 8
        answer = estimate({**SERVING, "layout": sizes, "load": {"requests_per_s": rate * 0.999999}}).answer
        assert answer["tokens_per_s_per_chip"] == pytest.approx(columns["chip"][i], rel=1e-3)
        assert 1 / answer["latency_s"]["tpot"]["p95"] == pytest.approx(columns["user"][i], rel=1e-2)


def test_time_and_memory_add_up(profiles):
    for kind, found in profiles.items():
        rows = found["waterfall"]
        assert all(b["reached_s"] == pytest.approx(a["reached_s"] + b["added_s"], abs=1e-8) for a, b in pairwise(rows))
        sizes = sum(row["bytes"] for row in found["memory"])
        if kind == "training":
            at = found["at"]
            assert rows[-1]["reached_s"] == pytest.approx(at["step_s"])
            assert rows[0]["added_s"] == pytest.approx(at["mfu"] * at["step_s"])
            assert all(row["added_s"] > 0 for row in rows)
            assert sizes == pytest.approx(at["hbm_bytes"])
        else:
            assert sizes == pytest.approx(85.02e9)


def test_operators_stand_on_or_under_the_roof(profiles):
    for found in profiles.values():
        roof = found["roof"]
        for row in found["operators"]:
            assert row["flop_per_s"] <= roof["flop_per_s"] * (1 + 1e-9)
            assert row["flop_per_s"] <= row["flop_per_byte"] * roof["bytes_per_s"] * (1 + 1e-9)
            if row["flop_per_byte"] < 0.4 * roof["ridge_flop_per_byte"]:
                assert row["bound"] == "memory"
        for phase in {row["phase"] for row in found["operators"]}:
            assert sum(row["share"] for row in found["operators"] if row["phase"] == phase) == pytest.approx(1)


def test_cells_of_the_map_run_as_estimated_or_cannot(profiles):
    cells = {(cell["tp"], cell["pp"]): cell for cell in profiles["serving"]["layouts"]}
    assert {reason for cell in cells.values() if (reason := cell["why_not"])} > {"tp x pp is more than the 8 chips"}
    for (tp, pp), cell in list(cells.items())[::3]:
        case = {**SERVING, "layout": {"tp": tp, "pp": pp}}
        if cell["seconds"] is None:
            try:
                assert estimate(case).answer is None
            except SpecError:
                continue
        else:
            best = estimate(case).answer["tokens_per_s_per_chip"]
            finer = BATCHES[cell["batch"] < BATCHES].min() / cell["batch"]  # the estimate tries batches between
            assert cell["tokens_per_s_per_chip"] <= best * (1 + 1e-9) <= cell["tokens_per_s_per_chip"] * finer
    steps = profiles["training"]["layouts"]
    rows, _ = best_layouts(TRAINING, (), 1)
    able = [cell for cell in steps if cell["seconds"] is not None]
    assert min(cell["seconds"] for cell in able) == pytest.approx(rows[0]["step_s"], rel=1e-9)
    for cell in steps:
        if cell["seconds"] is None:
            assert cell["why_not"]
    assert any(cell["why_not"].startswith("against a rule: tp") for cell in steps)


@pytest.mark.parametrize("language", languages())
def test_charts_hold_what_the_profile_states(profiles, language):
    t, drawn = Words(language), {}
    for kind, found in profiles.items():
        for make in CHARTS[1:] if kind == "training" else CHARTS:
            drawn[kind, make] = make(found, t).to_dict()
            assert not re.search(r"NaN|Infinity", json.dumps(drawn[kind, make]))
            assert not re.search(r"\d[eE]\+\d", drawn[kind, make]["description"])
    datasets = drawn["serving", interactivity_chart]["datasets"]
    points = [row for rows in datasets.values() for row in rows if "batch" in row]
    assert len(points) >= len(profiles["serving"]["points"]["user"])
    cells = [row for rows in drawn["training", layouts_chart]["datasets"].values() for row in rows]
    assert {(row["tp"], row["pp"]) for row in cells} == {(c["tp"], c["pp"]) for c in profiles["training"]["layouts"]}
    if language != "en":
        reasons = {cell["why_not"] for found in profiles.values() for cell in found["layouts"]} - {""}
        causes = {row["cause"] for found in profiles.values() for row in found["waterfall"]}
        operators = {row["operator"] for found in profiles.values() for row in found["operators"]}
        parts = {named("part", text) for text in causes | operators}
        assert not {text for text in reasons | parts if not t.knows(text)}


def test_the_sizes_at_work_are_framed(profiles):
    pooled = profile(POOLED, CATALOG)
    for found in (*profiles.values(), pooled):
        rows = [row for rows in layouts_chart(found, Words()).to_dict()["datasets"].values() for row in rows]
        framed = {(row["tp"], row["pp"]) for row in rows if "use" in row}
        assert framed == {(each["tp"], each["pp"]) for each in found["at"]["layouts"]} and framed
    uses = [
        row["use"]
        for rows in layouts_chart(pooled, Words()).to_dict()["datasets"].values()
        for row in rows
        if "use" in row
    ]
    assert "prefill" in ", ".join(uses) and "decode" in ", ".join(uses)


def test_a_profile_of_what_does_not_fit_says_so():
    large = copy.deepcopy(SERVING)
    large["workload"]["architecture"] = "DeepSeek-V3"
    found = profile(large, CATALOG)
    assert found["at"] is None and "fits" in found["reason"] and not found["points"]["user"]
    assert interactivity_chart(found, Words()) is None and layouts_chart(found, Words()) is not None
    beyond = profile({**SERVING, "load": {"requests_per_s": 1e5}}, CATALOG)
    assert beyond["at"] is None and "beyond all" in beyond["reason"] and beyond["points"]["user"]
    assert interactivity_chart(beyond, Words()) is not None and gap_chart(beyond, Words()) is None
    with pytest.raises(SpecError, match="precision"):
        profile({**TRAINING, "workload": {**TRAINING["workload"], "precision": ["fp4"]}}, CATALOG)


def test_choices_change_a_case_and_drop_layouts_that_no_longer_suit(plan):
    at = next(at for at in points_at_work(plan, CATALOG) if at.workload == "whole")
    settings = Settings.of(at.case)
    assert running.changed(at.case, settings) == at.case
    longer = running.changed(at.case, Settings(settings.system, settings.chips, "fp8", (4000, 300), "max", 0.0))
    assert longer["layout"] == at.case["layout"] and longer["workload"]["lengths"]["input"] == 4000
    assert longer["load"] == "max"
    other = running.changed(at.case, Settings("DGX H200", 8, "fp8", settings.lengths, "concurrency", 20.0))
    assert "layout" not in other and other["system"] == "DGX H200" and other["load"] == {"concurrency": 20}
    assert profile(other, CATALOG)["at"] is not None
    job = running.changed(TRAINING, Settings("DGX H100", 64, "bf16", (8192, 2_097_152)))
    assert job["workload"]["sequence_tokens"] == 8192 and job["workload"]["batch_tokens"] == "2097152"
    assert running.precisions(CATALOG, "DGX H100")[:1] and not running.precisions(CATALOG, "no such system")
    for choice in running.choices(plan["spec"], plan, CATALOG):
        Settings.of(choice.case)
    with pytest.raises(SpecError, match="case of serving or training"):
        running.read_case("x.json", b'{"name": "a plan"}')
