"""`flopwatt kv-tiers`: the choice equals enumeration by `estimate`, tiers earn what they state, and what is refused."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from catalog.lookup import shipped_catalog
from models.economics import annuity
from planner.cli.main import main
from planner.design.kv_tiers import kv_tiers
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INFEASIBLE, INVALID, LIMIT
from planner.spec.schema import kv_tiers_schema
from tests.conftest import ALL_CASES
from tests.planner.limited import after

EXAMPLE = json.loads(
    (Path(__file__).parents[3] / "examples" / "kv_tiers" / "llama_70b_sessions.json").read_text(encoding="utf-8")
)
CASES = 100 if ALL_CASES else 3
DEFAULTS = {
    name: shipped_catalog().get("defaults", name).value("value")
    for name in ("discount_rate", "residual_5y", "maintenance_fraction")
}
YEAR_S = 365.0 * 86400.0


def drawn(seed: int) -> dict:
    """Draw a small case: two or three tiers, at most 12 combinations."""
    rng = np.random.default_rng(seed)
    prompt = int(rng.choice([2000, 6000, 12000]))
    tiers = [
        {"name": "dram", "sizes": [f"{rng.choice([0.25, 0.5, 1])} TB"], "bandwidth": f"{rng.choice([20, 200])} GB/s", "price": f"{rng.choice([1, 4, 40, 400])} USD/GB"},
        {"name": "cxl", "sizes": ["16 TB"], "shared_by": int(rng.choice([4, 64])), "bandwidth": "50 GB/s", "pool_bandwidth": f"{rng.choice([0.2, 1.6])} TB/s", "price": "6 USD/GB"},
        {"name": "nvme", "sizes": ["4 TB", "16 TB"], "bandwidth": f"{rng.choice([1, 6, 24])} GB/s", "latency": "200 us", "price": f"{rng.choice([0.1, 1, 20])} USD/GB", "power_per_tb": "5 W"},
    ]  # fmt: skip
    kept = [tiers[i] for i in sorted(rng.choice(3, 2, replace=False))]
    reuse = {"requests": float(rng.choice([3, 12])), "gap": f"{rng.choice([20, 300])} s"}
    if rng.random() < 0.5:
        reuse = {"prefixes": float(rng.choice([200, 5000])), "zipf": 0.9}
    block = {
        "prefix_tokens": int(prompt * rng.choice([0.5, 0.95])), "reuse": reuse, "tiers": kept, "price": "300000 USD",
        "electricity": "0.1 USD/kWh", "pue": 1.2,
    }  # fmt: skip
    block |= {"hbm": ["80 GB"]} if rng.random() < 0.5 else {}
    block |= {"demand": float(rng.choice([10, 60]))} if rng.random() < 0.5 else {}
    return {
        "workload": {
            "kind": "serving", "architecture": "Llama-3.1-8B", "lengths": {"input": prompt, "output": 200}, "precision": ["fp8"],
            "slo": {"ttft": {"p95": "3 s"}}, "disaggregation": "never",
        },
        "system": "DGX H100", "chips": 8, "layout": {"tp": 1}, "kv_tiers": block,
    }  # fmt: skip


def money(text: str) -> float:
    return float(text.split()[0])


def terabytes(text: str) -> float:
    return float(text.split()[0])


def held_per_s(price: float) -> float:
    yearly = float(annuity(price, DEFAULTS["discount_rate"], 5, DEFAULTS["residual_5y"]))
    return (yearly + DEFAULTS["maintenance_fraction"] * price) / YEAR_S


def enumerated(document: dict) -> float:
    """Least cost per million tokens over all combinations, each by `estimate` alone and priced here."""
    block = document["kv_tiers"]
    hbm = [0.0, *(terabytes(size) / 1000 for size in block.get("hbm", []))]
    choices = [
        [0.0, *(terabytes(size) / tier.get("shared_by", 1) for size in tier["sizes"])] for tier in block["tiers"]
    ]
    best = math.inf
    for sizes in itertools.product(hbm, *choices):
        tiers, added = [], 0.0
        if sizes[0]:
            tiers.append({"name": "hbm", "capacity": f"{sizes[0]:.9g} TB"})
        for tier, size in zip(block["tiers"], sizes[1:], strict=True):
            if not size:
                continue
            shared = tier.get("shared_by", 1)
            seen = size * (shared if "prefixes" in block["reuse"] else 1)
            rate = terabytes(tier["bandwidth"]) / 1000
            if "pool_bandwidth" in tier:
                rate = min(rate, terabytes(tier["pool_bandwidth"]) / shared)
            tiers.append(
                {
                    "name": tier["name"],
                    "capacity": f"{seen:.9g} TB",
                    "bandwidth": f"{rate:.9g} TB/s",
                    "latency": tier.get("latency", "0 s"),
                }
            )
            watts = float(tier.get("power_per_tb", "0 W").split()[0]) * size
            added += held_per_s(money(tier["price"]) * size * 1000) + watts * 1.2 * 0.1 / 3.6e6
        workload = dict(document["workload"])
        if tiers:
            workload["cache"] = {"prefix_tokens": block["prefix_tokens"], "reuse": block["reuse"], "tiers": tiers}
        found = estimate(
            {**{k: v for k, v in document.items() if k != "kv_tiers"}, "workload": workload, "load": "max"}
        ).answer
        if found is None:
            continue
        share = 1.0 / found["chips_used"] * 8
        assert share == 1.0
        each = held_per_s(300000) + added + found["it_power_w"] * 1.2 * 0.1 / 3.6e6
        rate, systems = found["requests_per_s"], 1.0
        if demand := block.get("demand"):
            systems, rate = math.ceil(demand / rate - 1e-9), demand
        best = min(best, systems * each / (rate * 200) * 1e6)
    return best


@pytest.mark.parametrize("seed", range(CASES))
def test_the_choice_equals_enumeration(seed):
    document = drawn(seed)
    found = kv_tiers(document)
    assert found["chosen"]["cost_per_million_tokens"] == pytest.approx(enumerated(document), rel=1e-6)
    assert found["evaluated"] <= found["combinations"] + 2


@pytest.fixture(scope="module")
def answer() -> dict:
    return kv_tiers(EXAMPLE)


def test_a_tier_earns_what_a_case_without_it_costs_more(answer):
    """The other sizes are chosen again; with them as they are a tier seems to be worth at least as much."""
    cost = answer["chosen"]["cost_per_million_tokens"]
    rows = {row["tier"]: row for row in answer["tiers"] if row["size_bytes"]}
    assert rows, "the case chooses tiers"
    for name, row in rows.items():
        fewer = copy.deepcopy(EXAMPLE)
        fewer["kv_tiers"]["tiers"] = [tier for tier in fewer["kv_tiers"]["tiers"] if tier["name"] != name]
        again = kv_tiers(fewer)["chosen"]["cost_per_million_tokens"]
        assert row["earns_per_million_tokens"] == pytest.approx(again - cost, rel=1e-9)
        assert row["earns_with_others_as_chosen"] >= row["earns_per_million_tokens"] * (1 - 1e-9)
        assert f"{again / cost - 1:.1%} more" in row["words"]
    assert max(row["earns_with_others_as_chosen"] / row["earns_per_million_tokens"] for row in rows.values()) > 2


def test_tiers_earn_what_they_state(answer):
    chosen = answer["chosen"]
    for row in answer["tiers"]:
        if row["size_bytes"]:
            assert row["earns_per_million_tokens"] >= -1e-9 and "without it" in row["words"]
            assert row["costs_per_million_tokens"] >= 0
        else:
            assert row["earns_per_million_tokens"] == pytest.approx(0.0) and "not worth" in row["words"]
        assert row["largest_costs_more"] is None or row["largest_costs_more"] >= -1e-9
    assert sum(hit["hit_rate"] for hit in chosen["hits"]) == pytest.approx(chosen["hit_rate"])
    assert (
        chosen["cost_per_million_tokens"]
        <= answer["hbm_only"]["cost_per_million_tokens"]
        <= answer["without"]["cost_per_million_tokens"]
    )


def test_the_claims_of_the_brief_can_be_stated_and_answered(answer):
    assert 0.6 <= answer["chosen"]["hit_rate"] <= 0.95  # 60 to 90 % are claimed
    assert 1.0 < answer["throughput_factor"] < 10.0  # 10 times HBM only is not reached here


def test_a_dear_tier_is_left_out():
    document = copy.deepcopy(EXAMPLE)
    document["kv_tiers"]["tiers"] = [{**document["kv_tiers"]["tiers"][0], "price": "4000 USD/GB"}]
    found = kv_tiers(document)
    assert found["chosen"]["sizes_bytes"]["dram"] == 0.0
    assert "not worth" in next(row["words"] for row in found["tiers"] if row["tier"] == "dram")


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_every_format(form, tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(drawn(1)))
    assert main(["kv-tiers", str(path), "--format", form]) == 0
    assert "tier" in capsys.readouterr().out


def test_exit_codes_and_places(tmp_path, capsys):
    path = tmp_path / "case.json"
    tight = drawn(0)
    tight["workload"]["slo"] = {"tpot": {"p95": "1 us"}}
    path.write_text(json.dumps(tight))
    assert main(["kv-tiers", str(path)]) == INFEASIBLE
    path.write_text(json.dumps({**drawn(0), "chips": 16}))
    assert main(["kv-tiers", str(path)]) == INVALID
    assert "chips" in capsys.readouterr().err
    document = drawn(0)
    document["workload"]["cache"] = {"prefix_tokens": 5, "hit_rate": 0.5}
    with pytest.raises(SpecError, match=r"workload\.cache"):
        kv_tiers(document)
    document = drawn(0)
    document["kv_tiers"]["tiers"].reverse()
    with pytest.raises(SpecError, match="in the order"):
        kv_tiers(document)


def test_the_schema_accepts_the_example():
    Draft202012Validator(kv_tiers_schema()).validate(EXAMPLE)


@pytest.mark.parametrize("looks", [4, 9, 14])
def test_at_a_limit_the_best_so_far_is_given_with_what_the_others_cost_at_least(looks):
    document = drawn(1)
    document["kv_tiers"]["tiers"][0]["sizes"] = ["0.25 TB", "0.5 TB", "0.75 TB", "1 TB"]
    document["kv_tiers"]["hbm"] = ["40 GB", "80 GB", "120 GB"]
    whole, found = kv_tiers(document), kv_tiers(document, limits=after(looks))
    assert (whole["status"], whole["ended_by"], whole["not_tried"]) == ("optimal", "search", 0)
    assert (found["status"], found["ended_by"]) == ("limit", "time") and 0 < found["not_tried"] < found["combinations"]
    best, reached = (each["chosen"]["cost_per_million_tokens"] for each in (whole, found))
    assert reached >= best * (1 - 1e-9)
    words = found["not_tried_words"]
    least = float(words.partition("at least ")[2].split()[0])
    assert least <= best * (1 + 1e-3), "no combination costs less than is said of those that were not tried"
    assert f"{found['not_tried']:,} of {found['combinations']:,}" in words and "--time-limit" in words


def test_the_choice_among_very_many_combinations_ends_and_exits_with_the_code_of_a_limit(tmp_path, capsys):
    document = copy.deepcopy(EXAMPLE)
    for tier in document["kv_tiers"]["tiers"]:
        tier["sizes"] = [f"{0.5 + 0.5 * i} TB" for i in range(12)]
    document["kv_tiers"]["hbm"] = [f"{10 * i} GB" for i in range(1, 13)]
    path = tmp_path / "case.json"
    path.write_text(json.dumps(document))
    assert main(["kv-tiers", str(path), "--time-limit", "1 s", "--format", "json"]) == LIMIT
    found = capsys.readouterr()
    answer = json.loads(found.out)
    assert answer["combinations"] == 13 ** (1 + len(document["kv_tiers"]["tiers"])) > answer["not_tried"] > 0
    assert answer["chosen"] is not None and "combinations of sizes were not tried" in found.err
    assert main(["kv-tiers", str(path), "--time-limit", "1 ns"]) == LIMIT
    assert main(["kv-tiers", str(path), "--memory", "1 MB"]) == LIMIT
    assert "--memory" in capsys.readouterr().err
