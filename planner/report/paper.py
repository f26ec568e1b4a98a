"""Set texts and tables on a page of a given width and length: wrapped, cut and aligned by rich, plain or with headings in bold.

Not here: what stands on the page (`planner.report.page`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from planner.escape import terminal
from planner.messages import DEFAULT, say, translated
from planner.report.heads import Column

WIDTH = 100  # columns at most
LINES = 58  # lines at most
LEAST_WIDTH = 80  # columns from which on a page keeps to that
NAME_WIDTH = 28  # columns of a name in a table
LEAST_NAME = 8  # columns that a name keeps, however little room there is
LEAST_TEXT = 24  # columns that names leave to the text of the last column


@dataclass(frozen=True, slots=True)
class Block:
    """A heading and its entries, the most important first; entries are the cells of a table, or one text each."""

    heading: str
    """Heading of the first column. A block without one goes on where the block before it ends."""
    columns: tuple[Column, ...]
    """The further columns."""
    entries: Sequence[tuple[str, ...]]
    rest: Callable[[int], str] = lambda shown: ""
    """Says what is left out when so many entries are shown."""
    least: int = 1
    """Entries that the block is given before others get further ones."""
    name_width: int = NAME_WIDTH
    """Columns of the page that a name in the first column may take."""
    wraps: bool = True
    """Whether the last column goes on in further lines; otherwise it ends in an ellipsis."""
    rest_lines: int = 1
    """Lines that the words on what is left out may take."""


def further(total: int) -> Callable[[int], str]:
    """Return what says how many entries of a number are left out when some are shown."""
    return lambda shown: say("page.more", count=total - shown)


class Paper:
    """Set texts and tables in lines of one width, in one language."""

    def __init__(self, width: int, styled: bool, language: str = DEFAULT):
        self.width, self.language = width, language
        self._console = Console(
            file=io.StringIO(), width=width, height=LINES, force_terminal=styled, color_system="standard" if styled else None,
            no_color=True, markup=False, emoji=False, highlight=False, legacy_windows=False,
        )  # fmt: skip

    def text(self, words: str, style: str = "", most: int | None = None) -> list[str]:
        """Wrap a text; beyond `most` lines it ends in an ellipsis."""
        lines = list(Text(self._said(words), style=style).wrap(self._console, self.width))
        if most is not None and len(lines) > most:
            last = lines[most - 1]
            last.rstrip()
            last.truncate(self.width - 1)
            lines = [*lines[: most - 1], last.append("…")]
        return [self._set(line) for line in lines]

    def block(self, block: Block, shown: int) -> list[str]:
        """Set a heading with the first entries of a block, and the number left out."""
        table = Table(
            box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", show_header=bool(block.heading)
        )
        for column in (Column(block.heading), *block.columns):
            head = Text(self._said(column.head))
            table.add_column(head, justify="right" if column.right else "left", overflow="fold")
        for cells in self._cells(block, shown):
            table.add_row(*map(Text, cells))
        rest = translated(block.rest(shown), self.language) if shown < len(block.entries) else ""
        return [*self._set(table).split("\n"), *(self.text(f"… {rest}", "dim", most=block.rest_lines) if rest else ())]

    def _cells(self, block: Block, shown: int) -> list[list[str]]:
        """Cut names until the columns fit beside each other; numbers stay whole, and the last text takes the rest."""
        rows = [[self._said(cell) for cell in entry] for entry in block.entries[:shown]]
        columns = (Column(block.heading), *block.columns)
        numbers = [column.right for column in columns]
        last = len(columns) - 1
        open_ended = not numbers[last]
        cut, left = rows, self.width
        for limit in range(block.name_width, LEAST_NAME - 1, -4):
            cut = [
                [
                    cell if number or (open_ended and at == last) else short(cell, limit)
                    for at, (cell, number) in enumerate(zip(row, numbers))
                ]
                for row in rows
            ]
            widths = [
                max([cell_len(self._said(column.head)), *(cell_len(row[at]) for row in cut)])
                for at, column in enumerate(columns)
            ]
            left = self.width - sum(widths[:last]) - 2 * last
            if left >= (min(widths[last], LEAST_TEXT) if open_ended else widths[last]):
                break
        if open_ended and not block.wraps:
            cut = [[*row[:last], short(row[last], max(left, 1))] for row in cut]
        return cut

    def _said(self, words: str) -> str:
        """Say a text in the language of the page, controls as escapes."""
        return terminal(translated(words, self.language))

    def _set(self, what: Text | Table) -> str:
        with self._console.capture() as captured:
            self._console.print(what, end="" if isinstance(what, Text) else "\n")
        return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def short(text: str, width: int = NAME_WIDTH) -> str:
    """Cut a text of a user to the width of a column.

    >>> short("a name", 6), short("a long name", 6)
    ('a name', 'a lon…')
    """
    shown = terminal(text)
    return shown if cell_len(shown) <= width else set_cell_size(shown, width - 1).rstrip() + "…"


def filled(paper: Paper, blocks: Sequence[Block], room: int) -> list[str]:
    """Give each block its first entries and then all of them further ones in turn, while the page has room.

    A blank line stands before each heading. Where the first entries alone take more room than there is, blocks without a heading, which add
    to the block before them, are left out, those that ask for the fewest entries first and of equal ones the last; from `LEAST_WIDTH` columns
    on then whole blocks too.
    """

    def laid(block: Block, shown: int) -> list[str]:
        return [*([""] if block.heading else []), *paper.block(block, shown)]

    def grows(at: int) -> bool:
        """Add an entry; or two, where one more would need the line that the second takes anyway."""
        for count in range(shown[at] + 1, min(shown[at] + 2, len(blocks[at].entries)) + 1):
            more = laid(blocks[at], count)
            if sum(map(len, lines)) - len(lines[at]) + len(more) <= room:
                shown[at], lines[at] = count, more
                return True
        return False

    blocks = list(blocks)
    lines = [laid(block, 1) for block in blocks]
    kept = set(range(len(blocks)))
    for at in sorted(range(len(blocks)), key=lambda at: (blocks[at].least, -at)):
        if sum(len(lines[i]) for i in kept) > room and not blocks[at].heading:
            kept.remove(at)
    blocks, lines = [blocks[i] for i in sorted(kept)], [lines[i] for i in sorted(kept)]
    while paper.width >= LEAST_WIDTH and len(blocks) > 1 and sum(map(len, lines)) > room:
        del blocks[-1], lines[-1]
    shown = [1] * len(blocks)
    for at, block in enumerate(blocks):
        while shown[at] < block.least and grows(at):
            pass
    growing = list(range(len(blocks)))
    while growing:
        growing = [at for at in growing if grows(at)]
    return [line for block in lines for line in block]
