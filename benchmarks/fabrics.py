"""Check fabric designs against explicit graphs: parts counted, bisection by maximum flow, hops by search, traffic by linear program.

Also checks rank placement against all orders routed on a graph, and lists what each design costs and carries for the same systems.
Run: python benchmarks/fabrics.py    The last line printed is one JSON object; exit 1 where a figure differs.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import networkx as nx
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from catalog.lookup import Catalog
from models.network.designs import (
    Design,
    bisection_bytes_per_s,
    latency_s,
    network,
    network_power_w,
    network_price,
)
from models.network.direct import balanced_dragonfly, dragonfly, torus, torus_dims
from models.network.group_links import Plant, group_links
from models.network.placement import Flow, Level, best_placement
from models.network.placement_torus import best_torus_placement
from models.network.trees import leaf_ports
from tests.models.network import fabric_graphs

RADIX, PORTS = 16, 4
TREE_SIZES = {  # systems of 4 ports on switches of 16: one, two and three tiers
    "rail-only": (4, 16, 32, 128, 160, 256), "rail-only:3": (16, 24, 96, 192, 240), "rail-optimised": (4, 8, 32, 64, 128),
    "rail-optimised:3": (12, 24, 48, 96), "fat-tree": (4, 8, 20, 32, 64, 128), "fat-tree:3": (6, 12, 30, 48, 96), "fat-tree:5/3": (5, 10, 40),
}  # fmt: skip
TORI = ((4, 4, 1), (16, 16, 1), (4, 4, 4), (8, 4, 4), (5, 4, 3), (5, 5, 5), (8, 8, 8))
DRAGONFLIES = ((7, 1), (7, 2), (7, 4), (7, 9), (11, 6), (11, 10), (11, 19), (15, 16))
SYSTEMS = (64, 256, 1024, 4096)
NETWORK = "InfiniBand NDR"


def ends_of(graph: nx.Graph) -> list:
    return sorted(v for v in graph if fabric_graphs.is_end(v))


def uniform_rate(graph: nx.Graph) -> float:
    """Find the rate at which every end can send equally to all others, by linear program over all routes (flows gathered by source)."""
    ends, vertices = ends_of(graph), {v: i for i, v in enumerate(graph)}
    arcs = [(a, b, n) for u, v, n in graph.edges(data=fabric_graphs.LINKS) for a, b in ((u, v), (v, u))]
    rows, columns, values, right = [], [], [], []
    width, height = len(arcs), len(vertices)
    for s, source in enumerate(ends):
        for e, (a, b, _) in enumerate(arcs):
            rows += [s * height + vertices[a], s * height + vertices[b]]
            columns += [s * width + e] * 2
            values += [1.0, -1.0]
        for end in ends:  # what leaves less what comes in is the source's rate, or minus a part of it
            rows.append(s * height + vertices[end])
            columns.append(len(ends) * width)
            values.append(-1.0 if end == source else 1.0 / (len(ends) - 1))
    balance = coo_array((values, (rows, columns)), shape=(len(ends) * height, len(ends) * width + 1))
    shared = coo_array(
        (np.ones(len(ends) * width), (np.tile(np.arange(width), len(ends)), np.arange(len(ends) * width))),
        shape=(width, len(ends) * width + 1),
    )
    right = np.zeros(balance.shape[0])
    cost = np.zeros(balance.shape[1])
    cost[-1] = -1.0
    found = linprog(cost, A_ub=shared, b_ub=[n for *_, n in arcs], A_eq=balance, b_eq=right, method="highs-ipm")
    if not found.success:
        raise RuntimeError(found.message)
    return float(found.x[-1])


def halved(graph: nx.Graph, order=lambda end: end) -> tuple[list, list]:
    ends = sorted(ends_of(graph), key=order)
    return ends[: len(ends) // 2], ends[len(ends) // 2 :]


def trees() -> Iterator[tuple]:
    for name, sizes in TREE_SIZES.items():
        design = Design.named(name)
        down, up = (int(part) for part in leaf_ports(RADIX, design.taper))
        for systems in sizes:
            net = network(design, systems, PORTS, RADIX)
            columns = PORTS if design.kind != "fat-tree" else 1
            graph = fabric_graphs.clos(
                systems * PORTS // columns, columns, RADIX, down, up, joined=design.kind != "rail-only"
            )
            middle = systems * PORTS // columns // 2
            halves = [v for v in ends_of(graph) if v[1] < middle], [v for v in ends_of(graph) if v[1] >= middle]
            yield name, f"{systems} systems, {net.tiers} tiers", graph, fabric_graphs.cut_links(graph, *halves), fabric_graphs.hop_counts(graph), (
                net.switches, net.host_links, net.switch_links, net.bisection_links, net.mean_hops, net.most_hops,
            )  # fmt: skip


def tori() -> Iterator[tuple]:
    for dims in TORI:
        form, graph = torus(*dims), fabric_graphs.torus(dims)
        orders = [lambda v, o=order: [v[1][axis] for axis in o] for order in itertools.permutations(range(3))]
        cut = min(fabric_graphs.cut_links(graph, *halved(graph, order)) for order in orders)
        yield "torus", "x".join(map(str, dims)), graph, cut, fabric_graphs.hop_counts(graph), (
            0, 0, form.links, form.bisection_links, form.mean_hops, form.most_hops,
        )  # fmt: skip


def dragonflies() -> Iterator[tuple]:
    for radix, groups in DRAGONFLIES:
        p, a, h = (int(part) for part in balanced_dragonfly(radix))
        form, graph = dragonfly(groups * a * p, radix), fabric_graphs.dragonfly(groups, a, p, h)
        middle = groups // 2 * a * p if groups > 1 else a * p // 2
        cut = fabric_graphs.cut_links(graph, ends_of(graph)[:middle], ends_of(graph)[middle:])
        lengths = []
        for target in range(groups):  # all groups look alike from the first one
            pair = graph.subgraph(
                [v for v in graph if (v[1] // (a * p) if fabric_graphs.is_end(v) else v[1]) in (0, target)]
            )
            for source in (v for v in ends_of(pair) if v[1] < a * p):
                found = nx.single_source_shortest_path_length(pair, source)
                lengths += [found[v] for v in ends_of(pair) if v[1] // (a * p) == target and v != source]
        yield "dragonfly", f"radix {radix}, {groups} groups", graph, cut, (sum(lengths) / len(lengths), max(lengths)), (
            form.switches, groups * a * p, form.local_links + form.global_links, form.bisection_links, form.mean_hops, form.most_hops,
        )  # fmt: skip


def against_graphs() -> tuple[int, int]:
    """Return (cases, cases in which a figure differs)."""
    print(
        f"{'design':18}{'size':28}{'switches':>9}{'links':>8}{'bisection':>11}{'max flow':>10}{'mean hops':>11}{'by search':>11}"
    )
    cases = wrong = 0
    for name, size, graph, cut, (mean, most), form in itertools.chain(trees(), tori(), dragonflies()):
        counted = fabric_graphs.census(graph)
        same = (counted.switches, counted.host_links, counted.inner_links, cut, most) == (
            *form[:4],
            form[5],
        ) and np.isclose(mean, form[4], rtol=1e-12)
        print(
            f"{name:18}{size:28}{form[0]:9.0f}{form[1] + form[2]:8.0f}{form[3]:11.0f}{cut:10}{form[4]:11.5f}{mean:11.5f}{'' if same else '  differs'}"
        )
        cases, wrong = cases + 1, wrong + (not same)
    return cases, wrong


def against_programs() -> tuple[int, int]:
    """Compare the closed form of uniform traffic (minimal, even routes) with the best of all routes."""
    cases = [
        (
            "fat-tree 16 of radix 8",
            fabric_graphs.clos(16, 1, 8, 4, 4),
            network(Design("fat-tree"), 16, 1, 8).uniform_share,
            True,
        ),
        (
            "fat-tree:3 18 of radix 8",
            fabric_graphs.clos(18, 1, 8, 6, 2),
            network(Design.named("fat-tree:3"), 18, 1, 8).uniform_share,
            True,
        ),
        ("torus 4x4", fabric_graphs.torus((4, 4, 1)), torus(4, 4).uniform_links, True),
        ("torus 4x2x2", fabric_graphs.torus((4, 2, 2)), torus(4, 2, 2).uniform_links, True),
        ("torus 3x3x2", fabric_graphs.torus((3, 3, 2)), torus(3, 3, 2).uniform_links, True),
        ("dragonfly radix 7, 2 groups", fabric_graphs.dragonfly(2, 4, 2, 2), dragonfly(16, 7).uniform_share, True),
        ("dragonfly radix 7, 4 groups", fabric_graphs.dragonfly(4, 4, 2, 2), dragonfly(32, 7).uniform_share, False),
    ]
    print(f"\n{'uniform traffic, per port':32}{'closed form':>12}{'program':>10}")
    wrong = 0
    for name, graph, form, exact in cases:
        best = uniform_rate(graph)
        fine = abs(best - form) <= 1e-5 * best if exact else form <= best * (1 + 1e-5)
        wrong += not fine
        print(
            f"{name:32}{form:12.5f}{best:10.5f}{'' if exact else '  (minimal routes only: a lower bound)'}{'' if fine else '  differs'}"
        )
    return len(cases), wrong


def side_by_side() -> None:
    """Tabulate what each design costs, draws and carries for systems of 8 chips and 8 ports, with the parts of one technology."""
    record = Catalog.load().get("fabrics", NETWORK)
    figure = {name: record.value(name) for name in record.figures}
    port, radix, alpha, hop = (figure[name] for name in ("port_bytes_per_s", "radix", "alpha_s", "hop_latency_s"))
    print(
        f"\n{NETWORK}, systems of 8 ports: price per system [kUSD], power per system [W], bisection and all-to-all per chip [GB/s]"
    )
    print(
        f"{'design':18}{'systems':>8}{'price':>9}{'power':>8}{'bisection':>11}{'all-to-all':>12}{'ring, dp':>10}{'latency us':>12}"
    )
    for name, systems in itertools.product(
        ("rail-only", "rail-optimised", "fat-tree", "fat-tree:2", "torus", "dragonfly"), SYSTEMS
    ):
        design = Design.named(name)
        net = network(design, systems, 8, radix)
        if not net.holds:
            print(f"{name:18}{systems:8}  cannot be built")
            continue
        # the cited sum of connectors and cables per port is of one link, at either tier: no part here is copper
        price, power = (
            network_price(net, figure["switch_price"], 0.0, figure["link_price_one_tier"]),
            network_power_w(net, figure["switch_power_w"], figure["optic_power_w"]),
        )
        plant = Plant(design, systems, 8, 8, port, int(radix), 450e9, alpha, hop)
        exchange, ring = (
            group_links(plant, *group).bytes_per_s for group in ((8 * systems, 1, "all-to-all"), (systems, 8, "ring"))
        )
        cut = bisection_bytes_per_s(net, port) / (net.systems * 8 / 2)
        row = (
            price / net.systems / 1e3,
            power / net.systems,
            cut / 1e9,
            exchange / 1e9,
            ring / 1e9,
            latency_s(net.most_hops, alpha, hop) * 1e6,
        )
        print(
            f"{name:18}{net.systems:8.0f}{row[0]:9.2f}{row[1]:8.0f}{row[2]:11.1f}{row[3]:12.1f}{row[4]:10.1f}{row[5]:12.2f}"
        )


def placements() -> dict[str, float]:
    """Compare the best, given and worst placement of one large run on a hierarchy and on a torus."""
    degrees = {"dp": 8, "ep": 8, "pp": 2, "cp": 4, "tp": 8}
    flows = [
        Flow(("tp",), 8e9),
        Flow(("cp",), 1e9),
        Flow(("ep",), 2e9, "all-to-all"),
        Flow(("ep", "dp"), 1e9),
        Flow(("pp",), 1e8, "line"),
    ]
    seconds, results = [], {}
    for name, find in (
        ("tree", lambda: best_placement(degrees, flows, [Level(8, 50e9), Level(256, 25e9)])),
        ("torus", lambda: best_torus_placement(degrees, flows, torus_dims(4096), 50e9)),
    ):
        began = time.perf_counter()
        found = find()
        seconds.append(time.perf_counter() - began)
        given = found.given.bottleneck_s if found.given else float("nan")
        print(
            f"\n{name}: {found.tried} tried in {seconds[-1]:.2f} s; best {found.best.bottleneck_s:.4f} s, as given {given:.4f} s, worst {found.worst.bottleneck_s:.4f} s"
        )
        print(
            "  "
            + (
                " < ".join(found.best.order)
                if name == "tree"
                else "; ".join(f"{axis} {'x'.join(map(str, f))}" for axis, f in found.best.factors.items())
            )
        )
        results |= {
            f"{name}_best_s": found.best.bottleneck_s,
            f"{name}_given_s": given,
            f"{name}_seconds": round(seconds[-1], 3),
        }
    return results


def main() -> int:
    began = time.perf_counter()
    cases, wrong = against_graphs()
    programs, off = against_programs()
    side_by_side()
    placed = placements()
    print(
        json.dumps(
            {
                "graphs": cases,
                "graphs_differ": wrong,
                "programs": programs,
                "programs_differ": off,
                **placed,
                "seconds": round(time.perf_counter() - began, 1),
            }
        )
    )
    return 1 if wrong or off else 0


if __name__ == "__main__":
    sys.exit(main())
