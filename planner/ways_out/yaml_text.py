"""Write YAML: mappings, lists and scalars, every text that YAML could read as something else in quotes.

Not here: reading YAML (the extra `logs` has a parser).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._-]*(?::[A-Za-z0-9._/-]+)*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_HIDDEN = re.compile(
    r"[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)  # YAML wants these escaped, or folds them
_BLOCK = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]+")


def yaml_text(document: Mapping[str, Any]) -> str:
    """Write a document; empty mappings and lists in flow style.

    >>> print(yaml_text({"kind": "Pod", "on": ["yes", "--a=1", {"b": 2, "c": {}}]}), end="")
    kind: Pod
    "on":
    - "yes"
    - "--a=1"
    - b: 2
      c: {}
    """
    return "\n".join(_lines(document) or ["{}"]) + "\n"


def documents(*parts: Mapping[str, Any]) -> str:
    """Write several documents into one stream."""
    return "---\n".join(map(yaml_text, parts))


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in _entry(f"{_scalar(key)}:", item)]
    return [line for item in value for line in _element(item)]


def _entry(head: str, item: Any) -> list[str]:
    """Write `key:` with its value: on the same line, or below."""
    if isinstance(item, Mapping) and item:
        return [head, *(f"  {line}" for line in _lines(item))]
    if isinstance(item, list) and item:
        return [head, *_lines(item)]
    first, *rest = _inline(item)
    return [f"{head} {first}", *(f"  {line}" if line else "" for line in rest)]


def _element(item: Any) -> list[str]:
    inner = _lines(item) if isinstance(item, Mapping | list) and item else _inline(item)
    return [f"- {inner[0]}", *(f"  {line}" if line else "" for line in inner[1:])]


def _inline(item: Any) -> list[str]:
    """Write a scalar or an empty collection; a text of several lines as a block, its first line the mark."""
    if isinstance(item, str) and "\n" in item and _BLOCK.fullmatch(item) and item[0] not in " \n":
        ending = "" if item.endswith("\n") and not item.endswith("\n\n") else "-" if not item.endswith("\n") else "+"
        if ending != "+":
            return [f"|{ending}", *item.removesuffix("\n").split("\n")]
    return [_scalar(item)]


def _scalar(item: Any) -> str:
    if isinstance(item, Mapping | list):
        return "{}" if isinstance(item, Mapping) else "[]"
    if isinstance(item, str) and _PLAIN.fullmatch(item) and item.lower() not in _WORDS:
        return item
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(item, ensure_ascii=False))
