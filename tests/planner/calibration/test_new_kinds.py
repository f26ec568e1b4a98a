"""Check that kinds of networks are a level of the intervals: they are left out, listed as seen, and a run of another kind has a tier of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.lookup import shipped_catalog
from models.statistics.intervals import TIERS
from planner.calibration import fit
from planner.calibration.anchors import anchor_cases
from planner.calibration.fit import LEAVE_OUT, LEAVE_OUT_OF_TIER, seen_figures, tier_of_case
from planner.calibration.levels import missed_by_tier
from planner.problem.intervals import kind_of_network, seen_kinds
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger

CATALOG = shipped_catalog()
CASES = anchor_cases(CATALOG)[0]
KINDS = {
    "Llama-3.3-70B-Instruct": "dense", "Mixtral-8x7B-v0.1": "experts", "DeepSeek-V3": "latent attention", "Qwen3-Next-80B-A3B": "linear attention",
    "Nemotron-H-56B-Base-8K": "state space",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_network_has_a_kind(name, kind):
    assert kind_of_network(shape_of(CATALOG.get("architectures", name), Ledger(CATALOG))) == kind


def test_tiers_and_leave_outs_go_together():
    assert tuple(LEAVE_OUT_OF_TIER) == TIERS and set(LEAVE_OUT_OF_TIER.values()) <= set(LEAVE_OUT)


def test_the_fitted_kinds_are_listed_with_their_rows():
    figures = seen_figures(CASES, "OWN")
    fitted = sum(case.row.grade in ("A", "B") for case in CASES)
    assert figures["network latent attention"]["note"] == f"{fitted} rows"
    assert {"dense", "experts", "latent attention"} <= seen_kinds(CATALOG, "serving") & seen_kinds(CATALOG, "training")


def test_a_row_of_another_kind_is_of_a_tier_of_its_own(monkeypatch):
    near = next(case for case in CASES if case.chip == "H100 SXM5 80GB")
    assert tier_of_case(near, CATALOG) in ("known", "new_source")
    monkeypatch.setattr(fit, "seen_kinds", lambda catalog, model: frozenset({"dense"}))
    assert tier_of_case(near, CATALOG) == "new_kind"
    assert tier_of_case(replace(near, chip="chip of tomorrow"), CATALOG) == "new_generation"


def test_errors_of_a_kind_left_out_are_collected_with_one_vote_a_group():
    size = len(CASES)
    left_out = {by: np.zeros(size) for by in LEAVE_OUT_OF_TIER.values()}
    missed = missed_by_tier(CASES, left_out)["new_kind", "throughput"]
    assert set(missed.groups) == {"latent attention"} and len(set(missed.votes)) == len(missed)
