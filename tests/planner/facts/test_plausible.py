"""What is plausible gets no note but echoes: every example, and specs drawn from what people ask for."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from planner.estimate.case import resolve_case
from planner.resolve.resolver import resolve_document
from planner.spec.document import read_spec
from tests.planner.facts.base import noted, own, spec

EXAMPLES = Path(__file__).parents[3] / "examples"
DRAWN = 200

NETWORKS = {
    "Llama-3.1-8B": 131_072,
    "Qwen3-32B": 40_960,
    "DeepSeek-V3": 163_840,
    "Llama-3.1-70B": 131_072,
    "gpt-oss-120b": 131_072,
}
RENTS = {  # USD per chip and hour, as clouds quote them in 2025 and 2026
    ("DGX H100", "on_demand"): (1.9, 7.0), ("DGX H100", "reserved"): (1.5, 2.6), ("DGX H200", "on_demand"): (2.2, 8.0), ("DGX H200", "reserved"): (1.5, 2.5),
    ("DGX B200", "on_demand"): (3.5, 14.0), ("DGX B200", "reserved"): (2.5, 4.5), ("DGX A100 80GB", "on_demand"): (0.8, 3.0), ("MI300X 8x OAM node", "on_demand"): (1.5, 6.0),
}  # fmt: skip
PURCHASES = {
    "DGX H100": (260e3, 400e3),
    "DGX H200": (270e3, 420e3),
    "DGX B200": (400e3, 600e3),
    "MI300X 8x OAM node": (150e3, 250e3),
}
OWNED = {"DGX A100 80GB": (1, 6), "DGX H100": (1, 4)}  # years of age at the start of 2027
REGIONS = ("us-virginia", "us-texas", "de-frankfurt", "cn-beijing", "Singapore", "us-ohio")
CHIPS = 8


def offer(rng: random.Random) -> dict[str, Any]:
    """An offer at a price within the market, per system or per chip."""
    if rng.random() < 0.4:
        system, span = rng.choice(list(PURCHASES.items()))
        price = rng.uniform(*span)
        return {"system": system, "how": "buy", "price": rng.choice((f"{price:.0f} USD", f"${price / CHIPS:.0f}/gpu"))}
    (system, how), span = rng.choice(list(RENTS.items()))
    price = rng.uniform(*span)
    return {
        "system": system,
        "how": how,
        "price": rng.choice((f"{price * CHIPS:.4g} USD/h", f"${price:.4g}/gpu/h", f"{price:.4g} USD/GPU-hour")),
    }


def serving(rng: random.Random, name: str, regions: list[str]) -> dict[str, Any]:
    """Requests within the context of their network, at latencies that services promise."""
    network = rng.choice(list(NETWORKS))
    context = NETWORKS[network]
    first = int(10 ** rng.uniform(1.5, 4.2))
    output = int(10 ** rng.uniform(1.5, 3.3))
    found: dict[str, Any] = {
        "name": name, "kind": "serving", "architecture": network, "lengths": {"input": first, "output": output},
        "demand": rng.choice(({"requests_per_s": 10 ** rng.uniform(-1, 3)}, {"output_tokens": f"{10 ** rng.uniform(8, 12):.4g} tokens/day"})),
        "origins": [{"region": region, "share": 1 / len(regions)} for region in regions],
        "slo": {"ttft": {"p95": f"{rng.uniform(0.3, 10):.3g} s"}, "tpot": {"p95": f"{rng.uniform(8, 200):.3g} ms"}},
    }  # fmt: skip
    if rng.random() < 0.3:
        growth = int(10 ** rng.uniform(1, 3))
        most = max((context - first - output) // (growth + output), 1)
        found["session"] = {"calls": rng.randint(1, int(min(most, 60))), "growth": growth}
    elif rng.random() < 0.3:
        hidden, layers = rng.choice(((1024, 24), (1152, 27), (1280, 32), (3200, 45)))  # sizes of published encoders
        items = rng.uniform(0.1, 3)
        size = 12 * layers * hidden**2 * rng.uniform(0.6, 1.6)
        encoder = {"parameters": size, "layers": layers, "hidden": hidden, "input_tokens": 1024, "output_tokens": 256}
        found["media"] = [{"kind": "image", "items": items, "encoder": encoder}]
    if rng.random() < 0.2:
        found["speculation"] = {"draft_tokens": rng.randint(1, 5), "acceptance": rng.uniform(0.5, 0.9)}
    if rng.random() < 0.3:
        found["demand"]["profile"] = [rng.uniform(0.2, 1) for _ in range(24)]
    if rng.random() < 0.2:
        found["selling_price"] = {
            "input": f"{rng.uniform(0.05, 5):.3g} USD/1M tokens",
            "output": f"{rng.uniform(0.2, 75):.3g} USD/1M tokens",
        }
    return found


def training(rng: random.Random, name: str) -> dict[str, Any]:
    """A run of published size."""
    return {
        "name": name, "kind": "training", "architecture": rng.choice(("Llama-3.1-8B", "Llama-3.1-70B", "DeepSeek-V3")), "tokens": f"{rng.uniform(0.1, 20):.3g}T",
        "deadline": f"{rng.randint(60, 360)} d", "sequence_tokens": rng.choice((4096, 8192, 32_768)), "batch_tokens": rng.choice((2**22, 2**24)),
    }  # fmt: skip


def site(rng: random.Random, region: str) -> dict[str, Any]:
    """A site with prices of its own now and then."""
    found: dict[str, Any] = {"region": region}
    if rng.random() < 0.5:
        found["electricity_price"] = rng.choice(
            (f"{rng.uniform(0.03, 0.3):.3g} USD/kWh", f"{rng.uniform(0.3, 1.2):.3g} CNY/kWh")
        )
    if rng.random() < 0.4:
        found["pue"] = rng.uniform(1.05, 1.8)
    if rng.random() < 0.4:
        found["power"] = f"{rng.uniform(1, 500):.3g} MW"
    if rng.random() < 0.3:
        found["colocation"] = f"{rng.uniform(120, 300):.3g} USD/kW-month"
    if rng.random() < 0.3:
        battery = {"energy": "8 MWh", "power": "2 MW", "energy_price": f"{rng.uniform(80, 400):.3g} USD/kWh"}
        contract = {
            "name": "sun",
            "capacity": "5 MW",
            "price": f"{rng.uniform(25, 90):.3g} USD/MWh",
            "profile": "solar",
            "capacity_factor": rng.uniform(0.12, 0.3),
        }
        found["electricity"] = {
            "demand_charge": f"{rng.uniform(3, 25):.3g} USD/kW-month",
            "ppa": [contract],
            "battery": battery,
        }
    return found


def drawn(seed: int) -> dict[str, Any]:
    """A spec as people write them."""
    rng = random.Random(seed)
    regions = rng.sample(REGIONS, rng.randint(1, 3))
    workloads = [serving(rng, f"service {i}", regions) for i in range(rng.randint(1, 3))]
    workloads += [training(rng, "run")] * (rng.random() < 0.3)
    ways = {(found["system"], found["how"]): found for found in (offer(rng) for _ in range(rng.randint(1, 4)))}
    blocks: dict[str, Any] = {"sites": [site(rng, region) for region in regions], "offers": list(ways.values())}
    if rng.random() < 0.3:
        system, (least, most) = rng.choice(list(OWNED.items()))
        blocks["owned"] = [
            {
                "system": system,
                "region": regions[0],
                "count": rng.randint(1, 200),
                "age": f"{rng.uniform(least, most):.2f} years",
            }
        ]
    if rng.random() < 0.3:
        blocks |= {"currency": "CNY", "exchange": {"CNY": {"per_usd": rng.uniform(6.8, 7.4)}}}
    if rng.random() < 0.3:
        blocks["horizon"] = {"years": rng.randint(1, 5), "discount_rate": rng.uniform(0.03, 0.15)}
    if rng.random() < 0.2:
        change = rng.uniform(0.8, 1.25)  # around figures of an accelerator of 2023
        blocks["catalog"] = own(
            chip={"hbm_bytes_per_s": f"{3 * change:.3g} TB/s", "tdp_w": f"{600 * change:.4g} W"},
            network={"total_parameters": 8.03e9 * rng.uniform(0.97, 1.03)},
        )
        blocks["offers"].append({"system": "own system", "how": "buy", "price": "$250k"})
    return spec(*workloads, **blocks)


@pytest.mark.parametrize("block", range(10))
def test_plausible_specs_get_no_note(block):
    for seed in range(block * DRAWN // 10, (block + 1) * DRAWN // 10):
        notes, problems = noted(drawn(seed))
        assert not problems, (seed, problems)
        assert not notes, (seed, [(fact.path, fact.message.text()) for fact in notes])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_examples_get_no_note_and_an_echo_of_each_price(path):
    problem = resolve_document(read_spec(path, ()))
    odd = [fact for fact in problem.notes if not fact.is_echo and not fact.message.code.startswith("anchor.")]
    assert not [
        (fact.path, fact.message.text()) for fact in odd
    ]  # published rates are held against the models, not against the example
    stated = {f"offers[{i}].price" for i, offer in enumerate(problem.spec.offers or ()) if offer.price is not None}
    assert stated <= {fact.path for fact in problem.notes}


@pytest.mark.parametrize("path", sorted((EXAMPLES / "cases").glob("*.json")), ids=lambda path: path.stem)
def test_cases_get_no_note(path):
    assert not resolve_case(json.loads(path.read_text("utf-8"))).notes
