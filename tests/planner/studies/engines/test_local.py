"""Processes of this machine: every item is answered once, whichever workers die, and whatever is still handed out or finished meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from typing import ClassVar

import joblib
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from planner.studies.engines import local
from planner.studies.engines.local import LocalEngine
from tests.conftest import long_run

KILLER = 3


class LosingWorkers:
    """In place of joblib.Parallel: takes two items before it yields one; where `KILLER` is among them the worker is lost.

    As joblib's thread may, a round that has ended so takes one more item while the next round is set up.
    """

    ended: ClassVar[list] = []  # what rounds that ended so would still have handed out

    def __init__(self, **options):
        pass

    def __call__(self, calls):
        for before in self.ended:
            next(before, None)
        self.ended.clear()
        return self._run(iter(calls))

    def _run(self, calls):
        waiting = [task for task, _ in zip(calls, range(2), strict=False)]
        while waiting:
            if any(arguments[2] == KILLER for _, arguments, _ in waiting):
                self.ended.append(calls)
                raise TerminatedWorkerError
            call, arguments, options = waiting.pop(0)
            result = call(*arguments, **options)
            waiting += [task for task, _ in zip(calls, range(1), strict=False)]
            yield result


@pytest.mark.parametrize("count", [1, 4, 5, 6, 9])
def test_an_item_that_is_handed_out_late_is_answered_once(count, monkeypatch):
    monkeypatch.setattr(joblib, "Parallel", LosingWorkers)
    monkeypatch.setattr(local, "_prepare_worker", lambda parent: None)
    items = list(range(count))
    found = list(LocalEngine(2).map_unordered(str, items))
    assert Counter(number for number, _ in found) == Counter(items)
    assert dict(found) == {n: None if n == KILLER else str(n) for n in items}


def killed_at_once(item):
    """End the process for every fifth item, while others finish in the same moment."""
    if item % 5 == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.001)
    return item


@long_run
def test_every_item_is_answered_once_while_workers_die():
    items = list(range(25))
    found = list(LocalEngine(2).map_unordered(killed_at_once, items))
    assert Counter(number for number, _ in found) == Counter(items)
    assert dict(found) == {n: None if n % 5 == 4 else n for n in items}
