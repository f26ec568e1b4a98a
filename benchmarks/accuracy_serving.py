"""Write the chapter on serving of the accuracy report: goals and results, tables, worst rows."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from accuracy_scores import LEAVE_OUTS, Scored, checks, errors, group_of, percent, regrets, scatter
from accuracy_slices import SERVING, slices, worst_groups
from accuracy_ways import ways_table

from catalog.lookup import Catalog
from models.transformer.architecture import parameter_counts
from planner.calibration.fit import LEAVE_OUT
from planner.calibration.measurements import Row
from planner.calibration.target import TRUSTED_GRADES
from planner.tables import as_markdown

METRICS = {"tpot": "TPOT", "ttft": "TTFT", "throughput": "throughput"}
QUANTITY = {"tpot": "TPOT [s]", "ttft": "TTFT [s]", "throughput": "output tokens/s of all chips"}
GOAL_BY_GROUP = {"tpot": "≤ 12 %", "ttft": "≤ 28 %", "throughput": "≤ 12 %"}
GOAL_BY_SOURCE = {"tpot": "≤ 18 %", "ttft": "≤ 45 %", "throughput": "≤ 18 %"}
DOMESTIC = ("Ascend 910B", "Ascend 910C")
FEW_CLIENTS = 4  # up to which the warm-up shows in a mean of the first token
HELD_BACK = 0.5  # share of the clients that run, below which the engine keeps them waiting
POSSIBLE = 0.7  # share of the peak that no engine reached
CHOICES = ("tp", "pp", "dp", "ep")
OPEN_WAYS = """Rows state how many requests were in flight and not how they came: clients in a closed loop, by which they are predicted, all at once, or at random.
Shipped bands; of groups: the share of votes inside, each row predicted without its group, source or chip."""
CAUSES = Path(__file__).with_name("accuracy_causes.md")  # causes of groups far off, mended or not
TRIED = Path(__file__).with_name("accuracy_tried.md")  # forms that were fitted and not shipped


def chapter(path: Path, catalog: Catalog) -> tuple[str, dict[str, str]]:
    """Return (text, plots by file name)."""
    scored = Scored(path, catalog)
    parts = [
        "## Serving",
        "Rows of grade A and B less the stated exclusions; TPOT and TTFT in seconds, throughput in output tokens per second of all chips.",
        as_markdown(goals(scored)),
        "aiconfigurator 0.12 on the same rows, as far as both answer them: [aiconfigurator.md](aiconfigurator.md).",
        scored.counted(), "Of the rows in the score, those that are refused:", refusals(scored),
        *(f"![predicted against measured {METRICS[name]}](accuracy_serving_{name}.svg)" for name in METRICS),
    ]  # fmt: skip
    for name, words in METRICS.items():
        parts += [
            f"### Serving: {words}, shipped constants",
            "By source kind:",
            as_markdown(scored.table(lambda m: m.row.kind, scored.shipped, name)),
        ]
        parts += ["By chip:", as_markdown(scored.table(lambda m: m.chip, scored.shipped, name))]
        parts += [
            "By kind of network:",
            as_markdown(scored.table(lambda m: "experts" if m.experts else "dense", scored.shipped, name)),
        ]
    for by in LEAVE_OUTS:
        parts += [f"### Serving: leave one {by} out", as_markdown(left_out(scored, by))]
    parts += ["### Serving: Ascend with groups left out, what was tried", TRIED.read_text(encoding="utf-8")]
    parts += scored.uncertainty("Serving")
    parts += [
        f"### Serving: intervals of rows that do not say how their requests came\n\n{OPEN_WAYS}",
        as_markdown(ways_table(scored)),
    ]
    parts += ["### Serving: choice of chip or layout (leave-group-out)", as_markdown(choice_table(regret(scored)))]
    parts += ["### Serving: slices (leave-group-out)", slices(scored, SERVING, tuple(METRICS))]
    parts += ["### Serving: the worst groups (leave-group-out)", worst_groups(scored, suspicion)]
    parts += ["### Serving and training: causes that were found", CAUSES.read_text(encoding="utf-8")]
    parts += ["### Serving: the worst rows of the shipped constants", as_markdown(scored.worst(suspicion))]
    plots = {f"accuracy_serving_{name}.svg": scatter(scored.points(name), QUANTITY[name]) for name in METRICS}
    return "\n\n".join(part.strip() for part in parts) + "\n", plots


def goals(scored: Scored) -> list[dict[str, str]]:
    losses = [loss for each in regret(scored).values() for loss in each]
    chosen = f"{percent(np.mean(losses))} over {len(losses)} groups, best picked in {losses.count(0.0)}"
    needed, predicted = answered(scored)
    rows = []
    for name, words in METRICS.items():
        signed = scored.signed(scored.left["group"], name)
        rows.append((f"leave-group-out, {words}: median", GOAL_BY_GROUP[name], scored.median("group", name)))
        rows.append(
            (f"leave-group-out, {words}: bias", "within ± 10 %" if name == "ttft" else "", percent(np.median(signed)))
        )
    for by in LEAVE_OUTS[1:]:
        goal = GOAL_BY_SOURCE if by == "source" else dict.fromkeys(METRICS, "")
        rows += [(f"leave-one-{'chip-generation' if by == 'generation' else by}-out, pooled, {words}: median", goal[name], scored.median(by, name))
                 for name, words in METRICS.items()]  # fmt: skip
    return checks([
        *rows,
        ("rows in the score with the needed fields that get a prediction", "≥ 95 %", f"{percent(predicted / needed)} of {needed}"),
        *domestic(scored),
        ("choice of chip or layout (leave-group-out): mean loss of throughput", "≤ 5 %", chosen),
        ("rows held back, TPOT: same kind / new source / new chip", "12 / 18 / 12 %", "not run"),
        ("rows held back, TTFT", "35 / 50 / 45 %", "not run"),
        ("rows held back, throughput", "14 / 22 / 16 %", "not run"),
    ])  # fmt: skip


def domestic(scored: Scored) -> list[tuple[str, str, str]]:
    """Score Ascend 910B and 910C with groups left out: median error and bias of throughput and TPOT."""
    found = []
    for chip in DOMESTIC:
        on = np.array([m.chip.startswith(chip) for m in scored.rows])
        for name in ("throughput", "tpot"):
            which = scored.use & on & (scored.labels == name)
            if which.any():
                signed = np.expm1(scored.left["group"] - scored.measured)[which]
                result = f"{percent(np.median(np.abs(signed)))}, {percent(np.median(signed))} of {which.sum()}"
                found.append(
                    (f"leave-group-out, {chip}, {METRICS[name]}: median, bias", "≤ 25 %, within ± 15 %", result)
                )
    return found


def left_out(scored: Scored, by: str) -> list[dict[str, object]]:
    """Tabulate the errors of each group left out, and of all together, metric by metric."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i in np.flatnonzero(scored.use):
        for name in ("all", LEAVE_OUT[by](scored.rows[i])):
            groups[name][scored.labels[i]].append(int(i))
    signed, table = np.expm1(scored.left[by] - scored.measured), []
    for group, found in sorted(groups.items(), key=lambda item: (-sum(map(len, item[1].values())), item[0])):
        table += [
            {by: group, "metric": METRICS[name], **errors(signed[found[name]], [group_of(scored.rows[i]) for i in found[name]])}
            for name in METRICS if name in found
        ]  # fmt: skip
    return table


# -- which rows are answered -------------------------------------------------------------------------------------------


def has_needed_fields(row: Row) -> bool:
    """Whether a row states chip, chips, architecture, lengths (or a data set that implies them), a load, and a measurement."""
    lengths = row.number("isl") is not None and (row.number("osl") is not None or row.text["mode"] == "prefill_only")
    data_set = row.text["other_metric"].startswith("mlperf scenario=")
    load = row.number("concurrency") or row.number("request_rate_per_s") or row.number("is_max_throughput")
    figures = ("ttft_ms", "tpot_ms", "output_tokens_per_s_total")
    return bool(
        row.text["chip"]
        and row.number("n_chips")
        and row.text["model"]
        and (lengths or data_set)
        and load
        and any(map(row.number, figures))
    )


def counts(scored: Scored, row: Row) -> bool:
    return scored.target.in_score(row) and row.grade in TRUSTED_GRADES


def answered(scored: Scored) -> tuple[int, int]:
    """Return (rows in the score with the needed fields, those of them with a prediction)."""
    predicted = sum(counts(scored, m.row) and has_needed_fields(m.row) for m in scored.cases)
    refused = sum(counts(scored, row) and has_needed_fields(row) for row, _ in scored.measurements.refused)
    return predicted + refused, predicted


def refusals(scored: Scored) -> str:
    """Count rows without a prediction by reason, and how many of them have the needed fields."""
    refused = [(reason, has_needed_fields(row)) for row, reason in scored.measurements.refused if counts(scored, row)]
    complete = Counter(reason for reason, needed in refused if needed)
    table = [
        {"reason": reason, "rows": n, "with the needed fields": complete[reason]}
        for reason, n in Counter(r for r, _ in refused).most_common()
    ]
    return as_markdown(table) if table else "none."


# -- choice ------------------------------------------------------------------------------------------------------------


def regret(scored: Scored) -> dict[str, list[float]]:
    """Compute the loss of throughput from picking by prediction among rows that differ only in chip or layout, by source kind.

    Throughput as measured, else that of the closed loop: clients x output tokens / (TTFT + (output tokens - 1) TPOT).
    """
    values: dict[int, dict[str, tuple[float, float]]] = defaultdict(dict)
    for i in np.flatnonzero(scored.use):
        values[scored.observations[i].case][scored.observations[i].metric] = (
            math.exp(scored.measured[i]),
            math.exp(scored.left["group"][i]),
        )
    groups: dict[tuple, dict[tuple, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for case, found in values.items():
        m = scored.cases[case]
        seconds = seconds_per_token(m.row, found)
        if seconds:
            groups[question(m)][(m.chip, *(m.row.number(name) for name in CHOICES))].append(seconds)
    # Repeated measurements of one choice count once, by their median.
    medians = {
        key: {choice: tuple(np.median(each, axis=0)) for choice, each in choices.items()}
        for key, choices in groups.items()
    }
    kinds = sorted({key[0] for key in medians})
    found = {kind: regrets({key: choices for key, choices in medians.items() if key[0] == kind}, 2) for kind in kinds}
    return {kind: losses for kind, losses in found.items() if losses}


def choice_table(found: dict[str, list[float]]) -> list[dict[str, object]]:
    """Tabulate the loss of the pick by source kind."""
    return [
        {"source kind": kind, "groups": len(losses), "best picked": losses.count(0.0), "mean loss": percent(np.mean(losses)), "worst": percent(max(losses))}
        for kind, losses in found.items()
    ]  # fmt: skip


def seconds_per_token(row: Row, found: dict[str, tuple[float, float]]) -> tuple[float, float] | None:
    """Return (measured, predicted) time per output token of all chips; None where the row has no throughput and none follows."""
    if "throughput" in found:
        return tuple(1.0 / value for value in found["throughput"])
    clients, length = row.number("concurrency"), row.number("osl")
    if not clients or not length or not {"ttft", "tpot"} <= set(found):
        return None
    return tuple(
        (first + (length - 1.0) * each) / (clients * length)
        for first, each in zip(found["ttft"], found["tpot"], strict=True)
    )


def question(m) -> tuple:
    """Return what rows have in common that differ only in chip or layout."""
    scenario = re.match(r"mlperf scenario=(\w+)", m.row.text["other_metric"])
    lengths = (
        () if scenario else (m.row.number("isl"), m.row.number("osl"))
    )  # a data set: its printed mean differs by run
    texts = tuple(m.row.text[name] for name in ("weight_dtype", "kv_dtype", "engine", "engine_version", "mode"))
    loads = tuple(m.row.number(name) for name in ("n_chips", "concurrency", "request_rate_per_s", "is_max_throughput"))
    return m.row.kind, m.architecture, m.case.regime, scenario and scenario[1], lengths, texts, loads


def work_share(m) -> float:
    """Compute the share of the peak that a closed loop would have reached without a prefix cache, by Little's law [1]; 0 where figures are missing."""
    clients, case = m.row.number("concurrency"), m.case
    if case.regime != "closed" or not clients or not {"tpot", "ttft"} <= m.measured.keys():
        return 0.0
    request_s = m.measured["ttft"] + (case.output_tokens - 1.0) * m.measured["tpot"]
    flops = 2.0 * float(parameter_counts(case.arch).active) * (case.input_tokens + case.output_tokens)
    return clients / request_s * flops / (m.chips * float(case.chip.flop_per_s))


def suspicion(m, metric: str, missed: float) -> str:
    """Say what is unusual about a row: a guess from the row itself, not a finding."""
    slower = (missed < 0) == (metric != "throughput")  # measured slower than predicted
    notes, clients = m.row.text["notes"].lower(), m.row.number("concurrency")
    if work_share(m) > POSSIBLE:
        return "more work than the chips can do: prompts were found in a prefix cache"
    if clients and 0.0 < m.measured.get("throughput", 0.0) * m.measured.get("tpot", 0.0) < HELD_BACK * clients:
        return "a pool or limit of the engine held fewer requests than the clients sent"
    if not slower and metric == "tpot" and "speculative decoding state not recorded" in notes:
        return "speculative decoding may be on: its state is not recorded"
    if metric == "ttft" and slower and clients and clients <= FEW_CLIENTS:
        return "warm-up in the mean of few clients"
    if m.row.text["mode"] == "disaggregated":
        return (
            "queue between the pools not recorded" if metric == "ttft" else "decode pool: admission limit not recorded"
        )
    if not m.row.text["weight_dtype"]:
        return "precision of the weights not published"
    if not any(m.row.number(name) for name in CHOICES):
        return "layout not published"
    if slower and m.row.number("is_max_throughput"):
        return "batch settings may be untuned"
    if metric == "ttft":
        return "arrivals in step or admission limit: the load cell may not be what was in flight"
    return f"{'slower' if slower else 'faster'} than its like: cause unknown"
