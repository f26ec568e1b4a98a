"""Recompute the value of every limit from the plan's rows, and check slack and marginal values against them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from planner.plan import BY_THE_BOUND
from planner.problem.facts import PhaseFacts
from planner.verify.amounts import Amounts
from planner.verify.findings import TOLERANCE
from planner.verify.phase_budgets import payments
from planner.verify.power import power_values
from planner.verify.terms import InTime


class Limits(Amounts):
    """Check the rows of `limits` against the amounts."""

    def _limits(self) -> None:
        computed = sorted(self._limit_values())
        stated = sorted(self.document["limits"], key=lambda row: (row["path"], row["name"], row["value"]))
        if [(path, name) for path, name, _, _ in computed] != [(row["path"], row["name"]) for row in stated]:
            self.say("limits", "must be those of the spec that the plan meets, each once")
            return
        for (path, name, value, limit), row in zip(computed, stated):
            self.equal(f"limits {path}", {k: row[k] for k in ("value", "limit")}, {"value": value, "limit": limit})
            self.equal(f"limits {path}.slack", row["slack"], row["limit"] - row["value"])
            self.at_most(f"limits {path}", value, limit, name)
        self._prices_of_the_bound()

    def _prices_of_the_bound(self) -> None:
        """What the bound says of limits holds for this plan too: what they leave over at their prices comes to no more than lies between the two."""
        value, bound, divisible = (
            self.document["objective"]["value"],
            self.document["bound"],
            self.document.get("bound_divisible"),
        )
        rows = [
            row
            for row in self.document["limits"]
            if BY_THE_BOUND in row.get("note", "") and row["marginal_value_divisible"] is not None
        ]
        for row in rows:
            if not row["marginal_value_divisible"] < 0:
                self.say(
                    f"limits {row['path']}.marginal_value_divisible",
                    f"more of a limit cannot make the least cost larger: {row['marginal_value_divisible']!r}",
                )
        if rows and divisible is None:
            self.say("bound_divisible", "must tell what the prices of the limits prove by themselves")
        if divisible is not None and (bound is None or divisible > bound + TOLERANCE * abs(bound)):
            self.say(
                "bound_divisible",
                f"must not lie above the bound {bound!r}, which counts choices as whole: {divisible!r}",
            )
        if rows and divisible is not None:
            left = sum(max(row["slack"], 0.0) * -row["marginal_value_divisible"] for row in rows)
            if left > value - divisible + TOLERANCE * abs(value):
                self.say(
                    "limits",
                    f"what they leave over is worth {left:.9g} by the bound, which is only {value - divisible:.9g} away",
                )

    def _limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        problem, calendar = self.problem, self.problem.calendar
        yield from power_values(self)
        for site in problem.sites:
            if site.electricity is not None and math.isfinite(site.electricity.connection_w):
                bought = max(row["grid_w"] for row in self.document["schedule"] if row["site"] == site.region)
                yield (
                    f"{site.electricity.path}.connection",
                    f"connection of {site.region}",
                    bought,
                    site.electricity.connection_w,
                )
        for offer in problem.offers:
            if math.isfinite(offer.supply):
                taken = [
                    sum(c[w] for key, c in self.held.items() if self.fleet_options[key].offer is offer)
                    for w in range(calendar.windows)
                ]
                yield f"{offer.path}.supply", f"supply of {offer.system} ({offer.how})", max(taken), offer.supply
            for phase, most in zip(problem.phases, offer.phase_supply):
                rows = [
                    (row["count"], when.windows) for row, when in self._obtained_in(phase) if row["offer"] == offer.path
                ]
                taken = [sum(n for n, windows in rows if w in windows) for w in range(calendar.windows)]
                if math.isfinite(most):
                    yield (
                        f"{offer.path}.supply_by_phase.{phase.name}",
                        f"supply of {offer.system} ({offer.how}) in {phase.name}",
                        max(taken),
                        most,
                    )
        for key, counts in self.held.items():
            option = self.fleet_options[key]
            if math.isfinite(option.largest):
                name = f"size of one {option.fabric} network of {option.system.name} in {option.site.region}"
                yield f"{option.site.path}.fabrics", name, max(counts), option.largest
        prices = [
            row["count"] * (when.price + option.fabric_capital) if option.owned else 0.0
            for row, when, option in zip(self.document["fleet"], self.times, self.options_by_row)
        ]
        bought = sum(prices)
        bought += self.electricity.capital if self.electricity else 0.0
        for path, name, value, limit in (
            ("limits.budget", "present value of all costs", sum(self.sums.lines.values()), problem.budget),
            ("limits.capital", "purchase price of systems and fabric", bought, problem.capital),
            ("limits.carbon", "carbon", sum(self.sums.carbon.values()), problem.carbon_kg),
            *(
                (f"{phase.path}.budget", f"payments in {phase.name}", paid, phase.budget)
                for phase, paid in zip(problem.phases, payments(self) or ())
            ),
            *(
                (
                    f"{phase.path}.capital",
                    f"purchase price in {phase.name}",
                    sum(n for n, when in zip(prices, self.times) if when.phase == p),
                    phase.capital,
                )
                for p, phase in enumerate(problem.phases)
            ),
        ):
            if math.isfinite(limit):
                yield path, name, value, limit
        if self.lines is not None:
            yield from self.lines.limit_values()
        if self.spread is not None:
            yield from self.spread.limit_values()
        yield from self.interruptions.limit_values()
        for job in problem.training:
            busy = sum(
                a * float(s)
                for n, (_, c) in self.points.items()
                if c.workload == job.name
                for a, s in zip(self.active[n], calendar.seconds)
            )
            yield (
                f"{job.path}.deadline",
                f"full-width time of {job.name} between start and deadline",
                busy,
                job.spec.deadline - job.spec.start,
            )
        for workload in problem.serving:
            for metric, percentile, limit in workload.spec.slo.limits():
                mine = [n for n, (_, c) in self.points.items() if c.workload == workload.name]
                if mine:
                    worst = max(self._at_origin(n, metric, percentile) for n in mine)
                    yield (
                        f"{workload.path}.slo.{metric}.{percentile}",
                        f"{metric.upper()} {percentile} of {workload.name}",
                        worst,
                        limit,
                    )

    def _obtained_in(self, phase: PhaseFacts) -> list[tuple[Mapping[str, Any], InTime]]:
        position = self.problem.phases.index(phase)
        return [(row, when) for row, when in zip(self.document["fleet"], self.times) if when.phase == position]
