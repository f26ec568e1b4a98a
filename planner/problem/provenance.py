"""Provenance of a plan: the catalog figures that it uses, and the figures assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.figures import Figure


@dataclass(frozen=True, slots=True)
class Citation:
    """A catalog figure that was used, under the path by which an override names it."""

    path: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure without a published source for this very thing. `scope` names the cost lines computed from it.

    `scope` is a tuple of (component, site, system) patterns; "*" fits anything.
    """

    path: str
    value: float | str
    unit: str
    reason: str
    scope: tuple[tuple[str, str, str], ...] = ()


def assumption_rows(assumptions: Iterable[Assumption]) -> list[dict[str, float | str]]:
    """List assumptions as rows of an answer, by path; the last one of a path counts."""
    by_path = {each.path: each for each in assumptions}
    return [
        {"path": path, "value": by_path[path].value, "unit": by_path[path].unit, "reason": by_path[path].reason}
        for path in sorted(by_path)
    ]
