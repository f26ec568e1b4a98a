"""Make the independent solves of a study on an engine: what all of them share is made once in each worker, and overlays travel by content.

Not here: how calls reach workers (`local`, `dask`), and which solves a study asks for (`frontier`, `sensitivity`, `robust`).
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from planner.studies.engines import Engine, Item, Result

Files = tuple[tuple[tuple[str, bytes], ...], ...]
"""(name, content) of the files of each overlay."""
Make = Callable[[Sequence[Path]], Callable[[Item], Result]]
"""Makes, from the overlays where the worker has them, what solves the items; it must be picklable, such as a `partial` of a function of a module."""


def solved_on(
    engine: Engine, make: Make[Item, Result], items: Sequence[Item], overlays: Sequence[Path]
) -> Generator[tuple[int, Result | None], None, None]:
    """Yield (position, result) of the items as they are solved; None for one whose workers died again and again.

    Results are the same from every engine where what `make` makes lets none of them depend on earlier items. Raises what a call raised; EngineError; OSError.
    """
    overlays = tuple(overlays)
    files = files_of(overlays) if engine.remote else None
    key = hashlib.sha256(pickle.dumps((make, overlays, files))).hexdigest()
    call = Call(make, key, overlays if files is None else (), files)
    try:
        with closing(engine.map_unordered(call, items)) as finished:  # stops the workers too, when interrupted
            for number, found in finished:
                if found is not None and found.error is not None:
                    raise found.error
                yield number, None if found is None else found.result
    finally:
        _MADE.forget()  # what other processes made ends with them


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What a call came to: its result, or the error that it raised, since engines take calls that raise nothing."""

    result: Result | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Call(Generic[Item, Result]):
    """A call that may be made in any process."""

    make: Make[Item, Result]
    key: str
    overlays: tuple[Path, ...]
    files: Files | None

    def __call__(self, item: Item) -> Outcome[Result]:
        """Solve an item."""
        try:
            return Outcome(_MADE.of(self)(item))
        except Exception as error:  # raised again where the study runs
            return Outcome(error=error)


@dataclass
class _Made(threading.local):  # without slots, which threads would share
    """What solves the items of the latest study of this thread: workers of Dask have several threads."""

    key: str = ""
    solve: Callable[[Any], Any] | None = None
    folder: ExitStack = field(default_factory=ExitStack)

    def of(self, call: Call[Any, Any]) -> Callable[[Any], Any]:
        if self.solve is None or self.key != call.key:
            self.forget()
            overlays = call.overlays if call.files is None else self.folder.enter_context(unpacked(call.files))
            self.key, self.solve = call.key, call.make(overlays)
        return self.solve

    def forget(self) -> None:
        """Drop what was made for the latest study."""
        self.folder.close()
        self.key, self.solve, self.folder = "", None, ExitStack()


_MADE = _Made()


# -- overlays ----------------------------------------------------------------------------------------------------------


def files_of(overlays: Sequence[Path]) -> Files:
    """Read the files of each overlay. Raises OSError."""
    return tuple(
        tuple((file.name, file.read_bytes()) for file in (sorted(one.glob("*.json")) if one.is_dir() else [one]))
        for one in overlays
    )


@contextmanager
def unpacked(files: Files) -> Iterator[tuple[Path, ...]]:
    """Write the files of overlays into temporary folders, one for each overlay."""
    with tempfile.TemporaryDirectory(prefix="flopwatt-") as folder:
        overlays = []
        for number, overlay in enumerate(files):
            place = Path(folder) / str(number)
            place.mkdir()
            for name, content in overlay:
                (place / name).write_bytes(content)
            overlays.append(place)
        yield tuple(overlays)
