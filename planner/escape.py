"""Show texts of a user as text: one function for each target, a terminal, Markdown, the dashboard's page and a cell of CSV.

Names, notes and figures of a spec, a plan or an overlay may come from somebody else. Everything that prints them calls one of these.
"""

from __future__ import annotations

import re
import unicodedata

_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Marks that change the order in which other characters are shown."""
_UNSHOWN = frozenset(("Cc", "Cs", "Zl", "Zp"))  # controls, half characters, separators of lines and paragraphs
_MARKUP = re.compile(
    r"[\\`*<>|~&!]|\[(?![0-9]+\](?![(\[:]))|(?<![^\W_])_|_(?![^\W_])|(?<=:)//|(?<=www)\.|(?<=\w)@(?=\w)"
)
_AT_THE_START = re.compile(r"^(\s*)([#=]|[+-](?=[\s+-]|$)|[0-9]+(?=[.)](?:\s|$)))")
_ON_THE_PAGE = re.compile(r"\$|:(?=[^\W\d_])")
_LINK = re.compile(r"(?<=:)\\?(?=//)|(?<=www)\\?(?=\.)|(?<=\w)\\?(?=@\w)")
_JOINER = "\u2060"  # no width; links are found after escapes are read, so that a backslash does not keep them apart
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula; the full-width signs too, which spreadsheets with East Asian input read as the narrow ones."""
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)? ?%?", re.ASCII)


def terminal(text: str) -> str:
    r"""Write control characters, and those that reorder a line, as escapes, so that a text stays on its line.

    >>> terminal("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def markdown(text: str) -> str:
    r"""Escape what Markdown takes for markup, links and HTML; `sites[0]` is none of these.

    >>> markdown("# <b>a_b</b> [x](y)")
    '\\# \\<b\\>a_b\\</b\\> \\[x](y)'
    """
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", terminal(text))
    return _AT_THE_START.sub(_start_escaped, escaped)


def page(text: str) -> str:
    r"""Escape what Streamlit takes for markup: Markdown, formulas, and its own directives such as `:red[...]`.

    >>> page("$x$ :red[y]")
    '\\$x\\$ \\:red\\[y]'
    """
    return _ON_THE_PAGE.sub(lambda found: f"\\{found[0]}", _LINK.sub(_JOINER, markdown(text)))


def csv_cell(text: str) -> str:
    """Write a cell that no spreadsheet takes for a formula, in signs of usual or of full width; numbers stay as they are.

    >>> csv_cell("=1+1"), csv_cell("-3.5 %")
    ("'=1+1", '-3.5 %')
    """
    shown = terminal(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(shown) else shown


def _shown(character: str) -> str:
    hidden = unicodedata.category(character) in _UNSHOWN or character in _REORDERING
    return character.encode("unicode_escape").decode() if hidden else character


def _start_escaped(found: re.Match[str]) -> str:
    """Escape what would begin a heading, a list or a line under a heading."""
    return f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}"
