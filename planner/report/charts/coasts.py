"""Outline the coasts within a window of longitude and latitude, from Natural Earth's land at 1:110 million (`coasts.json`)."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path

UNIT_DEGREES = 0.1  # unit of the numbers in the file
Point = tuple[float, float]
Window = tuple[float, float]


@cache
def every_line() -> list[list[Point]]:
    """Read all coasts as lines of (longitude, latitude) [degrees]."""
    flat = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["lines"]
    return [
        [(round(x * UNIT_DEGREES, 1), round(y * UNIT_DEGREES, 1)) for x, y in zip(line[::2], line[1::2], strict=True)]
        for line in flat
    ]


def coasts(longitudes: Window, latitudes: Window) -> list[list[Point]]:
    """Return the stretches of coast that touch a window (west, east) x (south, north) [degrees], each with the points around it."""
    found: list[list[Point]] = []
    for line in every_line():
        stretch: list[Point] = []
        for start, end in pairwise(line):
            if _apart(start[0], end[0], longitudes) or _apart(start[1], end[1], latitudes):
                stretch = []
                continue
            if not stretch:
                stretch = [start]
                found.append(stretch)
            stretch.append(end)
    return found


def _apart(start: float, end: float, window: Window) -> bool:
    """Tell whether a step lies on one side of a window."""
    return max(start, end) < window[0] or min(start, end) > window[1]
