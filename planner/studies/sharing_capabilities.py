"""List the capabilities that raise the use of a shared fleet, and the edits of the spec that switch each off.

Not here: the plans without them, and their worth (`planner.studies.sharing`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from catalog.units import HOUR_S, show
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.spec.document import Edits, at
from solvers.model.data import PlanData
from solvers.model.residency import is_whole

BY_HAND_S = 4 * HOUR_S  # until somebody has restarted a run
SLOWER_STORAGE = 10.0
COPIES = 2.0  # times that a message is moved where it is copied on the way
NO_SPARES = "0.001"  # share of the time in which a job must have all its systems: none up to some thousand systems

SILOED, BY_KIND, BY_ORIGIN = (
    Message.of("studies.one_fleet").text(),
    Message.of("studies.fleet_of_kinds").text(),
    Message.of("studies.one_queue").text(),
)
VALLEYS, WAITING = (
    Message.of("studies.training_in_valleys").text(),
    Message.of("studies.waiting_for_better_hour").text(),
)
RESUMING, SPARES, STORAGE = (
    Message.of("studies.resuming_by_itself").text(),
    Message.of("studies.spare_systems").text(),
    Message.of("studies.fast_storage").text(),
)
ZERO_COPY, CACHES = (
    Message.of("studies.zero_copy_network").text(),
    Message.of("studies.kept_caches").text(),
)
PRIORITIES = Message.of("studies.waiting_by_priority").text()
ALL_OFF = Message.of("studies.all_of_these").text()


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability. `off`: what its absence means, made by `edits` of the spec and `figures` of the catalog."""

    name: str
    off: str
    edits: Edits = ()
    figures: Mapping[str, str] | None = None
    restart_s: float = 0.0  # by how much longer a job stands still after an interruption
    repair_s: float = 0.0  # by how much longer on systems of our own
    even_pace: bool = False  # jobs go on at one pace


def capabilities(problem: ResolvedSpec, document: Mapping[str, Any]) -> list[Capability]:
    """List the capabilities that a spec uses, one shared fleet first, and last all together."""
    found = [
        *_of_the_fleet(problem, document),
        *_of_the_work(problem, document),
        *_of_long_runs(problem),
        *_of_data(problem),
    ]
    together = [capability for capability in found if capability.name not in (BY_KIND, BY_ORIGIN)]
    if len(together) > 1:
        found.append(
            Capability(
                ALL_OFF,
                Message.of("studies.none_of_them").text(),
                tuple(edit for capability in together for edit in capability.edits),
                {path: value for capability in together for path, value in (capability.figures or {}).items()},
                sum(capability.restart_s for capability in together),
                sum(capability.repair_s for capability in together),
                any(capability.even_pace for capability in together),
            )
        )
    return found


def edits_without(problem: ResolvedSpec, capability: Capability) -> Edits:
    """List the edits that switch a capability off; figures are added to the overrides of the spec."""
    figures = dict(capability.figures or {})
    if capability.restart_s:
        figures["defaults/recovery_s/value"] = (
            f"{problem.constants.reliability.recovery_s + capability.restart_s:.6g} s"
        )
    if capability.repair_s:
        figures["defaults/unspared_s/value"] = f"{capability.repair_s:.6g} s"
    if not figures:
        return capability.edits
    stated = {path: override.model_dump() for path, override in problem.spec.overrides.items()}
    return (
        *capability.edits,
        (
            "overrides",
            stated
            | {
                path: {"value": value, "note": Message.of("studies.without", name=capability.name).text()}
                for path, value in figures.items()
            },
        ),
    )


def at_even_pace(data: PlanData) -> PlanData:
    """Change the program so that each job runs in all slots between start and deadline at one pace, that which just finishes it.

    A point then does the whole work in the whole time, with power and cost in proportion; a point too slow for that is unchanged. Systems are
    taken in proportion too where replicas are divisible; where they are whole, a job that goes on slowly holds all systems of its replica.
    """
    job = np.maximum(data.point_job, 0)
    allowed_s = (data.job_window_mask @ data.slot_hours_s)[job] if len(data.job_work) else np.zeros(len(job))
    needed = np.divide(
        data.job_work[job] if len(data.job_work) else 0.0, allowed_s, out=np.zeros(len(job)), where=allowed_s > 0
    )
    pace = np.divide(needed, data.point_capacity, out=np.ones(len(job)), where=data.point_capacity > 0)
    pace = np.where((data.point_job >= 0) & (pace <= 1.0), pace, 1.0)
    return replace(
        data,
        point_capacity=data.point_capacity * pace,
        point_uses_systems=data.point_uses_systems * (1.0 if is_whole(data).any() else pace[data.point_uses[:, 0]]),
        point_power_w=data.point_power_w * pace,
        point_cost={name: cost * pace[:, None] for name, cost in data.point_cost.items()},
        point_restart_s=None,
        point_storage=None if data.point_storage is None else data.point_storage * pace,
    )


def _of_the_fleet(problem: ResolvedSpec, document: Mapping[str, Any]) -> list[Capability]:
    found, several = [], len(problem.serving) + len(problem.training) > 1
    if problem.spec.sharing != "none" and several:
        found.append(Capability(SILOED, Message.of("studies.off_one_fleet").text(), (("sharing", "none"),)))
    if problem.spec.sharing == "all" and problem.serving and problem.training:
        found.append(Capability(BY_KIND, Message.of("studies.off_fleet_of_kinds").text(), (("sharing", "kind"),)))
    if (
        any(len(w.spec.origins) > 1 for w in problem.serving)
        and problem.spec.objective.workload is None
        and not problem.spec.apis
    ):
        apart = (("workloads", _by_origin(problem, document["workloads"])), ("sharing", "none"))
        found.append(Capability(BY_ORIGIN, Message.of("studies.off_one_queue").text(), apart))
    return found


def _by_origin(problem: ResolvedSpec, written: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Split each serving workload into one for each origin."""
    serving, result = {w.name: w.spec for w in problem.serving}, []
    for workload in written:
        spec = serving.get(workload["name"])
        if spec is None:
            result.append(dict(workload))
            continue
        for origin in spec.origins:
            demand = dict(workload["demand"])
            if spec.demand.requests_per_s is not None:
                demand["requests_per_s"] = spec.demand.requests_per_s * origin.share
            elif spec.demand.output_tokens is not None:
                demand["output_tokens"] = f"{spec.demand.output_tokens * origin.share:.9g} token/s"
            elif spec.demand.tasks_per_s is not None:
                demand["tasks_per_s"] = spec.demand.tasks_per_s * origin.share
            elif spec.demand.users is not None:
                demand["users"] = {**demand["users"], "count": spec.demand.users.count * origin.share}
            result.append(
                {
                    **workload,
                    "name": f"{spec.name} in {origin.region}",
                    "demand": demand,
                    "origins": [{"region": origin.region, "share": 1}],
                }
            )
    return result


def _of_the_work(problem: ResolvedSpec, document: Mapping[str, Any]) -> list[Capability]:
    found = []
    if problem.training:
        found.append(Capability(VALLEYS, Message.of("studies.off_training_in_valleys").text(), even_pace=True))
    if patient := [w for w in problem.serving if w.spec.demand.deferral]:
        at_once = {f"{w.path}.demand": dict(at(document, f"{w.path}.demand")) for w in patient}
        found.append(
            Capability(
                WAITING,
                Message.of("studies.off_waiting").text(),
                tuple(
                    (path, {key: value for key, value in demand.items() if key != "deferral"})
                    for path, demand in at_once.items()
                ),
            )
        )
    ordered = [w for w in problem.serving if len({each.priority for each in w.spec.classes or []}) > 1]
    if ordered:
        alike = tuple((f"{w.path}.classes[{i}].priority", 1) for w in ordered for i in range(len(w.spec.classes or [])))
        found.append(Capability(PRIORITIES, Message.of("studies.off_priority").text(), alike))
    return found


def _of_long_runs(problem: ResolvedSpec) -> list[Capability]:
    if not problem.training:
        return []
    facts = problem.constants.reliability
    limited = [site for site in problem.sites if math.isfinite(site.storage_bytes_per_s)]
    slow = show(facts.chip_checkpoint_bytes_per_s / SLOWER_STORAGE, "byte/s")
    broken = facts.chip_interruption_s / facts.chip_failure_s
    return [
        Capability(
            RESUMING,
            Message.of("studies.restarted_by_hand", time=show(BY_HAND_S, "s")).text(),
            restart_s=max(BY_HAND_S - facts.recovery_s, 0.0),
        ),
        Capability(
            SPARES,
            Message.of("studies.off_spare_systems", time=show(facts.repair_s, "s"), share=f"{broken:.0%}").text(),
            edits=tuple(
                (f"{job.path}.availability", float(NO_SPARES))
                for job in problem.training
                if job.spec.availability is not None
            ),
            figures={"defaults/spares_availability/value": NO_SPARES},
            repair_s=broken * facts.repair_s,
        ),
        Capability(
            STORAGE,
            Message.of(f"studies.storage_per_chip{'_limited' if limited else ''}", rate=slow).text(),
            tuple(
                (f"{site.path}.storage_bandwidth", show(site.storage_bytes_per_s / SLOWER_STORAGE, "byte/s"))
                for site in limited
            ),
            {"defaults/chip_checkpoint_bytes_per_s/value": slow},
        ),
    ]


def _of_data(problem: ResolvedSpec) -> list[Capability]:
    found = []
    if slowed := tuple(
        (f"{site.path}.network_share", site.fabric.used_share / COPIES)
        for site in problem.sites
        if site.fabric is not None
    ):
        found.append(Capability(ZERO_COPY, Message.of("studies.off_zero_copy", times=f"{COPIES:g}").text(), slowed))
    kept = [(f"{w.path}.cache", None) for w in problem.serving if w.spec.cache is not None]
    dropped = [(f"{w.path}.session.caches", ["dropped"]) for w in problem.serving if w.spec.session is not None]
    if kept or dropped:
        found.append(Capability(CACHES, Message.of("studies.off_kept_caches").text(), (*kept, *dropped)))
    return found
