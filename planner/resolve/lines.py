"""From the `lines` of a spec to the ways that its traffic may take: which kind fits what, at which round trip and price.

Without `lines` there is no choice: `planner.resolve.wan`. The choice itself is the program's (`solvers.model.lines`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from catalog.errors import MissingFigure
from catalog.figures import Figure
from catalog.records import Record
from catalog.units import DAY_S
from planner.problem.facts import ServingFacts, SiteFacts, permitted
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
from planner.problem.price_levels import stated_level
from planner.resolve.ledger import Ledger
from planner.spec.lines import SECURITY, Line
from planner.spec.model import PlanSpec, Serving

Edge = tuple[str, str, float, float]  # regions, round trip [s], price [currency/byte]
Money = Callable[..., float]
Tell = Callable[[str, str], None]

HOP_S = 1e4  # more than any round trip
NEEDS_LINES = ("security", "availability", "traffic")
STATED = {  # field of the spec -> figure of the catalog
    "capacity": "unit_bytes_per_s", "latency_factor": "rtt_factor", "added_latency": "rtt_added_s",
    "availability": "availability", "setup": "setup_s", "price": "unit_price", "price_per_byte": "price_per_byte",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offered:
    """An entry of `lines` with the catalog's figures where it states none; `between`: two regions, or none for any."""

    path: str
    kind: str
    between: frozenset[str]
    security: int
    figures: dict[str, float]
    most: float

    @property
    def ready_s(self) -> float:
        """A typical day cannot be cut, so what is set up within one is there from the start."""
        return self.figures["setup_s"] if self.figures["setup_s"] >= DAY_S else 0.0


def offered_lines(
    spec: PlanSpec, ledger: Ledger, find: Callable[[str, str, str], Record | None], convert: Money, wrong: Tell
) -> list[Offered] | None:
    """The entries of the spec; None without the block, when nothing else may ask for one."""
    if spec.lines is None:
        for i, workload in enumerate(spec.workloads):
            for name in NEEDS_LINES if isinstance(workload, Serving) else ():
                if getattr(workload, name) != type(workload).model_fields[name].default:
                    wrong(
                        f"workloads[{i}].{name}",
                        'says what lines must be like; add "lines" that are on offer, or remove it',
                    )
        return None
    found: list[Offered] = []
    for i, line in enumerate(spec.lines):
        path = f"lines[{i}]"
        record = find("lines", line.kind, f"{path}.kind")
        ends = [find("regions", name, f"{path}.between[{j}]") for j, name in enumerate(line.between or ())]
        if record is None or None in ends:
            continue
        between = frozenset(region.name for region in ends)
        if twice := next((o for o in found if (o.kind, o.between) == (record.name, between)), None):
            wrong(path, f"{record.name} stands at {twice.path} already for the same regions; join the two")
            continue
        try:
            figures = _figures(line, record, path, ledger, convert)
        except MissingFigure as error:
            wrong(path, str(error))
            continue
        if line.price is not None and math.isinf(figures["unit_bytes_per_s"]):
            wrong(f"{path}.price", f'"{record.name}" has no capacity of a unit in the catalog; state "capacity" too')
        security = line.security or record.words("security")
        if line.security is not None:
            ledger.assume(f"{path}.security", security, "", line.note or "stated in the spec")
        found.append(
            Offered(
                path,
                record.name,
                between,
                SECURITY.index(security),
                figures,
                math.inf if line.units is None else line.units,
            )
        )
    return found


def _figures(line: Line, record: Record, path: str, ledger: Ledger, convert: Money) -> dict[str, float]:
    result = {"unit_bytes_per_s": math.inf, "unit_price": 0.0, "price_per_byte": 0.0}
    stated = {figure: (name, value) for name, figure in STATED.items() if (value := getattr(line, name)) is not None}
    scope = (
        ("lines", "*", record.name),
        ("egress", "*", record.name),
        ("weights", "*", record.name),
        *((s, "*", record.name) for s in STREAMS),
    )
    for figure in (*STATED.values(), "path_price_share"):
        if figure in stated:
            name, value = stated[figure]
            unit = {"price": "/s", "price_per_byte": "/byte"}.get(name)
            if unit:
                value, currency = value
                reason = (line.note or "stated in the spec") + stated_level(ledger.prices, f"{path}.{name}", "lines")
                ledger.assume(f"{path}.{name}", value, currency + unit, reason, *scope)
                value = convert(value, currency, f"{path}.{name}")
            else:
                ledger.assume(
                    f"{path}.{name}",
                    value,
                    {"unit_bytes_per_s": "byte/s", "setup_s": "s", "rtt_added_s": "s"}.get(figure, "1"),
                    line.note or "stated in the spec",
                )
            result[figure] = value
        elif record.get(figure) is not None or figure not in result:
            known = ledger.figure("lines", record.name, figure)
            if known.kind in ("assumed", "derived"):
                reason = known.note or "no figure of this kind of line is published"
                ledger.assume(
                    f"lines/{record.name}/{figure}",
                    known.printed,
                    known.unit,
                    reason,
                    *(scope if "price" in figure else ()),
                )
            result[figure] = _in_currency(known, convert)
    return result


def _in_currency(figure: Figure, convert: Money) -> float:
    return convert(figure.value, figure.unit[:3]) if figure.unit[:3].isupper() else figure.value


def borders(offered: Sequence[Offered] | None) -> Iterator[float]:
    """Times at which a line becomes ready, for the calendar."""
    yield from (line.ready_s for line in offered or ())


def line_network(
    offered: Sequence[Offered],
    edges: Iterable[Edge],
    sites: Sequence[SiteFacts],
    serving: Sequence[ServingFacts],
    ledger: Ledger,
) -> LineNetwork:
    """Every line that some traffic could use, and the ways of each."""
    found = _Finder(_lines(offered, edges))
    requests, streams, hops, rates = {}, {}, {}, {}
    for workload in serving:
        name, home, traffic = workload.name, workload.weights_from, workload.spec.traffic
        allowed = [site.region for site in sites if permitted(workload, site)]
        origins = [origin.region for origin in workload.spec.origins]
        through = {*allowed, *origins} if workload.spec.residency is not None else None
        for site in allowed:
            for origin in origins:
                requests[name, origin, site] = found.ways(site, origin, through, *_demanded(workload.spec, None))
            for kind in STREAMS:
                streams[name, kind, site] = found.ways(
                    home, site, through, *_demanded(workload.spec, getattr(traffic, kind))
                )
        hops[name] = found.hops(home, allowed, *_demanded(workload.spec, traffic.weights))
        for kind, default in ((CONTROL, "control_rate"), (TELEMETRY, "telemetry_rate")):
            stated, path = getattr(traffic, kind).rate, f"{workload.path}.traffic.{kind}.rate"
            rates[name, kind] = (
                stated
                if stated is not None
                else ledger.default(default, path, "not stated in the spec", (kind, "*", "*"))
            )
        window = traffic.weights.window
        if window is None:
            window = ledger.default(
                "update_window_s",
                f"{workload.path}.traffic.weights.window",
                "not stated in the spec",
                ("lines", "*", "*"),
            )
        rates[name, WEIGHTS] = workload.weights_bytes / window
    return found.used(LineNetwork((), requests, streams, hops, rates))


def _demanded(spec: Serving, traffic) -> tuple[int, float]:
    """Least class and availability of the lines of requests (None) or of what is sent beside them."""
    security = spec.security if traffic is None or traffic.security is None else traffic.security
    availability = spec.availability if traffic is None or traffic.availability is None else traffic.availability
    return SECURITY.index(security), availability


def _lines(offered: Sequence[Offered], edges: Iterable[Edge]) -> list[LineFacts]:
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
    """Ways over lines; all lines first, those of no way are dropped at the end."""

    def __init__(self, lines: Sequence[LineFacts]):
        self.lines = [line for line in lines if line.most >= 1 or math.isinf(line.unit_bytes_per_s)]
        self.kinds = tuple(dict.fromkeys(line.kind for line in self.lines))

    def ways(
        self, start: str, end: str, through: set[str] | None, security: int, availability: float
    ) -> tuple[Carrier, ...]:
        """The way over fewest lines, then the quickest, of each kind that is safe and available enough, through permitted regions only."""
        if start == end:
            return (Carrier(hops=(start,)),)
        found = (self._way(kind, start, end, through, security, availability) for kind in self.kinds)
        return tuple(way for way in found if way is not None)

    def _way(
        self, kind: str, start: str, end: str, through: set[str] | None, security: int, availability: float
    ) -> Carrier | None:
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
            sum(line.rtt_s for line in used),
            sum(line.price_per_byte for line in used),
            max(line.ready_s for line in used),
            tuple(nodes),
            sides,
        )

    def hops(self, home: str, sites: Sequence[str], security: int, availability: float) -> tuple[WeightHop, ...]:
        """Single lines from the source to a site, and from one site to another."""
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
        ways = [way for group in (network.requests, network.streams) for some in group.values() for way in some]
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
        )
