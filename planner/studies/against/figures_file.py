"""Read figures as they were, from CSV or JSON: rate, lengths, throughput, latencies, price, power, deliveries and progress, a row for each day and thing.

Not here: traces and results of benchmarks, which have layouts of their own (`planner.ways_in.traces`, `planner.calibration.benchmark_files`).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from catalog.units import UnitError, parse
from planner.errors import close_matches
from planner.ways_in.problems import FileProblems

TEXTS = ("date", "workload", "job", "site", "system", "how", "currency", "expected")
"""Columns that say what a row is about; `expected`: the day on which the systems come that are not delivered yet."""
DAYS = ("date", "expected")
PROGRESS = ("delivered", "done")
"""Columns of numbers that may be 0: systems delivered so far, and the share of a job that is done. They say where a plan stands (`replan`)."""
NUMBERS = ("requests_per_s", "input_tokens", "output_tokens", "throughput", "systems", "price", "power_kw", *PROGRESS)
"""Columns of numbers, above 0 but for `PROGRESS`."""
LATENCY = re.compile(r"(ttft|tpot)(?:_(mean|p50|p90|p95|p99))?")
"""Columns of latencies: the mean, or a percentile."""
EXAMPLES = ("ttft", "ttft_p95", "tpot_p95")
MOST = 1e18
BESIDE = {
    "price": ("system", "how"),
    "throughput": ("systems",),
    "delivered": ("date", "site", "system", "how"),
    "done": ("date", "job"),
}
"""Columns whose figure needs others in the row."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A row: its line, the texts and the numbers that it states; latencies in seconds, under "ttft" or "ttft.p95"."""

    line: int
    texts: Mapping[str, str]
    numbers: Mapping[str, float]

    def text(self, name: str) -> str:
        """Return a text; empty where the row has none."""
        return self.texts.get(name, "")


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a plan knows, which the cells of these columns may have."""

    workloads: Collection[str]
    sites: Collection[str]
    systems: Collection[str]
    ways: Collection[str]
    jobs: Collection[str] = ()

    def of(self, column: str) -> Collection[str] | None:
        """Return the names that may stand in a column; None where anything may."""
        known = {
            "workload": self.workloads,
            "job": self.jobs,
            "site": self.sites,
            "system": self.systems,
            "how": self.ways,
        }
        return known.get(column)


def metric_of(column: str) -> str:
    """Return the metric of a column of latencies as a plan names it; empty for another column.

    >>> metric_of("ttft_p95"), metric_of("tpot"), metric_of("ttft_mean"), metric_of("price")
    ('ttft.p95', 'tpot', 'ttft', '')
    """
    found = LATENCY.fullmatch(column)
    if not found:
        return ""
    return found[1] if found[2] in (None, "mean") else f"{found[1]}.{found[2]}"


def read_figures(path: Path, names: Names) -> list[Figures]:
    """Read the rows of a CSV, or the objects of a JSON list, which have the same names.

    Raises SpecError with every unknown column, name and malformed cell by line (or item) and column; OSError for a missing file.
    """
    problems = FileProblems(path.name)
    if path.suffix.lower() == ".json":
        problems.parts = "item"
        header, table = _items(path, problems)
    else:
        header, table = _lines(path, problems)
    known = _check_header(header, problems)
    rows = [
        _row(line, header, cells, known, names, problems)
        for line, cells in table
        if any(cell.strip() for cell in cells)
    ]
    problems.raise_all()
    if not any(row.numbers for row in rows):
        raise problems.refuse("actual.no_figure")
    return rows


def _lines(path: Path, problems: FileProblems) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a CSV, and its lines by number."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            lines = csv.reader(file)
            header = [name.strip().lower() for name in next(lines, [])]
            return header, [(lines.line_num, cells) for cells in lines]
        except (csv.Error, UnicodeDecodeError) as error:
            raise problems.refuse("ways_in.not_text", error=str(error)) from None


def _items(path: Path, problems: FileProblems) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the keys of the objects in a JSON list as a header, and each object as a line of cells."""
    try:
        items = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise problems.refuse("actual.list_expected")
    header = list(dict.fromkeys(str(key).strip().lower() for item in items for key in item))
    table = []
    for i, item in enumerate(items):
        cells = {str(key).strip().lower(): "" if value is None else str(value) for key, value in item.items()}
        table.append((i + 1, [cells.get(name, "") for name in header]))
    return header, table


def _check_header(header: Sequence[str], problems: FileProblems) -> frozenset[int]:
    """Return the places of the known columns; unknown ones, and those that stand there twice, are problems."""
    columns = (*TEXTS, *NUMBERS, *EXAMPLES)
    known = set()
    for place, name in enumerate(header):
        if name not in columns and not metric_of(name):
            problems.add(1, "actual.unknown_column", place + 1, name=name, close=close_matches(name, columns), known=", ".join(columns))  # fmt: skip
        elif name in header[:place]:
            problems.add(1, "actual.column_twice", place + 1, name=name)
        else:
            known.add(place)
    return frozenset(known)


def _row(
    line: int, header: Sequence[str], cells: Sequence[str], known: frozenset[int], names: Names, problems: FileProblems
) -> Figures:
    """Read a row, and add each of its faults to the problems."""
    texts: dict[str, str] = {}
    numbers: dict[str, float] = {}
    for place in sorted(known):
        cell, name = cells[place].strip() if place < len(cells) else "", header[place]
        if not cell:
            continue
        if name in TEXTS:
            texts[name] = _text(line, place + 1, name, cell, names, problems)
            continue
        metric = metric_of(name)
        value = _seconds(cell) if metric else _progress(name, cell) if name in PROGRESS else _number(cell)
        if value is None:
            code = (
                "actual.time_expected"
                if metric
                else f"actual.{name}_expected"
                if name in PROGRESS
                else "ways_in.expected_number"
            )
            problems.add(line, code, place + 1, most=MOST, name=name)
        else:
            numbers[metric or name] = value
    for name, needed in BESIDE.items():
        if name in numbers and (lacking := [each for each in needed if each not in texts and each not in numbers]):
            problems.add(line, "actual.figure_needs", header.index(name) + 1, name=name, needed=", ".join(lacking))
    if "currency" in texts and not re.fullmatch(r"[A-Z]{3}", texts["currency"]):
        problems.add(line, "actual.currency_expected", header.index("currency") + 1, given=texts["currency"])
    return Figures(line, texts, numbers)


def _text(line: int, place: int, name: str, cell: str, names: Names, problems: FileProblems) -> str:
    """Read a name that the plan knows, or a date."""
    known = names.of(name)
    if known is not None and cell not in known:
        problems.add(line, "actual.unknown_name", place, what=name, name=cell, close=close_matches(cell, known), known=", ".join(known) or "-")  # fmt: skip
    if name in DAYS:
        try:
            date.fromisoformat(cell[:10])
        except ValueError:
            problems.add(line, "actual.date_expected", place, name=name, given=cell)
    return cell


def _number(cell: str) -> float | None:
    """Read a number above 0; None for anything else."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0.0 < value <= MOST else None


def _progress(name: str, cell: str) -> float | None:
    """Read a whole number of systems, or a share such as 0.4 or 40 %; None for anything else."""
    percent = name == "done" and cell.endswith("%")
    try:
        value = float(cell.removesuffix("%")) / (100.0 if percent else 1.0)
    except ValueError:
        return None
    is_right = 0.0 <= value <= 1.0 if name == "done" else value.is_integer() and 0.0 <= value <= MOST
    return value if is_right else None


def _seconds(cell: str) -> float | None:
    """Read a time: seconds, or a text with a unit; None for anything else."""
    value = _number(cell)
    if value is not None:
        return value
    try:
        value = parse(cell, "s")
    except (UnitError, KeyError):
        return None
    return value if 0.0 < value <= MOST else None


def mean_of(rows: Iterable[Figures], name: str, weight: Callable[[Figures], float] = lambda row: 1.0) -> float | None:
    """Return the weighted mean of a figure over the rows that state it; None where none does."""
    stated = [(row.numbers[name], weight(row)) for row in rows if name in row.numbers]
    total = math.fsum(each for _, each in stated)
    return math.fsum(value * each for value, each in stated) / total if total else None


def latest(rows: Sequence[Figures]) -> list[Figures]:
    """Return the rows of the latest date; all of them where none has a date."""
    last = max((row.text("date") for row in rows), default="")
    return [row for row in rows if row.text("date") == last]
