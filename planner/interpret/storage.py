"""Storage of the sites: what jobs read and write there, the limit on it, and how long weights take to load.

The closed forms are in `models.storage`; the row of the program is in `solvers.model.storage`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog.units import show
from models.storage import load_s
from planner.candidates.points import Point
from planner.candidates.training import interruptions, storage_rates
from planner.limits.limits import Limit
from planner.problem.facts import Problem, SiteFacts, TrainingFacts
from planner.spec.document import at

if TYPE_CHECKING:
    from planner.interpret.accounts import Decisions

AMPLE = "1000000 GB/s"  # as good as no limit


def limited(problem: Problem) -> list[SiteFacts]:
    return [site for site in problem.sites if math.isfinite(site.storage_bytes_per_s)]


def rates(problem: Problem, point: Point) -> tuple[float, float]:
    """(bytes read per second, bytes of checkpoints written per second) of a job at full width; nothing of serving."""
    use = point.uses[0]
    if not isinstance(point.workload, TrainingFacts):
        return 0.0, 0.0
    return storage_rates(point.workload, use.layout, point.capacity, point.goodput, use.lot.system, use.lot.offer.spot, use.lot.site.storage_bytes_per_s, use.lot.owned, problem)


def storage_arrays(problem: Problem, points: Sequence[Point]) -> dict[str, np.ndarray]:
    """Fields of `PlanData`; none where no site's storage is limited."""
    if not limited(problem):
        return {}
    return {
        "point_storage": np.array([sum(rates(problem, point)) if math.isfinite(point.uses[0].lot.site.storage_bytes_per_s) else 0.0 for point in points]),
        "site_storage": np.array([site.storage_bytes_per_s for site in problem.sites]),
    }


def limit_name(site: SiteFacts) -> str:
    return f"storage in {site.region}"


def storage_used(decided: Decisions) -> Iterator[tuple[str, str, float, float]]:
    """(path, name, most bytes per second in any slot, limit) of each limited site."""
    problem = decided.problem
    for site in limited(problem):
        here = [p for p in decided.used if decided.form.points[p].site == site.region]
        used = sum((decided.form.data.point_storage[p] * decided.active[p] for p in here), np.zeros(problem.calendar.slots))
        yield f"{site.path}.storage_bandwidth", limit_name(site), float(used.max()), site.storage_bytes_per_s


def storage_rows(decided: Decisions, names: dict[int, str]) -> list[dict[str, Any]]:
    """Of each point at a limited site: what it reads and writes at full width, and how long one replica's weights, or a job's state, take to load."""
    problem, rows = decided.problem, []
    for p in decided.used:
        point = decided.form.points[p]
        site, job = point.uses[0].lot.site, point.workload
        if math.isfinite(site.storage_bytes_per_s) and site.api is None:
            read, written = rates(problem, point)
            size = interruptions(job, problem.constants.reliability).checkpoint_bytes if isinstance(job, TrainingFacts) else job.weights_bytes
            rows.append({
                "workload": job.name, "point": names[p], "site": site.region, "read_bytes_per_s": read, "checkpoint_bytes_per_s": written,
                "load_bytes": size, "load_s": float(load_s(size, [1.0], [site.storage_bytes_per_s])),
            })  # fmt: skip
    return rows


def storage_limits(document: Mapping[str, Any], problem: Problem) -> Iterator[Limit]:
    """In words, and how they could give way."""
    for site in limited(problem):
        path, most = f"{site.path}.storage_bandwidth", site.storage_bytes_per_s
        words = f"jobs in {site.region} may read and write at most {show(most, 'byte/s')}"
        # slower storage makes checkpoints cost more time, so the points change too
        yield Limit(path, limit_name(site), words, at(document, path), is_row=True, loose=((path, AMPLE),), unit="byte/s", amount=most)
