"""Change a JSON document, a text or bytes at random, the same for the same seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

Way = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 0.5, -0.0, 1e-300, 1e300, 10**18, 10**400, -(10**30), 2**31, 2**63, 1.5, 24, 8784,
    "", " ", "0", "-1", "1", "5 W", "100 ms", "3 MW", "1 USD", "-1 USD/h", "1e30 USD", "1e-30 s", "50 %", "-50 %", "nan", "1T", "15T tokens", "2 /h",
    "2027-01-01", "9999-12-31", "0001-01-01", "2027-02-30", "2027-01-01T00", "us-virginia", "DGX H100", "H100 SXM5 80GB", "Llama-3.2-1B", "chat", "train",
    "ü規模", "\x1b[2J", "\u202e", "\0", "a" * 300, "5 a" + " " * 3000 + "b", "[", "{}", "sites[0]", "../x", "=1+1", "tp", "buy", "spot", "demand", "power",
    [], {}, [None], [[]], [{}], {"": 0}, {"value": 1}, {"value": "1", "note": "n"}, ["a", "a"], [1, 1], [1, "a"], {"a": {"b": {"c": []}}}, [1] * 24, [0] * 24, [-1] * 24, [1e300] * 24,
)  # fmt: skip
KEYS = (
    "",
    "name",
    "value",
    "low",
    "high",
    "note",
    "months",
    "years",
    "share",
    "price",
    "power",
    "x",
    "a.b",
    "sites[0]",
    "0",
    "ü",
    "\x1b[2J",
    "figures",
    "text",
)
NUMBERS = (0.0, -1.0, 0.5, 0.999, 1.001, 2.0, 10.0, 1e-3, 1e3, 1e-9, 1e9, 1e100)


def places(node: Any, at: Way = ()) -> Iterator[Way]:
    """Yield the path of every node of a document, itself first."""
    yield at
    for key, item in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(item, (*at, key))


def at(document: Any, path: Way) -> Any:
    """Return the node at a path."""
    for part in path:
        document = document[part]
    return document


def mutated(rng: random.Random, document: Any, others: Sequence[Any] = (), most: int = 4) -> Any:
    """Copy a document with one to `most` changes; `others` lend their parts."""
    result = copy.deepcopy(document)
    for _ in range(rng.randint(1, most)):
        every = list(places(result))[1:]
        if not every:
            return rng.choice(ODD)
        path = rng.choice(every)
        holder, key = at(result, path[:-1]), path[-1]
        _change(rng, holder, key, [result, *others])
    return result


def _change(rng: random.Random, holder: Any, key: Any, lenders: Sequence[Any]) -> None:
    kind = rng.random()
    old = holder[key]
    if kind < 0.4:
        holder[key] = copy.deepcopy(rng.choice(ODD))
    elif kind < 0.5:
        del holder[key]
    elif kind < 0.6 and isinstance(old, int | float):
        holder[key] = old * rng.choice(NUMBERS)
    elif kind < 0.7:
        lender = rng.choice(lenders)
        holder[key] = copy.deepcopy(at(lender, rng.choice(list(places(lender)))))
    elif kind < 0.78 and isinstance(holder, dict):
        holder[rng.choice(KEYS)] = holder.pop(key)
    elif kind < 0.84 and isinstance(holder, dict):
        holder[rng.choice(KEYS)] = copy.deepcopy(rng.choice((old, *ODD)))
    elif kind < 0.9 and isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), copy.deepcopy(old))
    elif kind < 0.95:
        holder[key] = rng.choice(([old], {"value": old}, [old, old], str(old)[:300]))
    else:
        for _ in range(rng.choice((2, 50, 400))):
            old = [old] if rng.random() < 0.5 else {"a": old}
        holder[key] = old


def bytes_mutated(rng: random.Random, content: bytes) -> bytes:
    """Change bytes at random places: drop, double, replace and insert pieces."""
    pieces = (
        b"\0",
        b"\r",
        b"\n",
        b",",
        b'"',
        b";",
        b"\xff",
        b"\xef\xbb\xbf",
        b"9" * 400,
        b"-",
        b"1e999",
        b"nan",
        b"9999-12-31T23",
        b"+14:00",
        b"x" * 140_000,
    )
    data = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        begin = rng.randint(0, len(data))
        end = min(len(data), begin + rng.choice((0, 1, 2, 10, 200)))
        data[begin:end] = rng.choice((b"", bytes(data[begin:end]) * 2, rng.choice(pieces), rng.randbytes(3)))
    return bytes(data)


def as_json(document: Any) -> bytes:
    """Write a document as a user's file holds it."""
    return json.dumps(document).encode()
