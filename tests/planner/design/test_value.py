"""Performance per price, per cost and per watt of the systems of a spec: as plans at full load have it, and in every row."""

from __future__ import annotations

import copy
import csv
import io
import json
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.design.characterise.value import value_of_systems
from planner.spec.document import edited

SPEC: dict[str, Any] = {
    "name": "value",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 200000},
            "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "40 ms"}},
            "precision": ["fp8", "bf16"], "disaggregation": "never",
        }
    ],
    "sites": [{"region": "us-texas"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "supply": 4000},
        {"system": "DGX H200", "how": "reserved", "price": "22 USD/h"},
        {"system": "DGX H200", "how": "buy", "supply": 4000},
    ],
    "solver": {"replicas": "divisible", "gap": 1e-4},
    "simplicity": {"within": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return value_of_systems(copy.deepcopy(SPEC))


@pytest.mark.parametrize("i", range(3))
def test_a_plan_at_full_load_is_as_good_as_the_row_of_its_system(rows, i):
    """Hundreds of systems at even load, so that rounding up to whole ones is little."""
    offer = SPEC["offers"][i]
    plan = planner.solve(edited(SPEC, [("offers", [offer])]))
    (row,) = (each for each in rows if (each["system"], each["how"]) == (offer["system"], offer["how"]))
    count = sum(held["count"] for held in plan["fleet"])
    assert count > 200
    tokens = plan["totals"]["tokens"]
    assert tokens / (365 * 86400 * count) == pytest.approx(row["tokens_per_s"], rel=0.01)
    assert tokens / plan["totals"]["energy_j"] == pytest.approx(row["tokens_per_j"], rel=0.01)
    assert 1e6 / plan["workloads"][0]["cost_per_million_tokens"] == pytest.approx(row["tokens_per_cost"], rel=0.01)
    (point,) = plan["workloads"][0]["points"][:1]
    low, high = (bound / point["capacity"] for bound in point["interval_80"]["capacity"])
    assert row["interval_80"] == pytest.approx([row["tokens_per_s"] * low, row["tokens_per_s"] * high])
    assert row["tier"] == point["tier"]


def test_rows_agree_with_themselves_and_are_ranked(rows):
    assert len(rows) == 3
    assert [row["tokens_per_cost"] for row in rows] == sorted((row["tokens_per_cost"] for row in rows), reverse=True)
    for row in rows:
        assert row["tokens_per_cost"] == pytest.approx(row["tokens_per_s"] * 3600 / row["cost_per_h"])
        assert row["tokens_per_j"] == pytest.approx(row["tokens_per_s"] / row["power_w"])
        assert row["tokens_per_day"] == pytest.approx(row["tokens_per_s"] * 86400)
        if row["how"] == "buy":
            assert row["tokens_per_s_per_price"] == pytest.approx(row["tokens_per_s"] / row["price"])
        else:
            assert row["price"] is row["tokens_per_s_per_price"] is None and row["cost_per_h"] == pytest.approx(22.0)


def test_what_cannot_serve_has_a_row_and_jobs_have_rows_too():
    job = {
        "name": "job",
        "kind": "training",
        "architecture": "Llama-3.1-8B",
        "tokens": "1T tokens",
        "deadline": "200 d",
    }
    chat = {**SPEC["workloads"][0], "slo": {"tpot": {"p95": "1 us"}}}
    slow = edited(SPEC, [("workloads", [chat, job]), ("offers", SPEC["offers"][:1])])
    served, trained = value_of_systems(slow)
    assert (served["workload"], served["system"], served["how"], served["tokens_per_s"]) == (
        "chat",
        "DGX H100",
        "buy",
        None,
    )
    assert trained["workload"] == "job" and trained["tokens_per_s"] > 1e4


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_characterise_prints_it_for_a_spec(form, tmp_path, capsys):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(edited(SPEC, [("offers", SPEC["offers"][:1])])))
    assert main(["characterise", str(path), "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert [row["system"] for row in json.loads(out)["value"]] == ["DGX H100"]
    elif form == "csv":
        (row,) = csv.DictReader(io.StringIO(out))
        assert (row["system"], row["how"], row["can"]) == ("DGX H100", "buy", "True") and float(
            row["tokens_per_cost"]
        ) > 0
    else:
        assert "per price, per cost and per watt" in out and "80 % of runs" in out
