"""Sweep a spec from the command line: choose combinations, answer them, and say what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.messages import commas, say
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.report.words import amount, whole
from planner.spec.document import at, edited
from planner.studies.batch import Follow
from planner.studies.batch_lines import Settings
from planner.studies.batch_output import open_output
from planner.studies.engines import Engine
from planner.studies.engines.local import LocalEngine
from planner.studies.sweeps.rows import answered, as_line, as_table, begun, digest_of, kind_of
from planner.studies.sweeps.summary import Effect, Threshold, effects, thresholds
from planner.studies.sweeps.varied import Point, Varied

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
    unstated: tuple[str, ...] = ()
    """Paths at which the spec states no value: with one of them no threshold is looked for, since the others have no point to stay at."""

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
            told.append(say("sweep.range", low=whole(min(planned)), high=whole(max(planned)), unit=self.unit))
        if self.effects:
            first = self.effects[0]
            told.append(say("sweep.matters_most", path=first.path, swing=whole(first.swing), unit=self.unit))
        told += [
            say("sweep.threshold", path=one.path, below=str(one.below), above=str(one.above), before=one.kind_below or "-", after=one.kind_above or "-")
            for one in self.thresholds
        ]  # fmt: skip
        if self.unstated:
            told.append(say("sweep.thresholds_left_out", paths=commas(self.unstated)))
        return told

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return the effects, and the rows where a reader can take them in."""
        levels = [
            {
                say("sweep.head.path"): effect.path,
                say("sweep.head.level"): level,
                say("sweep.head.mean", unit=self.unit): whole(mean),
                say("sweep.head.rows"): count,
            }
            for effect in self.effects
            for level, mean, count in effect.levels
        ]
        rows = self.rows if len(self.rows) <= MOST_ROWS else []
        shown = [row | ({} if row["value"] is None else {"value": amount(row["value"])}) for row in rows]
        return [(say("sweep.heading.effects"), levels), (say("sweep.heading.rows"), shown)]


def run(
    document: Mapping[str, Any], varied: Sequence[Varied], points: Sequence[Point], *, settings: Settings, engine: Engine = HERE,
    rows_file: Path | None = None, resume: bool = False, following: Callable[[int], AbstractContextManager[Follow]] | None = None,
) -> Sweep:  # fmt: skip
    """Answer the points and sum them up. With `rows_file` each row is on the disk before the next is told, and `resume` keeps an earlier run's.

    `following`: makes what follows so many answers, such as a bar. The file belongs to this process until all rows are known, and then stands in the order of the points. Raises SpecError where every
    point is invalid or the file holds another table or rows of another spec; FileExistsError for a file that exists, without `resume`; BlockingIOError for one
    that another process writes; OSError.
    """
    with open_output(rows_file, resume) if rows_file else nullcontext() as output:
        known = begun(output, points, resume, digest_of(document, points, settings)) if output else {}
        left = [number for number in range(len(points)) if number not in known]
        with following(len(left)) if following else nullcontext() as follow:
            found = answered(
                document, points, left, engine=engine, settings=settings, follow=follow,
                keep=(lambda row: output.write(as_line(row))) if output else None,
            )  # fmt: skip
        known |= dict(zip(left, found, strict=True))
        rows = [known[number] for number in range(len(points))]
        if output:
            output.replace(as_table(rows))
    unit = next((row["unit"] for row in rows if row["unit"]), "")
    base = {one.path: at(document, one.path) for one in varied}
    has_range = any(one.ends is not None for one in varied)
    unstated = tuple(path for path, value in base.items() if value is None) if has_range else ()
    found_thresholds = [] if unstated else _thresholds(document, varied, rows, base, settings)
    return Sweep(rows, effects(varied, rows), found_thresholds, unit, unstated)


def _thresholds(
    document: Mapping[str, Any], varied: Sequence[Varied], rows: Sequence[Row], base: Point, settings: Settings
) -> list[Threshold]:
    """Look for thresholds around the spec's own values `base`."""

    def kind_at(point: Point) -> str:
        plan: Plan = solve_document(edited(document, tuple(point.items())), overlays=settings.overlays)
        return kind_of(plan)

    return thresholds(varied, rows, kind_at, base)
