"""Name uploads: what a visitor's browser calls a file is neither a path here nor a text to show as it is."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from pathlib import Path

MOST_LETTERS = 50
"""Letters of the name of an upload; a file system takes 255 bytes."""


def file_name(name: str, taken: Collection[str] = ()) -> str:
    """Name the file of an upload: its own name without folders and odd characters, numbered where another has it already.

    >>> file_name("run.json", {"run.json"}), file_name("../a/b.csv"), file_name(".."), file_name("x\\0.json")
    ('run (2).json', 'b.csv', 'file', 'x.json')
    """
    plain = Path("".join(letter for letter in name if letter.isprintable())).name.strip(". ") or "file"
    stem, ending = Path(plain).stem[:MOST_LETTERS], Path(plain).suffix[:MOST_LETTERS]
    names = (f"{stem}{f' ({number})' if number > 1 else ''}{ending}" for number in count(1))
    return next(each for each in names if each not in taken)
