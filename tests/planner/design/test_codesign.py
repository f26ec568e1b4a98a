"""`flopwatt codesign`: its variants equal those that `estimate` finds one by one, and what it prints and refuses."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planner.cli.main import main
from planner.design.codesign import search
from planner.design.codesign.answer import _record, codesign
from planner.design.codesign.space import resolve_space
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INFEASIBLE, INVALID, LIMIT
from planner.spec.schema import codesign_schema
from tests.planner.limited import after

EXAMPLE = Path(__file__).parents[3] / "examples" / "codesign" / "llama_70b_five_chips.json"
CASE = {
    "workload": {
        "kind": "serving",
        "architecture": "Qwen3-30B-A3B",
        "lengths": {"input": 2000, "output": 300},
        "precision": ["bf16"],
        "disaggregation": "never",
    },
    "system": "DGX H100",
    "chips": 8,
    "codesign": {"systems": ["Atlas 800T A2"], "attention": ["mqa"], "width": [1.25], "precision": ["fp8", "int8"]},
}
CLOSE = 1e-9


@pytest.fixture(scope="module")
def example() -> dict:
    found = codesign(json.loads(EXAMPLE.read_text()))
    assert found.document is not None
    return found.document


def alone(document: dict, place: int) -> dict | None:
    """Answer one variant by `estimate`."""
    space = resolve_space(document)
    variant = space.variants[place]
    record = _record(space.shapes[variant.shape])
    facts = space.chips[variant.chip]
    case = {name: value for name, value in document.items() if name != "codesign"} | {
        "workload": {**document["workload"], "architecture": record["name"], "precision": [variant.precision]},
        "system": facts.system.name,
        "chips": facts.case.chips,
        "catalog": {"architectures": [record]},
        "load": "max",
    }
    return estimate(case).answer


def check(document: dict, rows: list[dict], place: int) -> None:
    row, found = rows[place], alone(document, place)
    assert row["runs"] == (found is not None and (found["meets_slo"] or not document["workload"].get("slo"))), row
    if found is None:
        return
    assert row["layout"] == found["pools"][0]["layout"]
    for name in (
        "requests_per_s",
        "tokens_per_s_per_chip",
        "batch",
        "memory_bytes",
        "it_power_w",
        "it_energy_j_per_token",
    ):
        assert row[name] == pytest.approx(found[name], rel=CLOSE), (name, row)
    assert row["tpot_s"] == pytest.approx(found["latency_s"]["tpot"]["mean"], rel=CLOSE)
    assert row["ttft_s"] == pytest.approx(found["latency_s"]["ttft"]["mean"], rel=CLOSE)
    assert row["chips_used"] == found["chips_used"]


def test_a_thousand_variants_on_five_chips_equal_estimate_one_by_one(example):
    rows = example["rows"]
    assert len(rows) >= 1000 and len({row["system"] for row in rows}) == 5
    document = json.loads(EXAMPLE.read_text())
    for place in range(7, len(rows), len(rows) // 8):
        check(document, rows, place)


WORKLOADS = st.fixed_dictionaries(
    {
        "architecture": st.sampled_from(["Qwen3-30B-A3B", "Llama-3.1-8B", "DeepSeek-V2-Lite (16B)"]),
        "lengths": st.fixed_dictionaries({"input": st.integers(10, 30000), "output": st.integers(2, 3000)}),
        "slo": st.sampled_from([{}, {"tpot": {"p95": "20 ms"}}, {"ttft": {"mean": "500 ms"}}, {"e2e": {"p90": "8 s"}}]),
        "cache": st.sampled_from([None, {"prefix_tokens": 5, "hit_rate": 0.5}]),
        "speculation": st.sampled_from([None, {"draft_tokens": 1, "acceptance": 0.8}]),
        "engine": st.sampled_from([None, "vllm"]),
    }
)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    workload=WORKLOADS,
    attention=st.sampled_from(["mha", "mqa", "mla", "sliding", "linear"]),
    layout=st.sampled_from([None, {"tp": 4}]),
    data=st.data(),
)
def test_drawn_cases_equal_estimate(workload, attention, layout, data):
    document = copy.deepcopy(CASE)
    document["workload"] |= {name: value for name, value in workload.items() if value is not None}
    document["codesign"] |= {"attention": [attention], "experts": [{"experts": 16, "topk": 2}]}
    document |= {"layout": layout} if layout else {}
    found = codesign(document)
    for _ in range(2):
        check(document, found.rows, data.draw(st.integers(0, len(found.rows) - 1)))


@pytest.mark.parametrize("prompt", [40, 71])
def test_prefill_that_cannot_keep_up_ends_the_batches_without_limits(prompt):
    document = copy.deepcopy(CASE)
    document["workload"] |= {"architecture": "Qwen3-30B-A3B", "lengths": {"input": prompt, "output": 3}, "slo": {}}
    document["workload"] |= {"cache": {"prefix_tokens": 5, "hit_rate": 0.5}}
    document["workload"] |= {"speculation": {"draft_tokens": 1, "acceptance": 0.8}}
    document["codesign"] |= {"attention": ["mha"], "experts": [{"experts": 16, "topk": 2}]}
    check(document, codesign(document).rows, 0)


def test_changes_are_ranked_and_compared_with_the_named_architecture(example):
    for chip in example["chips"]:
        named, by = chip["as_named"], chip["ranked_by"]
        values = [change["row"][by] for change in chip["changes"]]
        assert values == sorted(values, reverse=True)
        assert chip["helps_most"] == (chip["changes"][0] if chip["changes"] else None)
        assert all(len(change["changes"]) == 1 for change in chip["changes"])
        mine = [row for row in example["rows"] if row["system"] == chip["system"] and row["runs"]]
        if not mine:
            assert chip["best"] is None and not named["runs"]
            continue
        assert chip["best"]["row"][by] == max(row[by] for row in mine)
        if not named["runs"]:
            continue
        best = chip["best"]
        assert best["cost_factor"] == pytest.approx(
            best["row"]["cost_per_million_tokens"] / named["cost_per_million_tokens"]
        )
        saved = (named["cost_per_million_tokens"] - best["row"]["cost_per_million_tokens"]) / 1e6
        assert best["payback_s"] * saved * best["row"]["tokens_per_s"] == pytest.approx(chip["porting"])


def test_cost_is_holding_and_electricity():
    document = copy.deepcopy(CASE)
    document["codesign"] = {"systems": [{"system": "Atlas 800T A2", "price": "20 USD/h"}], "attention": [], "width": []}
    document["codesign"] |= {"electricity": "0.1 USD/kWh", "pue": 1.2}
    row = next(r for r in codesign(document).rows if r["system"] == "Atlas 800T A2" and r["runs"])
    share = row["chips_used"] / 8
    per_hour = 20 * share + row["it_power_w"] / 1000 * 1.2 * 0.1
    assert row["cost_per_million_tokens"] == pytest.approx(per_hour / (row["tokens_per_s"] * 3600) * 1e6)
    assert row["tokens_per_currency"] * row["cost_per_million_tokens"] == pytest.approx(1e6)
    assert row["tokens_per_s_per_w"] * row["it_power_w"] == pytest.approx(row["tokens_per_s"])


def test_a_chip_without_a_price_is_ranked_by_throughput():
    document = copy.deepcopy(CASE) | {"system": "Moore Threads KUAE MCCX D800"}
    chip = codesign(document).document["chips"][0]
    assert chip["price"] is None and chip["ranked_by"] == "tokens_per_s_per_chip"
    assert chip["best"]["row"]["cost_per_million_tokens"] is None


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_every_format(form, tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(CASE))
    assert main(["codesign", str(path), "--format", form, "--best", "2"]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["variants"] == len(json.loads(out)["rows"])
    elif form == "csv":
        assert len(list(csv.DictReader(io.StringIO(out)))) == 24
    else:
        assert "DGX H100: one change at a time" in out and "The best of each" not in out


@pytest.mark.parametrize(
    "change, place",
    [
        ({"codesign": {"attention": [{"kind": "mqa", "kv_heads": 2}]}}, "codesign.attention[0]"),
        ({"codesign": {"systems": ["DGX H10"]}}, "codesign.systems[0].system"),
        ({"codesign": {"systems": ["DGX H100"]}}, "codesign.systems[0].system"),
        ({"codesign": {"systems": [{"system": "DGX H200", "price": "cheap"}]}}, "codesign.systems[0].price"),
        ({"codesign": {"experts": [{"experts": 4, "topk": 8}]}}, "codesign.experts[0]"),
        ({"codesign": {"porting": [{"family": "ascend", "hours": 5}]}}, "codesign"),
        (
            {"codesign": {"porting": [{"family": "ascent", "hours": 5}], "rate": "90 USD/h"}},
            "codesign.porting[0].family",
        ),
        ({"load": {"requests_per_s": 3}}, "load"),
        ({"power_cap": 0.7}, "power_cap"),
        ({"pools": "best"}, "pools"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change, place):
    with pytest.raises(SpecError) as caught:
        codesign({**copy.deepcopy(CASE), **change})
    assert place in [problem.path for problem in caught.value.problems]


def test_exit_codes(tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(CASE | {"chips": 0}))
    assert main(["codesign", str(path)]) == INVALID
    path.write_text(json.dumps(CASE))
    assert main(["codesign", str(path), "--best", "0"]) == INVALID
    tight = copy.deepcopy(CASE)
    tight["workload"]["slo"] = {"tpot": {"p95": "10 us"}}
    path.write_text(json.dumps(tight))
    assert main(["codesign", str(path)]) == INFEASIBLE
    assert "none of them meets all limits" in capsys.readouterr().err


def test_the_schema_accepts_the_example():
    Draft202012Validator(codesign_schema()).validate(json.loads(EXAMPLE.read_text()))


# -- layouts that are stated, limits -----------------------------------------------------------------------------------


def of_layout(layout: dict, **more) -> dict:
    document = copy.deepcopy(CASE) | {"layout": layout} | more
    document["codesign"] |= {"attention": ["mqa"], "width": [], "precision": ["bf16"]}
    return document


@pytest.mark.parametrize(
    "layout, path, words",
    [
        ({"tp": 16}, "layout", "more than the 8 chips"),
        ({"tp": 16, "pp": 2}, "layout", "scale-up domain of 8 chips"),
        ({"pp": 65536}, "layout", "pp must not exceed the 48 layers"),
        ({"tp": 3}, "layout", "tp"),
        ({"dp": 8, "ep": 5}, "layout", "ep must be tp x dp"),
        ({"tp": 4, "pp": 4}, "layout", "more than the 8 chips"),
        ({"tq": 2}, "layout.tq", "unknown size"),
        ({"tp": 0}, "layout.tp", "at least 1"),
        ({"micro_batch": 1, "tp": 2}, "layout.micro_batch", "unknown size"),
    ],
)
def test_a_layout_that_no_chip_can_hold_is_refused_in_words(layout, path, words):
    with pytest.raises(SpecError) as caught:
        codesign(of_layout(layout))
    assert {problem.path for problem in caught.value.problems} == {path}
    assert all(words in problem.message for problem in caught.value.problems)
    on_chips = {name for name in ("DGX H100", "Atlas 800T A2") if name in str(caught.value)}
    assert len(on_chips) == (2 if "no engine would run it" in str(caught.value) else 0)


def test_a_layout_that_one_chip_can_hold_is_said_of_the_others():
    document = of_layout({"tp": 16, "pp": 2}, system="GB200 NVL72", chips=72)
    document["codesign"] |= {"systems": [{"system": "DGX H100", "chips": 32}], "attention": ["mha"]}
    rows = codesign(document).rows
    by_system = {name: [row for row in rows if row["system"] == name] for name in ("GB200 NVL72", "DGX H100")}
    assert any(row["runs"] for row in by_system["GB200 NVL72"])
    assert all("scale-up domain of 8" in row["why_not"] for row in by_system["DGX H100"])


def test_a_search_in_parts_finds_what_one_search_finds(monkeypatch):
    whole = codesign(CASE)
    monkeypatch.setattr(search, "PAIRS_AT_ONCE", 10)
    assert codesign(CASE).document == whole.document
    assert whole.document["ended_by"] == "search" and not whole.document["not_tried"]


def test_what_a_limit_left_out_is_counted_and_the_nearest_variants_come_first(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(search, "PAIRS_AT_ONCE", 10)
    found = codesign(CASE, limits=after(2))
    left = [row for row in found.rows if row.get("why_not") == "not tried"]
    assert found.document["ended_by"] == "time" and found.document["not_tried"] == len(left) > 0
    assert f"{len(left)} of {len(found.rows)} variants" in found.document["not_tried_words"]
    assert "7 s" in found.document["not_tried_words"] and "--time-limit" in found.document["not_tried_words"]
    assert found.document["chips"][0]["as_named"]["runs"]
    tried = [row for row in found.rows if row["runs"]]
    assert tried == [row for row in codesign(CASE).rows if row in tried]
    path = tmp_path / "case.json"
    path.write_text(json.dumps(CASE))
    assert main(["codesign", str(path), "--time-limit", "1 ns"]) == LIMIT
    assert "nothing was found: the time limit" in capsys.readouterr().err
    assert main(["codesign", str(path), "--memory", "1 MB"]) == LIMIT
    assert "nothing was found: the memory limit of 0.001 GB" in capsys.readouterr().err
    assert main(["codesign", str(path), "--memory", "much"]) == INVALID
    assert "--memory" in capsys.readouterr().err


def test_more_variants_than_an_answer_holds_are_refused_with_their_count():
    document = copy.deepcopy(CASE)
    document["codesign"] = {
        "attention": [{"kind": "gqa", "kv_heads": heads} for heads in range(1, 65)],
        "experts": [{"experts": count, "topk": 1} for count in range(1, 65)],
        "width": [0.25 + 0.05 * i for i in range(64)],
        "precision": ["bf16"],
    }
    with pytest.raises(SpecError, match=r"codesign: 274,625 variants .* at most 100,000"):
        codesign(document)
