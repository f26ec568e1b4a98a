"""Resolve the `lines` of a spec into routes for its traffic, each over one kind of line, with round trip and price.

Without `lines` there is no choice: `planner.resolve.routes.wan`. The choice itself is the program's (`solvers.model.lines`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

from catalog.errors import MissingFigure
from catalog.figures import Figure
from catalog.records import Record
from catalog.units import DAY_S
from models.arrays import sum_of
from planner.errors import words_of
from planner.messages import Message
from planner.problem.facts import ServingFacts, SiteFacts, TrainingFacts, permitted
from planner.problem.lines import (
    CONTROL,
    STREAMS,
    TELEMETRY,
    WEIGHTS,
    Carrier,
    LineFacts,
    LineNetwork,
    WeightHop,
)
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.context import NOT_STATED, ResolveContext
from planner.resolve.ledger import Ledger, origin_of
from planner.spec.lines import SECURITY, Distribution, Line, Stream
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Serving

Edge = tuple[str, str, float, float]  # regions, round trip [s], price [currency/byte]

HOP_S = 1e4  # more than any round trip
NEEDS_LINES = ("security", "availability", "traffic", "across_sites")
PLAIN_FIGURES = {  # field of the spec -> figure of the catalog
    "capacity": "unit_bytes_per_s", "latency_factor": "rtt_factor", "added_latency": "rtt_added_s",
    "availability": "availability", "setup": "setup_s",
}  # fmt: skip
PRICE_FIGURES = {"price": "unit_price", "price_per_byte": "price_per_byte"}
FIGURES = (*PLAIN_FIGURES.values(), *PRICE_FIGURES.values(), "path_price_share")
OPTIONAL = {
    "unit_bytes_per_s": math.inf,
    "unit_price": 0.0,
    "price_per_byte": 0.0,
}  # figures of a line not bought by capacity
UNITS = {
    "unit_bytes_per_s": "byte/s",
    "setup_s": "s",
    "rtt_added_s": "s",
    "unit_price": "/s",
    "price_per_byte": "/byte",
}


@dataclass(frozen=True, slots=True)
class Offered:
    """An entry of `lines`, with the catalog's figures where it states none; `between`: two regions, or none for any."""

    path: str
    kind: str
    between: frozenset[str]
    security: int
    figures: Mapping[str, float]
    most: float

    @property
    def ready_s(self) -> float:
        """Return when the line is ready [s]; a typical day cannot be cut, so lines set up within a day are ready at the start."""
        return self.figures["setup_s"] if self.figures["setup_s"] >= DAY_S else 0.0


def offered_lines(context: ResolveContext) -> list[Offered] | None:
    """Resolve the entries of `lines`; None without the block; then no workload may state requirements on lines."""
    if context.spec.lines is None:
        _check_nothing_needs_lines(context)
        return None
    _check_across_sites(context)
    found: list[Offered] = []
    for i, line in enumerate(context.spec.lines):
        path = f"lines[{i}]"
        record = context.find("lines", line.kind, f"{path}.kind")
        ends = context.find_all("regions", line.between or [], f"{path}.between")
        if record is None or ends is None:
            continue
        between = frozenset(region.name for region in ends)
        if twice := next((o for o in found if (o.kind, o.between) == (record.name, between)), None):
            message = Message.of("resolve.line_twice", name=record.name, place=twice.path).text()
            context.add_problem(path, message)
            continue
        try:
            figures = _figures(context, line, record, path)
        except MissingFigure as error:
            context.add_problem(path, words_of(error))
            continue
        if line.price is not None and math.isinf(figures["unit_bytes_per_s"]):
            message = Message.of("resolve.line_capacity_missing", name=record.name).text()
            context.add_problem(f"{path}.price", message)
        security = line.security or record.words("security")
        if line.security is not None:
            context.assume_stated(f"{path}.security", security, "", note=line.note)
        most = math.inf if line.units is None else line.units
        found.append(Offered(path, record.name, between, SECURITY.index(security), figures, most))
    return found


def _check_nothing_needs_lines(context: ResolveContext) -> None:
    """Add a problem for each requirement on lines in a spec that has none on offer."""
    for i, workload in enumerate(context.spec.workloads):
        for name in NEEDS_LINES:
            fields = type(workload).model_fields if isinstance(workload, (Serving, Reinforcement)) else {}
            own = (
                isinstance(workload, Serving) or name == "across_sites"
            )  # a job's `availability` is that of its systems
            if own and name in fields and getattr(workload, name) != fields[name].default:
                message = Message.of("resolve.line_class_without_lines").text()
                context.add_problem(f"workloads[{i}].{name}", message)


def _check_across_sites(context: ResolveContext) -> None:
    """Add a problem for each workload with pools at two sites beside phases, or a workload that must survive the failure of a zone."""
    serving = [workload for workload in context.spec.workloads if isinstance(workload, Serving)]
    survives = any(workload.spread is not None and workload.spread.survive for workload in serving)
    for i, workload in enumerate(context.spec.workloads):
        asked = isinstance(workload, (Serving, Reinforcement)) and workload.across_sites
        if asked and (survives or context.spec.phases):
            context.add_problem(f"workloads[{i}].across_sites", Message.of("resolve.across_sites_limits").text())


def _figures(context: ResolveContext, line: Line, record: Record, path: str) -> dict[str, float]:
    """Collect the figures of a line, by the catalog's names: those that the spec states, else the catalog's."""
    components = ("lines", "egress", "weights", *STREAMS)
    scope = tuple((component, "*", record.name) for component in components)
    result = dict(OPTIONAL) | _stated_figures(context, line, path, scope)
    stated = {name for name, field in FIELD_OF.items() if getattr(line, field) is not None}
    for name in FIGURES:
        if name in stated or (record.get(name) is None and name in OPTIONAL):
            continue
        figure = context.ledger.figure("lines", record.name, name)
        if figure.kind in ("assumed", "derived"):
            own = Message.of("resolve.line_figure_unpublished").text()
            reason = origin_of(f"lines/{record.name}/{name}", figure) if figure.note else own
            where = f"lines/{record.name}/{name}"
            context.ledger.assume(where, figure.printed, figure.unit, reason, *(scope if "price" in name else ()))
        result[name] = _in_currency(context, figure)
    return result


FIELD_OF = {figure: field for field, figure in (PLAIN_FIGURES | PRICE_FIGURES).items()}


def _stated_figures(
    context: ResolveContext, line: Line, path: str, scope: Sequence[tuple[str, str, str]]
) -> dict[str, float]:
    """Collect the figures that the spec states, and book them as assumptions."""
    result: dict[str, float] = {}
    for field, name in PLAIN_FIGURES.items():
        if (value := getattr(line, field)) is not None:
            context.assume_stated(f"{path}.{field}", value, UNITS.get(name, "1"), note=line.note)
            result[name] = value
    for field, name in PRICE_FIGURES.items():
        if (price := getattr(line, field)) is not None:
            amount, currency = price
            unit = currency + UNITS[name]
            context.assume_price(f"{path}.{field}", "lines", amount, unit, *scope, note=line.note)
            result[name] = context.convert((amount, currency), f"{path}.{field}")
    return result


def _in_currency(context: ResolveContext, figure: Figure) -> float:
    """Return a figure of the catalog, a price in the currency of the plan."""
    return context.price(figure) if figure.unit[:3].isupper() else figure.number


def borders(offered: Sequence[Offered] | None) -> Iterator[float]:
    """Yield the times at which a line becomes ready, for the calendar [s]."""
    yield from (line.ready_s for line in offered or ())


def line_network(
    offered: Sequence[Offered],
    edges: Iterable[Edge],
    sites: Sequence[SiteFacts],
    serving: Sequence[ServingFacts],
    across: Sequence[ReinforcementFacts],
    ledger: Ledger,
) -> LineNetwork:
    """Find the lines that some traffic could use, and all routes of traffic over them."""
    found = _Finder(_lines(offered, edges))
    requests: dict[tuple[str, str, str], tuple[Carrier, ...]] = {}
    streams: dict[tuple[str, str, str], tuple[Carrier, ...]] = {}
    hops: dict[str, tuple[WeightHop, ...]] = {}
    rates: dict[tuple[str, str], float] = {}
    exchanges: dict[tuple[str, str, str], tuple[Carrier, ...]] = {}
    for workload in serving:
        name, home, traffic = workload.name, workload.weights_from, workload.spec.traffic
        reached = [site for site in sites if permitted(workload, site)]
        allowed = [site.region for site in reached if site.api is None]
        origins = [origin.region for origin in workload.spec.origins]
        within = {*(site.place for site in reached), *origins}
        through = within if workload.spec.residency is not None else None
        for place in reached:  # an API as well: its prompts and answers travel, but neither weights nor streams
            for origin in origins:
                ways = found.ways(place.place, origin, through, *_demanded(workload.spec, None))
                requests[name, origin, place.region] = ways
        for site in allowed:
            for kind in STREAMS:
                streams[name, kind, site] = found.ways(
                    home, site, through, *_demanded(workload.spec, getattr(traffic, kind))
                )
        for pair in permutations(allowed, 2) if workload.spec.across_sites else ():
            exchanges[name, *pair] = found.counted(found.ways(*pair, through, *_demanded(workload.spec, None)))
        hops[name] = found.hops(home, allowed, *_demanded(workload.spec, traffic.weights))
        for kind, stated, default in (
            (CONTROL, traffic.control.rate, "control_rate"),
            (TELEMETRY, traffic.telemetry.rate, "telemetry_rate"),
        ):
            path = f"{workload.path}.traffic.{kind}.rate"
            rate = stated if stated is not None else ledger.default(default, path, NOT_STATED, (kind, "*", "*"))
            rates[name, kind] = rate
        window = traffic.weights.window
        if window is None:
            path = f"{workload.path}.traffic.weights.window"
            window = ledger.default("update_window_s", path, NOT_STATED, ("lines", "*", "*"))
        rates[name, WEIGHTS] = workload.weights_bytes / window
    for job in across:
        allowed = [site.region for site in sites if site.api is None and permitted(job, site)]
        through = None if job.spec.residency is None else set(allowed)
        for pair in permutations(allowed, 2):
            exchanges[job.name, *pair] = found.counted(found.ways(*pair, through, 0, 0.0))
    return found.used(LineNetwork((), requests, streams, hops, rates, exchanges))


def jobs_across(training: Sequence[TrainingFacts]) -> list[ReinforcementFacts]:
    """List the jobs of reinforcement learning that may update at one site and roll out at another."""
    return [job for job in training if isinstance(job, ReinforcementFacts) and job.spec.across_sites]


def _demanded(spec: Serving, traffic: Stream | Distribution | None) -> tuple[int, float]:
    """Return the least class and availability of the lines of requests (None) or of other traffic."""
    security = spec.security if traffic is None or traffic.security is None else traffic.security
    availability = spec.availability if traffic is None or traffic.availability is None else traffic.availability
    return SECURITY.index(security), availability


def _lines(offered: Sequence[Offered], edges: Iterable[Edge]) -> list[LineFacts]:
    """List one line of each kind on offer for each pair of regions; an entry for the two regions goes before one for any."""
    result = []
    for a, b, rtt_s, price in edges:
        for kind in dict.fromkeys(line.kind for line in offered):
            here = [line for line in offered if line.kind == kind and line.between in (frozenset(), frozenset((a, b)))]
            if not here:
                continue
            line = max(here, key=lambda line: len(line.between))
            f = line.figures
            result.append(LineFacts(
                path=line.path, kind=kind, ends=(a, b), security=line.security, availability=f["availability"],
                rtt_s=rtt_s * f["rtt_factor"] + f["rtt_added_s"], price_per_byte=f["price_per_byte"] + f["path_price_share"] * price,
                unit_bytes_per_s=f["unit_bytes_per_s"], unit_price_per_s=f["unit_price"], ready_s=line.ready_s, most=line.most,
            ))  # fmt: skip
    return result


class _Finder:
    """Find routes over all lines, and drop unused lines at the end."""

    def __init__(self, lines: Sequence[LineFacts]):
        self.lines = [line for line in lines if line.most >= 1 or math.isinf(line.unit_bytes_per_s)]
        self.kinds = tuple(dict.fromkeys(line.kind for line in self.lines))

    def ways(
        self, start: str, end: str, through: set[str] | None, security: int, availability: float
    ) -> tuple[Carrier, ...]:
        """Find, for each kind of line of sufficient class and availability, the route over the fewest lines, then of least latency, through permitted regions."""
        if start == end:
            return (Carrier(hops=(start,)),)
        found = (self._way(kind, start, end, through, security, availability) for kind in self.kinds)
        return tuple(way for way in found if way is not None)

    def counted(self, ways: Iterable[Carrier]) -> tuple[Carrier, ...]:
        """Keep the routes over lines that all have a capacity of their own."""
        return tuple(
            way for way in ways if all(math.isfinite(self.lines[line].unit_bytes_per_s) for line, _ in way.uses)
        )

    def _way(
        self, kind: str, start: str, end: str, through: set[str] | None, security: int, availability: float
    ) -> Carrier | None:
        """Find the route over lines of one kind; None without a route of sufficient availability."""
        import networkx as nx  # slow to import

        graph = nx.Graph()
        for i, line in enumerate(self.lines):
            inside = through is None or all(region in through or region in (start, end) for region in line.ends)
            if inside and line.kind == kind and line.security >= security and line.availability >= availability:
                graph.add_edge(*line.ends, line=i, far=HOP_S + line.rtt_s)
        try:
            nodes = nx.dijkstra_path(graph, start, end, weight="far")
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return None
        hops = list(pairwise(nodes))
        numbers = [graph.edges[hop]["line"] for hop in hops]
        used = [self.lines[i] for i in numbers]
        if math.prod(line.availability for line in used) < availability:
            return None
        sides = tuple((i, 0 if hop == self.lines[i].ends else 1) for i, hop in zip(numbers, hops, strict=True))
        return Carrier(
            kind,
            sum_of(line.rtt_s for line in used),
            sum_of(line.price_per_byte for line in used),
            max(line.ready_s for line in used),
            tuple(nodes),
            sides,
        )

    def hops(self, home: str, sites: Sequence[str], security: int, availability: float) -> tuple[WeightHop, ...]:
        """List the single lines from the source to a site, and from one site to another."""
        found = []
        for i, line in enumerate(self.lines):
            if line.security >= security and line.availability >= availability:
                found += [
                    WeightHop(source, target, i, side)
                    for side, (source, target) in enumerate((line.ends, line.ends[::-1]))
                    if target in sites and target != home and (source == home or source in sites)
                ]
        return tuple(found)

    def used(self, network: LineNetwork) -> LineNetwork:
        """Keep the lines that some way uses, numbered anew."""
        groups = (network.requests, network.streams, network.exchanges)
        ways = [way for group in groups for some in group.values() for way in some]
        numbers = sorted(
            {line for way in ways for line, _ in way.uses}
            | {hop.line for some in network.hops.values() for hop in some}
        )
        place = {number: i for i, number in enumerate(numbers)}

        def moved(some: tuple[Carrier, ...]) -> tuple[Carrier, ...]:
            return tuple(replace(way, uses=tuple((place[line], side) for line, side in way.uses)) for way in some)

        return LineNetwork(
            lines=tuple(self.lines[i] for i in numbers),
            requests={key: moved(some) for key, some in network.requests.items()},
            streams={key: moved(some) for key, some in network.streams.items()},
            hops={
                name: tuple(replace(hop, line=place[hop.line]) for hop in some) for name, some in network.hops.items()
            },
            rates=network.rates,
            exchanges={key: moved(some) for key, some in network.exchanges.items()},
        )
