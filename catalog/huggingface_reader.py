"""Reading single keys of a Hugging Face config.json, by all names that a key has. What keys mean together is in huggingface.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import Wrong
from catalog.huggingface_keys import KEYS


@dataclass(slots=True)
class ConfigReader:
    """Reads the keys of one config, or of the part of it at `place`, and collects figures, texts, notes and all problems.

    A part leaves out what its class has by default, so that less can be derived there.
    """

    config: Mapping[str, Any]
    place: str
    stated: Mapping[str, Any]
    own: Mapping[str, Any] = field(default_factory=dict)  # the keys of the part alone
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def nested(self) -> bool:
        """Whether a part of a config is read."""
        return self.place != "config"

    def key_of(self, figure: str) -> str | None:
        """Find the name by which the config states the figure."""
        return next((key for key in KEYS[figure] if self.config.get(key) not in (None, False, [], 0, -1)), None)

    def value(self, figure: str, most: int = 10**9) -> int | None:
        """Read the figure as stated beside the config, else as in it; None where neither has it or it is malformed."""
        entry = part_of(self.stated, "figures").get(figure)
        given = whole(entry.get("value") if isinstance(entry, Mapping) else entry)
        if given is not None:
            return given
        key = self.key_of(figure)
        if key is None:
            return None
        raw = self.config[key]
        if isinstance(raw, list) and any(item != raw[0] for item in raw):
            self.problem(
                key,
                Wrong("catalog.config_differs", given=str(raw)[:60]),
            )
            return None
        number = whole(raw[0] if isinstance(raw, list) else raw)
        if number is None or not 1 <= number <= most:
            self.problem(key, Wrong("catalog.config_whole_to", most=str(most), given=repr(str(raw)[:60])))
            return None
        return number

    def number(self, default: int, *keys: str) -> int:
        """Read the whole number of the first key that is there."""
        key = next((key for key in keys if self.config.get(key) is not None), None)
        if key is None:
            return default
        number = whole(self.config[key])
        if number is None or number < -1:
            self.problem(key, Wrong("catalog.expected_whole_number", given=repr(str(self.config[key])[:60])))
            return default
        return number

    def optional(self, figure: str) -> int | None:
        """Record the figure where the config states it, with its key."""
        number = self.value(figure)
        if number is not None:
            self.put(figure, number, f"{self.key_of(figure)} of the config")
        return number

    def needed(self, figure: str, most: int = 10**9) -> int | None:
        """Record a figure that must be there; report a problem where it is not."""
        number = self.value(figure, most)
        if number is None:
            self.missing(figure)
        else:
            self.put(figure, number, f"{self.key_of(figure)} of the config")
        return number

    def put(self, figure: str, value: int, note: str) -> None:
        """Record a figure with the note on where it comes from."""
        unit = "tokens" if figure in ("window_tokens", "max_context") else "1"
        self.figures[figure] = {"value": value, "unit": unit, "note": note}

    def assume(self, figure: str, value: int, note: str) -> None:
        """Record a value that no key states, with the rule it follows from."""
        self.put(figure, value, f"assumed: {note}")
        self.notes.append(f"{figure} = {value} assumed: {note}")

    def missing(self, figure: str, missing: str = "") -> None:
        """Report a figure that no key states, and how to state it; `missing`: what else is said than that it is."""
        keys = KEYS[figure]
        if any(f"{self.place}.{key}" == at for key in keys for at, _ in self.problems):
            return  # it is there, but malformed
        said = {"missing": missing or Wrong("catalog.config_missing"), "figure": figure}
        several = Wrong("catalog.config_missing_keys", keys=", ".join(keys[1:]), **said) if keys[1:] else None
        self.problem(keys[0], several or Wrong("catalog.config_missing_key", **said))

    def problem(self, key: str, message: str) -> None:
        """Report a problem at a key."""
        self.problems.append((f"{self.place}.{key}", message))

    def remark(self, figure: str, words: str) -> None:
        """Add a note on the whole; the plan lists it, too, with the figure that it belongs to."""
        self.notes.append(f"assumed: {words}")
        if figure in self.figures:
            self.figures[figure]["note"] += f"; assumed: {words}"

    def per_layer(self, key: str, layers: int) -> list[object]:
        """Read a list that has one item for each layer."""
        items: list[object] = self.config[key]
        further = self.number(
            0, "num_nextn_predict_layers", "mtp_num_hidden_layers"
        )  # layers that predict further tokens
        if len(items) not in (layers, layers + further):
            self.problem(key, Wrong("catalog.config_per_layer", layers=str(layers), given=str(len(items))))
            return [None] * layers
        return items[:layers]


def part_of(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Get an object inside an entry; empty where it is none, which reading the entry reports."""
    part = entry.get(key)
    return part if isinstance(part, Mapping) else {}


def whole(value: object) -> int | None:
    """Parse a whole number written as a number or as its digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else None
