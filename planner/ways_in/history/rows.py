"""Read past demand from a CSV: times and amounts by workload, hourly, daily or weekly."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from catalog.units import DAY_S, HOUR_S
from planner.messages import say
from planner.ways_in.problems import FileProblems

TIMES = ("timestamp", "time", "date", "datetime", "hour", "day", "week")
NAMES = ("workload", "name", "service", "model")
WEEK_S = 7 * DAY_S
STEPS = (HOUR_S, DAY_S, WEEK_S)
AMOUNTS = {
    "requests_per_s": ("requests_per_s", False),
    "tasks_per_s": ("tasks_per_s", False),
    "output_tokens_per_s": ("output_tokens", False),
    "requests": ("requests_per_s", True),
    "tasks": ("tasks_per_s", True),
    "output_tokens": ("output_tokens", True),
}
"""Header of the amounts -> key of the demand, and whether the amount is of the whole row, such as requests in its hour."""
MOST_ROWS = 1_000_000
ALL = "demand"  # name of the only workload of a file without a column of names


@dataclass(slots=True)
class History:
    """Past demand of a workload: rows in order of time, each `step_s` long; `key`: of the demand in a spec, in its unit per second."""

    name: str
    key: str
    step_s: float
    times: list[datetime] = field(default_factory=list)  # local, as the shape counts
    amounts: list[float] = field(default_factory=list)
    blank: int = 0


def read_history(path: Path, zone: str = "UTC") -> list[History]:
    """Read past demand; times with an offset are told by the clock of `zone`. Raises SpecError with every problem by its line, or OSError."""
    problems = FileProblems(path.name)
    try:
        clock = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise problems.refuse("history.unknown_zone", zone=zone) from None
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise problems.refuse("history.no_text") from None
    reader = csv.reader(io.StringIO(text, newline=None))
    header = [cell.strip().lower() for cell in next(reader, [])]
    when = [i for i, cell in enumerate(header) if cell in TIMES]
    amounts = [i for i, cell in enumerate(header) if cell in AMOUNTS]
    if len(when) != 1 or len(amounts) != 1:
        told = {"times": ", ".join(TIMES), "amounts": ", ".join(AMOUNTS), "header": ", ".join(header) or "-"}
        raise problems.refuse("history.columns_expected", **told)
    named = next((i for i, cell in enumerate(header) if cell in NAMES), None)
    found: dict[str, dict[datetime, tuple[datetime, float | None]]] = {}
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                _add(found, problems, reader.line_num, cells, (when[0], amounts[0], named), clock)
    except csv.Error:
        problems.add(reader.line_num, "history.row_malformed")
    problems.raise_all()
    if not found:
        raise problems.refuse("history.empty")
    return [_history(problems, name, header[amounts[0]], rows) for name, rows in found.items()]


def _add(
    found: dict[str, dict[datetime, tuple[datetime, float | None]]],
    problems: FileProblems,
    line: int,
    cells: list[str],
    columns: tuple[int, int, int | None],
    clock: ZoneInfo,
) -> None:
    """Add a row, or the problem with it."""
    when, amount, named = columns
    if len(cells) <= max(when, amount, named or 0):
        problems.add(line, "history.row_too_short")
        return
    try:
        moment = datetime.fromisoformat(cells[when].strip().replace("Z", "+00:00"))
    except ValueError:
        problems.add(line, "history.time_malformed", when + 1, given=cells[when].strip()[:40])
        return
    local = moment if moment.tzinfo is None else moment.astimezone(clock).replace(tzinfo=None)
    key = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    value: float | None = None
    if text := cells[amount].strip():
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            problems.add(line, "history.amount_malformed", amount + 1, given=text[:40])
            return
    rows = found.setdefault(ALL if named is None else cells[named].strip() or ALL, {})
    if key in rows:
        problems.add(line, "history.time_twice", when + 1, given=cells[when].strip()[:40])
        return
    if sum(map(len, found.values())) >= MOST_ROWS:
        raise problems.refuse("history.too_many_rows", count=MOST_ROWS)
    rows[key] = local, value


def _history(
    problems: FileProblems, name: str, header: str, rows: dict[datetime, tuple[datetime, float | None]]
) -> History:
    """Order the rows of a workload by time, and find how far they lie apart. Raises SpecError for another distance than an hour, day or week."""
    order = sorted(rows)
    apart = sorted((later - earlier) / timedelta(seconds=1) for earlier, later in pairwise(order))
    usual = apart[len(apart) // 2] if apart else 0.0
    if usual not in STEPS or any(each % usual for each in apart):
        odd = next((each for each in apart if each % (usual or 1)), usual)
        told = {"name": name, "usual": f"{usual / HOUR_S:g} h", "odd": f"{odd / HOUR_S:g} h"}
        raise problems.refuse("history.uneven_steps", **told)
    key, whole = AMOUNTS[header]
    known = [(local, value) for local, value in (rows[moment] for moment in order) if value is not None]
    return History(
        name, key, usual, [local for local, _ in known], [value / usual if whole else value for _, value in known],
        len(order) - len(known) + round((order[-1] - order[0]) / timedelta(seconds=usual)) + 1 - len(order),
    )  # fmt: skip


def step_words(history: History) -> str:
    """Say how far the rows lie apart."""
    return say({HOUR_S: "history.hourly", DAY_S: "history.daily", WEEK_S: "history.weekly"}[history.step_s])
