"""What must hold of the plan of any small question: it survives its file, and it moves the right way or not at all."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import planner
from planner.plan import parse_plan
from planner.verify.plan import verify_plan
from tests.conftest import ALL_CASES

GAP = 1e-6
BOTH_GAPS = 1 + 2.1 * GAP  # either plan may be dearer than the best by its gap
few = settings(
    max_examples=12 if ALL_CASES else 2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

BOUGHT = {"system": "DGX H100", "how": "buy", "price": "310000 USD"}
RENTED = {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "55 USD/h"}
RESERVED = {"system": "MI300X 8x OAM node", "how": "reserved", "price": "21 USD/h"}
REGIONS = ("us-virginia", "us-texas", "us-oregon")


@st.composite
def questions(
    draw, training: bool | None = None, offers: tuple[dict, ...] = (BOUGHT, RENTED, RESERVED)
) -> dict[str, Any]:
    """One serving workload and perhaps a training job, on one or two sites, with some of the offers."""
    regions = draw(st.lists(st.sampled_from(REGIONS), min_size=1, max_size=2, unique=True))
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B",
        "demand": {"requests_per_s": draw(st.integers(5, 20_000))},
        "lengths": {"input": draw(st.integers(100, 3000)), "output": draw(st.integers(50, 600))},
        "origins": [{"region": "us-california", "share": 0.25}, {"region": "us-virginia", "share": 0.75}],
        "slo": {"ttft": {"p95": f"{draw(st.integers(300, 3000))} ms"}, "tpot": {"p95": f"{draw(st.integers(10, 80))} ms"}},
        "precision": ["bf16"], "disaggregation": "never",
    }  # fmt: skip
    tune = {
        "name": "tune", "kind": "training", "architecture": "Llama-3.2-1B",
        "tokens": f"{draw(st.integers(1, 600))}B", "deadline": f"{draw(st.integers(3, 60))} d",
    }  # fmt: skip
    with_training = draw(st.booleans()) if training is None else training
    return {
        "name": "drawn",
        "workloads": [chat, tune] if with_training else [chat],
        "sites": [{"region": region} for region in regions],
        "offers": copy.deepcopy(
            draw(st.lists(st.sampled_from(offers), min_size=1, max_size=len(offers), unique_by=str))
        ),
        "simplicity": {"within": 0},
        "solver": {"gap": GAP, "replicas": "divisible"},  # whole ones seldom come so near to the bound
    }


def solve(spec: dict[str, Any]):
    plan = planner.solve(copy.deepcopy(spec))
    assert plan.status in ("optimal", "infeasible"), plan.status
    return plan


def cost(spec: dict[str, Any]) -> float:
    """Least cost, infinite where nothing fits."""
    plan = solve(spec)
    return plan.objective["value"] if plan.has_answer else math.inf


def fleet(plan) -> dict[tuple, int]:
    return {
        (row["site"], row["system"], row["how"], row["window"], row["topology"]): row["count"] for row in plan["fleet"]
    }


@few
@given(questions())
def test_a_plan_survives_its_file(spec):
    plan = solve(spec)
    again = parse_plan(plan.to_json())
    assert again.document == json.loads(json.dumps(plan.document)) == plan.document
    assert verify_plan(again) == []
    assert again.to_json() == plan.to_json()


@few
@given(
    questions(training=True),
    st.sampled_from(["power", "supply", "budget", "capital", "carbon"]),
    st.floats(0.7, 1.0),
    st.floats(1.01, 2.0),
)
def test_a_wider_limit_never_costs_more(spec, limit, tight, wider):
    """The limit is set about where the plan without it stands, then widened."""
    free = solve(spec)
    assume(free.has_answer)

    def limited(factor: float) -> dict[str, Any]:
        result = copy.deepcopy(spec)
        if limit == "power":
            peaks = {
                site["region"]: max(
                    (row["own_power_w"] for row in free["schedule"] if row["site"] == site["region"]), default=0.0
                )
                for site in spec["sites"]
            }
            for site in result["sites"]:
                site["power"] = f"{max(peaks[site['region']], 1e4) * factor:.6f} W"
        elif limit == "supply":
            for offer in result["offers"]:
                most = max((row["count"] for row in free["fleet"] if row["system"] == offer["system"]), default=0)
                offer["supply"] = math.floor(most * factor)
        else:
            used = {
                "budget": free["totals"]["cost"],
                "capital": 310_000 * sum(row["count"] for row in free["fleet"]),
                "carbon": free["totals"]["carbon_kg"],
            }
            result["limits"] = {limit: f"{used[limit] * factor:.6f} {'kg' if limit == 'carbon' else 'USD'}"}
        return result

    least, narrow, wide = free.objective["value"], cost(limited(tight)), cost(limited(tight * wider))
    assert wide <= narrow * BOTH_GAPS
    assert least <= wide * BOTH_GAPS


@few
@given(questions(training=False), st.sampled_from(["ttft", "tpot"]), st.floats(1.05, 3.0))
def test_a_looser_latency_limit_never_costs_more(spec, metric, looser):
    looser_spec = copy.deepcopy(spec)
    slo = looser_spec["workloads"][0]["slo"]
    slo[metric]["p95"] = f"{float(slo[metric]['p95'].removesuffix(' ms')) * looser:.3f} ms"
    assert cost(looser_spec) <= cost(spec) * BOTH_GAPS


@few
@given(questions(training=True, offers=(BOUGHT,)), st.integers(2, 60))
def test_a_later_deadline_never_costs_more(spec, days):
    later = copy.deepcopy(spec)
    job = later["workloads"][1]
    job["deadline"] = f"{int(job['deadline'].removesuffix(' d')) + days} d"
    assert cost(later) <= cost(spec) * BOTH_GAPS


@few
@given(questions(), st.floats(0.01, 200.0))
def test_the_currency_does_not_matter(spec, per_usd):
    """The same question with its answer in a currency of another size."""
    dollars = solve(spec)
    assume(dollars.has_answer)
    euros = solve({**spec, "currency": "EUR", "exchange": {"EUR": {"per_usd": per_usd}}})
    assert euros.objective["unit"] == "EUR"
    assert math.isclose(euros.objective["value"], dollars.objective["value"] * per_usd, rel_tol=2 * GAP)
    for component, amount in dollars["costs"].items():
        assert math.isclose(
            euros["costs"][component], amount * per_usd, rel_tol=1e-3, abs_tol=1e-4 * euros.objective["value"]
        )
    assert {key[:3] for key in fleet(euros)} == {key[:3] for key in fleet(dollars)}


@few
@given(questions(), st.randoms(use_true_random=False))
def test_the_order_of_a_spec_does_not_matter(spec, random):
    shuffled = copy.deepcopy(spec)
    for name in ("offers", "sites", "workloads"):
        random.shuffle(shuffled[name])
    for workload in shuffled["workloads"]:
        random.shuffle(workload.get("origins", []))
    for workload in (*spec["workloads"], *shuffled["workloads"]):
        if workload["kind"] == "serving":
            workload["weights_from"] = "us-texas"  # the first origin where it is left out
    assert math.isclose(cost(spec), cost(shuffled), rel_tol=2 * GAP)


@few
@given(questions(), st.floats(1.02, 3.0))
def test_a_dearer_offer_of_the_same_thing_changes_nothing(spec, dearer):
    plan = solve(spec)
    assume(plan.has_answer)
    amount, unit = spec["offers"][0]["price"].split(" ")
    worse = {**spec["offers"][0], "price": f"{float(amount) * dearer:.6f} {unit}"}
    after = solve({**spec, "offers": [*spec["offers"], worse]})
    assert math.isclose(after.objective["value"], plan.objective["value"], rel_tol=2 * GAP)
    assert all(row["offer"] != f"offers[{len(spec['offers'])}]" for row in after["fleet"])


FIGURES = {
    "chips/H100 SXM5 80GB/hbm_bytes_per_s": "2.9 TB/s",
    "chips/H100 SXM5 80GB/bf16_flop_per_s": "900 TFLOP/s",
    "chips/H100 SXM5 80GB/hbm_bytes": "79 GB",
    "chips/H100 SXM5 80GB/embodied_carbon_kg": "150 kg",
    "systems/DGX H100/power_w": "9.5 kW",
    "systems/DGX H100/nic_bytes_per_s": "48 GB/s",
    "regions/us-virginia/pue": 1.21,
    "regions/us-virginia/construction_cost": "12 USD/W",
    "fabrics/InfiniBand NDR/switch_price": "40000 USD",
    "architectures/Llama-3.2-1B/layers": 17,
    "defaults/discount_rate/value": 0.06,
    "defaults/system_life_s/value": "4 year",
}


@few
@given(st.sets(st.sampled_from(sorted(FIGURES)), min_size=1, max_size=4))
def test_every_overridden_figure_is_listed(tiny, paths):
    overrides = {path: {"value": FIGURES[path], "note": f"because of {path}"} for path in paths}
    plan = solve(tiny(overrides=overrides))
    listed = {row["path"]: row for row in plan["assumptions"]}
    recorded = {row["path"]: row for row in plan["provenance"]}
    for path in paths:
        assert listed[path]["reason"] == f"because of {path}"
        assert recorded[path]["kind"] == "override"
    assert verify_plan(plan) == []
