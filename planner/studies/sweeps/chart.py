"""Draw a sweep as a chart (SVG): a panel for each path, a dot for each combination with a plan, and a line through the means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from statistics import fmean

from planner.messages import say
from planner.report.words import amount, whole
from planner.studies.sweeps.study import Row, Sweep
from planner.studies.sweeps.varied import Varied, number_of

DOT, MEAN, INK, RULE = "#0072B2", "#E69F00", "#333333", "#999999"  # colours by Okabe and Ito
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 260, 90, 30, 34, 44
TICKS = 4


def sweep_chart(found: Sweep, varied: Sequence[Varied]) -> str:
    """Draw the objective against the values of each path; numbers stand where they lie, other values side by side."""
    rows = [row for row in found.rows if row["value"] is not None]
    title = say("sweep.chart", unit=found.unit)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(varied)}" font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(title)}</title>",
    ]
    for place, one in enumerate(varied):
        parts.append(f'<g transform="translate(0 {place * HEIGHT})">')
        parts += _panel(one, rows, title) if rows else []
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(one: Varied, rows: Sequence[Row], title: str) -> list[str]:
    names = list(dict.fromkeys(str(row[one.path]) for row in rows))
    where = {name: number_of(name) if one.ends else float(at) for at, name in enumerate(names)}
    x_of, y_of = (
        _scale(list(where.values()), LEFT, WIDTH - RIGHT),
        _scale([row["value"] for row in rows], HEIGHT - BOTTOM, TOP),
    )
    low, high = min(row["value"] for row in rows), max(row["value"] for row in rows)
    parts = [
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-weight="bold">{escape(f"{one.path}: {title}")}</text>'
    ]
    for tick in range(TICKS + 1):
        value = low + (high - low) * tick / TICKS
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" stroke="{RULE}" stroke-dasharray="2 3"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end">{amount(value)}</text>')
    for name in names[:: max(len(names) // 8, 1)]:
        parts.append(
            f'<text x="{x_of(where[name]):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(name)}</text>'
        )
    parts += [
        f'<circle cx="{x_of(where[str(row[one.path])]):.1f}" cy="{y_of(row["value"]):.1f}" r="3" fill="{DOT}" fill-opacity=".6"><title>{escape(str(row[one.path]))}: {whole(row["value"])}</title></circle>'
        for row in rows
    ]
    means = sorted((where[name], fmean(row["value"] for row in rows if str(row[one.path]) == name)) for name in names)
    line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in means)
    return [*parts, f'<polyline points="{line}" fill="none" stroke="{MEAN}" stroke-width="2"/>']


def _scale(values: Sequence[float], first: float, last: float) -> Callable[[float], float]:
    """Map the range of values to coordinates; one value alone stands in the middle."""
    low, high = min(values), max(values)
    return lambda value: (first + last) / 2 if high == low else first + (value - low) / (high - low) * (last - first)
