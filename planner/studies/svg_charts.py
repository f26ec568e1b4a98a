"""Draw studies as SVG: a frontier and a tornado chart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from planner.studies.frontier import CARBON, MEASURE, Frontier
from planner.studies.sensitivity import NO_PLAN, Bar, Moved, Sensitivity

LOW, HIGH, INK, RULE = "#0072B2", "#E69F00", "#333333", "#999999"  # of Okabe and Ito


WIDTH, LABEL, RIGHT, ROW, BAR, TOP = 1160, 430, 230, 26, 16, 56


MOST_BARS = 25


def tornado(found: Sensitivity) -> str:
    """The widest bars first; a level without a plan is drawn to the edge and named."""
    assert found.value is not None
    bars = [bar for bar in found.bars if bar.swing or bar.no_plan][:MOST_BARS]
    reach = (
        max(
            (abs(m.value - found.value) for bar in bars for m in (bar.low, bar.high) if m.value is not None),
            default=0.0,
        )
        or 1.0
    )
    middle = LABEL + (WIDTH - LABEL - RIGHT) / 2
    scale = (WIDTH - LABEL - RIGHT) / 2 / reach
    height = TOP + ROW * max(len(bars), 1) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(_title(found, bars))}</title>",
        f'<text x="{middle:.1f}" y="18" text-anchor="middle" font-weight="bold">Objective against the plan\'s {found.value:,.4g} {escape(found.unit)}</text>',
        *_key(middle),
    ]
    for i, bar in enumerate(bars):
        parts += _bar(bar, TOP + ROW * i, middle, scale, found.value)
    bottom = TOP + ROW * len(bars)
    parts.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="{INK}"/>')
    for share in (-1.0, -0.5, 0.5, 1.0):
        x = middle + share * reach * scale
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="{RULE}" stroke-dasharray="2 3"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{share * reach / abs(found.value):+.1%}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _title(found: Sensitivity, bars: Sequence[Bar]) -> str:
    told = "; ".join(f"{bar.factor.name} {bar.swing / abs(found.value or 1.0):.1%}" for bar in bars)
    return f"Swing of the objective by figure: {told}"


def _key(middle: float) -> list[str]:
    return [
        part
        for x, colour, words in ((middle - 90, LOW, "figure at its low"), (middle + 40, HIGH, "figure at its high"))
        for part in (
            f'<rect x="{x:.1f}" y="28" width="10" height="10" fill="{colour}"/>',
            f'<text x="{x + 14:.1f}" y="37">{words}</text>',
        )
    ]


def _bar(bar: Bar, y: float, middle: float, scale: float, base: float) -> list[str]:
    parts = [f'<text x="{LABEL - 8}" y="{y + BAR - 3}" text-anchor="end">{escape(bar.factor.name)}</text>']
    for moved, colour in ((bar.low, LOW), (bar.high, HIGH)):
        if moved.value is None:
            continue
        ends = sorted((middle, middle + (moved.value - base) * scale))
        parts.append(
            f'<rect x="{ends[0]:.1f}" y="{y}" width="{ends[1] - ends[0]:.1f}" height="{BAR}" fill="{colour}"/>'
        )
    if bar.no_plan:
        lost = " and ".join(_lost(moved) for moved in (bar.low, bar.high) if moved.status == NO_PLAN)
        parts.append(
            f'<text x="{WIDTH - RIGHT + 6}" y="{y + BAR - 3}" font-style="italic">no plan at {escape(lost)}</text>'
        )
    else:
        parts.append(
            f'<text x="{WIDTH - RIGHT + 6}" y="{y + BAR - 3}">{escape(bar.low.words)}; {escape(bar.high.words)}</text>'
        )
    return parts


def _lost(moved: Moved) -> str:
    return moved.words


LINE, BOUND, INK, RULE = "#0072B2", "#E69F00", "#333333", "#999999"  # of Okabe and Ito


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 90, 30, 40, 56


LABELS = {
    "carbon_kg": "carbon [t]",
    "latency_factor": "factor on latency limits",
    "demand_factor": "factor on demand",
    "quality": "quality",
}


def chart(found: Frontier) -> str:
    """Costs are steps of plans, so that nothing between two points is promised: no line but to guide the eye."""
    scale = 1e-3 if found.against == CARBON else 1.0
    xs, ys = [point.measure * scale for point in found.points], [point.cost for point in found.points]
    x_of, x_ticks = _axis(xs, LEFT, WIDTH - RIGHT)
    y_of, y_ticks = _axis([*ys, *(point.bound for point in found.points)], HEIGHT - BOTTOM, TOP)
    label = LABELS[MEASURE[found.against]]
    told = "; ".join(f"{x:,.4g}: {y:,.4g}" for x, y in zip(xs, ys, strict=True))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(f'Cost in {found.currency} by {label}: {told}')}</title>",
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-weight="bold">{escape(f"Cost [{found.currency}] by {label}")}</text>',
    ]
    for value in y_ticks:
        y = y_of(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}" stroke-dasharray="2 3"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,.4g}</text>')
    for value in x_ticks:
        parts.append(f'<text x="{x_of(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:,.4g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(label)}</text>')
    line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{RULE}"/>')
    for point, x, y in zip(found.points, xs, ys, strict=True):
        at, low = x_of(x), y_of(point.bound)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{low:.1f}" y2="{y_of(y):.1f}" stroke="{BOUND}" stroke-width="3"/>'
        )
        parts.append(
            f'<circle cx="{at:.1f}" cy="{y_of(y):.1f}" r="4" fill="{LINE}"><title>{escape(f"{point.name}: {y:,.6g}")}</title></circle>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axis(values: list[float], start: float, end: float):
    """(value -> place, values of five marks)."""
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5 * abs(low or 1.0), high + 0.5 * abs(high or 1.0))
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin
    marks = [low + (high - low) * (0.1 + 0.2 * i) for i in range(5)]
    return lambda value: start + (value - low) / (high - low) * (end - start), marks
