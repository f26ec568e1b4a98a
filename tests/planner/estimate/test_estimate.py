"""`flopwatt estimate`: what it answers for training and serving cases, what it refuses, and its exit codes."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from catalog.lookup import shipped_catalog
from models.serving import constants as serving_constants
from models.statistics.intervals import TIERS as ERROR_TIERS
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.answer import estimate, sections
from planner.estimate.case import resolve_case
from planner.estimate.serving_configuration import CONCURRENCY, MAX, RATE, Load, load_of
from planner.spec import workloads as spec

CASES = sorted((Path(__file__).parents[3] / "examples" / "cases").glob("*.json"))
WORKLOAD = {
    "kind": "serving",
    "architecture": "Qwen3-30B-A3B",
    "lengths": {"input": 2000, "output": 300},
    "precision": ["bf16"],
}
CASE = {"workload": WORKLOAD, "system": "DGX H100", "chips": 16}
TIGHT = {"ttft": {"p95": "1 s"}, "tpot": {"p95": "30 ms"}}
TIERS = [{"name": "hbm", "capacity": "40 GB"}, {"name": "dram", "capacity": "1 TB", "bandwidth": "200 GB/s"}]
SESSIONS = {"prefix_tokens": 1500, "reuse": {"requests": 6, "gap": "60 s"}, "tiers": TIERS}


def case(workload: dict | None = None, **changes) -> dict:
    found = copy.deepcopy({**CASE, **changes})
    found["workload"] |= workload or {}
    return found


def answer(workload: dict | None = None, **changes) -> dict:
    found = estimate(case(workload, **changes))
    assert found.answer is not None, found.reason
    return found.answer


def numbers(value):
    if isinstance(value, dict):
        return itertools.chain.from_iterable(map(numbers, value.values()))
    if isinstance(value, list):
        return itertools.chain.from_iterable(map(numbers, value))
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_example_is_answered(path, capsys):
    assert main(["estimate", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == json.loads(path.read_text())["workload"]["kind"]
    assert all(heading and rows for heading, rows in sections(found))
    assert all(map(math.isfinite, numbers(found)))


@pytest.mark.parametrize(
    ("form", "mark"), [("table", "\nPools\n"), ("md", "## Pools\n\n| role |"), ("csv", "mode,precision,requests/s")]
)
def test_it_is_printed_in_every_form(form, mark, capsys):
    path = next(path for path in CASES if "cache" in path.stem)
    assert main(["estimate", str(path), "--format", form]) == 0
    assert mark in capsys.readouterr().out


def test_the_engines_of_a_spec_are_those_of_the_models():
    assert spec.ENGINES == serving_constants.ENGINES
    figure = "constants/serving.host_vllm/value"
    slower = {
        figure: {
            "value": 5 * shipped_catalog().get("constants", "serving.host_vllm").value("value"),
            "note": "for a test",
        }
    }

    def tpot_s(engine: str, overrides: dict) -> float:
        found = answer(
            {"disaggregation": "never", "engine": engine},
            layout={"tp": 4},
            load={"requests_per_s": 3},
            overrides=overrides,
        )
        return found["latency_s"]["tpot"]["mean"]

    assert tpot_s("vllm", slower) > tpot_s("vllm", {})
    assert tpot_s("sglang", slower) == tpot_s("sglang", {})


def test_a_training_case_states_its_interval_and_a_breakdown_that_adds_up():
    path = next(path for path in CASES if path.stem == "gpt3_a100")
    found = estimate(json.loads(path.read_text())).answer
    low, high = found["interval_80"]["step_s"]
    assert low < found["step_s"] < high and 0 < found["mfu"] < 1 and 0.5 < found["goodput"] <= 1
    assert sum(found["breakdown_s"].values()) == pytest.approx(found["step_s"])
    assert found["run_s"] == pytest.approx(300e9 / found["tokens_per_s"] / found["goodput"])
    assert found["memory_bytes"] <= found["hbm_bytes"]


@pytest.mark.parametrize("mode", ["never", "always"])
@pytest.mark.parametrize("load", ["max", {"requests_per_s": 5}, {"concurrency": 64}], ids=["max", "rate", "clients"])
def test_the_parts_of_an_answer_agree(mode, load):
    found = answer({"disaggregation": mode, "slo": {"ttft": {"p95": "20 s"}}}, load=load)
    latency = found["latency_s"]
    for row in latency.values():
        assert row["p50"] <= row["p90"] <= row["p95"] <= row["p99"]
    assert latency["e2e"]["mean"] == pytest.approx(latency["ttft"]["mean"] + 299 * latency["tpot"]["mean"])
    assert found["tokens_per_s"] == pytest.approx(300 * found["requests_per_s"])
    assert found["tokens_per_s_per_chip"] * found["chips_used"] == pytest.approx(found["tokens_per_s"])
    assert found["chips_used"] <= 16 and found["memory_bytes"] < found["hbm_bytes"]
    fall = found["waterfall"]
    waits = sum(found["waits_s"].values()) / 299
    assert (
        sum(row["added_s"] for row in fall)
        == pytest.approx(fall[-1]["reached_s"])
        == pytest.approx(latency["tpot"]["mean"] + waits)
    )
    assert found["slo"][0]["slack_s"] == pytest.approx(20 - latency["ttft"]["p95"])


def test_intervals_come_from_the_calibration_of_serving(tmp_path):
    bands = {"ttft": (0.5, 2.0), "tpot": (0.8, 1.25), "throughput": (0.7, 1.4)}
    note = {"unit": "1", "note": "for a test"}
    figures = {
        f"{tier}_{metric}_{side}": {"value": bound * (1.1 if tier == "new_generation" and side == "high" else 1), **note}
        for tier in ERROR_TIERS for metric, pair in bands.items() for side, bound in zip(("low", "high"), pair)
    }  # fmt: skip
    chip = {name: {"value": value, "note": "for a test"} for name, value in {
        "bf16_flop_per_s": "500 TFLOP/s", "hbm_bytes": "80 GB", "hbm_bytes_per_s": "2 TB/s", "scaleup_bytes_per_s": "300 GB/s", "scaleup_chips": "8 chips",
        "tdp_w": "500 W",
    }.items()}  # fmt: skip
    (tmp_path / "bands.json").write_text(json.dumps({
        "constants": [
            {"name": "serving_interval", "figures": figures},
            {"name": "serving_seen", "figures": {"chip H100 SXM5 80GB": {"value": 1, **note}}},
        ],
        "chips": [{"name": "Chip of tomorrow", "figures": chip}],
        "systems": [{"name": "Node of tomorrow", "text": {"chip": "Chip of tomorrow"}, "figures": {"chips": {"value": "8 chips", "note": "for a test"}}}],
    }))  # fmt: skip
    plain = case({"disaggregation": "never"}, layout={"tp": 4}, load={"requests_per_s": 3})
    for system, tier, factor in (("DGX H100", "new_source", 1.0), ("Node of tomorrow", "new_generation", 1.1)):
        found = estimate({**plain, "system": system, "chips": 8}, [tmp_path]).answer
        mean, bounds = {metric: row["mean"] for metric, row in found["latency_s"].items()}, found["interval_80"]
        assert found["tier"] == tier
        # Times to the first token widen with the load, at 3 requests/s by 4e-5.
        assert bounds["ttft"]["mean"] == pytest.approx([0.5 * mean["ttft"], 2.0 * factor * mean["ttft"]], rel=1e-3)
        assert bounds["ttft"]["mean"][1] > 2.0 * factor * mean["ttft"]
        assert bounds["tpot"]["p99"] == pytest.approx(
            [0.8 * found["latency_s"]["tpot"]["p99"], 1.25 * factor * found["latency_s"]["tpot"]["p99"]]
        )
        assert bounds["tokens_per_s"] == pytest.approx([0.7 * 900, 1.4 * factor * 900])
        assert bounds["e2e"]["p95"][0] < found["latency_s"]["e2e"]["p95"] < bounds["e2e"]["p95"][1]
        assert " to " in dict(sections(found))["Latencies"][0]["80 % of runs, mean"]


def test_speculation_tells_its_gain_by_batch():
    found = answer({"disaggregation": "never", "speculation": {"draft_tokens": 3, "acceptance": 0.8}}, layout={"tp": 4})
    told = found["speculation"]
    assert told["tokens_per_step"] == pytest.approx(1 + 0.8 + 0.8**2 + 0.8**3)
    assert [row["batch"] for row in told["by_batch"]][:3] == [1, 4, 16] and all(
        0 < row["speedup"] < 4 for row in told["by_batch"]
    )
    assert answer({"disaggregation": "never"})["speculation"] is None


def test_what_a_cache_costs_and_is_worth_is_told():
    priced = copy.deepcopy(SESSIONS)
    priced["tiers"][1]["price"] = "8000 USD"
    found = answer({"disaggregation": "never", "cache": priced})
    assert found["tiers"]["tiers"][1]["price"] == {"per_system": 8000, "systems": 2, "total": 16000, "currency": "USD"}
    assert "16,000 USD" in str(sections(found))
    plain, cached = answer({"disaggregation": "never"}), answer({"disaggregation": "never", "cache": SESSIONS})
    assert cached["tiers"]["without"]["requests_per_s"] == pytest.approx(plain["requests_per_s"])


def test_the_load_is_carried_just_so():
    assert answer(load={"requests_per_s": 5})["requests_per_s"] == pytest.approx(5, rel=1e-6)
    for mode in ("never", "always"):
        found = answer({"disaggregation": mode}, load={"concurrency": 64})
        assert found["requests_per_s"] * found["latency_s"]["e2e"]["mean"] == pytest.approx(
            64, rel=1e-3
        )  # Little's law
    demand = {"demand": {"output_tokens": "3000 tokens/s"}}
    assert answer(demand)["requests_per_s"] == pytest.approx(10)
    assert answer(demand, load={"requests_per_s": 5})["requests_per_s"] == pytest.approx(5)


@pytest.mark.parametrize("load", [{"requests_per_s": 5}, {"concurrency": 64}, {"concurrency": 5_000}], ids=str)
@pytest.mark.parametrize("mode", ["never", "always"])
def test_the_time_to_first_token_is_split_into_parts(mode, load):
    found = answer({"disaggregation": mode}, load=load)
    parts, ttft = {row["part"]: row for row in found["first_token"]}, found["latency_s"]["ttft"]
    assert sum(row["mean_s"] for row in parts.values()) == pytest.approx(ttft["mean"])
    assert sum(row["share"] for row in parts.values()) == pytest.approx(1.0)
    assert all(row["mean_s"] >= -1e-3 * ttft["mean"] for row in parts.values())
    assert parts["wait for the prompts before it"]["mean_s"] == found["waits_s"]["prefill"]
    assert ttft["p50"] < ttft["p90"] < ttft["p95"] < ttft["p99"]


def test_own_measurements_reach_a_closed_loop(tmp_path):
    cited = {"unit": "1", "source": ["OWN"], "confidence": "B", "kind": "calibrated"}
    factors = {"tpot": 1.3, "ttft": 1.5, "throughput": 0.7}
    figures = {f"vllm|H100 SXM5 80GB|bf16|{label}": {"value": value, **cited} for label, value in factors.items()}
    document = {
        "sources": {"OWN": {"title": "own", "date": None, "confidence": "B"}},
        "constants": [{"name": "serving_anchor", "figures": figures}],
    }
    (tmp_path / "serving.json").write_text(json.dumps(document), encoding="utf-8")
    asked = case({"engine": "vllm", "disaggregation": "never"}, load={"concurrency": 64}, layout={"tp": 2})
    plain, own = (estimate(asked, overlays).answer for overlays in ((), (tmp_path,)))
    assert own["latency_s"]["tpot"]["mean"] == pytest.approx(1.3 * plain["latency_s"]["tpot"]["mean"])
    assert own["latency_s"]["ttft"]["p95"] == pytest.approx(1.5 * plain["latency_s"]["ttft"]["p95"])
    assert own["requests_per_s"] == pytest.approx(0.7 * plain["requests_per_s"])


def test_more_clients_than_run_at_once_wait_outside():
    few, many = (answer({"disaggregation": "never"}, load={"concurrency": n}) for n in (5_000, 200_000))
    assert many["waits_s"]["slot"] > few["waits_s"]["slot"] >= 0 and many["requests_per_s"] == pytest.approx(
        few["requests_per_s"], rel=0.1
    )
    assert many["requests_per_s"] * many["latency_s"]["e2e"]["mean"] == pytest.approx(200_000, rel=1e-3)


def test_the_most_is_what_the_limits_allow():
    loose, tight = answer(), answer({"slo": TIGHT})
    assert tight["meets_slo"] and tight["requests_per_s"] < loose["requests_per_s"]
    binding = min(row["slack_s"] / row["limit_s"] for row in tight["slo"])
    assert 0 <= binding < 0.05  # a little more would break a limit


def test_the_best_layout_does_no_less_than_any_stated_one():
    best = answer({"disaggregation": "never", "slo": TIGHT})
    for layout in ({"tp": 1}, {"tp": 2}, {"tp": 4}, {"tp": 8}, {"dp": 4}, {"tp": 2, "dp": 4}):
        stated = answer({"disaggregation": "never", "slo": TIGHT}, layout=layout)
        assert stated["requests_per_s"] <= best["requests_per_s"] * (1 + 1e-9), layout
        assert stated["pools"][0]["layout"]["tp"] == layout.get("tp", 1)


def test_the_load_is_read_in_its_order():
    assert load_of(resolve_case(case(load="max"))) == Load(MAX)
    assert load_of(resolve_case(case(load={"concurrency": 3}))) == Load(CONCURRENCY, 3)
    assert load_of(resolve_case(case({"demand": {"requests_per_s": 2}}))) == Load(RATE, 2)
    assert load_of(resolve_case(case({"demand": {"requests_per_s": 2}}, load="max"))) == Load(MAX)
    assert load_of(resolve_case(case())) == Load(MAX)


def test_separate_pools_are_compared_with_one_on_the_same_chips():
    found = answer({"slo": TIGHT})
    both = found["disaggregation"]
    assert found["requests_per_s"] == max(both["aggregated"]["requests_per_s"], both["disaggregated"]["requests_per_s"])
    assert both["pays"] == (both["disaggregated"]["requests_per_s"] > 1.01 * both["aggregated"]["requests_per_s"])
    assert both["answer"].startswith("it pays" if both["pays"] else "it ")
    for rate in (both["aggregated"]["requests_per_s"], both["disaggregated"]["requests_per_s"]):
        assert f"{rate:.3g}" in both["answer"]
    assert answer({"disaggregation": "never"})["disaggregation"]["pays"] is None


def test_stated_pools_are_kept():
    pools = {"prefill": {"layout": {"tp": 2}, "workers": 3}, "decode": {"layout": {"tp": 4}, "workers": 2}}
    found = answer(pools=pools, load={"requests_per_s": 2})
    assert [(p["role"], p["layout"]["tp"], p["workers"], p["chips"]) for p in found["pools"]] == [
        ("prefill", 2, 3, 6),
        ("decode", 4, 2, 8),
    ]
    assert found["mode"] == "disaggregated" and found["chips_used"] == 14


def test_pools_may_stand_on_different_systems():
    pools = {"prefill": {"chips": 8}, "decode": {"system": "DGX H200", "chips": 8}}
    found = answer(pools=pools)
    assert [pool["system"] for pool in found["pools"]] == ["DGX H100", "DGX H200"]
    assert found["hbm_bytes"] > 140e9 and found["disaggregation"]["pays"] is None


def test_a_cache_saves_prefill_and_tells_what_each_tier_does():
    plain, cached = answer({"disaggregation": "never"}), answer({"disaggregation": "never", "cache": SESSIONS})
    assert plain["tiers"] is None and cached["requests_per_s"] > plain["requests_per_s"]
    tiers = cached["tiers"]
    assert [row["tier"] for row in tiers["tiers"]] == ["hbm", "dram"]
    assert (
        tiers["hit_rate"] == pytest.approx(sum(row["hit_rate"] for row in tiers["tiers"]))
        and 0 < tiers["hit_rate"] <= 5 / 6
    )
    assert tiers["computed_share"] == pytest.approx(
        1 - 0.75 * sum(row["hit_rate"] * row["loaded_share"] for row in tiers["tiers"])
    )
    slow = copy.deepcopy(SESSIONS)
    slow["tiers"][1]["bandwidth"] = "10 MB/s"
    row = answer({"disaggregation": "never", "cache": slow})["tiers"]["tiers"][1]
    assert row["decision"] == "compute again" and row["load_s"] > row["recompute_s"]


def test_a_given_hit_rate_of_zero_and_drafts_that_fail():
    plain = answer({"disaggregation": "never"}, layout={"tp": 4}, load={"requests_per_s": 3})
    zero = answer(
        {"disaggregation": "never", "cache": {"prefix_tokens": 1000, "hit_rate": 0}},
        layout={"tp": 4},
        load={"requests_per_s": 3},
    )
    assert zero["latency_s"]["ttft"] == pytest.approx(plain["latency_s"]["ttft"], rel=1e-6)
    good, bad = (
        answer(
            {"disaggregation": "never", "speculation": {"draft_tokens": 2, "acceptance": a}},
            layout={"tp": 4},
            load={"requests_per_s": 3},
        )
        for a in (0.9, 0)
    )
    assert good["latency_s"]["tpot"]["mean"] < plain["latency_s"]["tpot"]["mean"] < bad["latency_s"]["tpot"]["mean"]


def test_prefill_and_decode_counts_agree_with_a_plain_search():
    facts = resolve_case(case({"slo": TIGHT}))
    found = search_one_pool(facts, Load(MAX), None)
    assert found.points >= found.fitting >= found.meeting > 0
    assert search_one_pool(facts, Load(RATE, 1e6), None).best is None


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"system": "DGX H1000"}, ["system"]),
        ({"layout": {"tq": 2}}, ["layout.tq"]),
        ({"layout": {"tp": 3}}, ["layout"]),
        ({"layout": {"tp": 8, "pp": 4}}, ["layout"]),
        ({"layout": {"tp": 0}}, ["layout.tp"]),
        ({"load": "most"}, ["load"]),
        ({"load": {"requests_per_s": 1, "concurrency": 2}}, ["load"]),
        ({"load": {"clients": 2}}, ["load.clients"]),
        ({"pools": {"decode": {"chips": 8}}}, ["pools"]),
        ({"pools": {"prefill": {"chips": 8}, "decode": {"chips": 16}}}, ["pools"]),
        ({"pools": "best", "layout": {"tp": 2}}, ["pools"]),
        ({"workload": {**WORKLOAD, "disaggregation": "always"}, "layout": {"tp": 2}}, ["layout"]),
        ({"pools": {"prefill": {"system": "DGX H1000", "chips": 8}, "decode": {"chips": 8}}}, ["pools.prefill.system"]),
        ({"workload": {**WORKLOAD, "cache": {"prefix_tokens": 2000, "hit_rate": 0.5}}}, ["workload.cache"]),
        ({"workload": {**WORKLOAD, "cache": {"prefix_tokens": 20}}}, ["workload.cache"]),
        ({"workload": {**WORKLOAD, "cache": {**SESSIONS, "tiers": TIERS[::-1]}}}, ["workload.cache.tiers"]),
        ({"workload": {**WORKLOAD, "cache": {**SESSIONS, "tiers": [{"name": "dram", "capacity": "1 TB"}]}}}, ["workload.cache.tiers"]),
        ({"workload": {**WORKLOAD, "cache": {**SESSIONS, "reuse": {"prefixes": 5}}}}, ["workload.cache.reuse"]),
        ({"workload": {**WORKLOAD, "speculation": {"draft_tokens": 0, "acceptance": 2}}}, ["workload.speculation.acceptance", "workload.speculation.draft_tokens"]),
        ({"workload": {**WORKLOAD, "architecture": "Qwen3-30B-A4B", "slo": {"ttft": {"p95": "1 GB"}}}, "system": "DGX H1000"}, ["system", "workload.architecture", "workload.slo.ttft.p95"]),
    ],
)  # fmt: skip
def test_a_wrong_case_is_told_with_every_place(change, paths):
    with pytest.raises(SpecError) as error:
        estimate({**CASE, **change})
    assert [problem.path for problem in error.value.problems] == paths


def test_the_schema_of_a_case_accepts_what_the_parser_does(capsys):
    assert main(["schema", "case"]) == 0
    validator = Draft202012Validator(json.loads(capsys.readouterr().out))
    fine = [json.loads(path.read_text()) for path in CASES]
    fine += [case(load="max", pools="best"), case({"cache": SESSIONS}, load={"concurrency": 3}), case(layout={"tp": 2})]
    for document in fine:
        assert not list(validator.iter_errors(document))
        resolve_case(document)
    for wrong in (
        case(load="most"),
        case(layuot={"tp": 2}),
        case({"cache": {"prefix_tokens": "many", "hit_rate": 0.5}}),
    ):
        assert list(validator.iter_errors(wrong))
        with pytest.raises(SpecError):
            resolve_case(wrong)


def test_close_names_are_told():
    with pytest.raises(SpecError, match="DGX H100"):
        estimate({**CASE, "system": "DGX H1000"})


def test_exit_codes(tmp_path, capsys):
    def run(document) -> int:
        path = tmp_path / "case.json"
        path.write_text(json.dumps(document))
        return main(["estimate", str(path), "--format", "json"])

    assert run(CASE) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "serving"
    assert run(case({"architecture": "DeepSeek-V3", "precision": ["bf16"]}, chips=8)) == 4
    assert "memory" in capsys.readouterr().err
    assert run(case(load={"requests_per_s": 1e6})) == 4
    assert "load" in capsys.readouterr().err
    assert run(case({"slo": {"tpot": {"mean": "1 us"}}})) == 4
    assert "limits" in capsys.readouterr().err
    assert run(case(chips=12)) == 3
    assert main(["estimate", str(tmp_path / "absent.json")]) == 2
