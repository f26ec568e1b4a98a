"""Run calls in processes of this machine, by joblib's loky."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.exit_codes import INTERRUPTED
from planner.studies.engines import Item, Result

SAFE_PATH = "PYTHONSAFEPATH"  # the variable of Python's option -P, inherited by processes
ORPHANED_S = 1  # how soon a worker notices that its parent was killed


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Processes of this machine; with one job the calls run in this process."""

    jobs: int = 1
    remote: bool = False

    def map_unordered(
        self, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[tuple[int, Result | None], Any, None]:
        """Yield results as they finish. If a worker dies, the items in flight are tried again, one at a time."""
        if self.jobs == 1:
            yield from ((number, call(item)) for number, item in enumerate(items))
            return
        with _safe_path():
            yield from _in_workers(call, items, self.jobs)


def _in_workers(
    call: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Generator[tuple[int, Result | None], Any, None]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = dict(enumerate(items))  # without an answer

    def finished(some: Sequence[int], flying: dict[int, None]) -> Iterator[tuple[int, Result]]:
        """Yield results of some items; `flying`: those that were handed to workers, noted here. After an error, joblib may still take further ones."""

        def calls() -> Iterator[Any]:
            for number in some:
                flying[number] = None
                yield delayed(_call_in_worker)(call, number, items[number], os.getpid())

        # one item per task, or a result would wait for its neighbours
        results = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(calls())
        try:
            for number, result in results:
                del left[number]
                yield number, result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # joblib warns of calls that are stopped on purpose
                results.close()

    while left:
        flying: dict[int, None] = {}  # may grow even after an error, so that `left` decides
        try:
            yield from finished(list(left), flying)
        except TerminatedWorkerError:
            for number in [number for number in list(flying) if number in left]:
                try:
                    yield from finished([number], {})
                except TerminatedWorkerError:
                    del left[number]
                    yield number, None


def _call_in_worker(call: Callable[[Item], Result], number: int, item: Item, parent: int) -> tuple[int, Result]:
    """Make one call in a worker process."""
    _prepare_worker(parent)
    return number, call(item)


@cache
def _prepare_worker(parent: int) -> None:
    """Prepare a worker, once: ignore interrupts, which the parent handles, and exit when the parent has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHANED_S)
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start processes without the current folder on their path: loky's begin with `python -m joblib...`, its helper with `-c`."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
