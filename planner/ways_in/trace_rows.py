"""Read the requests of a published trace in batches: when each came, its tokens, and the blocks of its prompt.

Layouts: Azure LLM inference 2023 and 2024 and Azure LMM 2025 (CSV), BurstGPT (CSV), Mooncake (JSONL), and a JSON list of [input, output].
CSV may be compressed (`.gz`). A malformed cell is named by line and column, all of them at once.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from planner.ways_in.problems import FileProblems

BATCH = 50_000  # rows
MOST_TOKENS = 10_000_000
MILLI = 1e-3
BLOCK_TOKENS = 512
"""Tokens of a block of Mooncake's `hash_ids`. Source: the readme of the Mooncake traces."""

DIALECTS = {
    "wait_for": "agentic_mooncake",
    "tool_wait_ms": "agentic_mooncake",
    "input_length_delta": "mooncake-delta",
    "hash_ids_delta": "mooncake-delta",
    "kv_blocks": "weka",
}
"""Keys of rows of related traces that are not read -> name of the dialect."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of a trace: seconds (since 1970 in UTC where the trace has dates, else since its start; empty without times), tokens, blocks."""

    seconds: Sequence[float]
    inputs: Sequence[int]
    outputs: Sequence[int]
    blocks: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How a trace is laid out: its name, columns of time, prompt and answer, and whether times are dates ("dates"), seconds since a midnight
    ("midnight"), since the first request ("start"), or are missing ("none")."""

    name: str
    columns: tuple[str, ...]
    times: str


CSV_LAYOUTS = (
    Layout("Azure LLM inference", ("TIMESTAMP", "ContextTokens", "GeneratedTokens"), "dates"),
    Layout("BurstGPT", ("Timestamp", "Request tokens", "Response tokens"), "midnight"),
)
MOONCAKE = Layout("Mooncake", ("timestamp", "input_length", "output_length"), "start")
PAIRS = Layout("pairs of lengths", (), "none")


def read_rows(path: Path) -> tuple[Layout, Iterator[Batch]]:
    """Recognise the layout of a trace and read it in batches. Raises SpecError for another layout, OSError for a missing file."""
    problems = FileProblems(path.name)
    stream = _open(path)
    start = ""
    try:
        while not start:
            character = stream.read(1)
            if not character:
                raise problems.refuse("ways_in.trace_is_empty")
            start = character.strip().strip("\ufeff")
        stream.seek(0)
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        stream.close()
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    if start == "[":
        return PAIRS, _pairs(stream, problems)
    if start == "{":
        return MOONCAKE, _mooncake(stream, problems)
    return _csv(stream, problems)


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv(stream: IO[str], problems: FileProblems) -> tuple[Layout, Iterator[Batch]]:
    """Recognise a CSV by its header."""
    reader = csv.reader(stream)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except (csv.Error, UnicodeDecodeError) as error:
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    for layout in CSV_LAYOUTS:
        wanted = [name.lower() for name in layout.columns]
        if set(wanted) <= set(header):
            return layout, _csv_batches(stream, reader, [header.index(name) for name in wanted], layout, problems)
    known = "; ".join(", ".join(layout.columns) for layout in (*CSV_LAYOUTS, MOONCAKE))
    raise problems.refuse("ways_in.no_trace", known=known)


def _csv_batches(
    stream: IO[str], reader: Any, places: list[int], layout: Layout, problems: FileProblems
) -> Iterator[Batch]:
    """Read the rows; a batch with any malformed cell is read again cell by cell."""
    seconds_of = _date if layout.times == "dates" else _seconds
    with stream:
        try:
            while batch := [(reader.line_num, row) for row in islice(reader, BATCH)]:
                rows = [(line, row) for line, row in batch if row]
                try:
                    cells = [[row[place] for _, row in rows] for place in places]
                    found = Batch(
                        list(map(seconds_of, cells[0])), list(map(_tokens, cells[1])), list(map(_tokens, cells[2]))
                    )
                except (ValueError, IndexError, OverflowError):
                    _name_cells(rows, places, layout, problems)
                    continue
                yield found
        except (csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            problems.add(reader.line_num, "ways_in.not_text", error=str(error))
    problems.raise_all()


def _name_cells(
    rows: Sequence[tuple[int, list[str]]], places: Sequence[int], layout: Layout, problems: FileProblems
) -> None:
    """Name every malformed cell of the rows."""
    seconds_of = _date if layout.times == "dates" else _seconds
    time_code = "ways_in.expected_date" if layout.times == "dates" else "ways_in.expected_seconds"
    for line, row in rows:
        for place, name, read, code in zip(
            places, layout.columns, (seconds_of, _tokens, _tokens), (time_code, *["ways_in.expected_tokens"] * 2)
        ):
            try:
                read(row[place])
            except IndexError:
                problems.add(line, "ways_in.no_cell", place + 1, name=name)
            except (ValueError, OverflowError):
                problems.add(line, code, place + 1, name=name, most=MOST_TOKENS)


def _date(cell: str) -> float:
    moment = datetime.fromisoformat(cell.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _seconds(cell: str) -> float:
    value = float(cell)
    if not 0.0 <= value < 1e12:  # neither NaN nor infinite
        raise ValueError
    return value


def _tokens(cell: str) -> int:
    value = int(cell)
    if not 0 <= value <= MOST_TOKENS:
        raise ValueError
    return value


# -- JSON --------------------------------------------------------------------------------------------------------------


def _mooncake(stream: IO[str], problems: FileProblems) -> Iterator[Batch]:
    """Read one request per line."""
    with stream:
        try:
            lines = enumerate(stream, start=1)
            while batch := list(islice(lines, BATCH)):
                read = [
                    row for line, text in batch if text.strip() and (row := _request(line, text, problems)) is not None
                ]
                if read and not problems.found:
                    times, inputs, outputs, blocks = zip(*read)
                    yield Batch(times, inputs, outputs, blocks)
        except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            raise problems.refuse("ways_in.not_text", error=str(error)) from None
    problems.raise_all()


def _request(line: int, text: str, problems: FileProblems) -> tuple[float, int, int, list[int]] | None:
    """Read a line of Mooncake's layout; None, with the problems named, for another."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.add(line, "ways_in.not_json", getattr(error, "colno", 0), error=getattr(error, "msg", str(error)))
        return None
    if not isinstance(row, Mapping):
        problems.add(line, "ways_in.expected_object", keys=", ".join(MOONCAKE.columns))
        return None
    if dialect := next((DIALECTS[key] for key in row if key in DIALECTS), ""):
        raise problems.refuse("ways_in.dialect", dialect=dialect, line=line)
    before = len(problems.found)
    if not _is_number(row.get("timestamp")):
        problems.add(line, "ways_in.expected_key_milliseconds", name="timestamp")
    for name in MOONCAKE.columns[1:]:
        if not _is_tokens(row.get(name)):
            problems.add(line, "ways_in.expected_tokens", name=name, most=MOST_TOKENS)
    blocks = row.get("hash_ids", [])
    if not isinstance(blocks, list) or not all(isinstance(block, int) for block in blocks):
        problems.add(line, "ways_in.expected_blocks", name="hash_ids")
    if len(problems.found) > before:
        return None
    return row["timestamp"] * MILLI, row["input_length"], row["output_length"], blocks


def _pairs(stream: IO[str], problems: FileProblems) -> Iterator[Batch]:
    """Read a list of [input, output]."""
    with stream:
        try:
            pairs = json.load(stream)
        except json.JSONDecodeError as error:
            problems.add(error.lineno, "ways_in.not_json", error.colno, error=error.msg)
            pairs = []
        except (ValueError, RecursionError) as error:
            raise problems.refuse("ways_in.not_text", error=str(error)) from None
    wrong = [
        i
        for i, pair in enumerate(pairs, start=1)
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_tokens, pair)))
    ]
    if wrong:
        named = ", ".join(map(str, wrong[:10])) + (", …" if len(wrong) > 10 else "")
        raise problems.refuse("ways_in.expected_pairs", count=len(wrong), entries=named, most=MOST_TOKENS)
    problems.raise_all()
    if pairs:
        yield Batch((), [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def _is_tokens(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
