"""Describe a variant of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a case. `changes`: what sets it apart, by head of its column; `document`: the case itself."""

    changes: Mapping[str, Any]
    document: Document
