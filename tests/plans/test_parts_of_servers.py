"""Parts of a server: one GPU of a cloud for a small load, slices of a chip as a share of it, and small architectures side by side."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 3},
    "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
    "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["fp8"],
}  # fmt: skip
CHIP = "H100 SXM5 80GB"


def question(offers, *workloads, **changes):
    return {
        "name": "parts", "workloads": [copy.deepcopy(w) for w in workloads or (CHAT,)], "sites": [{"region": "us-virginia"}],
        "offers": offers, "solver": {"gap": 1e-6, "replicas": "whole"}, **changes,
    }  # fmt: skip


def sliced(compute, memory, bandwidth, chips=1):
    shares = {"compute_share": compute, "memory_share": memory, "bandwidth_share": bandwidth}
    figures = {name: {"value": share, "note": "MIG User Guide"} for name, share in shares.items()}
    figures |= {"chips": {"value": chips, "unit": "chips", "note": "one GPU"}}
    return {"name": "slice", "text": {"chip": CHIP, "form": "cloud node"}, "figures": figures}


def solved(document):
    plan = planner.solve(document)
    assert plan.has_answer and verify_plan(plan) == []
    return plan


def test_three_requests_per_second_of_an_8b_architecture_take_one_gpu():
    whole, part = (
        {"system": "AWS p5.48xlarge", "how": "reserved", "price": "55.04 USD/h"},
        {"system": "AWS p5.4xlarge", "how": "reserved", "price": "6.88 USD/h"},
    )
    plan = solved(question([whole, part]))
    assert [(row["system"], row["count"]) for row in plan["fleet"]] == [("AWS p5.4xlarge", 1)]
    assert plan.totals["chips"] == 1
    eight = solved(question([whole]))
    assert plan.totals["cost"] == pytest.approx(eight.totals["cost"] / 8)


def test_two_small_architectures_share_one_server_by_whole_replicas():
    other = CHAT | {"name": "code", "architecture": "Qwen3-8B"}
    plan = solved(question([{"system": "AWS p5.48xlarge", "how": "reserved", "price": "55.04 USD/h"}], CHAT, other))
    assert [row["count"] for row in plan["fleet"]] == [1]
    chips = {
        row["workload"]: row["replicas"] * sum(pool["systems"] for pool in row["pools"]) * 8
        for row in plan["deployments"]
    }
    assert set(chips) == {"chat", "code"} and sum(chips.values()) <= 8


def test_a_slice_has_its_shares_of_the_chip():
    whole = resolve_document(
        question([{"system": "AWS p5.4xlarge", "how": "reserved", "price": "6.88 USD/h"}])
    ).systems["AWS p5.4xlarge"]
    own = {"system": "slice", "how": "reserved", "price": "1 USD/h"}
    document = question([own], catalog={"systems": [sliced(3 / 7, 4 / 8, 0.5)]})
    mine = resolve_document(document).systems["slice"]
    assert mine.hbm_bytes == pytest.approx(whole.hbm_bytes / 2)
    assert mine.hbm_bytes_per_s == pytest.approx(whole.hbm_bytes_per_s / 2)
    assert mine.flop_per_s == pytest.approx({name: rate * 3 / 7 for name, rate in whole.flop_per_s.items()})
    assert mine.flop16_per_s == pytest.approx(whole.flop16_per_s * 3 / 7)
    assert (mine.power_w, mine.idle_w) == pytest.approx((whole.power_w / 2, whole.idle_w / 2))
    assert mine.embodied_kg == pytest.approx(whole.embodied_kg / 2)


def test_a_slice_costs_its_rent_and_serves_less_than_the_chip():
    half = sliced(3 / 7, 4 / 8, 0.5)
    own = {"system": "slice", "how": "reserved", "price": "3 USD/h"}
    part = {"system": "AWS p5.4xlarge", "how": "reserved", "price": "6.88 USD/h"}
    plan = solved(question([own, part], catalog={"systems": [half]}))
    assert [(row["system"], row["count"]) for row in plan["fleet"]] == [("slice", 1)]
    assert any(row["path"] == "systems/slice/memory_share" for row in plan["assumptions"])
    small = sliced(1 / 7, 1 / 8, 1 / 8)
    beside = solved(
        question([own | {"price": "0.01 USD/h"}, part], CHAT | {"precision": ["bf16"]}, catalog={"systems": [small]})
    )
    assert [row["system"] for row in beside["fleet"]] == ["AWS p5.4xlarge"]  # 16 GB of weights against 10.6 GB


@pytest.mark.parametrize(
    ("record", "words"), [(sliced(0.5, 0.5, 0.5, 8), "slice"), (sliced(2.0, 0.5, 0.5), "compute_share")]
)
def test_a_share_of_several_chips_or_beyond_one_is_refused(record, words):
    with pytest.raises(SpecError, match=words):
        planner.solve(
            question([{"system": "slice", "how": "reserved", "price": "3 USD/h"}], catalog={"systems": [record]})
        )
