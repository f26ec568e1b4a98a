"""Provenance of a plan: the catalog figures that it uses, and the figures assumed."""

from __future__ import annotations

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
