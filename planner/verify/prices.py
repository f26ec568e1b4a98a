"""Check the prices that a plan recorded against the catalog's low, typical and high figures and against the texts of its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from planner.messages import BESIDE, sentences_in
from planner.problem.price_levels import STATED, TYPICAL, amount_of, level_message, way_of
from planner.resolve.names import catalog_of
from planner.spec.document import at
from planner.verify.checked_plan import CheckedPlan

BY_CODE = f"reason{BESIDE}"


class PriceCheck:
    """Check every price of a plan's `provenance`, and every price that its spec states, at the spec's price level."""

    def __init__(self, plan: CheckedPlan, overlays: Sequence[Path]):
        self.plan, self.document = plan, plan.document
        self.asked: Mapping[str, Any] = self.document["spec"].get("prices") or {}
        self.assumed = {row["path"]: row for row in self.document["assumptions"]}
        self.overlays, self.spec = overlays, plan.problem.spec

    def run(self) -> None:
        """Check all prices."""
        catalog = catalog_of(self.spec, self.overlays, {})
        for row in self.document["provenance"]:
            self._check_catalog_price(catalog, row)
        for path, way, text in self._stated():
            self._check_spec_price(catalog, path, way, text)

    def _level(self, way: str) -> str:
        return self.asked.get(way) or self.asked.get("level") or TYPICAL

    def _check_catalog_price(self, catalog: Catalog, row: Mapping[str, Any]) -> None:
        kind, _, rest = row["path"].partition("/")
        name, _, key = rest.rpartition("/")
        record = catalog.get(kind, name)
        if (way := way_of(record, key)) is None:
            return
        figure, level = record.figure(key), self._level(way)
        bound = None if level == TYPICAL else {"low": figure.low, "high": figure.high}[level]
        value = figure.value if bound is None else bound
        self.plan.equal(f"provenance {row['path']}", row["value"], list(value) if isinstance(value, tuple) else value)
        if level != TYPICAL:
            wanted = level_message(figure, level).coded()
            self._check_note(row["path"], wanted["code"], wanted["arguments"])

    def _stated(self) -> Iterator[tuple[str, str, str]]:
        """Yield (place, way to obtain, text) of every price in the spec that may have a range."""
        for place, (way, _) in STATED.items():
            blocks, name = place.split(".")
            for i, block in enumerate(self.document["spec"].get(blocks) or ()):
                if block.get(name) is not None:
                    yield f"{blocks}[{i}].{name}", way or block["how"], block[name]

    def _check_spec_price(self, catalog: Catalog, path: str, way: str, text: str) -> None:
        level = self._level(way)
        bound = ((self.asked.get("ranges") or {}).get(path) or {}).get(level)
        row = self.assumed.get(path)
        if row is None or row["path"].endswith("colocation"):  # the plan records their amounts in its own currency
            return
        block = at(self.document["spec"], path.rpartition(".")[0])
        chips = catalog.get("systems", block["system"]).value("chips") if "system" in block else None
        wanted = amount_of(path, block, text if bound is None else bound, chips)
        found = amount_of(path, block, row["value"])[0] if isinstance(row["value"], str) else row["value"]
        self.plan.equal(f"assumptions {path}", found, wanted[0])
        if level != TYPICAL:
            self._check_note(
                path, "price_level.stated" if bound is not None else "price_level.not_stated", {"level": level}
            )

    def _check_note(self, path: str, code: str, wanted: Mapping[str, Any]) -> None:
        """Check that an assumption says by its code at which level a price counts; plans of releases up to 0.2 hold no codes."""
        row = self.assumed.get(path)
        if row is None or (
            BY_CODE in row and not any(_says(each, code, wanted) for each in sentences_in(row[BY_CODE]))
        ):
            self.plan.say(f"assumptions {path}", "verify.price_words", level=wanted["level"])


def _says(sentence: Mapping[str, Any], code: str, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a sentence has this code and at least these arguments."""
    return bool(sentence["code"] == code and wanted.items() <= sentence["arguments"].items())
