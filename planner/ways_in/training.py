"""Draft a training run: the figures that a person states, and a guess, marked as one, for each that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Issue
from planner.messages import Message

SERVE, TRAIN, BOTH = WORK = ("serve", "train", "both")
"""What a fleet is for."""
TOKENS, DEADLINE = "1T", "90 d"
REQUESTS = ("vllm", "sglang", "trtllm", "trace", "log", "users", "rate", "lengths")
"""Options of `init` that say how requests are served."""
RUN = ("tokens", "deadline")
"""Options of `init` that describe a training run."""


@dataclass(frozen=True, slots=True)
class Run:
    """A training run: tokens and deadline as a spec writes them, empty where they are not stated; `is_alone`: nothing is served beside it."""

    tokens: str = ""
    deadline: str = ""
    is_alone: bool = False


def work_problems(work: str, stated: Mapping[str, Any]) -> list[Issue]:
    """List options that do not belong to the work, and texts that no file can hold; `stated`: values by option."""
    if work not in ("", *WORK):
        return [Issue("--work", Message.of("ways_in.expected_work", names=", ".join(WORK)).text())]
    halves = [name for name in RUN if not _is_text(str(stated.get(name) or ""))]
    if halves:
        return [Issue(f"--{name}", Message.of("spec.half_character").text()) for name in halves]
    idle, code = (REQUESTS, "ways_in.serves_nothing") if work == TRAIN else (RUN, "ways_in.trains_nothing")
    named = [f"--{name}" for name in idle if stated.get(name)]
    return [Issue("--work", Message.of(code, options=", ".join(named)).text())] if named and work != BOTH else []


def _is_text(text: str) -> bool:
    """Tell whether UTF-8 can hold a text, which bytes of a command line in another encoding are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def with_run(document: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Return the draft of a service with a training run of its architecture beside it, or in its place."""
    (service,), guesses = document["workloads"], dict(document.get("assumptions", {}))
    at = "workloads[0]" if run.is_alone else "workloads[1]"
    job = {
        "name": "training",
        "kind": "training",
        "architecture": service["architecture"],
        "tokens": run.tokens or TOKENS,
        "deadline": run.deadline or DEADLINE,
    }
    of_network = guesses.get("workloads[0].architecture")
    if run.is_alone:
        guesses = {path: reason for path, reason in guesses.items() if not path.startswith("workloads[0]")}
    if of_network:
        guesses[f"{at}.architecture"] = of_network
    for key in RUN:
        if not getattr(run, key):
            guesses[f"{at}.{key}"] = Message.of(f"ways_in.guess_{key}").text()
    found = {**document, "workloads": [job] if run.is_alone else [service, job], "assumptions": guesses}
    return found if guesses else {key: value for key, value in found.items() if key != "assumptions"}
