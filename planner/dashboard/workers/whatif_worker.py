"""Keep a spec solved and answer changes of it in lines of JSON; a process started by `whatif.Kept`.

First line in: {"spec": ...}; then {"ask": number, "changes": {path: value}}. Lines out: {"say": text}, {"base": plan}, and to each question
{"answer": number, "plan": ..., "seconds": ..., "how": ...} or {"answer": number, "problems": [[path, message], ...]}.
"""

from __future__ import annotations

import json
import sys
import time

from planner.dashboard.workers.worker import Send, serve

FULL = 0.5  # share of the memory: from then on evaluated points are dropped before the next question, which may add a third of it


def main() -> None:
    """Answer within the memory of `bounds`, until the input ends or the server is gone."""
    from planner.dashboard.workers.bounds import MOST_KEPT_BYTES

    serve(_answer, MOST_KEPT_BYTES)


def _answer(send: Send) -> None:
    from planner.dashboard.workers.bounds import MOST_KEPT_BYTES
    from planner.errors import SpecError
    from planner.studies.whatif import WhatIf
    from solvers.memory import give_back, resident_bytes

    kept = WhatIf(json.loads(sys.stdin.readline())["spec"], progress=lambda line: send(say=line), diagnosing=False)
    send(base=kept.base.document)
    for line in sys.stdin:
        for of_base in (False, True):
            if resident_bytes() > FULL * MOST_KEPT_BYTES:
                kept.forget_points(of_base=of_base)
                give_back()
        asked, began = json.loads(line), time.perf_counter()
        try:
            try:
                plan = kept.plan(asked["changes"], diagnosing=False)
            except MemoryError:  # with the points of earlier questions; it may be enough without them
                kept.forget_points(of_base=True)
                give_back()
                plan = kept.plan(asked["changes"], diagnosing=False)
        except SpecError as error:
            send(answer=asked["ask"], problems=[[problem.path, problem.message] for problem in error.problems])
            continue
        send(answer=asked["ask"], plan=plan.document, seconds=time.perf_counter() - began, how=kept.timing.how)


if __name__ == "__main__":
    main()
