"""Input of the lines block: which lines could join which places, and what would travel on them.

Part of `solvers.model.data.PlanData`, which names the sizes. Not here: the rows (`solvers.model.lines`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Bools, Floats, Functionals, Ints, no_bools, no_floats, no_ints
from solvers.model.checks import negative_values, wrong_costs, wrong_indices, wrong_shapes

SOURCE = -1  # place of the origin of a workload's weights, which always holds them


@dataclass(frozen=True, slots=True, kw_only=True)
class LineData:
    """Sizes: L lines, C channels (a line has one in each direction), G stages (windows in which the same lines are ready),
    I streams, X routes (ways to send a stream in a stage), H hops of weights, Y sends (ways to send weights over a hop in a stage).

    Rates are bytes/s. A line of infinite capacity is not rented by capacity. `line_usable` [L, V].
    """

    line_capacity: Floats
    line_upper: Floats  # most units; infinite where nothing limits them
    line_usable: Bools
    line_cost: Functionals = field(default_factory=dict)  # [L] per unit over the horizon
    channel_line: Ints = field(default_factory=lambda: no_ints(0))
    window_stage: Ints = field(default_factory=lambda: no_ints(1))  # [V]

    # traffic of a request on an arc: rows (arc, channel), and the bytes
    arc_uses: Ints = field(default_factory=lambda: no_ints(0, 2))
    arc_uses_bytes: Floats = field(default_factory=lambda: no_floats(0))

    # a stream runs wherever its workload is hosted, in every stage, over one or several of its routes
    stream_workload: Ints = field(default_factory=lambda: no_ints(0))
    stream_site: Ints = field(default_factory=lambda: no_ints(0))
    way_stream: Ints = field(default_factory=lambda: no_ints(0))
    way_stage: Ints = field(default_factory=lambda: no_ints(0))
    way_cost: Functionals = field(default_factory=dict)  # [X]
    way_uses: Ints = field(default_factory=lambda: no_ints(0, 2))  # rows (route, channel)
    way_uses_rate: Floats = field(default_factory=lambda: no_floats(0))

    # weights come to a host from their source or from another host
    needs_weights: Bools = field(default_factory=lambda: no_bools(0, 0))  # [W, R]
    hop_workload: Ints = field(default_factory=lambda: no_ints(0))
    hop_from: Ints = field(default_factory=lambda: no_ints(0))  # a site, or SOURCE
    hop_to: Ints = field(default_factory=lambda: no_ints(0))
    send_hop: Ints = field(default_factory=lambda: no_ints(0))
    send_stage: Ints = field(default_factory=lambda: no_ints(0))
    send_channel: Ints = field(default_factory=lambda: no_ints(0))
    send_rate: Floats = field(default_factory=lambda: no_floats(0))
    send_cost: Functionals = field(default_factory=dict)  # [Y]

    @property
    def stages(self) -> int:
        """Number of stages."""
        return int(self.window_stage.max(initial=0)) + 1

    def placed(self, workloads: int, sites: int) -> Bools:
        """[W, R]: hosting the workload there sends something over a line."""
        result = np.zeros((workloads, sites), dtype=bool)
        result[self.stream_workload, self.stream_site] = True
        return result | (self.needs_weights if self.needs_weights.size else False)

    def arc_open(self, arcs: int) -> Bools:
        """[A, V]: all lines of the arc are ready."""
        result = np.ones((arcs, self.line_usable.shape[1]), dtype=bool)
        np.logical_and.at(result, self.arc_uses[:, 0], self.line_usable[self.channel_line[self.arc_uses[:, 1]]])
        return result

    def parts(self) -> tuple[Functionals, ...]:
        """All costs."""
        return self.line_cost, self.way_cost, self.send_cost

    def steady_uses(self, way: Ints, send: Ints) -> tuple[tuple[Ints, Ints, Ints, Floats], ...]:
        """(column, channel, stage, rate) of all streams, then of all weights, given the columns `way` [X] and `send` [Y]."""
        route, channel = self.way_uses.T
        return (
            (way[route], channel, self.way_stage[route], self.way_uses_rate),
            (send, self.send_channel, self.send_stage, self.send_rate),
        )

    def problems(self, workloads: int, sites: int, arcs: int, windows: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        L, C, G = len(self.line_capacity), len(self.channel_line), self.stages
        I, X, H, Y = len(self.stream_workload), len(self.way_stream), len(self.hop_workload), len(self.send_hop)
        shapes: dict[str, tuple[int, ...]] = {
            "line_upper": (L,),
            "line_usable": (L, windows),
            "window_stage": (windows,),
            "arc_uses_bytes": (len(self.arc_uses),),
            "stream_site": (I,),
            "way_stage": (X,),
            "way_uses_rate": (len(self.way_uses),),
            "hop_from": (H,),
            "hop_to": (H,),
            "send_stage": (Y,),
            "send_channel": (Y,),
            "send_rate": (Y,),
        }
        if self.needs_weights.size:
            shapes["needs_weights"] = (workloads, sites)
        yield from wrong_shapes(self, shapes, "lines.")
        costs = {
            "line_cost": (self.line_cost, (L,)),
            "way_cost": (self.way_cost, (X,)),
            "send_cost": (self.send_cost, (Y,)),
        }
        yield from wrong_costs(costs, "lines.", least=0.0)
        ranges = (
            ("channel_line", self.channel_line, 0, L),
            ("arc_uses", self.arc_uses[:, 0], 0, arcs),
            ("arc_uses", self.arc_uses[:, 1], 0, C),
            ("stream_workload", self.stream_workload, 0, workloads),
            ("stream_site", self.stream_site, 0, sites),
            ("way_stream", self.way_stream, 0, I),
            ("way_stage", self.way_stage, 0, G),
            ("way_uses", self.way_uses[:, 0], 0, X),
            ("way_uses", self.way_uses[:, 1], 0, C),
            ("hop_workload", self.hop_workload, 0, workloads),
            ("hop_from", self.hop_from, SOURCE, sites),
            ("hop_to", self.hop_to, 0, sites),
            ("send_hop", self.send_hop, 0, H),
            ("send_stage", self.send_stage, 0, G),
            ("send_channel", self.send_channel, 0, C),
        )
        yield from wrong_indices(ranges, "lines.")
        names = ("line_capacity", "line_upper", "arc_uses_bytes", "way_uses_rate", "send_rate")
        yield from negative_values({name: getattr(self, name) for name in names}, "lines.", finite=False)
