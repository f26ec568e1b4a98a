"""The load of a serving case, the configurations that may carry it, and the comparison of two of them.

Not here: the search over batches and layouts (`aggregated_search`, `disaggregated_search`, `batch_search`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from models.arrays import sum_of
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import latency_s, within_slo
from planner.candidates.serving import serving_layouts
from planner.errors import Issue, SpecError, close_matches
from planner.estimate.case import CaseFacts
from planner.estimate.power import Draw, serving_draw
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import APART, engine_choices, limits_at_site
from planner.evaluate.serving_layouts import broken_rules
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import SystemFacts

MAX, RATE, CONCURRENCY = "max", "requests_per_s", "concurrency"
SIZES = tuple(field.name for field in fields(ServingLayouts))


@dataclass(frozen=True, slots=True)
class Load:
    """The load on the whole case: as much as possible ("max"), a rate ("requests_per_s") or clients ("concurrency")."""

    kind: str
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class ServingConfiguration:
    """A way to serve the case: `copies` of one replica, or one group of two pools. `point` describes one of them, in plain numbers."""

    choice: EngineChoice
    systems: tuple[SystemFacts, ...]
    layouts: tuple[ServingLayouts, ...]  # layouts of the one pool, or of prefill and decode workers
    workers: tuple[int, ...]
    copies: float  # replicas that carry load
    chips: int  # chips in use
    batch: float
    point: ServingPoint
    pools: DisaggregatedPoint | None
    meets: bool  # whether all latency limits are met
    surplus_wait_s: float = 0.0  # wait of clients beyond what runs at once; included in the point's time to first token

    @property
    def precision(self) -> str:
        """Return the precision of the weights."""
        return self.choice.precision

    @property
    def requests_per_s(self) -> float:
        """Compute the throughput of the whole case."""
        return float(self.point.requests_per_s) * self.copies

    def latency(self, metric: str, quantile: float | str) -> float:
        """Compute a latency metric at a quantile, or its mean [s]."""
        return float(latency_s(self.point, metric, quantile))


def draw_of_pools(facts: CaseFacts, configuration: ServingConfiguration) -> Draw:
    """Compute the speed of a configuration under the cap of the case, and the power of one system of each pool."""
    shares = [configuration.point.shares]
    if configuration.pools is not None:
        shares = [configuration.pools.prefill_shares, *shares]
    return serving_draw(facts.power_cap, configuration.systems, shares, facts.constants.power)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best configuration, or None, and how many operating points were tried, fitted in memory, and met the limits."""

    best: ServingConfiguration | None
    points: int = 0
    fitting: int = 0
    meeting: int = 0


def load_of(facts: CaseFacts) -> Load:
    """Read the load of a case: its `load`, else its demand, else the most that it can carry."""
    case = facts.case
    if case.load is not None:
        stated = [(kind, value) for kind in (RATE, CONCURRENCY) if (value := getattr(case.load, kind)) is not None]
        return Load(*stated[0]) if stated else Load(MAX)
    workload = facts.serving.spec
    if workload.demand is None:
        return Load(MAX)
    rate = workload.mean_requests_per_s
    return Load(RATE, rate) if rate else Load(MAX)


def common_choices(facts: CaseFacts, systems: Sequence[SystemFacts]) -> list[EngineChoice]:
    """List the ways to run that all systems support. Raises SpecError where there is none."""
    asked, stated = facts.serving.spec.precision, facts.serving.spec.arithmetic
    found: list[str] = [name for name in asked if all(system.serves(name, stated) for system in systems)]
    if not found:
        chips = " and ".join(dict.fromkeys(f"{system.chip} ({', '.join(system.flop_per_s)})" for system in systems))
        raise SpecError(
            [
                Issue(
                    "workload.precision",
                    Message.of("estimate.precision_of_chips", names=chips, given=", ".join(asked)).text(),
                )
            ]
        )
    choices = engine_choices(facts.serving, systems[0])
    able = [choice for choice in choices if choice.precision in found and choice.encoding != APART]
    if not able and any(choice.encoding == APART for choice in choices):
        message = Message.of("estimate.encoders_beside_engine").text()
        raise SpecError([Issue("workload.encoding", message)])
    if not able:
        message = Message.of("estimate.no_host_memory", system=systems[0].name).text()
        raise SpecError([Issue("workload.session.caches", message)])
    return able


def allowed_layouts(
    facts: CaseFacts, system: SystemFacts, chips: int, asked: Mapping[str, int] | None, path: str
) -> ServingLayouts:
    """List the layouts to search on at most `chips` chips, or the one that the case asks for.

    Raises SpecError, with the place `path`, for a layout that no engine would run, with every rule that it breaks.
    """
    arch, networked = facts.architecture, facts.scaleout.bytes_per_s > 0
    if asked is None:
        every = serving_layouts(arch, system, networked)
        return every.take(np.flatnonzero(np.asarray(every.chips) <= chips))
    if unknown := [name for name in asked if name not in SIZES]:
        raise SpecError(
            Issue(
                f"{path}.{name}",
                Message.of("estimate.unknown_size", close=close_matches(name, SIZES), known=", ".join(SIZES)).text(),
            )
            for name in unknown
        )
    if small := [name for name, size in asked.items() if size < 1]:
        raise SpecError(Issue(f"{path}.{name}", Message.of("estimate.whole_number_expected").text()) for name in small)
    sizes = {name: asked.get(name, 1) for name in SIZES}
    if "ep" not in asked and sizes["dp"] > 1:
        sizes["ep"] = sizes["tp"] * sizes["dp"]
    layout = ServingLayouts(**{name: np.array([size]) for name, size in sizes.items()})
    broken = [rule for rule, breaks in broken_rules(arch, system, layout, networked).items() if breaks.any()]
    if broken:
        raise SpecError(
            [Issue(path, Message.of("estimate.no_engine", where=system.name, why="; ".join(broken)).text())]
        )
    if int(np.prod([sizes[name] for name in ("tp", "pp", "dp")])) > chips:
        raise SpecError([Issue(path, Message.of("estimate.layout_over_chips", count=chips).text())])
    return layout


def meets_limits(facts: CaseFacts, point: ServingPoint) -> bool:
    """Tell whether one operating point meets all latency limits of the case."""
    spec = facts.serving.spec
    return bool(within_slo(point, limits_at_site(spec, 0.0)) & meets_classes(spec.classes, point, 0.0))


def is_better(load: Load, one: ServingConfiguration | None, other: ServingConfiguration | None) -> bool:
    """Tell whether `one` carries the load better than `other`."""
    if one is None or other is None:
        return one is not None
    return _merit(load, one) > _merit(load, other)


def _merit(load: Load, configuration: ServingConfiguration) -> tuple[bool, float]:
    """Rank by limits met first, then by latency under a given rate, else by throughput."""
    return configuration.meets, -configuration.latency(
        "e2e", "mean"
    ) if load.kind == RATE else configuration.requests_per_s


def best_result(results: Iterator[SearchResult]) -> SearchResult:
    """Merge the results of several ways to run: their best configuration, and the sums of their counts."""
    found = list(results)
    points, fitting, meeting = (
        sum_of(getattr(result, name) for result in found) for name in ("points", "fitting", "meeting")
    )
    configurations = [result.best for result in found if result.best is not None]
    # All carry the same load, so rate and latency compare them whatever the load states.
    best = max(configurations, key=lambda c: (c.meets, c.requests_per_s, -c.latency("e2e", "mean")), default=None)
    return SearchResult(best, points, fitting, meeting)
