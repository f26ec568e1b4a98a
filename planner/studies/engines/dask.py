"""Run calls on a Dask cluster by its address: a LocalCluster, dask-jobqueue, the Kubernetes operator or Coiled.

Workers need the same flopwatt, catalog and solver, which is checked before the first call. A worker that dies gives its calls back, and
the scheduler runs them elsewhere; a call that has killed as many workers as the scheduler allows (`allowed-failures`) is given up.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from itertools import islice
from typing import Any

from planner.messages import Message
from planner.studies.engines import EngineError, Item, Result
from planner.version import __version__

PER_THREAD = 2  # calls in flight for each thread of a worker, so that none waits for its next
CONNECT_S = 10


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """A Dask cluster, by the address of its scheduler."""

    address: str
    remote: bool = True

    def map_unordered(
        self, call: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[tuple[int, Result | None], Any, None]:
        """Yield results as they finish. Raises EngineError where the scheduler cannot be reached, is lost, or workers have other versions."""
        client = _connected(self.address)
        try:
            _check_versions(client)
            yield from _finished(client, self.address, call, items)
        finally:
            client.close(timeout=CONNECT_S)


def versions() -> dict[str, str]:
    """Return the versions on which an answer depends."""
    from catalog.lookup import Catalog

    return {
        "flopwatt": __version__,
        "catalog": Catalog.load().digest[:12],
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in ("numpy", "highspy")},
    }


def _distributed() -> Any:
    """Import Dask's package, whose functions have no types."""
    return import_module("distributed")


def _connected(address: str) -> Any:
    try:
        return _distributed().Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        words = Message.of("engine.no_scheduler", error=str(error) or type(error).__name__).text()
        raise EngineError(None, words, address) from None


def _check_versions(client: Any) -> None:
    """Compare the versions of all workers with this machine's. Raises EngineError naming each difference, or that there is no worker."""
    ours = versions()
    try:
        theirs: Mapping[str, Mapping[str, str]] = client.run(versions)
    except Exception as error:  # whatever a worker without flopwatt raises
        raise EngineError(
            None, Message.of("engine.worker_lacks", error=f"{type(error).__name__}: {error}").text()
        ) from None
    if not theirs:
        raise EngineError(None, Message.of("engine.no_worker").text())
    wrong = sorted(
        {
            Message.of("engine.other_version", name=name, here=ours[name], there=found.get(name, "-")).text()
            for found in theirs.values()
            for name in ours
            if found.get(name) != ours[name]
        }
    )
    if wrong:
        raise EngineError(None, "; ".join(wrong))


def _finished(
    client: Any, address: str, call: Callable[[Item], Result], items: Sequence[Item]
) -> Generator[tuple[int, Result | None], Any, None]:
    numbers: dict[str, int] = {}
    waiting = enumerate(items)

    def sent(count: int) -> list[Any]:
        futures = []
        for number, item in islice(waiting, count):
            future = client.submit(call, item, pure=False)
            numbers[future.key] = number
            futures.append(future)
        return futures

    most = PER_THREAD * max(sum(client.nthreads().values()), 1)
    done = _distributed().as_completed(sent(most), loop=client.loop)
    for future in done:
        try:
            result = future.result()
        except _distributed().KilledWorker:
            result = None
        except Exception as error:  # our calls raise nothing: the scheduler or the connection is gone
            words = Message.of("engine.lost", error=f"{type(error).__name__}: {error}").text()
            raise EngineError(None, words, address) from None
        yield numbers.pop(future.key), result
        done.update(sent(1))
