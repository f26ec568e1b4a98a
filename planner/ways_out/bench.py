"""Write a script of `vllm bench serve` that sends a deployment the load that the plan gives it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable

from planner.errors import Issue
from planner.messages import Message
from planner.spec.slo import E2E, TPOT, TTFT
from planner.ways_in.launch import VLLM
from planner.ways_out.commands import PORT, TITLES
from planner.ways_out.deployed import Deployed, Served
from planner.ways_out.files import File
from planner.ways_out.heads import commented, served_lines
from planner.ways_out.hours import rates_by_hour, windows

TITLE = f"vllm bench serve, {TITLES[VLLM]}"
GOODPUT = {TTFT: "ttft", TPOT: "tpot", E2E: "e2el"}
MOST_BURSTINESS = 1000.0  # a shape of the gamma law above which gaps are even for all that can be told
MOST_RATIO = 0.99  # half-width of a range over the mean length; 1 would draw empty prompts
RUN_S = 300


def bench_files(deployed: Deployed) -> Iterable[File]:
    """Write a script for each deployment of single requests in text."""
    for served in deployed.served:
        if not _problem(served):
            yield File(f"{served.name}.sh", script(deployed, served), runs=True)


def not_sent(deployed: Deployed) -> list[Issue]:
    """List the deployments whose requests the tool cannot send."""
    return [Issue(served.point["id"], problem) for served in deployed.served if (problem := _problem(served))]


def script(deployed: Deployed, served: Served) -> str:
    """Write the script of a deployment: the busiest hour, or with HOURS=all every hour of the span that has it."""
    rates = {window: rates_by_hour(deployed.plan, served, window) for window in windows(deployed.plan)}
    window = max(rates, key=lambda each: max(rates[each]))
    day, replicas = rates[window], max(1, served.row["replicas"])
    lines = [
        *served_lines(deployed, served, TITLE),
        Message.of("ways_out.bench", window=windows(deployed.plan)[window], seconds=RUN_S).text(),
        *_remarks(served),
    ]
    words = ["vllm", "bench", "serve", *_flags(deployed, served)]
    shared = " \\\n    ".join(_pairs(words))
    return f"""#!/usr/bin/env bash
{commented(lines)}set -euo pipefail
BASE_URL="${{BASE_URL:-http://127.0.0.1:{PORT}}}"
REPLICAS="${{REPLICAS:-{replicas}}}"
RUN_S="${{RUN_S:-{RUN_S}}}"
RATES=({f"{max(day):.6g}"})
if [ "${{HOURS:-busiest}}" = all ]; then
  RATES=({" ".join(f"{rate:.6g}" for rate in day if rate > 0)})
fi
for rate in "${{RATES[@]}}"; do
  share=$(awk -v rate="$rate" -v here="$REPLICAS" 'BEGIN {{ printf "%.6g", rate * here / {replicas} }}')
  prompts=$(awk -v rate="$share" -v seconds="$RUN_S" 'BEGIN {{ n = int(rate * seconds + 0.999999); print n < 1 ? 1 : n }}')
{_prefixes(served)}  {shared} \\
    --base-url "$BASE_URL" --request-rate "$share" --num-prompts "$prompts"{_prefix_flag(served)} \\
    --result-filename "{served.name}-$share.json"
done
"""


def _flags(deployed: Deployed, served: Served) -> list[str]:
    """List the flags that are the same for every rate: model, lengths, gaps between requests, measures."""
    spec = served.spec
    lengths = spec.lengths
    limits = [
        f"{GOODPUT[row['metric']]}:{1000 * row['limit_s']:.6g}"
        for row in served.workload["slo"]
        if row["metric"] in GOODPUT
    ]
    flags = ["--backend", "vllm", "--model", served.model, "--seed", "0", "--ignore-eos"]
    flags += [
        "--burstiness",
        f"{min(spec.arrival_cv**-2, MOST_BURSTINESS) if spec.arrival_cv else MOST_BURSTINESS:.6g}",
    ]
    if _is_cached(served):
        assert spec.cache is not None
        kept = spec.cache.prefix_tokens
        flags += ["--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", f"{kept}"]
        flags += ["--prefix-repetition-suffix-len", f"{lengths.input - kept}"]
        flags += ["--prefix-repetition-output-len", f"{lengths.output}"]
    else:
        flags += ["--dataset-name", "random", "--random-input-len", f"{lengths.input}"]
        flags += ["--random-output-len", f"{lengths.output}", "--random-range-ratio", f"{_ratio(served):.4g}"]
    flags += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,95,99", "--save-result"]
    flags += ["--goodput", *dict.fromkeys(limits)] if limits else []
    return [*flags, "--metadata", f"plan={deployed.plan_id}", f"point={served.point['id']}"]


def _ratio(served: Served) -> float:
    """Compute the half-width of an even distribution over its mean with the narrower of the two variations: cv times the root of 3."""
    lengths = served.spec.lengths
    return min(math.sqrt(3.0) * min(lengths.input_cv, lengths.output_cv), MOST_RATIO)


def _remarks(served: Served) -> list[str]:
    """Say what of the lengths the tool does not draw."""
    lengths = served.spec.lengths
    if _is_cached(served):
        return [Message.of("ways_out.bench_fixed_lengths").text()]
    drawn = _ratio(served) / math.sqrt(3.0)
    if max(abs(lengths.input_cv - drawn), abs(lengths.output_cv - drawn)) < 0.01:
        return []
    stated = {"input_cv": lengths.input_cv, "output_cv": lengths.output_cv}
    return [Message.of("ways_out.bench_lengths", drawn=drawn, **stated).text()]


def _is_cached(served: Served) -> bool:
    """Tell whether the spec states the share of requests whose prefix is found."""
    return served.spec.cache is not None and served.spec.cache.hit_rate is not None


def _prefixes(served: Served) -> str:
    """Count the different prefixes: each is missed once, when it is new."""
    if not _is_cached(served):
        return ""
    assert served.spec.cache is not None and served.spec.cache.hit_rate is not None
    missed = 1.0 - served.spec.cache.hit_rate
    return f"""  prefixes=$(awk -v n="$prompts" 'BEGIN {{ k = int(n * {missed:.6g} + 0.5); print k < 1 ? 1 : k }}')\n"""


def _prefix_flag(served: Served) -> str:
    return ' --prefix-repetition-num-prefixes "$prefixes"' if _is_cached(served) else ""


def _problem(served: Served) -> str:
    if served.spec.session is not None:
        return Message.of("ways_out.bench_sessions").text()
    if served.spec.media:
        return Message.of("ways_out.bench_media").text()
    if served.spec.cache is not None and served.spec.cache.hit_rate is None:
        return Message.of("ways_out.bench_reuse").text()
    return ""


def _pairs(words: list[str]) -> list[str]:
    """Join each flag with its values, quoted for a shell."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return [" ".join(line) for line in lines]
