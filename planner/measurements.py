"""Published or own measurements from a CSV file: rows, numbers, the groups they are scored by. What a row means to a model is elsewhere."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import Problem, SpecError, close_matches

KIND_CHARACTERS = 40  # of the source text: its first part names the document, the rest the table
FOLDS = 5
# Columns that are text; every other known column is a number.
TRAINING_TEXT = (
    "id", "source", "model", "attention", "chip", "intra_node_link", "sequence_parallel", "recompute", "sharding", "dtype", "notes",
    "grade", "framework", "release_date",
)  # fmt: skip
TRAINING_NUMBERS = (
    "year", "params_total_B", "params_active_B", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "n_experts", "topk",
    "n_shared_experts", "expert_ffn", "n_chips", "chips_per_node", "inter_node_link_GBps_per_chip", "tp", "pp", "dp", "cp", "ep", "vpp",
    "micro_batch", "global_batch_sequences", "step_time_s", "tokens_per_s_per_chip", "model_tflops_per_chip", "mfu_pct", "hfu_pct",
    "peak_memory_GB",
)  # fmt: skip
NEEDED_COLUMNS = ("chip", "n_chips", "seq_len", "global_batch_sequences")


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its cells as written, its numbers, and where it stands in the file."""

    line: int
    text: Mapping[str, str]
    numbers: Mapping[str, float]

    @property
    def id(self) -> str:
        return self.text.get("id") or f"line {self.line}"

    @property
    def kind(self) -> str:
        """Source kind, by which rows are held out together."""
        return self.text.get("source", "")[:KIND_CHARACTERS]

    @property
    def grade(self) -> str:
        """Letter of trust; a row without one is the user's own and taken as good."""
        return self.text.get("grade", "") or "A"

    def number(self, name: str) -> float | None:
        return self.numbers.get(name)

    def count(self, name: str, default: int = 0) -> int:
        """A number as an integer; the default where the cell is empty."""
        value = self.numbers.get(name)
        return default if value is None else int(value)


def read_rows(path: Path, text_columns: Iterable[str] = TRAINING_TEXT, number_columns: Iterable[str] = TRAINING_NUMBERS,
              needed: Iterable[str] = NEEDED_COLUMNS) -> list[Row]:  # fmt: skip
    """Rows of a file with a header. Raises SpecError with every unreadable cell, and OSError for a missing file."""
    text_columns, number_columns = tuple(text_columns), tuple(number_columns)
    problems: list[Problem] = []
    rows: list[Row] = []
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.DictReader(file)
            header = tuple(name.strip() for name in reader.fieldnames or ())
            reader.fieldnames = list(header)
            for column in needed:
                if column not in header:
                    problems.append(Problem(str(path), f'no column "{column}"{close_matches(column, header)}'))
            for line, cells in enumerate(reader, start=2):
                rows.append(_row(path, line, cells, text_columns, number_columns, problems))
        except (csv.Error, UnicodeDecodeError) as error:
            problems.append(Problem(str(path), f"not a CSV file in UTF-8: {error}"))
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            problems.append(Problem(f"{path} line {row.line}", f'id "{row.id}" stands there twice'))
        seen.add(row.id)
    if problems:
        raise SpecError(problems)
    return rows


def _row(path: Path, line: int, cells: Mapping[str, str], text_columns, number_columns, problems: list[Problem]) -> Row:
    text = {name: (cells.get(name) or "").strip() for name in text_columns}
    numbers: dict[str, float] = {}
    for name in number_columns:
        cell = (cells.get(name) or "").strip()
        if not cell:
            continue
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            problems.append(Problem(f"{path} line {line}, {name}", f'expected a number that is not negative, got "{cell}"'))
        else:
            numbers[name] = value
    return Row(line, text, numbers)


def fold_of(kind: str, architecture: str, chip: str) -> int:
    """The fold in which a group (source kind, architecture, chip) is left out."""
    return int(hashlib.sha256(f"fold|{kind}|{architecture}|{chip}".encode()).hexdigest(), 16) % FOLDS


def kind_mark(kind: str) -> str:
    """A short mark of a source kind: says whether it was seen in calibration without repeating its text."""
    return hashlib.sha256(f"kind|{kind}".encode()).hexdigest()[:16]
