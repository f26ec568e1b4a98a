"""Read the JSON or YAML that serving benchmarks write, as rows of a serving file: `vllm bench serve`, SGLang's `bench_serving`, and reports of other tools
(`planner.calibration.benchmark_reports`).

With a finite rate requests arrive on their own, and a limit on clients is a ceiling over the requests in flight; without one the limit is the
number of clients. What was in flight on average follows from the result (`serving_loads.in_flight`).

A file holds one object, a list of objects, or one object per line. The benchmarks do not say what they ran on, so a result carries
columns of a serving file beside its figures: with vLLM by `--metadata chip=... n_chips=...`, with SGLang by `--tag "chip=...,n_chips=..."`
(and from what its server tells of itself), or for all results by `--set chip=...` of the command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.calibration.benchmark_reports import TOOL, results_in
from planner.calibration.published_results import MODE
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message

FIGURES = (
    "output_throughput",
    "mean_ttft_ms",
    "median_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
)  # one of them makes a result
JSON_ENDINGS = (".json", ".jsonl")
YAML_ENDINGS = (".yaml", ".yml")
SERVER_COLUMNS = {
    "tp_size": "tp",
    "pp_size": "pp",
    "dp_size": "dp",
    "ep_size": "ep",
    "version": "engine_version",
}  # flags of SGLang's server
MEASURED = {
    "mean_ttft_ms": "ttft_ms",
    "output_throughput": "output_tokens_per_s_total",
    "mean_e2el_ms": "e2e_ms",
    "mean_e2e_latency_ms": "e2e_ms",
    "request_throughput": "requests_per_s",
    "max_concurrent_requests": "peak_in_flight",
    "spec_decode_acceptance_length": "tokens_per_step",
    "accept_length": "tokens_per_step",
}  # keys of both benchmarks -> columns
MEDIAN_TTFT = "ttft is the median"  # as `serving_cases.reports_median` reads it
AS_CLIENTS = (
    "closed loop"  # as `serving_loads.other_ways` reads clients that each send the next request when the last ends
)
QUEUED = "all requests queued at t0"  # as `serving_loads.load_of` reads a burst


def is_benchmark_file(path: Path) -> bool:
    """Tell whether a file holds JSON or YAML, by its ending."""
    return path.suffix.lower() in (*JSON_ENDINGS, *YAML_ENDINGS)


def benchmark_cells(path: Path, columns: Collection[str]) -> list[dict[str, str]]:
    """Read the results of a file as cells of rows; `columns`: as a serving file has them. Raises SpecError for text that is not JSON or no result, and OSError for a missing file."""
    cells, problems = [], []
    for i, result in enumerate(_objects(path)):
        if not isinstance(result, Mapping) or not any(name in result for name in FIGURES):
            problems.append(
                Issue(
                    f"{path} result {i + 1}",
                    Message.of("calibration.no_benchmark_result", names=", ".join(FIGURES)).text(),
                )
            )
            continue
        if reason := _no_steady_load(result):
            problems.append(Issue(f"{path} result {i + 1}", reason))
            continue
        cells.append(
            {name: _cell(value) for name, value in _columns(result, f"{path.stem} {i + 1}", path.stem, columns).items()}
        )
    if problems:
        raise SpecError(problems)
    return cells


def _objects(path: Path) -> list[Any]:
    """Parse the file as one value of JSON or YAML, or as one JSON value per line."""
    found = _yaml(path) if path.suffix.lower() in YAML_ENDINGS else _json(path)
    try:
        found = [result for each in (found if isinstance(found, list) else [found]) for result in results_in(each)]
    except ValueError as error:
        raise SpecError([Issue(str(path), words_of(error))]) from None
    if not found:
        raise SpecError([Issue(str(path), Message.of("calibration.holds_no_result").text())])
    return found


def _json(path: Path) -> Any:
    """Parse one JSON value, or one per line. Raises SpecError for other text, with line and column in the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text)
    except json.JSONDecodeError as error:
        found, wrong = _json_lines(text)
        if not wrong:
            return found
        reason = wrong if found else str(error)  # one value, which a file of lines would begin with
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise SpecError([Issue(str(path), Message.of("calibration.not_json", error=reason).text())])


def _json_lines(text: str) -> tuple[list[Any], str]:
    """Parse a value per line as far as that goes; return the values, and the first fault with its line and column, empty without one."""
    found: list[Any] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            found += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            return found, f"{error.msg}: line {number} column {error.colno}"
        except (ValueError, RecursionError) as error:
            return found, f"{error}: line {number}"
    return found, ""


def _yaml(path: Path) -> Any:
    """Parse one YAML value. Raises SpecError for other text, and where PyYAML is not installed."""
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise SpecError([Issue(str(path), Message.of("calibration.no_yaml").text())]) from None
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SpecError([Issue(str(path), Message.of("calibration.not_yaml", error=str(error)).text())]) from None


def _columns(result: Mapping[str, Any], name: str, source: str, columns: Collection[str]) -> dict[str, Any]:
    """Map the keys of a result to columns of a serving file; what the result states by the name of a column takes precedence."""
    found: dict[str, Any] = {"id": name, "source": source, **_software(result), **_load(result)}
    found |= {column: result[key] for key, column in MEASURED.items() if key in result}
    found |= _quantiles(result, found)
    found["tpot_ms"] = result.get("mean_tpot_ms", result.get("median_tpot_ms"))
    known = {*columns} - {"request_rate_per_s", "mode"}  # the benchmarks' own keys of these names mean something else
    stated = {**dict(_tagged(result.get("tag"))), **{key: value for key, value in result.items() if key in known}}
    if not isinstance(result.get("concurrency"), str):
        stated.pop("concurrency", None)  # as a number it is what SGLang measured to be in flight, not what it was told
    for both in ("notes", "other_metric"):
        if found.get(both) and stated.get(both):
            stated[both] = f"{found[both]}; {stated[both]}"
    return {**found, **{key: value for key, value in stated.items() if key in known}}


def _software(result: Mapping[str, Any]) -> dict[str, Any]:
    """Identify architecture, engine and layout."""
    server = result.get("server_info")
    server = server if isinstance(server, Mapping) else {}
    inside = server.get("internal_states")
    found = {column: server[key] for key, column in SERVER_COLUMNS.items() if key in server}
    if isinstance(inside, list) and inside and isinstance(inside[0], Mapping) and "tp_size" not in server:
        found |= {column: inside[0][key] for key, column in SERVER_COLUMNS.items() if key in inside[0]}
    backend = str(result.get("backend") or result.get("endpoint_type") or "")
    sglang = backend.startswith("sglang") or bool(server) or "random_input_len" in result
    date = str(result.get("date") or "")
    return {
        **found,
        "model": result.get("model_id") or server.get("model_path") or result.get("model"),
        **({} if TOOL in result else {"engine": _engine(backend, sglang)}),
        "mode": result.get(MODE, "aggregated"),
        **({"year": date[:4]} if date[:4].isdigit() else {}),
    }


def _engine(backend: str, sglang: bool) -> str:
    return "sglang" if sglang else "tensorrt_llm" if "trt" in backend or "tensorrt" in backend else "vllm"


def _load(result: Mapping[str, Any]) -> dict[str, Any]:
    """Describe lengths and load: arrivals at a rate, under a ceiling where there is one; clients; or all requests at once."""
    done = _positive(result.get("completed")) or _positive(result.get("num_prompts"))
    totals = {"isl": _positive(result.get("total_input_tokens")), "osl": _positive(result.get("total_output_tokens"))}
    found: dict[str, Any] = {name: total / done for name, total in totals.items() if total and done}
    rate, most = _positive(result.get("request_rate")), _positive(result.get("max_concurrency"))
    if most:
        found["concurrency"] = most
    if rate and math.isfinite(rate):
        found["request_rate_per_s"] = rate
        found |= {"notes": f"{done:g} requests"} if done else {}
    elif most:
        found["notes"] = AS_CLIENTS
    elif done:
        found |= {"concurrency": done, "notes": QUEUED, "other_metric": f"requests={done:g}"}
    return found


def _no_steady_load(result: Mapping[str, Any]) -> str:
    """Tell why a result has no steady load, with the remedy; empty where it has one."""
    if ramp := result.get("ramp_up_strategy"):
        return Message.of("measured.ramp", strategy=str(ramp)).text()
    rate = result.get("request_rate")
    if isinstance(rate, str) and not _positive(rate):
        return Message.of("measured.no_rate", rate=rate).text()
    return ""


def _quantiles(result: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    """Add the quantiles of TTFT that a result states; its median stands for the mean where there is none, and `notes` say so."""
    stated = {name: _positive(result.get(f"{name}_ttft_ms")) for name in ("median", "p99")}
    alone = bool(stated["median"]) and not _positive(result.get("mean_ttft_ms"))
    told = [f"{name}_ttft_ms={value:g}" for name, value in stated.items() if value and not (alone and name == "median")]
    columns = {"other_metric": "; ".join([*filter(None, [found.get("other_metric")]), *told])}
    if alone:
        columns |= {
            "ttft_ms": f"{stated['median']:g}",
            "notes": "; ".join([*filter(None, [found.get("notes")]), MEDIAN_TTFT]),
        }
    return {name: value for name, value in columns.items() if value}


def _positive(value: Any) -> float:
    """Return a positive number, also one written as text; 0 for anything else."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if number > 0 else 0.0


def _tagged(tag: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a tag such as "chip=H100,tp=8"."""
    for part in str(tag or "").split(","):
        name, equals, value = part.partition("=")
        if equals:
            yield name.strip(), value.strip()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
