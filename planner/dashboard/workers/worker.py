"""Solve the spec on standard input, or verify the plan there, and answer in lines of JSON; a process started by `solving.Job`.

Input: {"spec": ...}, or {"plan": ...} of somebody else.

Lines: {"say": text}, {"stage": "verify"}, and at the end either {"plan": ..., "findings": [...]} or
{"problems": [[path, message], ...]}. An exception is a bug: it goes to standard error as usual.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

WATCH_S = 1.0
Send = Callable[..., None]


def main() -> None:
    """Read, solve, verify and answer, within the memory of `bounds` and as long as the server lives."""
    from planner.dashboard.workers.bounds import MOST_BYTES

    serve(_answer, MOST_BYTES)


def serve(answer: Callable[[Send], None], most_bytes: int) -> None:
    """Run `answer` within a memory; what it sends goes to standard output as lines of JSON, and so do problems of the spec."""
    from planner.dashboard.workers.bounds import OUT_OF_MEMORY
    from planner.dashboard.workers.wire import line_of

    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    threading.Thread(target=watch, args=(int(sys.argv[1]),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that output of a solver does not mix with the answers

    def send(**message: Any) -> None:
        print(line_of(message), file=answers, flush=True)

    try:
        from planner.errors import SpecError

        try:
            answer(send)
        except SpecError as error:
            send(problems=[[problem.path, problem.message] for problem in error.problems])
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def watch(parent: int) -> None:
    """End this process, and what it started, once the server is gone, even by kill -9."""
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os.killpg(0, signal.SIGKILL)


def _answer(send: Send) -> None:
    from planner.pipeline import solve_unverified
    from planner.plan import Plan
    from planner.verify.plan import verify_plan

    asked = json.load(sys.stdin)
    plan = Plan(asked["plan"]) if "plan" in asked else None
    plan = plan or solve_unverified(asked["spec"], progress=lambda line: send(say=line))
    send(stage="verify")
    findings = verify_plan(plan) if plan.has_answer else []
    send(plan=plan.document, findings=[str(finding) for finding in findings])


if __name__ == "__main__":
    main()
