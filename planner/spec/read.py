"""Read a spec from a path, a text or an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.spec.document import read_document
from planner.spec.series import with_series


def read_spec(source: str | Path | Mapping[str, Any], hourly: Sequence[Path]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return with_series(source, hourly)
    return with_series(read_document(Path(source).read_bytes()), [*hourly, Path(source).parent])
