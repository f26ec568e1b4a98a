"""Input of points with pools at two sites: what they draw at the other one, and what they send over the lines between both.

Part of `solvers.model.data.PlanData`, which names the sizes. Their own site is the one to which their requests come, or at which a job keeps its state. Not here: the rows (`solvers.model.lines`,
`solvers.model.fleet`, `solvers.model.routing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.lines import LineData
from solvers.model.checks import wrong_indices, wrong_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeData:
    """Sizes: E points with pools at two sites, and rows (point, channel) of what they send."""

    point: Ints  # [E]
    site: Ints  # [E] the other site
    power_w: Floats  # [E] drawn there by a replica
    uses: Ints  # rows (point, channel)
    uses_rate: Floats  # bytes/s that a replica takes of the channel

    def of(self, points: int) -> Bools:
        """[P]: the point has pools at two sites."""
        found = np.zeros(points, dtype=bool)
        found[self.point] = True
        return found

    def take(self, kept: Bools) -> ExchangeData:
        """Take some of the points [E], with what they send."""
        sent = np.isin(self.uses[:, 0], self.point[kept])
        return ExchangeData(
            point=self.point[kept],
            site=self.site[kept],
            power_w=self.power_w[kept],
            uses=self.uses[sent],
            uses_rate=self.uses_rate[sent],
        )

    def opened(self, points: int, lines: LineData | None) -> Bools:
        """[P, V]: all lines of the point are ready."""
        assert lines is not None
        result = np.ones((points, lines.line_usable.shape[1]), dtype=bool)
        np.logical_and.at(result, self.uses[:, 0], lines.line_usable[lines.channel_line[self.uses[:, 1]]])
        return result

    def taken(self) -> dict[int, tuple[tuple[int, ...], list[float]]]:
        """Map each point to its channels, and what a replica takes of them and of the other site: bytes/s by channel, and watts."""
        found = {}
        for point, power_w in zip(self.point.tolist(), self.power_w.tolist(), strict=True):
            mine = self.uses[:, 0] == point
            found[point] = (tuple(self.uses[mine, 1].tolist()), [*self.uses_rate[mine].tolist(), power_w])
        return found

    def problems(self, points: int, sites: int, lines: LineData | None) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        if lines is None:
            yield "exchange: without lines"
            return
        size = len(self.point)
        yield from wrong_shapes(
            self, {"site": (size,), "power_w": (size,), "uses_rate": (len(self.uses),)}, "exchange."
        )
        ranges = (
            ("point", self.point, 0, points),
            ("site", self.site, 0, sites),
            ("uses", self.uses[:, 0], 0, points),
            ("uses", self.uses[:, 1], 0, len(lines.channel_line)),
        )
        yield from wrong_indices(ranges, "exchange.")
        if (self.power_w < 0).any() or (self.uses_rate < 0).any():
            yield "exchange: values below 0"
