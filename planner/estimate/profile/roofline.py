"""Place the operators of a pass on the roofline of a chip: intensity, the rate that the roofline allows, and their share of its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.arrays import sum_of
from models.roofline import ChipRates, ridge_flop_per_byte, roofline_s
from models.transformer.work import Work

ATTENTION = "attention"


def operator_rows(phase: str, work: Mapping[str, Work], rates: ChipRates) -> list[dict[str, Any]]:
    """List the operators of a phase that compute and move bytes; attention computes at the rate of 16 bit."""
    rows: list[dict[str, Any]] = []
    for name, part in work.items():
        flop, moved = float(np.asarray(part.flop)), float(np.asarray(part.moved_bytes))
        if flop <= 0.0 or moved <= 0.0:
            continue
        peak = rates.flop16_per_s if name == ATTENTION else rates.flop_per_s
        seconds = float(roofline_s(flop, moved, peak, rates.hbm_bytes_per_s))
        bound = "compute" if flop / peak >= moved / rates.hbm_bytes_per_s else "memory"
        rows.append(
            {
                "phase": phase,
                "operator": name,
                "flop_per_byte": float(part.intensity),
                "flop_per_s": flop / seconds,
                "bound": bound,
                "seconds": seconds,
            }
        )
    total = sum_of(row["seconds"] for row in rows)
    return [{**row, "share": row["seconds"] / total} for row in rows]


def roof(rates: ChipRates) -> dict[str, float]:
    """Return the figures of a chip's roofline: peaks [FLOP/s], bandwidth [byte/s] and ridge [FLOP/byte]."""
    return {
        "flop_per_s": rates.flop_per_s,
        "flop16_per_s": rates.flop16_per_s,
        "bytes_per_s": rates.hbm_bytes_per_s,
        "ridge_flop_per_byte": float(ridge_flop_per_byte(rates.flop_per_s, rates.hbm_bytes_per_s)),
    }
