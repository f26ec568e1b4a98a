"""Read measurements from a CSV file: rows, numbers, and the groups they are scored by.

Not here: turning a row into a case of a model (`training_cases`, `serving_cases`).
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from catalog.errors import UnknownName
from catalog.lookup import Catalog
from catalog.records import Record
from models.transformer.architecture import Architecture
from planner.calibration.benchmark_files import benchmark_cells, is_benchmark_file
from planner.calibration.training_logs import is_training_log, log_cells
from planner.errors import Issue, SpecError, close_matches
from planner.messages import Message
from planner.problem.intervals import kind_of_network
from planner.ways_in.accelerators import chip_called

SOURCE_KIND_CHARACTERS = 40  # characters of the source text: its first part names the document, the rest the table
FOLDS = 5
MOST = 10.0**18  # largest number in a file: counts stay whole numbers of 64 bits

COPY_WORDS = ("id", "notes", "other_metric")  # cells that tell of a run and are no setting of the run
COPY_SCALED = ("ttft_ms", "e2e_ms")  # figures that differ by the factor
COPY_FEWEST = 5  # pairs of one source with one factor; two runs that happen to agree are one pair
COPY_DECIMALS = 2  # decimals of a factor that a person chose
COPY_ROUNDING = 1e-5  # relative rounding of published times


class Unpredictable(Exception):
    """The models cannot predict a row; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one kind of file: text, numbers, those required to read a row (`needed`), and those only this kind has (`own`)."""

    text: tuple[str, ...]
    numbers: tuple[str, ...]
    needed: tuple[str, ...]
    own: tuple[str, ...]


TRAINING_TEXT = (
    "id", "source", "model", "attention", "chip", "intra_node_link", "sequence_parallel", "recompute", "sharding", "dtype", "notes",
    "grade", "framework", "release_date", "tuning", "schedule",
)  # fmt: skip
TRAINING_NUMBERS = (
    "year", "params_total_B", "params_active_B", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "n_experts", "topk",
    "n_shared_experts", "expert_ffn", "n_chips", "chips_per_node", "inter_node_link_GBps_per_chip", "tp", "pp", "dp", "cp", "ep", "vpp",
    "micro_batch", "global_batch_sequences", "step_time_s", "tokens_per_s_per_chip", "model_tflops_per_chip", "mfu_pct", "hfu_pct",
    "peak_memory_GB", "adapter_rank",
)  # fmt: skip
NEEDED_COLUMNS = ("chip", "n_chips", "seq_len", "global_batch_sequences")
SERVING_TEXT = (
    "id", "source", "model", "attention", "weight_dtype", "kv_dtype", "chip", "engine", "engine_version", "mode", "other_metric", "notes",
    "grade",
)  # fmt: skip
SERVING_NUMBERS = (
    "year", "params_total_B", "params_active_B", "n_chips", "chips_per_node", "tp", "pp", "ep", "dp", "isl", "osl", "concurrency",
    "is_max_throughput", "request_rate_per_s", "output_tokens_per_s_total", "total_tokens_per_s", "tokens_per_s_per_chip", "ttft_ms", "tpot_ms",
    "e2e_ms", "requests_per_s", "peak_in_flight", "tokens_per_step",
)  # fmt: skip
FILES = {
    "training": Columns(
        TRAINING_TEXT,
        TRAINING_NUMBERS,
        NEEDED_COLUMNS,
        ("seq_len", "global_batch_sequences", "step_time_s", "model_tflops_per_chip", "mfu_pct", "hfu_pct"),
    ),
    "serving": Columns(
        SERVING_TEXT,
        SERVING_NUMBERS,
        ("chip", "n_chips", "model"),
        ("isl", "osl", "engine", "concurrency", "ttft_ms", "tpot_ms", "output_tokens_per_s_total"),
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its cells as written, its numbers, its line in the file, and its place in the words of an error."""

    line: int
    text: Mapping[str, str]
    numbers: Mapping[str, float]
    place: str = ""
    copy_of: str = ""  # the row that this is a copy of, with one figure scaled

    @property
    def id(self) -> str:
        return self.text.get("id") or f"line {self.line}"

    @property
    def kind(self) -> str:
        """Derive the source kind, by which rows are held out together.

        The part before the dash of a serving row's id where it has one, else the first characters of the source.
        """
        before, dash, _ = self.text.get("id", "").partition("-")
        return before if dash and "engine" in self.text else self.text.get("source", "")[:SOURCE_KIND_CHARACTERS]

    @property
    def grade(self) -> str:
        """Return the letter of trust; a row without one is the user's own and counts as A."""
        return self.text.get("grade", "") or "A"

    def number(self, name: str) -> float | None:
        """Return the number in a column; None where the cell is empty."""
        return self.numbers.get(name)

    def required(self, name: str) -> float:
        """Return the positive number in a column. Raises Unpredictable where the cell is empty or 0."""
        value = self.numbers.get(name)
        if not value:
            raise Unpredictable(Message.of("row.column_empty", name=name).text())
        return value

    def count(self, name: str, default: int = 0) -> int:
        """Return a number as an integer; the default where the cell is empty."""
        value = self.numbers.get(name)
        return default if value is None else int(value)


def file_kind(path: Path) -> str:
    """Tell "training" from "serving" by which of them owns more of the file's columns. Raises SpecError where none does.

    The JSON of a benchmark is of serving, a log is of training.
    """
    if is_benchmark_file(path):
        return "serving"
    if is_training_log(path):
        return "training"
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            header = {name.strip() for name in next(csv.reader(file), ())}
        except (csv.Error, UnicodeDecodeError) as error:
            raise SpecError([Issue(str(path), Message.of("calibration.not_csv", error=str(error)).text())]) from None
    known = {kind: len(header.intersection(columns.own)) for kind, columns in FILES.items()}
    if not any(known.values()):
        wanted = " or of ".join(f"{kind} ({', '.join(columns.own)})" for kind, columns in FILES.items())
        raise SpecError([Issue(str(path), Message.of("calibration.columns_missing", names=wanted).text())])
    return max(known, key=known.__getitem__)


def read_rows(path: Path, kind: str = "training", further: Mapping[str, str] = {}) -> list[Row]:
    """Read the rows of a file with a header, or the results of a benchmark. `further`: cells by column where a row has none.

    Raises SpecError listing every unreadable cell, and OSError for a missing file.
    """
    columns = FILES[kind]
    problems: list[Issue] = []
    rows: list[Row] = []
    for name in further:
        if name not in (*columns.text, *columns.numbers):
            known = close_matches(name, (*columns.text, *columns.numbers))
            problems.append(
                Issue(f"--set {name}", Message.of("calibration.unknown_column", kind=kind, close=known).text())
            )
    if is_benchmark_file(path) or is_training_log(path):
        all_columns = (*columns.text, *columns.numbers)
        found = benchmark_cells(path, all_columns) if is_benchmark_file(path) else log_cells(path)
        for line, cells in enumerate(found, start=1):
            rows.append(_row(f"{path} result {line}", line, filled(cells, further), columns, problems))
        return _checked(rows, problems)
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.DictReader(file)
            header = tuple(name.strip() for name in reader.fieldnames or ())
            reader.fieldnames = list(header)
            for column in columns.needed:
                if column not in header and column not in further:
                    problems.append(
                        Issue(
                            str(path),
                            Message.of(
                                "calibration.no_column", name=column, close=close_matches(column, header)
                            ).text(),
                        )
                    )
            for line, cells in enumerate(reader, start=2):
                rows.append(_row(f"{path} line {line}", line, filled(cells, further), columns, problems))
        except (csv.Error, UnicodeDecodeError) as error:
            problems.append(Issue(str(path), Message.of("calibration.not_csv", error=str(error)).text()))
    return _checked(rows, problems)


def filled(cells: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row, the empty ones from those that hold for all rows."""
    return {**cells, **{name: value for name, value in further.items() if not (cells.get(name) or "").strip()}}


def _checked(rows: list[Row], problems: list[Issue]) -> list[Row]:
    """Return the rows. Raises SpecError where an id appears twice or there are other problems."""
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            problems.append(Issue(row.place, Message.of("calibration.id_appears_twice", name=row.id).text()))
        seen.add(row.id)
    if problems:
        raise SpecError(problems)
    return rows


def _row(place: str, line: int, cells: Mapping[str, str], columns: Columns, problems: list[Issue]) -> Row:
    """Read one line; unreadable cells are added to the problems."""
    text = {name: (cells.get(name) or "").strip() for name in columns.text}
    numbers: dict[str, float] = {}
    for name in columns.numbers:
        cell = (cells.get(name) or "").strip()
        if not cell:
            continue
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not 0 <= value <= MOST:
            message = Message.of("measured.not_in_range", most=MOST, cell=cell).text()
            problems.append(Issue(f"{place}, {name}", message))
        else:
            numbers[name] = value
    return Row(line, text, numbers, place)


def marked(rows: Sequence[Row]) -> list[Row]:
    """Mark each row that is another row of its source with TTFT times one round factor, with the id of the other.

    A pair has the same cells but TTFT, end-to-end time and words, TPOT among them to the last digit, and the factor k of TTFT other than 1
    has at most two decimals, within 1e-5. Both hold in at least five pairs of the source with the same k. The row with k times TTFT is the copy:
    1/k is round as well for few k, and then the later row of the file is.
    """
    alike: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.number("ttft_ms") and row.number("tpot_ms"):
            alike[_setting(row)].append(row)
    copies: dict[tuple[str, float], dict[int, str]] = defaultdict(dict)
    for same in alike.values():
        for i, first in enumerate(same):
            for second in same[i + 1 :]:
                for original, copy in ((first, second), (second, first)):
                    if factor := _round_factor(copy.numbers["ttft_ms"] / original.numbers["ttft_ms"]):
                        copies[copy.kind, factor].setdefault(copy.line, original.id)
                        break
    found = {line: of for pairs in copies.values() if len(pairs) >= COPY_FEWEST for line, of in pairs.items()}
    return [replace(row, copy_of=found[row.line]) if row.line in found else row for row in rows]


def _setting(row: Row) -> tuple[object, ...]:
    """List all cells of a row but its words and the scaled figures."""
    text = ((name, cell) for name, cell in row.text.items() if name not in COPY_WORDS)
    numbers = ((name, value) for name, value in row.numbers.items() if name not in COPY_SCALED)
    return (row.kind, *sorted(text), *sorted(numbers))


def _round_factor(ratio: float) -> float | None:
    """Return the factor of at most two decimals that a ratio is but for rounding; None for 1 and where there is none."""
    factor = round(ratio, COPY_DECIMALS)
    return factor if factor != 1.0 and abs(ratio - factor) <= COPY_ROUNDING * ratio else None


def fold_of(kind: str, architecture: str, chip: str) -> int:
    """Assign a group (source kind, architecture, chip) to the fold in which it is left out."""
    return int(hashlib.sha256(f"fold|{kind}|{architecture}|{chip}".encode()).hexdigest(), 16) % FOLDS


def kind_mark(kind: str) -> str:
    """Hash a source kind to a short mark, which tells whether calibration has seen it without repeating its text."""
    return hashlib.sha256(f"kind|{kind}".encode()).hexdigest()[:16]


def check_needed(row: Row, kind: str) -> None:
    """Check the columns without which no row of a kind can be predicted. Raises Unpredictable that names all that are empty, if several are."""
    columns = FILES[kind]
    empty = [name for name in columns.needed if not (row.text.get(name) or row.number(name))]
    if len(empty) > 1:
        raise Unpredictable(Message.of("row.columns_empty", names=", ".join(empty)).text())


def chip_record(row: Row, catalog: Catalog) -> Record:
    """Look up a row's chip in the catalog by name, alias or the name of a driver or cluster. Raises Unpredictable where it is unknown."""
    label = row.text["chip"]
    if not label:
        raise Unpredictable(Message.of("row.no_chip").text())
    try:
        return catalog.get("chips", label)
    except UnknownName:
        if not (chip := chip_called(label, catalog)):
            raise Unpredictable(Message.of("row.unknown_chip").text()) from None
        return catalog.get("chips", chip)


@dataclass(slots=True)
class RowReader:
    """A row being read, and the assumptions made for its empty cells so far."""

    row: Row
    catalog: Catalog
    inferred: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Record an assumption."""
        self.inferred.append(text)


class ModelCase(Protocol):
    """The input of a model's prediction for one row, as far as training and serving have it in common."""

    @property
    def arch(self) -> Architecture: ...

    @property
    def family(self) -> str: ...


class MeasuredCase:
    """Base of rows turned into cases of the models; subclasses add what they measured."""

    __slots__ = ()

    row: Row
    case: ModelCase
    architecture: str
    chip: str
    chips: float
    inferred: tuple[str, ...]  # assumptions for empty cells

    @property
    def way_stated(self) -> bool:
        """Tell whether the row says how its requests came, where that matters."""
        return True

    @property
    def vote(self) -> str:
        """Name the group of source kind, architecture and chip, whose rows share one vote."""
        return f"{self.row.kind}|{self.architecture}|{self.chip}"

    @property
    def stands_for_group(self) -> bool:
        """Tell whether the row sums up what a group of rows would say, such as a published rate of a whole system."""
        return False

    @property
    def experts(self) -> bool:
        """Tell whether the architecture is a mixture of experts."""
        return bool(self.case.arch.experts)

    @property
    def kind(self) -> str:
        """Name the kind of the network."""
        return kind_of_network(self.case.arch)

    @property
    def software(self) -> str:
        """Name the engine or the framework."""
        return str(getattr(self.case, "engine", None) or self.case.recipe.framework)  # type: ignore[attr-defined]

    @property
    def generation(self) -> str:
        """Name the chip generation, by which chips share figures; each TPU is a generation of its own."""
        return self.chip if self.case.family == "tpu" else self.case.family or self.chip
