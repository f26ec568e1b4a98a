"""The re-check of what pre-emption costs the jobs of a plan, and of what runs through the storage of its sites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from planner.evaluate.interruptions import RunTerms, interruptions, preemption_s_of, storage_rates
from planner.verify.terms import returned

if TYPE_CHECKING:
    from planner.verify.amounts import Amounts


class InterruptionCheck:
    """Both tables, counted again from the schedule and the points."""

    def __init__(self, check: Amounts):
        self.check, self.problem, self.document = check, check.problem, check.document

    def run(self) -> None:
        counted = any(job.spec.preemption for job in self.problem.training)
        limited = any(math.isfinite(site.storage_bytes_per_s) for site in self.problem.sites)
        self._table("preemptions", counted, dict(self._preemptions()) if counted else {})
        self._table("storage", limited, dict(self._storage()) if limited else {})

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        """(path, name, most bytes per second in any slot, limit)."""
        rates: dict[str, float] = {
            name: row["read_bytes_per_s"] + row["checkpoint_bytes_per_s"] for name, row in self._storage()
        }
        for site in self.problem.sites:
            if math.isfinite(site.storage_bytes_per_s):
                mine = [
                    (rates[name], self.check.active[name])
                    for name, (point, _) in self.check.points.items()
                    if point["site"] == site.region
                ]
                used = [sum(rate * active[t] for rate, active in mine) for t in range(self.problem.calendar.slots)]
                yield f"{site.path}.storage_bandwidth", f"storage in {site.region}", max(used), site.storage_bytes_per_s

    def _table(self, key: str, asked: bool, computed: Mapping[str, Mapping[str, Any]]) -> None:
        if (key in self.document) != asked:
            self.check.say(key, "belongs to a plan whose spec asks for it, and to no other")
            return
        stated = {row["point"]: row for row in self.document.get(key, ())}
        if stated.keys() != computed.keys() or len(stated) < len(self.document.get(key, ())):
            self.check.say(key, "must have one row for each point that it is about")
            return
        for name, row in computed.items():
            for word in row.keys() & {"workload", "site"}:
                if stated[name][word] != row[word]:
                    self.check.say(f"{key} {name}", f"says {word} {stated[name][word]!r}, it is {row[word]!r}")
            self.check.equal(f"{key} {name}", {k: v for k, v in stated[name].items() if k not in ("workload", "point", "site")},
                             {k: v for k, v in row.items() if k not in ("workload", "site")})  # fmt: skip

    def _preemptions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        calendar = self.problem.calendar
        for name, (point, computed) in self.check.points.items():
            job = self.check.training.get(computed.workload)
            if job is None or job.spec.preemption is None:
                continue
            active, seconds = self.check.active[name], [float(s) for s in calendar.seconds]
            site = self.check.sites[point["site"]]
            resumptions = sum(
                width * s / float(step)
                for width, s, step in zip(returned(self.problem, active), seconds, calendar.step_s, strict=True)
            )
            run = sum(share * s for share, s in zip(active, seconds, strict=True))
            restart = preemption_s_of(job, self.problem.constants.reliability, site.storage_bytes_per_s)
            lost = restart * resumptions
            yield (
                name,
                {
                    "workload": job.name,
                    "restart_s": restart,
                    "resumptions": resumptions,
                    "lost_s": lost,
                    "lost_share": lost / run if run else 0.0,
                },
            )

    def _storage(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, (point, computed) in self.check.points.items():
            site = self.check.sites[point["site"]]
            if not math.isfinite(site.storage_bytes_per_s):
                continue
            job = self.check.training.get(computed.workload)
            read = written = 0.0
            if job is None:
                size = self.check.serving[computed.workload].weights_bytes
            else:
                pool, option = point["pools"][0], computed.extra[0][0]
                read, written = storage_rates(
                    job,
                    pool["layout"],
                    point["capacity"],
                    point["goodput"],
                    RunTerms.of(option.system, option.offer, site),
                    self.problem,
                )
                size = interruptions(job, self.problem.constants.reliability).checkpoint_bytes
            yield name, {
                "workload": computed.workload, "site": site.region, "read_bytes_per_s": read, "checkpoint_bytes_per_s": written,
                "load_bytes": size, "load_s": size / site.storage_bytes_per_s,
            }  # fmt: skip
