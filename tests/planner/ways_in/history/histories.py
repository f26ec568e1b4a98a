"""Histories of demand of five kinds, drawn from a seed: logarithms of weekly means, and a CSV by the hour, day or week made from them."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

KINDS = ("flat", "growth", "season", "shift", "saturating")
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
START = datetime(2024, 1, 1)  # a Monday
PROFILE = 1.0 + 0.5 * np.cos((np.arange(24) - 14) * np.pi / 12)
WEEKDAYS = np.array([1.2, 1.2, 1.1, 1.1, 1.0, 0.7, 0.7])


def weekly(kind: str, seed: int, weeks: int) -> np.ndarray:
    """Draw logarithms of weekly means.

    "flat": independent noise of 12 %. "growth": 50 to 200 % a year, with drift that is forgotten at a rate of a tenth a week. "season": a level that
    drifts a little (its CSV has days and hours). "shift": a jump of 10 +- 25 % every half year on average. "saturating": a logistic curve.
    """
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    week, noise = np.arange(weeks), 0.08 * rng.standard_normal(weeks)
    steps, drift = 0.03 * rng.standard_normal(weeks), np.zeros(weeks)
    for i in range(1, weeks):
        drift[i] = 0.9 * drift[i - 1] + steps[i]
    if kind == "flat":
        return 1.5 * noise
    if kind == "growth":
        return np.log1p(rng.uniform(0.5, 2.0)) * week / 52 + drift + 0.5 * noise
    if kind == "season":
        return 0.5 * drift + 0.4 * noise
    if kind == "shift":
        return np.cumsum((rng.random(weeks) < 1 / 26) * rng.normal(0.1, 0.25, weeks)) + 0.5 * noise
    pace, middle = rng.uniform(6, 20), rng.uniform(20, 60)
    return np.log(0.1 + 1 / (1 + np.exp(-(week - middle) / pace))) + 0.5 * noise


def write_csv(path: Path, levels: np.ndarray, step: timedelta = HOUR, mean: float = 100.0, noise: float = 0.0) -> Path:
    """Write requests/s by step, of weekly levels with `PROFILE` and `WEEKDAYS`."""
    rng, rows = np.random.default_rng(0), ["timestamp,requests_per_s"]
    for i in range(len(levels) * round(WEEK / step)):
        moment = START + i * step
        value = mean * np.exp(levels[int(i * step / WEEK)] + noise * rng.standard_normal())
        value *= WEEKDAYS[moment.weekday()] / WEEKDAYS.mean() if step < WEEK else 1.0
        value *= PROFILE[moment.hour] / PROFILE.mean() if step == HOUR else 1.0
        rows.append(f"{moment.isoformat()},{value:.6f}")
    path.write_text("\n".join(rows) + "\n")
    return path
