"""Plan rows of the architecture choice under a quality floor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from models.arrays import Floats, sum_of
from planner.formulate.formulation import Formulation
from planner.problem.facts import QualityFacts, ResolvedSpec


def requests_by_member(problem: ResolvedSpec, form: Formulation, flow: Floats) -> dict[str, float]:
    """Add up the requests over the horizon, by serving workload of the problem."""
    found = dict.fromkeys((workload.name for workload in problem.serving), 0.0)
    for a, (w, *_) in enumerate(form.arcs):
        found[problem.serving[w].name] += float(flow[a] @ problem.calendar.seconds)
    return found


def shares(facts: QualityFacts, requests: dict[str, float]) -> dict[str, float]:
    """Compute the share of a workload's requests that each architecture answers."""
    total = sum_of(requests.get(name, 0.0) for name in facts.members.values())
    return {
        architecture: requests.get(name, 0.0) / total if total else 0.0 for architecture, name in facts.members.items()
    }


def quality_rows(
    problem: ResolvedSpec, form: Formulation, flow: Floats, after_failures: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Build one row for each workload with a floor: which architectures answer, and the quality that is reached.

    `after_failures`: serving workloads of the problem that answer when a zone has failed.
    """
    requests, rows = requests_by_member(problem, form, flow), []
    for facts in problem.quality:
        share = shares(facts, requests)
        answering = [architecture for architecture in facts.members if share[architecture] > 0] or list(facts.members)[
            :1
        ]
        part = {architecture: share[architecture] or 1.0 for architecture in answering}
        part |= {a: 0.0 for a, name in facts.members.items() if name in after_failures and a not in part}
        rows.append({
            "workload": facts.workload,
            "floor": facts.least,
            "source": facts.source,
            "mix": facts.mix,
            "reached": sum_of(facts.scores[architecture] * part[architecture] for architecture in answering) / sum_of(part.values()),
            "lowest_hour": _lowest_hour(problem, facts, form, flow),
            "architectures": [
                {"architecture": architecture, "quality": score, "share": part.get(architecture, 0.0), "name": facts.members[architecture] if architecture in part else None}
                for architecture, score in facts.scores.items()
            ],
            "runner_up": None,
        })  # fmt: skip
    return rows


def _lowest_hour(problem: ResolvedSpec, facts: QualityFacts, form: Formulation, flow: Floats) -> float:
    """Find the least mean score over the requests of one hour."""
    score = {name: facts.scores[architecture] for architecture, name in facts.members.items()}
    mine = [(a, score[name]) for a, (w, *_) in enumerate(form.arcs) if (name := problem.serving[w].name) in score]
    asked = sum_of((flow[a] for a, _ in mine), np.zeros(problem.calendar.slots))
    scored = sum_of((flow[a] * points for a, points in mine), np.zeros(problem.calendar.slots))
    return float((scored[asked > 0] / asked[asked > 0]).min()) if asked.any() else min(score.values())
