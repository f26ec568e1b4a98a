"""Failover: flows and replicas when a zone fails in a busiest hour, for the workloads that must survive it.

Not here: the check (`planner.verify.failover`), and which hours are tried (`planner.formulate.spread`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from models.arrays import Floats
from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from planner.problem.spread import zones_of

ROUNDING_TOL = 1e-9  # flows below this share of the largest are rounding


class Failures:
    """Flow [arc, slot] and active replicas [point, slot] by failed zone; empty where no workload must survive a failure."""

    def __init__(self, problem: ResolvedSpec, form: Formulation, values: Mapping[str, Floats]):
        self.problem, self.form = problem, form
        self.flow: dict[str, Floats] = {}
        self.active: dict[str, Floats] = {}
        spread = form.data.spread
        if spread is None or not spread.survives.any():
            return
        for number, zone in enumerate(zones_of(problem)):
            self.flow[zone] = self._served(values[f"zone {number} g"], values)
            self.active[zone] = self._needed(values[f"zone {number} h"], self.flow[zone])

    def _served(self, flow: Floats, values: Mapping[str, Floats]) -> Floats:
        """Scale flows to the demand, which the solver meets within its tolerance only."""
        data, result = self.form.data, np.where(flow > ROUNDING_TOL * max(flow.max(initial=0.0), 1e-30), flow, 0.0)
        factor = float(np.ravel(values["lambda"])[0]) if data.objective.maximises else 1.0
        asked = data.arc_asked()
        for w, o in {(int(w), int(o)) for w, o in zip(asked, data.arc_origin, strict=True)}:
            mine = (asked == w) & (data.arc_origin == o)
            wanted, total = data.demand[w, o] * (factor if data.scaled()[w] else 1.0), result[mine].sum(axis=0)
            result[mine] *= np.divide(wanted, total, out=np.ones_like(total), where=total > 0)
        return result

    def _needed(self, active: Floats, flow: Floats) -> Floats:
        """Reduce the replicas to what the flows need."""
        data, result = self.form.data, np.zeros_like(active)
        for q in np.unique(data.arc_pool):
            members = np.flatnonzero(data.point_pool == q)
            offered, wanted = data.point_capacity[members] @ active[members], flow[data.arc_pool == q].sum(axis=0)
            result[members] = active[members] * np.divide(wanted, offered, out=np.zeros_like(wanted), where=offered > 0)
        return result

    def standing_by(self) -> Floats:
        """Mark the points [P] that are active in some zone failure."""
        return (
            np.any([active.max(axis=1) > 0 for active in self.active.values()], axis=0)
            if self.active
            else np.zeros(len(self.form.points), dtype=bool)
        )

    def answering(self) -> set[str]:
        """Name the serving workloads of the problem that answer requests in some zone failure."""
        return {self.problem.serving[w].name for a, (w, *_) in enumerate(self.form.arcs) if self.carries(a)}

    def carries(self, arc: int) -> bool:
        """Tell whether an arc carries requests in some zone failure."""
        return any(flow[arc].max() > 0 for flow in self.flow.values())

    def rows(self, point_id: Mapping[int, str], pool_name: Callable[[int], str]) -> list[dict[str, Any]]:
        """Build one row for each zone and hour tried: routes and active replicas."""
        spread = self.form.data.spread
        tried = [] if spread is None else spread.tried_slots.tolist()
        result = []
        for zone, flow in self.flow.items():
            for t in tried:
                routes = [
                    {
                        "workload": workload.name,
                        "origin": self.form.origins[o],
                        "site": self.problem.sites[r].region,
                        "tokens_per_s": float(flow[a, t] * workload.spec.lengths.output),
                        "pool": pool_name(q),
                        **({} if self.problem.lines is None else {"line": self.form.arc_kinds[a]}),
                    }
                    for a, (w, o, r, q) in enumerate(self.form.arcs)
                    if flow[a, t] > 0
                    for workload in (self.problem.serving[w],)
                ]
                active = {point_id[p]: float(self.active[zone][p, t]) for p in point_id if self.active[zone][p, t] > 0}
                result.append({"zone": zone, "slot": t, "routes": routes, "active": active})
        return result
