"""Follow a batch on standard error: a line for each answer or, on a terminal, a bar with rate, time left and lines without a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.escape import terminal
from planner.messages import Message

if TYPE_CHECKING:
    from rich.console import Console

    from planner.studies.batch import Answer, Follow

PER_SECOND, MINUTE_S = 1.0, 60.0


@contextmanager
def following(
    count: int, tell: Callable[[str], None], *, bar: bool, console: Console | None = None
) -> Iterator[Follow]:
    """Yield the function to call with each of `count` answers. On a bar only answers without a plan get a line, above it."""
    from planner.studies.batch import words_of

    if not bar:
        yield lambda done, answer: tell(f"[{done}/{count}] {words_of(answer)}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    columns = (BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"), TextColumn("{task.fields[told]}"))
    shown = Progress(*columns, console=console or Console(stderr=True), redirect_stdout=False)
    with shown:
        task = shown.add_task("", total=count, told="")
        without = 0

        def follow(done: int, answer: Answer) -> None:
            nonlocal without
            if answer.without_plan:
                without += 1
                shown.console.print(Text(terminal(words_of(answer))))
            shown.update(task, completed=done)
            elapsed = shown.tasks[0].elapsed or 0.0
            shown.update(task, told=standing(done, count, without, elapsed))

        yield follow


def standing(done: int, count: int, without: int, elapsed_s: float) -> str:
    """Say the mean rate since the start, the time left at that rate, and how many lines have no plan; rate in 1/min below one a second.

    >>> standing(3, 9, 1, 60.0)
    '3/min, 2:00 left, 1 without a plan'
    """
    rate = done / max(elapsed_s, 1e-9)
    left = round((count - done) / rate)
    words = [
        Message.of("batch.rate_second", rate=f"{rate:.1f}").text()
        if rate >= PER_SECOND
        else Message.of("batch.rate_minute", rate=f"{rate * MINUTE_S:.3g}").text(),
        Message.of("batch.time_left", time=_clock(left)).text(),
        Message.of("batch.without_plan", count=without).text(),
    ]
    return ", ".join(words)


def _clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
