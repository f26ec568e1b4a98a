"""The input of the lines and the spread blocks: which lines could join which places, and what would travel on them.

Part of `solvers.model.data.PlanData`, where the sizes are named. Not here: what is made of it (`solvers.model.lines`, `solvers.model.spread`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Bools, Floats, Ints

Functionals = Mapping[str, Floats]

SOURCE = -1  # where the weights of a workload come from; it holds them always


def _ints(*shape: int) -> Ints:
    return np.zeros(shape, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineData:
    """Sizes: L lines, C channels (a line has one in each direction), G stages (windows in which the same lines are ready),
    I streams, X ways to send a stream in a stage, H hops of weights, Y ways to send weights over a hop in a stage.

    Rates are bytes/s. A line of infinite capacity is not bought by capacity. `line_usable` [L, V].
    """

    line_capacity: Floats
    line_upper: Floats  # most units; infinite where nothing limits them
    line_usable: Bools
    line_cost: Functionals = field(default_factory=dict)  # [L] per unit over the horizon
    channel_line: Ints = field(default_factory=lambda: _ints(0))
    window_stage: Ints = field(default_factory=lambda: _ints(1))  # [V]

    # what a request on an arc sends: rows (arc, channel), and the bytes
    arc_uses: Ints = field(default_factory=lambda: _ints(0, 2))
    arc_uses_bytes: Floats = field(default_factory=lambda: np.zeros(0))

    # streams run wherever their workload is placed, in every stage, over one of their ways or several
    stream_workload: Ints = field(default_factory=lambda: _ints(0))
    stream_site: Ints = field(default_factory=lambda: _ints(0))
    way_stream: Ints = field(default_factory=lambda: _ints(0))
    way_stage: Ints = field(default_factory=lambda: _ints(0))
    way_cost: Functionals = field(default_factory=dict)  # [X]
    way_uses: Ints = field(default_factory=lambda: _ints(0, 2))  # rows (way, channel)
    way_uses_rate: Floats = field(default_factory=lambda: np.zeros(0))

    # weights: wherever a workload is placed they must come from its source or from another place that has them
    needs_weights: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))  # [W, R]
    hop_workload: Ints = field(default_factory=lambda: _ints(0))
    hop_from: Ints = field(default_factory=lambda: _ints(0))  # a site, or SOURCE
    hop_to: Ints = field(default_factory=lambda: _ints(0))
    send_hop: Ints = field(default_factory=lambda: _ints(0))
    send_stage: Ints = field(default_factory=lambda: _ints(0))
    send_channel: Ints = field(default_factory=lambda: _ints(0))
    send_rate: Floats = field(default_factory=lambda: np.zeros(0))
    send_cost: Functionals = field(default_factory=dict)  # [Y]

    @property
    def stages(self) -> int:
        return int(self.window_stage.max(initial=0)) + 1

    def placed(self, workloads: int, sites: int) -> Bools:
        """[W, R]: where placing a workload sends something over a line."""
        result = np.zeros((workloads, sites), dtype=bool)
        result[self.stream_workload, self.stream_site] = True
        return result | (self.needs_weights if self.needs_weights.size else False)

    def arc_open(self, arcs: int) -> Bools:
        """[A, V]: whether all lines of an arc are ready."""
        result = np.ones((arcs, self.line_usable.shape[1]), dtype=bool)
        np.logical_and.at(result, self.arc_uses[:, 0], self.line_usable[self.channel_line[self.arc_uses[:, 1]]])
        return result

    def parts(self) -> tuple[Functionals, ...]:
        return self.line_cost, self.way_cost, self.send_cost

    def problems(self, workloads: int, sites: int, arcs: int, windows: int) -> Iterator[str]:
        """Words for every broken shape, index or number."""
        L, C, G = len(self.line_capacity), len(self.channel_line), self.stages
        I, X, H, Y = len(self.stream_workload), len(self.way_stream), len(self.hop_workload), len(self.send_hop)
        shapes = {
            "line_upper": (L,), "line_usable": (L, windows), "window_stage": (windows,), "arc_uses_bytes": (len(self.arc_uses),),
            "stream_site": (I,), "way_stage": (X,), "way_uses_rate": (len(self.way_uses),), "hop_from": (H,), "hop_to": (H,),
            "send_stage": (Y,), "send_channel": (Y,), "send_rate": (Y,),
        }  # fmt: skip
        if self.needs_weights.size:
            shapes["needs_weights"] = (workloads, sites)
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                yield f"lines.{name}: shape {getattr(self, name).shape}, expected {shape}"
        for name, size in (("line_cost", L), ("way_cost", X), ("send_cost", Y)):
            for functional, values in getattr(self, name).items():
                if values.shape != (size,) or not np.isfinite(values).all() or (values < 0).any():
                    yield f"lines.{name}[{functional}]: expected {size} finite values of at least 0"
        for name, values, low, high in (
            ("channel_line", self.channel_line, 0, L), ("arc_uses", self.arc_uses[:, 0], 0, arcs), ("arc_uses", self.arc_uses[:, 1], 0, C),
            ("stream_workload", self.stream_workload, 0, workloads), ("stream_site", self.stream_site, 0, sites),
            ("way_stream", self.way_stream, 0, I), ("way_stage", self.way_stage, 0, G), ("way_uses", self.way_uses[:, 0], 0, X),
            ("way_uses", self.way_uses[:, 1], 0, C), ("hop_workload", self.hop_workload, 0, workloads), ("hop_from", self.hop_from, SOURCE, sites),
            ("hop_to", self.hop_to, 0, sites), ("send_hop", self.send_hop, 0, H), ("send_stage", self.send_stage, 0, G),
            ("send_channel", self.send_channel, 0, C),
        ):  # fmt: skip
            if values.size and (values.min() < low or values.max() >= high):
                yield f"lines.{name}: index outside [{low}, {high})"
        for name in ("line_capacity", "line_upper", "arc_uses_bytes", "way_uses_rate", "send_rate"):
            values = getattr(self, name)
            if values.size and (np.isnan(values).any() or values.min() < 0):
                yield f"lines.{name}: expected values of at least 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadData:
    """Of each workload [W]: the largest share of a slot's requests in one zone (1: any), the zones that must count, and the
    least share of every slot's requests with which a zone counts; `survives`: all demand could be served without any one zone."""

    site_zone: Ints  # [R]
    largest_share: Floats
    zones: Ints
    least_share: Floats
    survives: Bools
    tried_slots: Ints = field(default_factory=lambda: _ints(0))  # in which a zone is let fail

    @property
    def zone_count(self) -> int:
        return int(self.site_zone.max(initial=-1)) + 1

    def problems(self, workloads: int, sites: int, slots: int) -> Iterator[str]:
        """Words for every broken shape or number."""
        if self.site_zone.shape != (sites,) or (self.site_zone < 0).any():
            yield f"spread.site_zone: expected {sites} zones"
        for name in ("largest_share", "zones", "least_share", "survives"):
            if getattr(self, name).shape != (workloads,):
                yield f"spread.{name}: shape {getattr(self, name).shape}, expected {(workloads,)}"
        for name in ("largest_share", "least_share"):
            values = getattr(self, name)
            if values.size and not ((values > 0) & (values <= 1)).all():
                yield f"spread.{name}: expected shares above 0 and up to 1"
        if self.tried_slots.size and (self.tried_slots.min() < 0 or self.tried_slots.max() >= slots):
            yield f"spread.tried_slots: index outside [0, {slots})"
