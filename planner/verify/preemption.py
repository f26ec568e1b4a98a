"""Check the cost of pre-emption to the jobs of a plan, and the rates at which its points use the storage of their sites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.units import HOUR_S
from models.training.layouts import Layouts
from planner.evaluate.interruptions import RunTerms, least_run_s_of, preemption_s_of, state_sizes, storage_rates
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, SiteFacts, TrainingFacts
from planner.verify.checked_plan import CheckedPlan

WIDTH_TOL = 1e-9  # widths of a job that differ by less are one


def resumed_width(problem: ResolvedSpec, active: Sequence[float]) -> list[float]:
    """Compute the width that a job regains in each slot over the slot before it."""
    calendar, found = problem.calendar, [0.0] * problem.calendar.slots
    for t, after in enumerate(calendar.next.tolist()):
        gain = active[after] - active[t]
        found[after] = gain if gain > WIDTH_TOL else 0.0
    return found


def trained_chips(point: Mapping[str, Any]) -> int:
    """Count the chips that hold the state of a job: the chips of its first pool."""
    return int(Layouts.of(**point["pools"][0]["layout"]).chips[0])


def lost_share(
    problem: ResolvedSpec, job: TrainingFacts, chips: int, site: SiteFacts, active: Sequence[float]
) -> list[float]:
    """Compute the share of each slot, at full width on a number of chips, that a job spends on its resumptions."""
    restart_s = preemption_s_of(job, chips, problem.constants.reliability, site.storage_bytes_per_s)
    if not restart_s:
        return [0.0] * len(active)
    return [
        restart_s * width / float(step)
        for width, step in zip(resumed_width(problem, active), problem.calendar.step_s, strict=True)
    ]


class InterruptionCheck:
    """Check the tables `preemptions` and `storage` against the schedule and the points."""

    def __init__(self, plan: CheckedPlan):
        self.plan, self.problem, self.document = plan, plan.problem, plan.document

    def run(self) -> None:
        """Check both tables."""
        counted = any(job.spec.preemption for job in self.problem.training)
        limited = any(math.isfinite(site.storage_bytes_per_s) for site in self.problem.sites)
        self._table("preemptions", counted, dict(self._preemptions()) if counted else {})
        self._least_runs()
        self._table("storage", limited, dict(self._storage()) if limited else {})

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield (path, name, highest rate in any slot, limit) of every storage that has a limit [byte/s]."""
        rates: dict[str, float] = {
            name: row["read_bytes_per_s"] + row["checkpoint_bytes_per_s"] for name, row in self._storage()
        }
        for site in self.problem.sites:
            if math.isfinite(site.storage_bytes_per_s):
                mine = [
                    (rates[name], self.plan.active[name])
                    for name, (point, _) in self.plan.points.items()
                    if point["site"] == site.region
                ]
                used = [sum(rate * active[t] for rate, active in mine) for t in range(self.problem.calendar.slots)]
                yield (
                    f"{site.path}.storage_bandwidth",
                    Message.of("limit.storage_bandwidth", site=site.region).text(),
                    max(used),
                    site.storage_bytes_per_s,
                )

    def _table(self, key: str, asked: bool, computed: Mapping[str, Mapping[str, Any]]) -> None:
        if (key in self.document) != asked:
            self.plan.say(key, "verify.only_if_asked")
            return
        stated = {row["point"]: row for row in self.document.get(key, ())}
        if stated.keys() != computed.keys() or len(stated) < len(self.document.get(key, ())):
            self.plan.say(key, "verify.row_for_each_point")
            return
        for name, row in computed.items():
            for word in row.keys() & {"workload", "site"}:
                if stated[name][word] != row[word]:
                    self.plan.say(
                        f"{key} {name}",
                        "verify.says_of",
                        name=word,
                        given=repr(stated[name][word]),
                        found=repr(row[word]),
                    )
            self.plan.equal(f"{key} {name}", {k: v for k, v in stated[name].items() if k not in ("workload", "point", "site")},
                             {k: v for k, v in row.items() if k not in ("workload", "site")})  # fmt: skip

    def _preemptions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        calendar = self.problem.calendar
        for name, (point, computed) in self.plan.points.items():
            job = self.plan.training.get(computed.workload)
            if job is None or job.spec.preemption is None:
                continue
            active, seconds = self.plan.active[name], [float(s) for s in calendar.seconds]
            site = self.plan.sites[point["site"]]
            resumptions = sum(
                width * s / float(step)
                for width, s, step in zip(resumed_width(self.problem, active), seconds, calendar.step_s, strict=True)
            )
            run = sum(share * s for share, s in zip(active, seconds, strict=True))
            chips = trained_chips(point)
            restart = preemption_s_of(job, chips, self.problem.constants.reliability, site.storage_bytes_per_s)
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

    def _least_runs(self) -> None:
        """Check that width which returned stays for the least time of its job."""
        calendar = self.problem.calendar
        before = {after: t for t, after in enumerate(calendar.next.tolist())}
        for name, (point, computed) in self.plan.points.items():
            job = self.plan.training.get(computed.workload)
            least_s = 0.0 if job is None else least_run_s_of(job, trained_chips(point))
            if job is None or not least_s:
                continue
            active = self.plan.active[name]
            back = resumed_width(self.problem, active)
            for t, width in enumerate(active):
                past, at, returned = 0.0, t, 0.0
                while past < least_s - 1e-6:
                    returned += back[at]
                    past += float(calendar.step_s[at])
                    at = before[at]
                words = Message.of("verify.least_run", job=job.name, hours=least_s / HOUR_S).text()
                self.plan.at_most(f"schedule slot {t}", returned, width, words)

    def _storage(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, (point, computed) in self.plan.points.items():
            site = self.plan.sites[point["site"]]
            if not math.isfinite(site.storage_bytes_per_s):
                continue
            job = self.plan.training.get(computed.workload)
            read = written = 0.0
            if job is None:
                size = self.plan.serving[computed.workload].weights_bytes
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
                size = state_sizes(job, self.problem.constants.reliability)[1]
            yield name, {
                "workload": computed.workload, "site": site.region, "read_bytes_per_s": read, "checkpoint_bytes_per_s": written,
                "load_bytes": size, "load_s": size / site.storage_bytes_per_s,
            }  # fmt: skip
