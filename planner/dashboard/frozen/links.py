"""Keep plans that visitors shared, each under an id that cannot be guessed. No Streamlit here, and no solver.

A link is three files of the folder `links` beside the works: `ID.json.gz`, the plan as the examples store theirs, `ID.html.gz`, its report in
the language of whoever shared it, and `ID.link`, which says who made it, when, until when it opens, and the hash of the plan's file. The last
is written last and changed first, so that a link opens whole or not at all. To open a link writes nothing, and a full store refuses another link rather than give up one that lives.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import ipaddress
import json
import secrets
import threading
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from catalog.units import DAY_S, HOUR_S
from planner.dashboard.frozen.life import most_days
from planner.dashboard.frozen.stored import MOST_HELD, State, packed
from planner.dashboard.state import store
from planner.errors import Issue, SpecError
from planner.files import write_file
from planner.messages import Message
from planner.packed import MAGIC, unpacked
from planner.plan import Plan
from planner.plan.upgrade import upgraded

MOST_LINKS = 2_000
"""That live at a time, of all owners together."""
MOST_OF_OWNER = 100
"""That live at a time, of one owner."""
MOST_OF_CLIENT = 200
"""That live at a time, made from one address, under whatever secrets: a client chooses its secret, and an office shares an address."""
MOST_BYTES = 8_000_000
"""Of one plan, packed."""
MOST_FOLDER_BYTES = 2_000_000_000
"""Of all plans together, packed."""
MOST_CLIENT_BYTES = MOST_FOLDER_BYTES // 5
"""Of the plans that one address made, packed."""
MOST_OVER = 5 * MOST_LINKS
"""Records of links that are over; beyond, those that ended longest ago say no more why."""
MOST_LETTERS = 120
"""Of a title and of the name of an author."""
REMEMBERED_S = 365 * DAY_S
"""For so long a link that is over says why."""
UNFINISHED_S = HOUR_S
"""A plan without a record may belong to a link that another server is about to make."""
LINK = "link"
"""Key of the address of a link."""
HOME = "links"
PLAN, PAGE, RECORD = ".json.gz", ".html.gz", ".link"
VERSION = 1
_KEY = "clients.key"
_LOCK = threading.RLock()  # visitors are threads of one server
Over = Literal["unknown", "expired", "removed", "damaged"]
"""Why a link does not open."""


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a link, beside its plan."""

    id: str
    owner: str
    """Hash of the owner's secret: whoever reads the folder learns no secret."""
    made_s: float
    until_s: float
    """Times since 1970 [s]."""
    sha256: str
    """Of the plan's file."""
    title: str = ""
    author: str = ""
    base: str = ""
    """The example that the plan's spec changes; empty for an upload, of which a link holds the spec alone."""
    edits: tuple[tuple[str, Any], ...] = ()
    """Of the example."""
    language: str = ""
    """Of the report; empty where none was written."""
    client: str = ""
    """Keyed hash of the address that made it; empty where the server does not know the address, as on its own machine."""
    removed: bool = False

    def over(self) -> Over | None:
        """Tell why the link does not open any more; None while it does."""
        return "removed" if self.removed else "expired" if time.time() >= self.until_s else None


@dataclass(frozen=True, slots=True)
class Opened:
    """A link with its plan, or why there is none."""

    record: Record | None = None
    plan: Plan | None = None
    over: Over | None = None


def folder() -> Path:
    """Return the folder of the links."""
    return store.folder() / HOME


def owner_of(secret: str) -> str:
    """Return the name under which the links of a secret are kept; the list of its uploads has another."""
    return hashlib.sha256(f"links of {secret}".encode()).hexdigest()


def client_of(address: str | None) -> str:
    """Return the name under which the links made from an address are counted; empty for an unknown one.

    The key is drawn once and lies beside the links, not among them: the records alone do not tell an address. Of IPv6 the network of 64 bits
    counts, for one client has all of it. Raises OSError where the key can be neither read nor written.
    """
    if not address:
        return ""
    with suppress(ValueError):
        where = ipaddress.ip_address(address)
        if isinstance(where, ipaddress.IPv6Address):
            address = str(where.ipv4_mapped or ipaddress.ip_network((int(where), 64), strict=False))
    key = store.folder() / _KEY
    with _LOCK:
        if not key.exists():
            key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(key, secrets.token_bytes(32))
            key.chmod(0o600)
        return hmac.new(key.read_bytes(), address.encode(), hashlib.sha256).hexdigest()


def day(seconds: float) -> str:
    """Write the day of a time since 1970 [s], in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def make(
    plan: Plan,
    secret: str,
    *,
    address: str | None = None,
    title: str = "",
    author: str = "",
    base: str = "",
    edits: Sequence[tuple[str, Any]] = (),
    keep_days: int | None = None,
    report: tuple[str, str] = ("", ""),
) -> str:
    """Freeze a plan under a new id, which is returned; `address`: of the client, if known; `report`: language and HTML of its report.

    Raises SpecError where the store takes none, with the remedy.
    """
    content, sheet = packed(plan), gzip.compress(report[1].encode(), compresslevel=6, mtime=0)
    if len(content) + len(sheet) > MOST_BYTES:
        raise _refused("links.too_large", most=f"{MOST_BYTES / 1e6:g} MB")
    try:
        client = client_of(address)
    except OSError:
        raise _refused("links.not_writable") from None
    now, name = time.time(), store.new_id()
    record = Record(
        id=name,
        owner=owner_of(secret),
        made_s=now,
        until_s=now + DAY_S * min(keep_days or most_days(), most_days()),
        sha256=hashlib.sha256(content).hexdigest(),
        title=title.strip()[:MOST_LETTERS],
        author=author.strip()[:MOST_LETTERS],
        base=base,
        edits=tuple(edits),
        language=report[0],
        client=client,
    )
    with _LOCK:
        _make_room(record, len(content) + len(sheet))
        try:
            folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(folder() / f"{name}{PLAN}", content)
            if record.language:
                write_file(folder() / f"{name}{PAGE}", sheet)
            _write(record)
        except OSError:
            for ending in (PLAN, PAGE):
                with suppress(OSError):
                    (folder() / f"{name}{ending}").unlink()
            raise _refused("links.not_writable") from None
    return name


def opened(name: str) -> Opened:
    """Open a link. Nothing is written, verified or solved: the plan was verified when it was frozen, and its file is as it was then."""
    record = _record(name)
    if record is None:
        return Opened(over="damaged" if store.is_id(name) and (folder() / f"{name}{RECORD}").exists() else "unknown")
    if over := record.over():
        return Opened(record, over=over)
    try:
        plan = _frozen(State.of(folder() / f"{name}{PLAN}"), record.sha256)
    except OSError:
        plan = None
    return Opened(record, over="damaged") if plan is None else Opened(record, plan)


def report_of(record: Record) -> str | None:
    """Read the report of a link; None where there is none that is whole."""
    try:
        content = (folder() / f"{record.id}{PAGE}").read_bytes()
        return unpacked(content).decode() if record.language and content.startswith(MAGIC) else None
    except (OSError, ValueError):
        return None


def of_owner(secret: str) -> list[Record]:
    """List the links of an owner that live, the newest first."""
    mine = [record for record in _records() if record.owner == owner_of(secret) and record.over() is None]
    return sorted(mine, key=lambda record: -record.made_s)


def remove(name: str, secret: str) -> bool:
    """Remove a link; returns whether there was one of this owner. Its page says from then on that it was removed."""
    with _LOCK:
        record = _record(name)
        if record is None or record.owner != owner_of(secret):
            return False
        try:
            _write(
                replace(
                    record,
                    removed=True,
                    until_s=min(record.until_s, time.time()),
                    title="",
                    author="",
                    base="",
                    edits=(),
                )
            )
            for ending in (PLAN, PAGE):
                (folder() / f"{name}{ending}").unlink(missing_ok=True)
        except OSError:
            return False
    return True


def _make_room(new: Record, size: int) -> None:
    """Remove plans of links that are over, and the records of links long over. Raises SpecError where the store is full nonetheless."""
    living, over = dict[str, Record](), list[Record]()
    for record in _records():
        if record.over() is None:
            living[record.id] = record
        else:
            over.append(record)
    over.sort(key=lambda record: -record.until_s)
    for i, record in enumerate(over):
        if i >= MOST_OVER or record.until_s + REMEMBERED_S < time.time():
            with suppress(OSError):
                (folder() / f"{record.id}{RECORD}").unlink()
    held, of_client = _held(living, {record.id for record in over}, new.client)
    if sum(record.owner == new.owner for record in living.values()) >= MOST_OF_OWNER:
        raise _refused("links.too_many", most=str(MOST_OF_OWNER))
    made = sum(record.client == new.client for record in living.values()) if new.client else 0
    if made >= MOST_OF_CLIENT or of_client + size > MOST_CLIENT_BYTES:
        raise _refused("links.client_full")
    if len(living) >= MOST_LINKS or held + size > MOST_FOLDER_BYTES:
        raise _refused("links.full")


def _held(living: Mapping[str, Record], over: Container[str], client: str) -> tuple[int, int]:
    """Add up the bytes of plans and reports, of all and of a client, and remove those that belong to no living link."""
    held = of_client = 0
    for path in (*folder().glob(f"*{PLAN}"), *folder().glob(f"*{PAGE}")):
        with suppress(OSError):
            status = path.stat()
            name = path.name.partition(".")[0]
            if name in living or (name not in over and (folder() / f"{name}{RECORD}").exists()):
                held += status.st_size  # a record that cannot be read now may be that of a living link
                if client and name in living and living[name].client == client:
                    of_client += status.st_size
            elif status.st_mtime + UNFINISHED_S < time.time():
                path.unlink()
    return held, of_client


def _records() -> Iterator[Record]:
    for path in folder().glob(f"*{RECORD}"):
        if (record := _record(path.name.removesuffix(RECORD))) is not None:
            yield record


def _record(name: str) -> Record | None:
    """Read the record of a link; None where there is none, and for a name that is no id."""
    if not store.is_id(name):
        return None
    try:
        return _parsed(State.of(folder() / f"{name}{RECORD}"))
    except OSError:
        return None


@lru_cache(maxsize=2 * MOST_LINKS)
def _parsed(state: State) -> Record | None:
    """Read a record; None where this release cannot. Raises OSError, which is not held: the next look may find the file readable."""
    try:
        row = json.loads(state.path.read_bytes())
        if row.pop("version") != VERSION or f"{row['id']}{RECORD}" != state.path.name:
            return None
        record = Record(**{**row, "edits": tuple((str(path), value) for path, value in row["edits"])})
        return record if isinstance(record.until_s, float) and isinstance(record.title, str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(record: Record) -> None:
    text = json.dumps({**asdict(record), "version": VERSION}, ensure_ascii=False)
    write_file(folder() / f"{record.id}{RECORD}", text)


@lru_cache(maxsize=MOST_HELD)
def _frozen(state: State, sha256: str) -> Plan | None:
    """Read a frozen plan; None where its file is not as it was written. What it holds was a whole plan then, so its shape is not checked again."""
    try:
        content = state.path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            return None
        return Plan.of(upgraded(json.loads(unpacked(content))))
    except (ValueError, KeyError, TypeError):
        return None


def _refused(code: str, **given: str) -> SpecError:
    return SpecError([Issue("share", Message.of(code, **given).text())])
