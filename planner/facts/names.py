"""Find names that a reader cannot tell apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from planner.facts import Fact
from planner.messages import Message

UNICODE = "Unicode Technical Standard 39, confusables"
# Letters of other scripts, and digits, that look like a Latin letter.
_LOOKS_LIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеоѕіјрсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορνγ01|l",
    "ABESIJKMHOPCTYXaeosijpcyxABEZHIKMNOPTYXaopvyOIII",
)


def visible(name: str) -> str:
    """Return what a reader sees of a name: compatible forms joined (NFKC), without characters of no width, with single spaces."""
    joined = unicodedata.normalize("NFKC", name)
    return " ".join("".join(char for char in joined if not _is_unseen(char)).split())


def _is_unseen(char: str) -> bool:
    """Tell whether a character prints nothing: formats, controls, the grapheme joiner, variation selectors, fillers."""
    return (
        unicodedata.category(char) in ("Cf", "Cc") or char in "\u034f\u115f\u1160\u3164" or "\ufe00" <= char <= "\ufe0f"
    )


def old_key(path: str, new: str) -> Fact:
    """Note a key under the name that an earlier release gave it; `path`: where it stands, `new`: today's path."""
    old, today = (place.rpartition(".")[2] for place in (path, new))
    return Fact(path, Message.of("spec.old_key", old=old, new=today))


def alike(names: Iterable[tuple[str, str]]) -> Iterator[Fact]:
    """Refuse (path, name) pairs whose names differ in nothing that is seen, and note those that differ in letters that look the same.

    Names that are equal letter by letter are one name, and no matter of this rule.
    """
    seen: dict[str, tuple[str, str]] = {}
    resembling: dict[str, tuple[str, str]] = {}
    for path, name in names:
        shown = visible(name)
        first_path, first = seen.setdefault(shown, (path, name))
        if first != name:
            yield Fact(path, Message.of("names.same", name=shown, other=first_path), UNICODE, refuses=True)
            continue
        skeleton = shown.translate(_LOOKS_LIKE)
        other_path, other = resembling.setdefault(skeleton, (path, shown))
        if other != shown:
            yield Fact(path, Message.of("names.alike", name=shown, other=other_path), UNICODE)
