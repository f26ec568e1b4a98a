"""Draw a frontier as a chart (SVG)."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from planner.report.words import amount
from planner.studies.frontier import CARBON, MEASURE, Frontier

LINE, BOUND, INK, RULE = "#0072B2", "#E69F00", "#333333", "#999999"  # colours by Okabe and Ito
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 90, 30, 40, 56
LABELS = {
    "carbon_kg": "carbon [t]",
    "latency_factor": "factor on latency limits",
    "demand_factor": "factor on demand",
    "quality": "quality",
}


def frontier_chart(found: Frontier) -> str:
    """Draw cost and bound of each point. The thin line between points only guides the eye: there are no plans on it."""
    scale = 1e-3 if found.against == CARBON else 1.0
    xs, ys = [point.measure * scale for point in found.points], [point.cost for point in found.points]
    x_of, x_ticks = _axis(xs, LEFT, WIDTH - RIGHT)
    y_of, y_ticks = _axis([*ys, *(point.bound for point in found.points)], HEIGHT - BOTTOM, TOP)
    label = LABELS[MEASURE[found.against]]
    points = "; ".join(f"{amount(x)}: {amount(y)}" for x, y in zip(xs, ys, strict=True))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(f'Cost in {found.currency} by {label}: {points}')}</title>",
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-weight="bold">{escape(f"Cost [{found.currency}] by {label}")}</text>',
    ]
    for value in y_ticks:
        y = y_of(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}" stroke-dasharray="2 3"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{amount(value)}</text>')
    for value in x_ticks:
        parts.append(
            f'<text x="{x_of(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{amount(value)}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(label)}</text>')
    line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{RULE}"/>')
    for point, x, y in zip(found.points, xs, ys, strict=True):
        at, low = x_of(x), y_of(point.bound)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{low:.1f}" y2="{y_of(y):.1f}" stroke="{BOUND}" stroke-width="3"/>'
        )
        parts.append(
            f'<circle cx="{at:.1f}" cy="{y_of(y):.1f}" r="4" fill="{LINE}"><title>{escape(f"{point.name}: {amount(y)}")}</title></circle>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axis(values: list[float], start: float, end: float) -> tuple[Callable[[float], float], list[float]]:
    """Return the map from value to place, and the values of five marks."""
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5 * abs(low or 1.0), high + 0.5 * abs(high or 1.0))
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin
    marks = [low + (high - low) * (0.1 + 0.2 * i) for i in range(5)]
    return lambda value: start + (value - low) / (high - low) * (end - start), marks
