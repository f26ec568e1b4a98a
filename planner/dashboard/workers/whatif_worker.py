"""Keep a spec solved and answer changes of it in lines of JSON; a process started by `whatif.Kept`.

First line in: {"spec": ...}; then {"ask": number, "changes": {path: value}}. Lines out: {"say": text}, {"base": plan}, and to each question
{"answer": number, "plan": ..., "seconds": ..., "how": ...} or {"answer": number, "problems": [[path, message], ...]}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from typing import Any

FULL = 0.75  # of the memory: from then on evaluated points are dropped before the next question


def main() -> None:
    """Answer within the memory of `bounds`, until the input ends or the server is gone."""
    from planner.dashboard.workers.bounds import MOST_KEPT_BYTES, OUT_OF_MEMORY
    from planner.dashboard.workers.worker import watch

    resource.setrlimit(resource.RLIMIT_DATA, (MOST_KEPT_BYTES, MOST_KEPT_BYTES))
    threading.Thread(target=watch, args=(int(sys.argv[1]),), daemon=True).start()
    try:
        _answer()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _answer() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that output of a solver does not mix with the answers

    def send(**message: Any) -> None:
        print(json.dumps(message, allow_nan=False), file=answers, flush=True)

    def problems(error: SpecError) -> list[list[str]]:
        return [[problem.path, problem.message] for problem in error.problems]

    from planner.dashboard.workers.bounds import MOST_KEPT_BYTES
    from planner.errors import SpecError
    from planner.studies.whatif import WhatIf
    from solvers.memory import resident_bytes

    try:
        kept = WhatIf(json.loads(sys.stdin.readline())["spec"], progress=lambda line: send(say=line), diagnosing=False)
    except SpecError as error:
        send(problems=problems(error))
        return
    send(base=kept.base.document)
    for line in sys.stdin:
        if resident_bytes() > FULL * MOST_KEPT_BYTES:
            kept.forget_points()
        asked, began = json.loads(line), time.perf_counter()
        try:
            plan = kept.plan(asked["changes"], diagnosing=False)
        except SpecError as error:
            send(answer=asked["ask"], problems=problems(error))
            continue
        send(answer=asked["ask"], plan=plan.document, seconds=time.perf_counter() - began, how=kept.timing.how)


if __name__ == "__main__":
    main()
