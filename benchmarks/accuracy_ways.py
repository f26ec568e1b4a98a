"""Score intervals of rows that do not say how their requests came, with and without the ways in which they may have come."""

from __future__ import annotations

import numpy as np

from models.statistics.intervals import either_way, widened
from models.statistics.levels import row_weights, share_with_error
from planner.calibration.fit import LEAVE_OUT_OF_TIER, catalog_bands
from planner.calibration.levels import single_generations
from planner.calibration.load_sensitivity import by_load, by_way

TIERS = ("known", "new_source", "new_chip")


def ways_table(scored) -> list[dict[str, object]]:
    """Tabulate coverage by group votes and median width of the shipped intervals, of rows whose way of loading is open and of all rows.

    Width: upper over lower bound. "one way" is the interval of the way that the prediction takes.
    """
    bands, ways = catalog_bands(scored.catalog, scored.target), by_way(scored.cases, scored.start)
    open_rows = np.array([not m.way_stated for m in scored.rows])
    single = single_generations(scored.cases)
    alone = np.array([m.generation in single for m in scored.rows])
    found = []
    for tier in TIERS:
        by, moves = LEAVE_OUT_OF_TIER[tier], by_load(scored.cases, scored.start, bands, tier)
        errors = scored.measured - scored.left[by]
        for label in scored.target.interval_labels:
            rows = np.flatnonzero(scored.use & (scored.labels == label) & ~(alone & (by == "chip")))
            one = [widened(bands[tier, label], moves[0][i], moves[1][i]) for i in rows]
            every = [either_way(band, ways[0][i], ways[1][i]) for band, i in zip(one, rows, strict=True)]
            for name, which in (("open", open_rows[rows]), ("all", np.ones(len(rows), bool))):
                votes = [scored.rows[i].vote for i in rows[which]]
                row: dict[str, object] = {
                    "interval": tier.replace("_", " "), "of": label, "way of loading": name, "rows": int(which.sum()), "groups": len(set(votes)),
                }  # fmt: skip
                for title, intervals in (("one way", one), ("every way", every)):
                    sides = np.array([(band.low, band.high) for band in intervals])[which]
                    inside = (sides[:, 0] <= errors[rows[which]]) & (errors[rows[which]] <= sides[:, 1])
                    share, spread = share_with_error(inside, votes, row_weights(votes, 1.0))
                    row[f"{title}: of groups"] = f"{100 * share:.0f} ± {100 * spread:.0f} %"
                    row[f"{title}: median width"] = f"{np.exp(np.median(sides[:, 1] - sides[:, 0])):.3g}"
                found.append(row)
    return found
