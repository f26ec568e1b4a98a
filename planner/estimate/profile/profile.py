"""Profile a case as a document of plain values, which charts and tables draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.lookup import Catalog
from planner.errors import Issue, SpecError
from planner.estimate.case import resolve_case
from planner.estimate.profile.serving import serving_profile
from planner.estimate.profile.training import training_profile
from planner.messages import Message
from planner.spec.workloads import Serving, Training


def profile(document: Mapping[str, Any], catalog: Catalog | None = None, away_s: float = 0.0) -> dict[str, Any]:
    """Profile one case of serving or training; `away_s`: the round trip to the users. Raises SpecError with all problems at once.

    `catalog`: the one with the records and overrides of the spec that the case comes from.
    """
    facts = resolve_case(document, catalog=catalog)
    workload = facts.case.workload
    if isinstance(workload, Training):
        return training_profile(facts)
    if isinstance(workload, Serving):
        return serving_profile(facts, away_s)
    raise SpecError([Issue("workload.kind", Message.of("estimate.serving_or_training").text())])
