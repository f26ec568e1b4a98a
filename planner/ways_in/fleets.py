"""Read a fleet that exists: nodes of Kubernetes, nodes of Slurm, or an inventory in CSV; and prices of a cloud's instances in SkyPilot's layout."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.accelerators import chip_called, region_called, system_called, system_with
from planner.ways_in.problems import FileProblems

RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")
PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

COLUMNS = {
    "system": ("system", "instancetype", "instance_type", "instance", "machine_type", "server", "model"),
    "chip": ("acceleratorname", "accelerator", "accelerator_name", "gpu", "gpu_type", "gpu_model", "chip"),
    "chips": ("acceleratorcount", "accelerator_count", "gpus", "gpus_per_node", "gpu_count", "chips", "chips_per_node"),
    "count": ("count", "nodes", "quantity", "num_nodes", "number", "servers"),
    "region": ("region", "location", "site"),
    "price": ("price",),
    "spot": ("spotprice",),
}
"""Part of a row of an inventory -> names of its column, in small letters."""

SERVERS = ("nodes", "num_nodes", "servers")
"""Names of a column of counts that mean servers; others mean chips, in an inventory that names chips and no number of them in a server."""
MOST_RENT = 1e6  # USD per instance hour; larger ones are errors of typing
CHIPS_EACH = 8  # in a server, where an inventory does not say

_GRES = re.compile(r"gpu(?::([^:,()]+))?:(\d+)(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Systems that exist, by (system, region), and offers of the file as rows of a spec; the region is empty where the file states none.

    `rents`: prices of systems that exist [USD/h], where the file states them.
    """

    counts: Mapping[tuple[str, str], int]
    offers: Sequence[Mapping[str, Any]] = ()
    notes: tuple[Fact, ...] = ()
    rents: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(slots=True)
class _Reading:
    """Counts read so far, with the problems."""

    catalog: Catalog
    problems: FileProblems
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    rents: dict[tuple[str, str], float] = field(default_factory=dict)
    without: int = 0
    eight_each: bool = False
    chips_left: Counter[str] = field(default_factory=Counter)  # that fill no server, by chip

    def system(self, line: int, instance: str, product: str, chips: int) -> str:
        """Find a system by its instance type, else by chips and their count; empty, with the problem named, if there is none."""
        if instance and (found := system_called(instance, self.catalog)):
            return found
        chip = chip_called(product, self.catalog) if product else ""
        if not chip:
            self.problems.add(line, "ways_in.unknown_accelerator", name=product or instance or "?")
            return ""
        if not (found := system_with(chip, chips, self.catalog)):
            self.problems.add(line, "ways_in.no_system_of", count=chips, chip=chip)
        return found

    def servers(self, line: int, product: str, chips: int, region: str) -> None:
        """Count the servers that some chips fill; a remainder is left out and told, unless a smaller system has just as many."""
        each = CHIPS_EACH if chips >= CHIPS_EACH else chips
        if system := self.system(line, "", product, each):
            self.counts[system, region] += chips // each
            if left := chips % each:
                self.chips_left[chip_called(product, self.catalog)] += left

    def region(self, name: str) -> str:
        return region_called(name, self.catalog) if name else ""


def read_fleet(path: Path, catalog: Catalog) -> Fleet:
    """Read an inventory. Raises SpecError with every row that is not understood, OSError for a missing file."""
    problems = FileProblems(path.name)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    reading = _Reading(catalog, problems)
    start = text.lstrip()[:1]
    offers: list[dict[str, Any]] = []
    if start in ("{", "["):
        kind = _json(text, reading)
    elif "NODES" in text.split("\n", 1)[0].split() or "GRES" in text.split("\n", 1)[0].split():
        kind = _sinfo(text, reading)
    else:
        kind, offers = _inventory(text, reading)
    problems.raise_all()
    if not reading.counts and not offers:
        raise problems.refuse("ways_in.no_accelerators")
    systems = "; ".join(f"{count} x {name}" for (name, _), count in reading.counts.items()) or f"{len(offers)} prices"
    notes = [Fact(path.name, Message.of("ways_in.fleet_read", kind=kind, systems=systems))]
    if reading.without:
        notes.append(Fact(path.name, Message.of("ways_in.nodes_without", count=reading.without)))
    if reading.eight_each:
        notes.append(Fact(path.name, Message.of("ways_in.eight_each")))
    for chip, left in reading.chips_left.items():
        notes.append(Fact(path.name, Message.of("ways_in.chips_left", count=left, chip=chip, each=CHIPS_EACH)))
    return Fleet(dict(reading.counts), offers, tuple(notes), reading.rents)


def _json(text: str, reading: _Reading) -> str:
    """Read the output of `kubectl get nodes -o json`, or of `sinfo --json` and `scontrol show nodes --json`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        reading.problems.add(
            getattr(error, "lineno", 1),
            "ways_in.not_json",
            getattr(error, "colno", 0),
            error=getattr(error, "msg", str(error)),
        )
        return ""
    reading.problems.parts = "item"
    if isinstance(document, Mapping) and isinstance(document.get("items"), list):
        for number, node in enumerate(document["items"], start=1):
            _kubernetes_node(number, node if isinstance(node, Mapping) else {}, reading)
        return "Kubernetes nodes"
    rows = document.get("sinfo", document.get("nodes")) if isinstance(document, Mapping) else None
    if not isinstance(rows, list):
        raise reading.problems.refuse("ways_in.no_fleet")
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        row = row if isinstance(row, Mapping) else {}
        gres = row.get("gres")
        gres = gres.get("total", "") if isinstance(gres, Mapping) else str(gres or "")
        nodes = row.get("nodes")
        names = (
            [str(name) for name in nodes.get("nodes", [])]
            if isinstance(nodes, Mapping)
            else [str(row.get("name", number))]
        )
        total = nodes.get("total", len(names)) if isinstance(nodes, Mapping) and not names else len(set(names) - seen)
        seen |= set(names)
        _slurm_nodes(number, gres, int(total), reading)
    return "Slurm nodes"


def _kubernetes_node(number: int, node: Mapping[str, Any], reading: _Reading) -> None:
    """Count a node by its instance type, or by the product and the number of its accelerators."""
    labels = _mapping(_mapping(node, "metadata"), "labels")
    capacity = _mapping(_mapping(node, "status"), "capacity")
    chips = next((int(str(capacity[name])) for name in RESOURCES if str(capacity.get(name, "")).isdecimal()), 0)
    if not chips:
        reading.without += 1
        return
    instance = next((str(labels[name]) for name in INSTANCE_LABELS if name in labels), "")
    product = next((str(labels[name]) for name in PRODUCT_LABELS if name in labels), "")
    region = next((str(labels[name]) for name in REGION_LABELS if name in labels), "")
    if system := reading.system(number, instance, product, chips):
        reading.counts[system, reading.region(region)] += 1


def _mapping(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = node.get(key)
    return value if isinstance(value, Mapping) else {}


def _sinfo(text: str, reading: _Reading) -> str:
    """Read the table of `sinfo -o "%N %D %G"` with its header; lines that differ in the partition alone count once."""
    lines = text.splitlines()
    header = lines[0].split()
    count_at = next((i for i, name in enumerate(header) if name in ("NODES", "NODES(A/I/O/T)")), None)
    gres_at = header.index("GRES") if "GRES" in header else None
    names_at = header.index("NODELIST") if "NODELIST" in header else None
    if gres_at is None or (count_at is None and names_at is None):
        raise reading.problems.refuse("ways_in.sinfo_columns")
    seen: set[tuple[str, ...]] = set()
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split()
        if not cells:
            continue
        if len(cells) < len(header):
            reading.problems.add(number, "ways_in.too_few_cells", count=len(header))
            continue
        key = (cells[names_at],) if names_at is not None else tuple(cells)
        if key in seen:
            continue
        seen.add(key)
        amount = cells[count_at].rpartition("/")[2] if count_at is not None else "1"
        if not amount.isdecimal():
            reading.problems.add(number, "ways_in.expected_count", (count_at or 0) + 1, name=header[count_at or 0])
            continue
        _slurm_nodes(number, cells[gres_at], int(amount), reading)
    return "Slurm nodes"


def _slurm_nodes(number: int, gres: str, count: int, reading: _Reading) -> None:
    found = _GRES.search(gres)
    if found is None:
        reading.without += count
    elif count and (system := reading.system(number, "", found[1] or "", int(found[2]))):
        reading.counts[system, ""] += count


def _inventory(text: str, reading: _Reading) -> tuple[str, list[dict[str, Any]]]:
    """Read a CSV by the names of its columns; without a column of counts, prices per instance hour are offers."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=None)))
    except csv.Error as error:
        raise reading.problems.refuse("ways_in.not_text", error=str(error)) from None
    header = [name.strip().lower() for name in rows[0]] if rows else []
    at = {what: next((header.index(name) for name in names if name in header), None) for what, names in COLUMNS.items()}
    if at["count"] is None and at["price"] is None:  # a number of chips, and nothing else to multiply it by
        at |= {"count": at["chips"], "chips": None}
    if (at["system"] is None and at["chip"] is None) or (at["count"] is None and at["price"] is None):
        raise reading.problems.refuse("ways_in.no_fleet")
    prices: dict[tuple[str, str, str], float] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        cell = {
            what: row[place].strip() if place is not None and place < len(row) else "" for what, place in at.items()
        }
        if at["count"] is None and not cell["chip"]:
            continue  # an instance without accelerators
        chips = _whole(cell["chips"] or "8")
        if chips is None:
            reading.problems.add(line, "ways_in.expected_count", (at["chips"] or 0) + 1, name=header[at["chips"] or 0])
            continue
        if at["count"] is None:
            _price_row(line, cell, chips, at, reading, prices)
            continue
        count, named = _whole(cell["count"]), bool(cell["chips"] or cell["system"])
        region = reading.region(cell["region"])
        if count is None:
            reading.problems.add(line, "ways_in.expected_count", at["count"] + 1, name=header[at["count"]])
        elif not named and header[at["count"]] not in SERVERS:
            reading.servers(line, cell["chip"], count, region)
        elif system := reading.system(line, cell["system"], cell["chip"], chips):
            reading.eight_each |= not named
            reading.counts[system, region] += count
            _rent(line, cell["price"], at["price"], (system, region), reading)
    offers = [
        {"system": system, "how": how, "price": f"{price:g} USD/h", **({"regions": [region]} if region else {})}
        for (system, how, region), price in sorted(prices.items())
    ]
    return ("prices of instances" if offers else "inventory"), offers


def _rent(line: int, text: str, column: int | None, key: tuple[str, str], reading: _Reading) -> None:
    """Keep the price of a system that exists, where a row states one."""
    if not text or column is None:
        return
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if 0.0 < price < MOST_RENT:
        reading.rents[key] = price
    else:
        reading.problems.add(line, "ways_in.expected_price", column + 1)


def _price_row(
    line: int,
    cell: Mapping[str, str],
    chips: int,
    at: Mapping[str, int | None],
    reading: _Reading,
    prices: dict[tuple[str, str, str], float],
) -> None:
    """Keep the least price by system, way and region of an instance that the catalog knows; an empty price is not sold, 0 is refused."""
    chip = chip_called(cell["chip"], reading.catalog)
    system = system_called(cell["system"], reading.catalog) or (
        system_with(chip, chips, reading.catalog) if chip else ""
    )
    if not system:
        reading.without += 1
        return
    for what, how in (("price", "on_demand"), ("spot", "spot")):
        if not cell[what]:
            continue
        try:
            price = float(cell[what])
        except ValueError:
            price = -1.0
        if not 0.0 < price < MOST_RENT:
            reading.problems.add(line, "ways_in.expected_price", (at[what] or 0) + 1)
            continue
        key = (system, how, reading.region(cell["region"]))
        prices[key] = min(price, prices.get(key, price))


def _whole(text: str) -> int | None:
    """Read a whole number from 1 on, also one written as 8.0; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if 1 <= value <= 10_000_000 and value == int(value) else None
