"""Name the lack where the command cannot run: memory, or a package that it depends on."""

from __future__ import annotations

import os

from planner.messages import Message

LEAST_BYTES = 300 * 10**6
SMALL_BYTES = 2 * 10**9
"""An address space below which linear algebra gets one thread: starting several in too little of it does not end (OpenBLAS)."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
WITHOUT_ROOM = ("failed to map segment", "cannot allocate memory", "out of memory")  # what the loader says of a library
DEPENDENCIES = (
    "numpy",
    "scipy",
    "pulp",
    "highspy",
    "networkx",
    "pydantic",
    "tzdata",
    "joblib",
    "threadpoolctl",
    "rich",
)


def address_space_bytes() -> int | None:
    """Return the limit on the address space (`ulimit -v`); None without one."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def hold_to_memory() -> None:
    """Take one thread for linear algebra in a small address space; call it before numpy is imported.

    Raises MemoryError where the address space does not hold the libraries: loading OpenBLAS into less does not end.
    """
    limit = address_space_bytes()
    if limit is not None and limit < LEAST_BYTES:
        raise MemoryError
    if limit is not None and limit < SMALL_BYTES:
        os.environ.update(dict.fromkeys(THREADS, "1"))


def out_of_memory(error: BaseException) -> str | None:
    """Say that memory was not enough, if that is what an error, or one that led to it, means; None otherwise."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    if not any(
        isinstance(cause, MemoryError) or any(words in str(cause).lower() for words in WITHOUT_ROOM) for cause in causes
    ):
        return None
    limit = address_space_bytes()
    if limit is None:
        return Message.of("cli.out_of_memory").text()
    return Message.of("cli.out_of_memory_limit", size=str(limit // 10**6)).text()


def not_installed(error: BaseException) -> str | None:
    """Name a package that flopwatt depends on and that is missing; None for any other error."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package not in DEPENDENCIES:
        return None
    return Message.of("cli.not_installed", package=package).text()
