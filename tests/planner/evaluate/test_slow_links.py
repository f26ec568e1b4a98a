"""Tensor parallelism over the links of a host and over two nodes: evaluated with their bandwidth and latency, and slow where it was measured slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.serving.decode import ServingLayouts, communication_s
from models.serving.examples import CHIP, DENSE, SERVING
from planner.estimate.answer import estimate
from planner.evaluate.serving_layouts import broken_rules, domain_of
from planner.resolve.ledger import Ledger
from planner.resolve.systems import system_facts

CATALOG = Catalog.load()
# Bus bandwidth of an all-reduce with 2, 4 and 8 chips, GB/s (NCCL tables of ai-dynamo/aiconfigurator).
BUS_GB_S = {"AWS g6e.48xlarge": (20.1, 5.2, 1.4), "AWS g7e.48xlarge": (38.6, 26.4, 24.7)}


def answer(
    system: str, chips: int, tp: int, clients: int, architecture: str = "Llama-2-7B", precision: str = "bf16"
) -> dict:
    found = estimate({
        "workload": {
            "kind": "serving", "architecture": architecture, "lengths": {"input": 259, "output": 226}, "precision": [precision],
            "disaggregation": "never",
        },
        "system": system, "chips": chips, "layout": {"tp": tp}, "load": {"concurrency": clients}, "topology": "provider",
    })  # fmt: skip
    assert found.answer is not None, found.reason
    return found.answer


@pytest.mark.parametrize("system", BUS_GB_S)
def test_the_rate_falls_with_the_group_as_measured(system):
    record, measured = CATALOG.get("systems", system), BUS_GB_S[system]
    crowding = record.figure("host_crowding").number
    for size, rate in zip((4, 8), measured[1:], strict=True):
        assert (size / 2) ** -crowding == pytest.approx(rate / measured[0], rel=0.25)


def test_eight_chips_of_a_host_are_slower_than_four_at_load_and_pay_off_for_one_client():
    """8 L40S: 49 ms a token at 32 clients with 8 chips, slower than with 4 (vllm-project/vllm issue 3297)."""
    tpot = {tp: answer("AWS g6e.48xlarge", tp, tp, 32)["latency_s"]["tpot"]["mean"] for tp in (1, 2, 4, 8)}
    assert tpot[8] > tpot[4] and tpot[8] > tpot[1] and tpot[8] == pytest.approx(0.049, rel=0.3)
    alone = [answer("AWS g6e.48xlarge", tp, tp, 1)["tokens_per_s"] for tp in (1, 2, 4, 8)]
    assert alone == sorted(alone)


def test_chips_with_links_of_their_own_keep_their_rate():
    facts = system_facts(CATALOG.get("systems", "DGX H100"), Ledger(CATALOG))
    assert facts.host_chips == 1 and facts.rates("bf16", hosted=True) == facts.rates("bf16")
    box = system_facts(CATALOG.get("systems", "AWS g6e.48xlarge"), Ledger(CATALOG))
    assert domain_of(box) == 8 and box.scaleup_chips == 1


def test_one_request_over_two_nodes_takes_what_was_measured():
    """DeepSeek-R1 in FP8, 16-way over two H100 nodes: 23 to 31 ms (tenstorrent/tt-inference-server)."""
    case = answer("DGX H100", 16, 16, 1, "DeepSeek-R1", "fp8")
    assert 0.021 < case["latency_s"]["tpot"]["mean"] < 0.033


def test_tensor_parallelism_spans_whole_nodes_that_a_network_joins():
    facts = system_facts(CATALOG.get("systems", "DGX H100"), Ledger(CATALOG))
    wide = ServingLayouts(np.array([8, 16, 16, 12, 32]), *(np.ones(5, int),) * 3)
    broken = {networked: np.logical_or.reduce(list(broken_rules(replace(DENSE, heads=96), facts, wide, networked).values())).tolist()
              for networked in (True, False)}  # fmt: skip
    assert broken[True] == [False, False, False, True, False]
    assert broken[False] == [False, True, True, True, True]


@pytest.mark.parametrize("tokens", [1, 128, 8192])
def test_a_wider_group_never_communicates_faster(tokens):
    chip = replace(CHIP, scaleup_chips=8, scaleup_crowding=1.0, scaleout_bytes_per_s=50e9)
    for one in (chip, replace(chip, scaleup_crowding=0.0)):
        spent = [
            float(communication_s(DENSE, one, ServingLayouts(tp, 1, 1, 1), tokens, SERVING))
            for tp in (1, 2, 4, 8, 16, 32)
        ]
        assert spent == sorted(spent)
