"""Draw a sensitivity study as a tornado chart (SVG)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from planner.report.words import amount
from planner.studies.sensitivity import NO_PLAN, Bar, Moved, Sensitivity

LOW, HIGH, INK, RULE = "#0072B2", "#E69F00", "#333333", "#999999"  # colours by Okabe and Ito
WIDTH, LABEL, RIGHT, ROW, BAR, TOP = 1160, 430, 230, 26, 16, 56
MAX_BARS = 25


def tornado(found: Sensitivity) -> str:
    """Draw the widest bars first; a level without a plan is named beside its bar."""
    assert found.value is not None
    bars = [bar for bar in found.bars if bar.swing or bar.no_plan][:MAX_BARS]
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
        f'<text x="{middle:.1f}" y="18" text-anchor="middle" font-weight="bold">Objective against the plan\'s {amount(found.value)} {escape(found.unit)}</text>',
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
    swings = "; ".join(f"{bar.factor.name} {bar.swing / abs(found.value or 1.0):.1%}" for bar in bars)
    return f"Swing of the objective by figure: {swings}"


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
