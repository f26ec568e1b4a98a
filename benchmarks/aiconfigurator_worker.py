"""Ask aiconfigurator about single configurations; run it with an interpreter that has the tool:

    python -I aiconfigurator_worker.py QUESTIONS ANSWERS

QUESTIONS is a JSON list of {"id", "model", "system", "backend", "version", ...arguments of its estimate}; ANSWERS gets one JSON object
per line. The script imports nothing of ours and reads none of the measurements in that package.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import warnings

MILLISECONDS = 1e3


def main(questions: str, answers: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    from aiconfigurator.cli.api import cli_estimate
    from aiconfigurator_core.sdk.perf_database import get_latest_database_version, get_supported_databases

    with open(questions, encoding="utf-8") as file:
        asked = json.load(file)
    databases = get_supported_databases()
    with open(answers, "w", encoding="utf-8") as file:
        for question in asked:
            number, wanted = question.pop("id"), question.pop("version")
            place = question["system_name"], question["backend_name"]
            version = nearest(wanted, databases.get(place[0], {}).get(place[1], [])) if wanted else None
            answer = {
                "id": number,
                "version": version or get_latest_database_version(system=place[0], backend=place[1]),
            }
            began = time.perf_counter()
            try:
                found = cli_estimate(backend_version=version, **question)
            except Exception as error:  # whatever it raises is its answer
                answer["refused"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
            else:
                answer |= {
                    "ttft": float(found.ttft) / MILLISECONDS,
                    "tpot": float(found.tpot) / MILLISECONDS,
                    "over_memory": bool(found.kv_cache_warning),
                    "quantisation": {name: str(found.raw.get(name)) for name in ("gemm", "moe", "kvcache")},
                }
            answer["seconds"] = time.perf_counter() - began
            file.write(json.dumps(answer) + "\n")
            file.flush()


def nearest(wanted: str, known: list[str]) -> str | None:
    """Find the oldest known version not older than the wanted one, else the newest; None, its default, for a name without a number."""
    if not known or not re.match(r"\d+\.\d+", wanted):
        return None
    ordered = sorted(known, key=_numbers)
    return next((version for version in ordered if _numbers(version) >= _numbers(wanted)), ordered[-1])


def _numbers(version: str) -> tuple[int, ...]:
    """Parse the numbers of a version; a release candidate comes before its release."""
    numbers = [int(n) for n in re.findall(r"\d+", version.partition("rc")[0])][:3]
    candidate = re.search(r"rc(\d+)", version)
    return (*numbers, *[0] * (3 - len(numbers)), int(candidate[1]) if candidate else sys.maxsize)


if __name__ == "__main__":
    main(*sys.argv[1:])
