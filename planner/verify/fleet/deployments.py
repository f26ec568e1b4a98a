"""Check that serving workers are whole, hold their weights on systems that nothing else uses at the time, and carry the load at work."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from planner.evaluate.residency import ServingPool, worker_ready_s
from planner.messages import Message
from planner.spec.requirements.redundancy import NPLUS1
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.claims.unchecked import is_whole
from planner.verify.fleet.options import HeldKey, key_at
from planner.verify.fleet.relays import check_relays, each_load
from planner.verify.points.serving import choice_of

TABLE = "deployments"
COUNT_TOL = 1e-6  # share of the workers on a system: rounding of each deployment's share


def check_deployments(plan: CheckedPlan) -> None:
    """Check the residents of every slot and the table of deployments.

    Plans with divisible replicas have neither.
    """
    _check_claim(plan)
    stated = TABLE in plan.document or any("resident" in row for row in plan.document["schedule"])
    if stated:
        _DeploymentCheck(plan).run()
    elif is_whole(plan.document) and any(_serves(plan, name) for name in plan.points):
        plan.say(TABLE, "verify.whole_replicas")


def _check_claim(plan: CheckedPlan) -> None:
    """Check that the replicas are of a kind that the spec allows."""
    asked, said = plan.problem.spec.solver.replicas, plan.document.get("replicas", "divisible")
    if said not in ("whole", "divisible") or (asked != "auto" and said != asked and plan.problem.serving):
        plan.say("replicas", "verify.replicas_against_spec", given=repr(said), asked=repr(asked))


class _DeploymentCheck:
    """The residents of a plan, by point and slot."""

    def __init__(self, plan: CheckedPlan):
        self.plan, self.calendar = plan, plan.problem.calendar
        self.slots = self.calendar.slots
        self.points: dict[str, Row] = {name: row for name, (row, _) in plan.points.items() if _serves(plan, name)}
        self.workers = {name: [[0] * self.slots for _ in row["pools"]] for name, row in self.points.items()}
        self.before = {int(after): t for t, after in enumerate(self.calendar.next)}

    def run(self) -> None:
        """Read the residents, then compare them with the replicas at work, the systems held and the table."""
        self._read()
        for name in self.points:
            self._check_work(name)
        for t in range(self.slots):
            self._check_systems(t)
        rows = [self._row(name) for name in self.points if any(map(any, self.workers[name]))]
        self.plan.equal(TABLE, self.plan.document.get(TABLE, []), rows)
        check_relays(self.plan)

    def _read(self) -> None:
        """Read `resident` of the schedule: whole workers of points at the site."""
        for i, row in enumerate(self.plan.document["schedule"]):
            for name, workers in row.get("resident", {}).items():
                path = f"schedule[{i}].resident.{name}"
                if name not in self.points or self.points[name]["site"] != row["site"]:
                    self.plan.say(path, "verify.no_point_of_site")
                elif not _are_counts(workers, len(self.points[name]["pools"])):
                    self.plan.say(path, "verify.workers_of_each_pool")
                else:
                    for mine, count in zip(self.workers[name], workers, strict=True):
                        mine[row["slot"]] = count

    def _check_work(self, name: str) -> None:
        """Compare the workers that a point's load keeps busy, or that load their weights, with those resident."""
        pools, active = self.points[name]["pools"], self.plan.active[name]
        load_s = self._load_s(name)
        for pool, resident, spares in zip(pools, self.workers[name], self._spares(name), strict=True):
            for t, replicas in enumerate(active):
                if not replicas:
                    continue
                where, needed = f"schedule slot {t}", pool["workers"]
                if resident[t] < needed + spares:
                    without = Message.of("verify.lost_with_a_system", count=str(spares)).text() if spares else ""
                    self.plan.say(
                        where,
                        "verify.too_few_workers",
                        point=name,
                        count=str(resident[t]),
                        role=pool["role"],
                        without=without,
                        needed=str(needed),
                    )
                loading = max(resident[t] - resident[self.before[t]], 0) if t in self.before else 0
                lost = loading * min(load_s / float(self.calendar.step_s[t]), 1.0)
                self.plan.at_most(
                    where,
                    needed * replicas + lost + spares,
                    resident[t],
                    Message.of("verify.workers_of", role=pool["role"], point=name).text(),
                )

    def _check_systems(self, t: int) -> None:
        """Compare the systems that residents and jobs occupy in a slot with those held; a job that runs has its full width."""
        occupied: dict[HeldKey, float] = defaultdict(float)
        widest: dict[HeldKey, float] = defaultdict(float)
        for name, row in self.points.items():
            systems = self.plan.points[name][1].systems
            for pool, of_replica, resident in zip(row["pools"], systems, self.workers[name], strict=True):
                occupied[key_at(row["site"], pool)] += resident[t] * of_replica / pool["workers"]
        for name, active in self.plan.active.items():
            row, computed = self.plan.points[name]
            if computed.workload in self.plan.training and active[t]:
                for pool, each in zip(row["pools"], computed.systems, strict=True):
                    key = key_at(row["site"], pool)
                    widest[key] = max(widest[key], each)
        for key, resident_systems in occupied.items():
            held = self.plan.running[key][t]
            taken = resident_systems + (widest[key] if resident_systems else 0.0)
            what = Message.of("verify.systems_with_weights", place="/".join(key[:3])).text()
            self.plan.at_most(f"schedule slot {t}", taken, held, what)

    def _spares(self, name: str) -> list[int]:
        """Count by pool the workers that go down with one system, where the workload must carry its load without them."""
        row, computed = self.points[name], self.plan.points[name][1]
        if self.plan.serving[computed.workload].spec.redundancy != NPLUS1:
            return [0] * len(row["pools"])
        spares = []
        for pool, systems in zip(row["pools"], computed.systems, strict=True):
            spot = self.plan.fleet_options[key_at(row["site"], pool)].offer.spot
            each = systems / pool["workers"] / (1.0 + ((spot.headroom or 0.0) if spot else 0.0))
            spares.append(1 if each >= 1 else math.ceil(1.0 / each - COUNT_TOL))
        return spares

    def _load_parts_s(self, name: str) -> dict[str, float]:
        """Compute the parts of the time that a worker loses at its start [s]."""
        workload = self.plan.serving[self.plan.points[name][1].workload]
        row = self.points[name]
        rows = [pool for pool in row["pools"] if pool["role"] != "encode"]
        options = [self.plan.fleet_options[key_at(row["site"], pool)] for pool in rows]
        pools = [
            ServingPool(option.system, option.scaleout, pool["layout"], pool["batch"], pool["workers"])
            for option, pool in zip(options, rows, strict=True)
        ]
        choice = choice_of(workload, options[0], rows[0])
        return worker_ready_s(workload, options[0].site, pools, choice, self.plan.problem.constants)

    def _stated_parts(self, name: str) -> dict[str, dict[str, float]]:
        """Return the parts of that time where the spec says how a worker starts, and plans state them."""
        workload = self.plan.serving[self.plan.points[name][1].workload]
        return {} if workload.spec.scale_up is None else {"load_parts_s": self._load_parts_s(name)}

    def _load_s(self, name: str) -> float:
        return sum(self._load_parts_s(name).values())

    def _row(self, name: str) -> Mapping[str, Any]:
        """Compute the row of a point."""
        row, computed = self.plan.points[name]
        load_s = self._load_s(name)
        pools = [
            {
                "role": pool["role"],
                "system": pool["system"],
                "workers_per_replica": pool["workers"],
                "systems_per_worker": each / pool["workers"],
                "workers": max(resident),
                "least_workers": min(resident),
                "systems": max(resident) * each / pool["workers"],
                **({"spare_workers": spare} if spare else {}),
                **self._relays(row, pool, each / pool["workers"], load_s, resident),
            }
            for pool, each, resident, spare in zip(
                row["pools"], computed.systems, self.workers[name], self._spares(name), strict=True
            )
        ]
        return {
            "point": name,
            "workload": computed.workload,
            "site": row["site"],
            "replicas": min(pool["workers"] // pool["workers_per_replica"] for pool in pools),
            "pools": pools,
            "load_s": load_s,
            **self._stated_parts(name),
            "loads": self._loads(self.workers[name]),
            **self._weights_path(name),
        }

    def _weights_path(self, name: str) -> dict[str, dict[str, Any]]:
        """Compute the path from storage to the chips again: the rate of one worker, and what all loads read of it over the horizon."""
        if (problem := self.plan.problem).economics.relays is None:
            return {}
        workload = self.plan.serving[self.plan.points[name][1].workload]
        row = self.points[name]
        site = self.plan.fleet_options[key_at(row["site"], row["pools"][0])].site
        starts = workload.spec.scale_up
        rate = starts.bandwidth if starts is not None and starts.bandwidth else site.storage_bytes_per_s
        rate = rate if math.isfinite(rate) else problem.constants.loading.storage_bytes_per_s
        size = workload.weights_bytes
        if starts is not None:
            size += starts.data - starts.preloaded * size
        used = self._loads(self.workers[name]) * size / sum(map(float, self.calendar.seconds))
        path = {"kind": "storage", "bytes_per_s": rate, "used_bytes_per_s": used, "share": used / rate}
        return {"weights_path": path}

    def _relays(self, row: Row, pool: Row, systems: float, load_s: float, resident: Sequence[int]) -> dict[str, float]:
        """Price a worker of a pool that loads its weights, and count how often one does."""
        if self.plan.problem.economics.relays is None:
            return {}
        option = self.plan.fleet_options[key_at(row["site"], pool)]
        return {"relay_cost": each_load(self.plan, option, load_s, systems), "loads": self._loads([resident])}

    def _loads(self, workers: Sequence[Sequence[int]]) -> float:
        """Count how often a worker loads its weights over the horizon."""
        seconds, step_s = self.calendar.seconds, self.calendar.step_s
        return sum(
            max(mine[t] - mine[before], 0) * float(seconds[t]) / float(step_s[t])
            for mine in workers
            for t, before in self.before.items()
        )


def _serves(plan: CheckedPlan, name: str) -> bool:
    """Tell whether a point serves on systems, not by an API."""
    row, computed = plan.points[name]
    return computed.workload in plan.serving and all(pool["role"] != "api" for pool in row["pools"])


def _are_counts(workers: Any, number: int) -> bool:
    """Tell whether `workers` is a list of the given number of whole numbers."""
    return (
        isinstance(workers, list)
        and len(workers) == number
        and all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in workers)
    )
