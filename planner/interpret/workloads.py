"""Plan rows of workloads: their points, tokens, cost, latencies and utilisation."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np

from catalog.units import MILLION
from models.arrays import Floats, sum_of
from models.formats import kind_of
from models.training.layouts import Layouts
from planner.candidates.apis import ROLE
from planner.candidates.points import OperatingPoint, serving_run, use_row
from planner.evaluate.rank_placement import placement_of
from planner.evaluate.rate_sensitivity import at_other_rates
from planner.evaluate.reach import THROUGHPUT, outside_of, outside_rows
from planner.evaluate.serving import first_token
from planner.interpret.decisions import Decisions
from planner.interpret.load.classes import classes_of
from planner.interpret.load.paths import cache_path_rows, line_row, path_row
from planner.interpret.load.prefix_routing import prefix_routing_of
from planner.interpret.load.sessions import sessions_of
from planner.interpret.reinforcement import iterations_of
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.intervals import Run, network, row_of, serving_bounds, serving_tier, training_bounds
from planner.problem.limit_labels import LimitLabel, latency
from planner.spec.slo import LatencyLimit
from solvers.model.preemption import working_share


class WorkloadRows:
    """Build the plan rows of workloads from the decisions."""

    def __init__(self, decided: Decisions):
        self.decided, self.problem, self.form = decided, decided.problem, decided.form

    def rows(self, cost: dict[str, float]) -> list[dict[str, Any]]:
        """Build one row for each workload; `cost`: present value by workload."""
        serving = [self._row(workload, cost[workload.name]) for workload in self.problem.serving]
        return serving + [self._row(job, cost[job.name]) for job in self.problem.training]

    def predicted_latencies(self) -> list[tuple[LimitLabel, float, float]]:
        """List (key, predicted, limit) [s] of every latency limit that a used point answers for."""
        found = []
        for workload in self.problem.serving:
            mine = self.decided.used_by(workload)
            for limit in workload.spec.limits() if mine else ():
                found.append((latency(workload, limit), self._worst(mine, limit), limit.seconds))
        return found

    def _row(self, workload: ServingFacts | TrainingFacts, cost: float) -> dict[str, Any]:
        """Build the row of one workload."""
        mine, seconds = self.decided.used_by(workload), self.problem.calendar.seconds
        tokens = self._tokens_per_s(workload, mine)
        worth = float(tokens @ (seconds * self.problem.calendar.discount))
        chip_seconds = {p: self.form.points[p].chips * float(self.decided.active[p] @ seconds) for p in mine}
        worked = sum_of(chip_seconds.values())
        shares = ("mfu",) if isinstance(workload, ServingFacts) else ("mfu", "hfu")
        return {
            "name": workload.name,
            "kind": workload.spec.kind,
            **self._architecture(workload),
            "points": [self._point(p) for p in mine],
            "tokens": float(tokens @ seconds),
            "cost": cost,
            "cost_per_million_tokens": cost / worth * MILLION if worth else None,
            **_sales(workload, worth, cost),
            **classes_of(workload, [(self.form.points[p], self._longest_s(p)) for p in mine]),
            **sessions_of(self.decided, workload, mine),
            **prefix_routing_of(self.decided, workload, mine),
            **self._time_left(workload, mine),
            **iterations_of(workload, float(tokens @ seconds), worth, cost),
            "slo": self._slo(workload, mine) if isinstance(workload, ServingFacts) else [],
            "utilisation": self._utilisation(mine),
            **{
                name: sum_of(getattr(self.form.points[p], name) * chip_seconds[p] for p in mine) / worked
                if worked
                else None
                for name in shares
            },
        }

    def _longest_s(self, p: int) -> float:
        """Find the longest round trip of the requests that a serving point serves [s]; 0 for a job."""
        return self._round_trip_s.get(int(self.form.data.point_pool[p]), 0.0)

    def _tokens_per_s(self, workload: ServingFacts | TrainingFacts, mine: list[int]) -> Floats:
        """Add up the tokens per second of a workload in each slot."""
        total = np.zeros(self.problem.calendar.slots)
        if isinstance(workload, ServingFacts):
            for a, (w, *_) in enumerate(self.form.arcs):
                if self.problem.serving[w] is workload:
                    total += self.decided.flow[a]
            return total * workload.spec.lengths.output
        data = self.form.data
        for p in mine:
            total += data.point_capacity[p] * working_share(data, p, self.decided.active[p])
        return total

    def _architecture(self, workload: ServingFacts | TrainingFacts) -> dict[str, Any]:
        """Name the architecture that this workload runs, where the spec offers several, and the spec's workload."""
        if not isinstance(workload, ServingFacts):
            return {}
        chosen = any(workload.name in facts.members.values() for facts in self.problem.quality)
        return {"of": workload.asked, "architecture": workload.runs} if chosen else {}

    def _time_left(self, workload: ServingFacts | TrainingFacts, mine: list[int]) -> dict[str, float]:
        """State the deadline of a job, and the time until then beyond that at full width [s]."""
        if isinstance(workload, ServingFacts):
            return {}
        calendar, asked = self.problem.calendar, workload.spec
        there_s = float(calendar.seconds @ calendar.within(asked.start, asked.deadline))
        run_s = sum_of(float(self.decided.active[p] @ calendar.seconds) for p in mine)
        return {"deadline_s": asked.deadline, "slack_s": max(there_s - run_s, 0.0)}

    def _point(self, p: int) -> dict[str, Any]:
        """Build the row of one used operating point."""
        point, q = self.form.points[p], int(self.form.data.point_pool[p])
        serves = q >= 0
        return {
            "id": self.decided.point_ids[p],
            "site": point.site,
            "pool": self.decided.pool_name(q) if serves else None,
            **({} if point.power_cap is None else {"power_cap": point.power_cap}),
            "pools": [
                {**use_row(use), **({} if point.exchange is None else {"site": use.option.site.region})}
                for use in point.uses
            ],
            "capacity": point.capacity,
            "capacity_unit": "request/s" if serves else "token/s",
            "latency_s": dict(point.latency),
            "time_s": dict(point.time_s),
            **({} if point.steady is None else {"first_token_s": first_token(point.steady)}),
            **({} if point.call_s is None else {"call_s": point.call_s}),
            **({"classes": [dict(row) for row in point.classes]} if point.classes else {}),
            **self._interval(point),
            "breakdown": dict(point.breakdown),
            "mfu": point.mfu,
            **({} if serves else {"hfu": point.hfu}),
            "goodput": point.goodput,
            **({} if serves else {"losses": dict(point.losses), "checkpoints": dict(point.checkpoints)}),
            "memory_bytes": point.memory_bytes,
            **({} if point.iteration is None else {"iteration": dict(point.iteration)}),
            **({} if (path := line_row(self.decided, p) or path_row(point)) is None else {"path": path}),
            **({"cache_paths": rows} if (rows := cache_path_rows(point)) else {}),
            "placement": self._placement(point),
            "peak_replicas": float(self.decided.active[p].max()),
        }

    def _placement(self, point: OperatingPoint) -> dict[str, Any] | None:
        """Place the ranks of a job on its systems; None for serving."""
        use, job = point.uses[0], point.workload
        if not isinstance(job, TrainingFacts):
            return None
        return placement_of(job, use.option.system, use.option.plant, use.layout, use.precision, self.problem.constants)

    def _interval(self, point: OperatingPoint) -> dict[str, Any]:
        """Bound the point's times and capacity by their 80 % interval, with its tier; APIs state times of their own."""
        if point.uses[0].role == ROLE:
            return {"interval_80": None, "tier": ""}
        if point.interval:
            bounds = training_bounds(point.interval, point.time_s, point.capacity)
            return {"interval_80": bounds, "tier": point.interval.tier, **self._outside_of_job(point)}
        known = self.problem.constants.measured_serving
        chips = [point.serving.measured_as(use.option.system.chip, use.precision) for use in point.uses]
        run = serving_run(point)
        bounds = serving_bounds(known, chips, point.latency, point.capacity, run, at_other_rates(point.steady))
        return {
            "interval_80": row_of(bounds),
            "tier": serving_tier(known, chips, run.kind),
            **outside_rows(outside_of(known, chips, THROUGHPUT, run)),
        }

    def _outside_of_job(self, point: OperatingPoint) -> dict[str, Any]:
        """Name what of a job lies outside what was fitted; reinforcement learning has an interval of its own."""
        if point.iteration is not None:
            return {}
        use, job = point.uses[0], point.job
        chips = float(Layouts.of(**use.layout).chips[0])
        run = Run.of(job.architecture, chips, job.spec.sequence_tokens, job.batch_sequences, use.precision)
        on, label = (use.option.system.chip, kind_of((), use.precision)), network(job.architecture.experts)
        return outside_rows(outside_of(self.problem.constants.measured_training, [on], label, run))

    def _slo(self, workload: ServingFacts, mine: list[int]) -> list[dict[str, Any]]:
        """Compare each latency limit with the worst prediction over the used points, round trip included."""
        rows = []
        for limit in workload.spec.limits():
            worst = self._worst(mine, limit) if mine else None
            rows.append(
                {
                    "metric": limit.metric,
                    "percentile": limit.percentile,
                    "limit_s": limit.seconds,
                    "predicted_s": worst,
                    "slack_s": None if worst is None else limit.seconds - worst,
                }
            )
        return rows

    def _worst(self, mine: list[int], limit: LatencyLimit) -> float:
        """Predict the latency of the slowest of some points, for the farthest user that it serves [s]."""
        pool = self.form.data.point_pool
        return max(
            limit.at_origin(
                self.form.points[p].latency[limit.key],
                self._round_trip_s[int(pool[p])] if limit.round_trips else 0.0,
            )
            for p in mine
        )

    @cached_property
    def _round_trip_s(self) -> dict[int, float]:
        """Find the longest round trip of the requests that each pool serves, also when a zone fails."""
        found: dict[int, float] = {}
        for a, (_, o, _, q) in enumerate(self.form.arcs):
            if self.decided.flow[a].max(initial=0.0) > 0 or self.decided.failures.carries(a):
                pool = self.decided.pools[q]
                routes = self.problem.routes(pool.workload.name, self.form.origins[o], pool.site)
                found[q] = max(found.get(q, 0.0), routes[self.form.arc_kinds[a]].rtt_s)
        return found

    def _utilisation(self, mine: list[int]) -> float | None:
        """Divide the time at work of the systems that some points use, for whatever workload, by the time for which they are held."""
        used = dict.fromkeys(id(use.option) for p in mine for use in self.form.points[p].uses)  # in the order of points
        held = sum_of(self._held_chip_s[option] for option in used)
        return sum_of(self._busy_chip_s[option] for option in used) / held if held else None

    @cached_property
    def _busy_chip_s(self) -> dict[int, float]:
        """Sum the chip seconds at work of each fleet option, by its identity."""
        busy: dict[int, float] = defaultdict(float)
        for p in self.decided.used:
            at_work_s = float(self.decided.active[p] @ self.problem.calendar.seconds)
            for use in self.form.points[p].uses:
                busy[id(use.option)] += use.systems * use.option.system.chips * at_work_s
        return busy

    @cached_property
    def _held_chip_s(self) -> dict[int, float]:
        """Sum the chip seconds for which each fleet option is held, by its identity; 0 for an API, which has no chips."""
        held: dict[int, float] = defaultdict(float)
        for option, count in self.decided.at_once():
            held[id(option)] += option.system.chips * float(count @ self.problem.calendar.seconds)
        return held


def _sales(workload: ServingFacts | TrainingFacts, worth: float, cost: float) -> dict[str, float]:
    """Compute revenue and margin where the spec states selling prices; `worth`: discounted tokens."""
    if not isinstance(workload, ServingFacts) or workload.sold_at is None:
        return {}
    return {"revenue": worth * workload.sold_at, "margin": worth * workload.sold_at - cost}
