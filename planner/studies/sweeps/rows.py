"""Answer the combinations of a sweep in parallel, and keep each row on the disk as soon as it is known.

The file is a table of CSV. A run that was killed leaves whole rows and at most one broken line at the end, which `kept` drops; at the end the
table is written again in the order of the combinations. Not here: how a process answers one spec (`planner.studies.batch`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.files import write_file
from planner.messages import Message
from planner.plan import Plan
from planner.spec.document import edited
from planner.studies.batch import Follow, answers
from planner.studies.batch_lines import INVALID_LINE, Line, Settings, digest_of_overlays, hash_of
from planner.studies.batch_output import Output
from planner.studies.engines import Engine
from planner.studies.sweeps.grid import FIGURES, figures_of, without_figures
from planner.studies.sweeps.varied import Point
from planner.tables import as_csv

Row = dict[str, Any]
KIND = "kind"  # column: which systems the plan obtains, how and where, whatever their number
DIGEST = ".digest"  # end of the name of the file beside the rows


def answered(
    document: Mapping[str, Any], points: Sequence[Point], left: Sequence[int], *, engine: Engine, settings: Settings,
    keep: Callable[[Row], None] | None = None, follow: Follow | None = None,
) -> list[Row]:  # fmt: skip
    """Solve the spec at the points that are left, by position, on an engine: their rows in that order; `keep` gets each as soon as it is known, then `follow` its answer.

    Raises SpecError where every point is invalid, with the problems of the first.
    """
    lines = [Line(number, named(point), edited(document, tuple(point.items()))) for number, point in enumerate(points)]
    found: dict[int, Row] = {}
    with closing(answers([lines[number] for number in left], engine, settings, lines)) as finished:
        for done, answer in enumerate(finished, start=1):
            row = {**points[answer.line.number], **_row(json.loads(answer.record))}
            found[answer.line.number] = row
            if keep:
                keep(row)
            if follow:
                follow(done, answer)
    rows = [found[number] for number in left]
    if rows and all(row["status"] == INVALID_LINE for row in rows):
        raise SpecError(
            [Issue("--vary", Message.of("sweep.all_invalid", error=rows[0]["error"].partition("\n")[0]).text())]
        )
    return rows


def named(point: Point) -> str:
    """Name a combination by its values.

    >>> named({"sites[0].power": "3 MW", "solver.gap": 0.01})
    'sites[0].power=3 MW, solver.gap=0.01'
    """
    return ", ".join(f"{path}={value}" for path, value in point.items())


def _row(record: Mapping[str, Any]) -> Row:
    if "plan" not in record:
        return {**without_figures(record["status"], record["error"]), KIND: None}
    plan = Plan.of(record["plan"])
    return {**figures_of(plan), KIND: kind_of(plan)}


def kind_of(plan: Plan) -> str:
    """Name what a plan obtains, in the order of the alphabet: system, way to obtain it and site, without numbers."""
    return "; ".join(sorted({f"{row['system']} {row['how']} {row['site']}" for row in plan.document["fleet"]}))


# -- the file ----------------------------------------------------------------------------------------------------------


def begun(output: Output, points: Sequence[Point], resume: bool, digest: str) -> dict[int, Row]:
    """Write the heads and the rows that stand, and return these by the position of their point. Raises SpecError, OSError.

    `digest`: of all that the rows depend on beside their values (`digest_of`). It stands beside the file from before the first row on, and
    rows beside another one are refused.
    """
    before = output.read() if resume else b""
    known = kept(before, points, str(output.path)) if resume else {}
    if before.count(b"\n") > 1 and digest_beside(output.path) != digest:
        raise SpecError([Issue(str(output.path), Message.of("sweep.another_spec").text())])
    if not output.passing:
        write_file(_beside(output.path), digest + "\n")
    if not resume:
        output.write(_heads(points))
        return {}
    output.replace(_heads(points) + "".join(as_line(row) for row in known.values()))
    return known


def digest_of(document: Mapping[str, Any], points: Sequence[Point], settings: Settings) -> str:
    """Hash all that a row depends on beside its values: the spec without them, and the overlays."""
    rest = edited(document, tuple((path, 0) for path in points[0]))
    return hash_of([rest, digest_of_overlays(settings.overlays)])


def digest_beside(path: Path) -> str:
    """Read the digest beside a file of rows; empty where there is none."""
    try:
        return _beside(path).read_text().strip()
    except (OSError, ValueError):
        return ""


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{DIGEST}")


def kept(data: bytes, points: Sequence[Point], name: str) -> dict[int, Row]:
    """Read the rows of an earlier run, by the position of their point. Raises SpecError, naming the file, for another table.

    A row is known by its values; rows of other points are dropped, and so is a last line that has no end or not all columns.
    """
    columns = columns_of(points)
    by_values = {_values(point): number for number, point in enumerate(points)}
    text = data[: data.rfind(b"\n") + 1].decode(errors="replace")
    lines = list(csv.reader(io.StringIO(text)))
    unended = not lines and not _heads(points).encode().startswith(data)
    if unended or (lines and lines[0] != columns):
        heads = ", ".join(lines[0]) if lines else data[:40].decode(errors="replace")
        raise SpecError([Issue(name, Message.of("sweep.another_table", columns=heads).text())])
    rows: dict[int, Row] = {}
    for cells in lines[1:]:
        if len(cells) != len(columns):
            continue
        told = dict(zip(columns, cells, strict=True))
        number = by_values.get(tuple(told[name] for name in points[0]))
        if number is not None and told["status"]:
            rows[number] = {**points[number], **{name: _read(name, told[name]) for name in columns[len(points[0]) :]}}
    return rows


def _heads(points: Sequence[Point]) -> str:
    return as_csv([dict.fromkeys(columns_of(points))]).partition("\n")[0] + "\n"


def columns_of(points: Sequence[Point]) -> list[str]:
    """List the heads of the table: paths, figures of the plan, and its kind."""
    return [*points[0], *FIGURES, KIND]


def as_line(row: Row) -> str:
    """Write one row as a line of CSV."""
    return as_csv([row]).partition("\n")[2]


def as_table(rows: Sequence[Row]) -> str:
    """Write all rows with their heads."""
    return as_csv(rows)


def _values(point: Point) -> tuple[str, ...]:
    return tuple(next(csv.reader([as_line(point)])))


def _read(name: str, text: str) -> Any:
    if text == "":
        return None
    if name in ("status", "unit", "error", KIND):
        return text
    return float(text) if "." in text or "e" in text else int(text)
