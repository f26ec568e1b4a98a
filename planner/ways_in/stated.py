"""Read a few words of a person: a demand, lengths of requests, and systems of the catalog."""

from __future__ import annotations

from catalog.errors import UnknownName
from catalog.lookup import Catalog
from planner.errors import Issue, SpecError, unknown_record
from planner.messages import Message

MOST_TOKENS = 10_000_000
MOST_RATE = 1e9  # requests/s


def lengths_of(text: str) -> tuple[int, int]:
    """Read the mean prompt and answer [token] of "1000,300" or "1000 300". Raises SpecError for anything else.

    >>> lengths_of("1000, 300")
    (1000, 300)
    """
    words = text.replace(",", " ").split()
    if len(words) == 2 and all(word.isdecimal() and len(word) < 12 for word in words):
        first, last = map(int, words)
        if 1 <= first <= MOST_TOKENS and 2 <= last <= MOST_TOKENS:
            return first, last
    raise SpecError([Issue("--lengths", Message.of("ways_in.expected_lengths", given=text).text())])


def demand_of(text: str) -> dict[str, int | float]:
    """Read a demand: "500 users", or requests per second such as "20" or "20/s". Raises SpecError for anything else.

    >>> demand_of("500 users"), demand_of("20/s")
    ({'users': 500}, {'rate': 20.0})
    """
    words = text.lower().replace(",", "").split()
    try:
        if len(words) == 2 and words[1] in ("users", "user") and 1 <= int(words[0]) <= MOST_RATE:
            return {"users": int(words[0])}
        rate = float(words[0].removesuffix("/s")) if len(words) == 1 else 0.0
    except ValueError:
        rate = 0.0
    if 0.0 < rate < MOST_RATE:
        return {"rate": rate}
    raise SpecError([Issue("--rate", Message.of("ways_in.expected_demand", given=text).text())])


def systems_of(text: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the systems of the catalog that a list with commas names, each once. Raises SpecError with every unknown name."""
    found, problems = [], []
    for name in filter(None, map(str.strip, text.split(","))):
        try:
            found.append(catalog.get("systems", name).name)
        except UnknownName as error:
            problems.append(Issue("--systems", unknown_record(error)))
    if problems:
        raise SpecError(problems)
    return tuple(dict.fromkeys(found))
