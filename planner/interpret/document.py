"""From the solver's numbers back to the user's words: builds the plan document out of problem, points and solution.

Not here: the check of the plan (`planner.verify.plan`), which shares no code with this.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from planner.candidates.apis import ROLE
from planner.candidates.points import Candidates, OperatingPoint, use_row
from planner.evaluate.rank_placement import placement_of
from planner.formulate.formulation import Formulation
from planner.formulate.functionals import CARBON
from planner.interpret.accounts import Accounts
from planner.interpret.decisions import Decisions
from planner.interpret.electricity import MeterDecisions, rings
from planner.interpret.fabrics import fabric_rows
from planner.interpret.failover import Failures
from planner.interpret.framing import assumption_rows, dropped, provenance, sense_and_unit, solver, versions
from planner.interpret.limit_rows import limit_rows
from planner.interpret.lines import LineDecisions
from planner.interpret.marginal_values import Explanation
from planner.interpret.phases import obtained, phase_rows
from planner.interpret.preemption import preemption_rows
from planner.interpret.quality import quality_rows
from planner.interpret.storage import storage_rows
from planner.plan import PLAN_SCHEMA_VERSION, Plan
from planner.problem.facts import Problem, TrainingFacts
from planner.problem.intervals import serving_bounds, serving_tier, training_bounds
from planner.problem.phases import API, BY_WINDOW
from planner.problem.spread import is_asked
from planner.spec.slo import LatencyLimit
from solvers.model.preemption import working_share
from solvers.solution import Solution

NEGLIGIBLE = 1e-9  # replicas and flows below this share of the largest are the solver's rounding


def interpret(
    problem: Problem,
    candidates: Candidates,
    form: Formulation,
    solution: Solution,
    document: dict[str, Any],
    explanation: Explanation,
) -> Plan:
    """The plan for a solution with an answer."""
    return Plan(_Interpreter(problem, candidates, form, solution, document, explanation).document())


def decided_on(
    problem: Problem, candidates: Candidates, form: Formulation, solution: Solution
) -> tuple[Decisions, Accounts]:
    """What a solution decides and what that comes to, without a plan document."""
    answer = _Interpreter(problem, candidates, form, solution, {}, None)
    return answer.decided, answer.accounts


class _Interpreter:
    def __init__(
        self,
        problem: Problem,
        candidates: Candidates,
        form: Formulation,
        solution: Solution,
        document: dict[str, Any],
        explanation: Explanation | None,
    ):
        self.explanation = explanation
        self.problem, self.candidates, self.form, self.solution, self.spec_document = (
            problem,
            candidates,
            form,
            solution,
            document,
        )
        self.data = form.data
        self.flow = _exactly_served(_without_rounding(solution.values["f"]), form, solution)
        self.active = self._active()
        self.failures = Failures(problem, form, solution.values)
        self.point_id = self._point_ids()
        self.decided = Decisions(
            problem=problem,
            form=form,
            count=self._counts(),
            active=self.active,
            flow=self.flow,
            used=tuple(self.point_id),
            opened=solution.values.get("open", np.zeros(len(problem.sites))) > 0.5,
            lines=self._lines(),
        )
        if self.data.meters is not None:
            own_w = self.decided.site_power_w(owned_only=True)
            self.decided = replace(
                self.decided, meters=MeterDecisions(problem, self.data.meters, solution.values, own_w)
            )
        self.count = self.decided.count
        self.accounts = Accounts(self.decided)

    # -- decisions -------------------------------------------------------------------------------------------------

    def _active(self) -> np.ndarray:
        """[point, slot] replicas at work: no more than the flows and the work need (idle slack of the solver removed)."""
        data, values = self.data, self.solution.values
        active, standing = np.zeros((len(self.form.points), data.slots)), self._standing()
        for q in range(len(self.candidates.pools)):
            members = np.flatnonzero(data.point_pool == q)
            running = np.where(standing[members], values["x"][members], 0.0)
            running = np.where(running.any(axis=0), running, values["x"][members])
            offered = data.point_capacity[members] @ running
            wanted = self.flow[data.arc_pool == q].sum(axis=0)
            active[members] = running * np.divide(wanted, offered, out=np.zeros_like(wanted), where=offered > 0)
        for p in np.flatnonzero(data.point_job >= 0):
            if values["y"][p] > 0.5:
                j = data.point_job[p]
                share = np.clip(values["v"][p], 0.0, 1.0)
                if not share.any():  # so little work that the solver rounds it away: spread it evenly
                    share = data.job_window_mask[j].astype(float)
                done = data.point_capacity[p] * float(working_share(data, p, share) @ data.slot_hours_s)
                active[p] = share * (data.job_work[j] / done)
        return active

    def _standing(self) -> np.ndarray:
        """[point, slot] whether all its systems are there: what runs on a millionth of one is the solver's rounding."""
        data = self.data
        there = np.zeros((len(data.option_site), data.windows))
        np.add.at(there, data.holding_option, np.rint(self.solution.values["n"])[:, None] * data.covers())
        standing = np.ones((len(data.point_pool), data.slots), dtype=bool)
        np.logical_and.at(standing, data.point_uses[:, 0], (there > 0)[data.point_uses[:, 1]][:, data.slot_window])
        return standing

    def _counts(self) -> np.ndarray:
        """[holding] systems, and of an API as many tokens per second as are used at most."""
        count = np.rint(self.solution.values["n"]).astype(int)
        for u, (k, _) in enumerate(self.form.holdings):
            if self.form.fleet_options[k].offer.how == API:
                mine = self.data.point_uses[:, 1] == k
                used = self.data.point_uses_systems[mine] @ self.active[self.data.point_uses[mine, 0]]
                count[u] = math.ceil(used.max(initial=0.0) * (1 - NEGLIGIBLE))
        return count

    def _lines(self) -> LineDecisions | None:
        if self.problem.lines is None:
            return None
        used = {
            w.name: {self.form.points[p].site for p in self.point_id if self.form.points[p].workload is w}
            for w in self.problem.serving
        }
        return LineDecisions(self.problem, self.form, self.solution.values, self.flow, used)

    def _point_ids(self) -> dict[int, str]:
        """Names of the points that are used: workload/site/number."""
        numbers: dict[tuple[str, str], int] = defaultdict(int)
        names = {}
        for p in np.flatnonzero((self.active.max(axis=1) > 0) | self.failures.standing_by()):
            point = self.form.points[p]
            key = (point.workload.name, point.site)
            names[int(p)] = f"{key[0]}/{key[1]}/{numbers[key]}"
            numbers[key] += 1
        return names

    # -- the document ----------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        problem, solution = self.problem, self.solution
        costs = self.accounts.by_component()
        totals = self._totals(sum(costs.values()))
        sense, unit = sense_and_unit(self.spec_document)
        value = {"cost": totals["cost"], "carbon_kg": totals["carbon_kg"]}.get(self.data.objective.functional)
        if value is None:
            value = float(np.ravel(solution.values["lambda"])[0])
        bound = solution.bound
        gap = None if bound is None else abs(value - bound) / max(abs(value), 1e-9)
        return {
            "schema_version": PLAN_SCHEMA_VERSION,
            "name": problem.spec.name,
            "status": solution.status,
            "objective": {"sense": sense, "value": value, "unit": unit},
            "bound": bound,
            "bound_of": problem.bound_of,
            "gap": gap,
            **({} if solution.relaxed_bound is None else {"bound_divisible": solution.relaxed_bound}),
            "totals": totals,
            "fleet": self._fleet(),
            "fabrics": fabric_rows(self.decided),
            "workloads": self._workloads(),
            **({"quality": quality_rows(problem, self.form, self.flow)} if problem.quality else {}),
            "routes": self._routes(),
            "schedule": self._schedule(),
            **(
                {}
                if self.decided.lines is None
                else {"lines": self.decided.lines.lines(), "placements": self.decided.lines.placements()}
            ),
            **({"spread": self.decided.spread()} if is_asked(problem) else {}),
            **(
                {
                    "failures": self.failures.rows(
                        self.point_id, {q: self._pool_name(q) for q in range(len(self.candidates.pools))}
                    )
                }
                if self.failures.flow
                else {}
            ),
            **({} if self.decided.meters is None else {"electricity": self.decided.meters.table()}),
            **({"phases": phase_rows(self.decided, self.accounts)} if problem.phases else {}),
            **(
                {}
                if self.data.point_restart_s is None
                else {"preemptions": preemption_rows(self.decided, self.point_id)}
            ),
            **({} if self.data.site_storage is None else {"storage": storage_rows(self.decided, self.point_id)}),
            "costs": costs,
            "cost_lines": _lines(self.accounts.lines),
            "carbon_lines": _lines(self.accounts.carbon),
            "limits": self.explanation.of_limits(limit_rows(self.decided, self.accounts, self._all_slo())),
            "runner_up": self.explanation.runner_up,
            "dropped": dropped(self.candidates),
            "assumptions": assumption_rows(
                problem.assumptions,
                self.accounts.carbon if self.data.objective.functional == CARBON else self.accounts.lines,
            ),
            "provenance": provenance(problem),
            "versions": versions(),
            "solver": solver(problem, solution),
            "diagnosis": None,
            "catalog_digest": problem.catalog_digest,
            "spec": self.spec_document,
        }

    def _totals(self, cost: float) -> dict[str, float]:
        chips = np.zeros(self.problem.calendar.windows)
        for u, (k, term) in enumerate(self.form.holdings):
            chips[term.first : term.last + 1] += self.count[u] * self.form.fleet_options[k].system.chips
        served = sum(
            float(self.flow[a] @ self.problem.calendar.seconds) * self.problem.serving[w].spec.lengths.output
            for a, (w, *_) in enumerate(self.form.arcs)
        )
        return {
            "cost": cost,
            "carbon_kg": sum(self.accounts.carbon.values()),
            "energy_j": self.accounts.energy_j,
            "tokens": served + sum(job.spec.tokens for job in self.problem.training),
            "chips": int(chips.max(initial=0)),
            "peak_power_w": float(self.decided.site_power_w(owned_only=False).sum(axis=0).max(initial=0.0)),
        }

    def _fleet(self) -> list[dict[str, Any]]:
        return [
            {
                "site": option.site.region,
                "system": option.system.name,
                "count": int(self.count[u]),
                "how": option.offer.how,
                "phase": term.first if option.offer.how in BY_WINDOW else None,
                "fabric": option.fabric,
                "fabric_size": option.size,
                "offer": option.offer.path,
                **({"tenant": option.tenant} if option.tenant else {}),
                **(obtained(self.problem, term) if term.dated else {}),
            }
            for u, (k, term) in enumerate(self.form.holdings)
            if self.count[u] and (option := self.form.fleet_options[k])
        ]

    def _workloads(self) -> list[dict[str, Any]]:
        cost = self.accounts.by_workload()
        return [self._workload(w, cost[w.name]) for w in (*self.problem.serving, *self.problem.training)]

    def _all_slo(self) -> list[tuple[str, str, float, float]]:
        """(path, name, predicted, limit) of every latency limit that a used point answers for."""
        rows = []
        for workload in self.problem.serving:
            mine = [p for p in self.point_id if self.form.points[p].workload is workload]
            for row in self._slo(workload, mine):
                if row["predicted_s"] is not None:
                    name = f"{row['metric'].upper()} {row['percentile']} of {workload.name}"
                    rows.append(
                        (
                            f"{workload.path}.slo.{row['metric']}.{row['percentile']}",
                            name,
                            row["predicted_s"],
                            row["limit_s"],
                        )
                    )
        return rows

    def _workload(self, workload, cost: float) -> dict[str, Any]:
        mine = [p for p in self.point_id if self.form.points[p].workload is workload]
        seconds, discount = self.problem.calendar.seconds, self.problem.calendar.discount
        is_serving = workload in self.problem.serving
        if is_serving:
            w = self.problem.serving.index(workload)
            flow = sum((self.flow[a] for a, arc in enumerate(self.form.arcs) if arc[0] == w), np.zeros(len(seconds)))
            tokens = flow * workload.spec.lengths.output
        else:
            tokens = sum(
                (self.data.point_capacity[p] * working_share(self.data, p, self.active[p]) for p in mine),
                np.zeros(len(seconds)),
            )
        chip_seconds = {p: self.form.points[p].chips * float(self.active[p] @ seconds) for p in mine}
        worked = sum(chip_seconds.values())
        shares = ("mfu",) if is_serving else ("mfu", "hfu")
        used = {
            name: sum(getattr(self.form.points[p], name) * chip_seconds[p] for p in mine) / worked if worked else None
            for name in shares
        }
        worth = float(tokens @ (seconds * discount))
        return {
            "name": workload.name,
            "kind": workload.spec.kind,
            **(
                {"of": workload.asked, "architecture": workload.runs}
                if is_serving and any(workload.name in facts.members.values() for facts in self.problem.quality)
                else {}
            ),
            "points": [self._point(p) for p in mine],
            "tokens": float(tokens @ seconds),
            "cost": cost,
            "cost_per_million_tokens": cost / worth * 1e6 if worth else None,
            **(
                {"revenue": worth * workload.sold_at, "margin": worth * workload.sold_at - cost}
                if is_serving and workload.sold_at is not None
                else {}
            ),
            "slo": self._slo(workload, mine) if is_serving else [],
            "utilisation": self._utilisation(mine),
            **used,
        }

    def _point(self, p: int) -> dict[str, Any]:
        point = self.form.points[p]
        pool = self.candidates.pools[self.data.point_pool[p]] if self.data.point_pool[p] >= 0 else None
        return {
            "id": self.point_id[p],
            "site": point.site,
            "pool": self._pool_name(self.data.point_pool[p]) if pool else None,
            **({} if point.power_cap is None else {"power_cap": point.power_cap}),
            "pools": [use_row(use) for use in point.uses],
            "capacity": point.capacity,
            "capacity_unit": "request/s" if pool else "token/s",
            "latency_s": dict(point.latency),
            "time_s": dict(point.time_s),
            **self._spread(point),
            "breakdown": dict(point.breakdown),
            "mfu": point.mfu,
            **({} if pool else {"hfu": point.hfu}),
            "goodput": point.goodput,
            "memory_bytes": point.memory_bytes,
            "placement": self._placement(point),
            "peak_replicas": float(self.active[p].max()),
        }

    def _placement(self, point: OperatingPoint) -> dict[str, Any] | None:
        use, job = point.uses[0], point.workload
        if not isinstance(job, TrainingFacts):
            return None
        return placement_of(job, use.option.system, use.option.plant, use.layout, use.precision, self.problem.constants)

    def _spread(self, point: OperatingPoint) -> dict[str, Any]:
        """The 80 % interval of the point's times and capacity, and the tier that it is of; none of what others promise."""
        if point.uses[0].role == ROLE:
            return {"interval_80": None, "tier": ""}
        if point.interval:
            return {
                "interval_80": training_bounds(point.interval, point.time_s, point.capacity),
                "tier": point.interval.tier,
            }
        known = self.problem.constants.measured_serving
        tier = serving_tier(known, [(use.option.system.chip, use.precision) for use in point.uses])
        return {"interval_80": serving_bounds(known, tier, point.latency, point.capacity), "tier": tier}

    def _slo(self, workload, mine: list[int]) -> list[dict[str, Any]]:
        """Each limit with the worst prediction over the used points, round trip included."""
        rows = []
        for limit in workload.spec.slo.limits():
            worst = max((self._at_origin(p, limit) for p in mine), default=None)
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

    def _at_origin(self, p: int, limit: LatencyLimit) -> float:
        travel_s = self._travel_s[int(self.data.point_pool[p])] if limit.counts_round_trip else 0.0
        return limit.at_origin(self.form.points[p].latency[limit.key], travel_s)

    @cached_property
    def _travel_s(self) -> dict[int, float]:
        """By pool, the longest round trip of those that it serves."""
        found: dict[int, float] = {}
        for a in np.flatnonzero(self.flow.max(axis=1, initial=0.0) > 0).tolist() + [
            a for a in range(len(self.form.arcs)) if self.failures.carries(a)
        ]:
            _, o, _, q = self.form.arcs[a]
            pool = self.candidates.pools[q]
            way = self.problem.routes(pool.workload.name, self.form.origins[o], pool.site)[self.form.arc_kinds[a]]
            found[q] = max(found.get(q, 0.0), way.rtt_s)
        return found

    def _utilisation(self, mine: list[int]) -> float | None:
        """Chips at work in the mean over those at the peak."""
        busy = sum((self.form.points[p].chips * self.active[p] for p in mine), np.zeros(self.data.slots))
        seconds = self.problem.calendar.seconds
        return float(busy @ seconds / seconds.sum() / busy.max()) if mine and busy.any() else None

    def _routes(self) -> list[dict[str, Any]]:
        return [
            {
                "origin": self.form.origins[o],
                "site": self.problem.sites[r].region,
                "workload": workload.name,
                "slot": t,
                "tokens_per_s": float(self.flow[a, t] * workload.spec.lengths.output),
                "pool": self._pool_name(q),
                **({} if self.decided.lines is None else {"line": self.form.arc_kinds[a]}),
            }
            for a, (w, o, r, q) in enumerate(self.form.arcs)
            if (workload := self.problem.serving[w])
            for t in np.flatnonzero(self.flow[a])
            for t in (int(t),)
        ]

    def _pool_name(self, q: int) -> str:
        pool = self.candidates.pools[q]
        return f"{pool.workload.name}/{pool.site}/{pool.allowance_s * 1e3:.0f} ms"

    def _schedule(self) -> list[dict[str, Any]]:
        """One row per site and slot: what runs, what it draws, and what the hour costs."""
        calendar, every, own = (
            self.problem.calendar,
            self.decided.site_power_w(owned_only=False),
            self.decided.site_power_w(owned_only=True),
        )
        rows = []
        for r, site in enumerate(self.problem.sites):
            here = [p for p in self.point_id if self.form.points[p].site == site.region]
            if not every[r].any() and site.electricity is None and not here:
                continue
            for t in range(calendar.slots):
                hour = int(calendar.hour[t])
                rows.append(
                    {
                        "site": site.region,
                        "slot": t,
                        "phase": int(calendar.window[t]),
                        **calendar.when(t),
                        "seconds": float(calendar.seconds[t]),
                        "power_w": float(every[r, t]),
                        "own_power_w": float(own[r, t]),
                        "energy_j": float(every[r, t] * calendar.seconds[t]),
                        "price_per_j": float(site.price_per_j[hour]),
                        "carbon_kg_per_j": float(site.carbon_kg_per_j[hour]),
                        **(self.decided.meters.of_slot(site.region, t) if self.decided.meters else {}),
                        "active": {self.point_id[p]: float(self.active[p, t]) for p in here if self.active[p, t] > 0},
                    }
                )
        return rows


def _without_rounding(flow: np.ndarray) -> np.ndarray:
    return np.where(flow > NEGLIGIBLE * max(flow.max(initial=0.0), 1e-30), flow, 0.0)


def _exactly_served(flow: np.ndarray, form: Formulation, solution: Solution) -> np.ndarray:
    """Flows scaled to the demand, which the solver meets to its tolerance only."""
    data, result = form.data, flow.copy()
    factor = np.ravel(solution.values["lambda"])[0] if data.objective.maximises else 1.0
    asked = data.arc_asked()
    for w, o in sorted({(int(w), int(o)) for w, o in zip(asked, data.arc_origin)}):
        mine = (asked == w) & (data.arc_origin == o)
        wanted = data.demand[w, o] * (factor if data.scaled()[w] else 1.0)
        total = flow[mine].sum(axis=0)
        if data.wait_slots is not None and data.wait_slots[w]:  # what waits is served in another slot of its ring
            for ring in rings(data.order.next):
                step = data.order.step_s[ring]
                wanted[ring] = total[ring] * (
                    (wanted[ring] @ step) / (total[ring] @ step) if total[ring].any() else 1.0
                )
        result[mine] *= np.divide(wanted, total, out=np.ones_like(total), where=total > 0)
    return result


def _lines(lines: dict[tuple[str, str, str, str], float]) -> list[dict[str, Any]]:
    return [
        {"component": c, "site": site, "system": system, "how": how, "amount": amount}
        for (c, site, system, how), amount in sorted(lines.items())
    ]
