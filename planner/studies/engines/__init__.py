"""Run one function over many items where there is room for it: processes of this machine (`local`), or a Dask cluster (`dask`).

An engine yields results as they are finished, keeps a limited number of items in flight, and survives workers that die. Files are written by
the caller alone, so that a run goes on after anything else is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """A place to run calls."""

    @property
    def remote(self) -> bool:
        """Tell whether workers may lack the files of this machine, so that an item must carry all that its call reads."""
        ...

    def map_unordered(
        self, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[tuple[int, Result | None], Any, None]:
        """Yield (position of the item, result) as calls finish; None for an item that its workers did not survive. Raises EngineError."""
        ...


class EngineError(OSError):
    """The engine cannot be reached, was lost, or runs other versions; what was yielded before stands."""
