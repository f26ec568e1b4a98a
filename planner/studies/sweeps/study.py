"""Sweep a spec from the command line: choose combinations, answer them, and say what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.files import write_file
from planner.messages import say
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.solving.standing import Progress
from planner.spec.document import at, edited
from planner.studies.batch_lines import Settings
from planner.studies.engines import Engine
from planner.studies.engines.local import LocalEngine
from planner.studies.sweeps.rows import answered, as_line, as_table, columns_of, kept, kind_of
from planner.studies.sweeps.summary import Effect, Threshold, effects, thresholds
from planner.studies.sweeps.varied import Point, Varied
from planner.tables import as_csv

Row = dict[str, Any]
HERE = LocalEngine()
MOST_ROWS = 40  # rows in a text; CSV and JSON hold all


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rows of a sweep, the effect of each path, and the thresholds of kind."""

    rows: list[Row]
    effects: list[Effect]
    thresholds: list[Threshold]
    unit: str

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "rows": self.rows,
            "effects": [
                {
                    "path": effect.path,
                    "swing": effect.swing,
                    "levels": [
                        {"level": str(name), "mean": mean, "rows": count} for name, mean, count in effect.levels
                    ],
                }
                for effect in self.effects
            ],
            "thresholds": [
                {
                    "path": one.path,
                    "below": one.below,
                    "above": one.above,
                    "kind_below": one.kind_below,
                    "kind_above": one.kind_above,
                }
                for one in self.thresholds
            ],
        }

    @property
    def words(self) -> list[str]:
        """Count the combinations and those with a plan, and name the path that matters most and the first threshold."""
        planned = [row["value"] for row in self.rows if row["value"] is not None]
        told = [say("sweep.counted", count=len(self.rows), planned=f"{len(planned)}")]
        if planned:
            told.append(say("sweep.range", low=f"{min(planned):,.0f}", high=f"{max(planned):,.0f}", unit=self.unit))
        if self.effects:
            first = self.effects[0]
            told.append(say("sweep.matters_most", path=first.path, swing=f"{first.swing:,.0f}", unit=self.unit))
        told += [
            say("sweep.threshold", path=one.path, below=str(one.below), above=str(one.above), before=one.kind_below or "-", after=one.kind_above or "-")
            for one in self.thresholds
        ]  # fmt: skip
        return told

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return the effects, and the rows where a reader can take them in."""
        levels = [
            {
                say("sweep.head.path"): effect.path,
                say("sweep.head.level"): level,
                say("sweep.head.mean", unit=self.unit): f"{mean:,.0f}",
                say("sweep.head.rows"): count,
            }
            for effect in self.effects
            for level, mean, count in effect.levels
        ]
        shown = self.rows if len(self.rows) <= MOST_ROWS else []
        return [(say("sweep.heading.effects"), levels), (say("sweep.heading.rows"), shown)]


def run(
    document: Mapping[str, Any], varied: Sequence[Varied], points: Sequence[Point], *, settings: Settings, engine: Engine = HERE,
    rows_file: Path | None = None, resume: bool = False, progress: Progress | None = None,
) -> Sweep:  # fmt: skip
    """Answer the points and sum them up. With `rows_file` each row is appended to it at once, and `resume` keeps the rows of an earlier run.

    Raises SpecError where every point is invalid or the file holds another table; OSError.
    """
    known = kept(rows_file, points) if rows_file and resume and rows_file.exists() else {}
    if rows_file:
        heads = as_csv([dict.fromkeys(columns_of(points))])
        write_file(rows_file, heads.partition("\n")[0] + "\n" + "".join(as_line(row) for row in known.values()))
    left = [number for number in range(len(points)) if number not in known]

    def keep(row: Row) -> None:
        if rows_file:
            with open(rows_file, "a", encoding="utf-8") as file:
                file.write(as_line(row))

    found = answered(
        document, [points[n] for n in left], engine=engine, settings=settings, keep=keep, progress=progress
    )
    known |= dict(zip(left, found, strict=True))
    rows = [known[number] for number in range(len(points))]
    if rows_file:
        write_file(rows_file, as_table(rows))
    unit = next((row["unit"] for row in rows if row["unit"]), "")
    return Sweep(rows, effects(varied, rows), _thresholds(document, varied, rows, settings), unit)


def _thresholds(
    document: Mapping[str, Any], varied: Sequence[Varied], rows: Sequence[Row], settings: Settings
) -> list[Threshold]:
    """Look for thresholds around the spec's own values; none where the spec states no value at one of the paths."""
    base = {one.path: at(document, one.path) for one in varied}
    if any(value is None for value in base.values()):
        return []

    def kind_at(point: Point) -> str:
        plan: Plan = solve_document(edited(document, tuple(point.items())), overlays=settings.overlays)
        return kind_of(plan)

    return thresholds(varied, rows, kind_at, base)
