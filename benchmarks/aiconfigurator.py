"""Compare TTFT and TPOT with aiconfigurator 0.12.0 on the published serving runs that both tools answer.

    python -m venv VENV && VENV/bin/pip install aiconfigurator==0.12.0
    python benchmarks/aiconfigurator.py --measurements DIR --python VENV/bin/python [--ours ROWS.csv] [--write]

DIR holds serving.csv. The other tool runs in an interpreter of its own, with the arguments of `aiconfigurator cli estimate`; rows
that it does not take are counted by reason. Our predictions use constants fitted without the row's group: ROWS.csv is written by
`flopwatt validate serving.csv --leave-out group --rows ROWS.csv`; without --ours they are computed here, which takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from catalog.lookup import Catalog
from catalog.units import KILO
from planner.calibration.measurements import Row, read_rows
from planner.tables import as_csv, as_markdown

WORKER = HERE / "aiconfigurator_worker.py"
REPORT = HERE / "aiconfigurator.md"
METRICS = ("ttft", "tpot")
COLUMNS = ("id", "ttft", "tpot", "version", "over_memory", "gemm", "moe", "kvcache", "seconds", "refused")
SYSTEMS = {
    "A100-SXM-80GB": "a100_sxm", "H100-SXM": "h100_sxm", "H200-SXM": "h200_sxm", "B200-SXM": "b200_sxm", "B300-SXM": "b300_sxm",
    "GB200": "gb200", "GB300": "gb300", "L40S": "l40s", "RTX-PRO-6000-Blackwell-SE": "rtx_pro_6000_server",
}  # fmt: skip
BACKENDS = {"tensorrt-llm": "trtllm", "vllm": "vllm", "sglang": "sglang"}
FP8_BLOCK = {"gemm_quant_mode": "fp8_block", "moe_quant_mode": "fp8_block"}
# Weights as the row has them -> the checkpoint that the tool knows, and what must be said besides; "*" where one checkpoint serves all.
MODELS: Mapping[str, Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "llama-2-70b": {"fp16": ("local", {})},
    "llama-3.1-8b": {
        "": ("meta-llama/Meta-Llama-3.1-8B", {}), "bf16": ("meta-llama/Meta-Llama-3.1-8B", {}),
        "fp8": ("meta-llama/Meta-Llama-3.1-8B", {"gemm_quant_mode": "fp8"}),
        "fp8_block": ("meta-llama/Meta-Llama-3.1-8B", {"gemm_quant_mode": "fp8_block"}),
    },
    "llama-3.1-70b": {
        "": ("meta-llama/Meta-Llama-3.1-70B", {}), "bf16": ("meta-llama/Meta-Llama-3.1-70B", {}),
        "fp8": ("nvidia/Llama-3.1-70B-Instruct-FP8", {}),
        "nvfp4": ("meta-llama/Meta-Llama-3.1-70B", {"gemm_quant_mode": "nvfp4", "kvcache_quant_mode": "fp8"}),
    },
    "qwen3-32b": {"": ("Qwen/Qwen3-32B", {}), "fp8": ("Qwen/Qwen3-32B-FP8", {}), "nvfp4": ("Qwen/Qwen3-32B", {"gemm_quant_mode": "nvfp4", "kvcache_quant_mode": "fp8"})},
    "qwen3-235b-a22b": {"fp8": ("Qwen/Qwen3-235B-A22B-FP8", {}), "fp8_block": ("Qwen/Qwen3-235B-A22B-FP8", {}), "nvfp4": ("nvidia/Qwen3-235B-A22B-NVFP4", {})},
    "qwen3.5-397b-a17b": {
        "bf16": ("Qwen/Qwen3.5-397B-A17B", {}), "fp8": ("Qwen/Qwen3.5-397B-A17B", FP8_BLOCK), "nvfp4": ("nvidia/Qwen3.5-397B-A17B-NVFP4", {})
    },
    "deepseek-r1": {"fp8": ("deepseek-ai/DeepSeek-R1", {}), "nvfp4": ("nvidia/DeepSeek-V3.1-NVFP4", {})},
    "deepseek-v3.1": {"fp8": ("deepseek-ai/DeepSeek-V3", {}), "nvfp4": ("nvidia/DeepSeek-V3.1-NVFP4", {})},
    "gpt-oss-120b": {"*": ("openai/gpt-oss-120b", {})},
    "kimi-k2.5": {"int4_wo": ("moonshotai/Kimi-K2.5", {}), "nvfp4": ("nvidia/Kimi-K2.5-NVFP4", {})},
    "minimax-m2.5": {"fp8": ("MiniMaxAI/MiniMax-M2.5", {}), "nvfp4": ("nvidia/MiniMax-M2.5-NVFP4", {})},
    "glm-5": {"fp8": ("zai-org/GLM-5-FP8", {}), "nvfp4": ("nvidia/GLM-5-NVFP4", {})},
    "mixtral-8x7b": {"bf16": ("mistralai/Mixtral-8x7B-v0.1", {})},
}  # fmt: skip
SEARCH = "cli default {} --total-gpus 8 --isl 4000 --osl 500 --ttft 2000 --tpot 50"
COMMANDS = {
    "search, Llama 3.1 70B FP8 on H200": SEARCH.format(
        "--model-path nvidia/Llama-3.1-70B-Instruct-FP8 --system h200_sxm --backend trtllm"
    ),
    "search, DeepSeek-R1 FP8 on H200": SEARCH.format(
        "--model-path deepseek-ai/DeepSeek-R1 --system h200_sxm --backend sglang"
    ),
    "one configuration": "cli estimate --model-path nvidia/Llama-3.1-70B-Instruct-FP8 --system h200_sxm --backend trtllm --tp-size 4 --batch-size 64 --isl 4000 --osl 500",
}
HEAD = """# Side by side with aiconfigurator 0.12.0

Written by `python benchmarks/aiconfigurator.py --measurements DIR --python VENV/bin/python --write`. Rows: grade A, aggregated, with both
TTFT and TPOT. Error = |predicted / measured - 1|; bias is the median of the signed error.

The comparison is not even, in favour of the other tool: it reads kernel times measured on these chips, and most of these rows come from
the very sample that it is checked and tuned on. We are scored leave-group-out: the constants behind each of our predictions were
fitted without any row of the same source, network and chip. Against the other tool speaks that its tables are of newer engines than most runs:
where it has no table of an engine's version the nearest is taken, the oldest not older than the run's.
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    parser.add_argument("--python", metavar="FILE", type=Path, help="interpreter that has aiconfigurator==0.12.0")
    parser.add_argument(
        "--output",
        metavar="FILE.csv",
        type=Path,
        help="its answers: read from there if the file exists, else written to it",
    )
    parser.add_argument("--ours", metavar="ROWS.csv", type=Path, help="rows of a validation that leaves groups out")
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    arguments = parser.parse_args(argv)
    kept = arguments.output and arguments.output.exists()
    if not (arguments.python or kept):
        parser.error("--python is needed, or --output with the answers of an earlier run")
    rows = asked_rows(arguments.measurements / "serving.csv")
    if kept:
        with open(arguments.output, newline="", encoding="utf-8") as file:
            answers = {answer["id"]: answer for answer in csv.DictReader(file)}
    else:
        answers = ask(rows, arguments.python)
        if arguments.output:
            arguments.output.write_text(
                as_csv([{name: answer.get(name, "") for name in COLUMNS} for answer in answers.values()]),
                encoding="utf-8",
            )
    commands = (
        [timed(name, arguments.python.parent, command) for name, command in COMMANDS.items()]
        if arguments.python
        else []
    )
    ours = read_ours(arguments.ours) if arguments.ours else predict_ours(arguments.measurements / "serving.csv")
    text = report(rows, answers, ours, commands)
    print(text)
    if arguments.write:
        REPORT.write_text(text, encoding="utf-8")


def asked_rows(path: Path) -> list[Row]:
    return [
        row for row in read_rows(path, "serving")
        if row.grade == "A" and row.text["mode"] == "aggregated" and row.number("ttft_ms") and row.number("tpot_ms")
    ]  # fmt: skip


def question(row: Row, local: Path, catalog: Catalog) -> dict | str:
    """Build the arguments of its estimate for a row, or say why there are none."""
    models = MODELS.get(row.text["model"])
    checkpoint = models and (models.get(row.text["weight_dtype"]) or models.get("*"))
    system, backend = SYSTEMS.get(row.text["chip"]), BACKENDS.get(row.text["engine"].partition("+")[0])
    counts = {name: row.count(name) for name in ("isl", "osl", "concurrency", "tp")}
    reasons = (
        (not models, "a network that it does not know"),
        (not system, "a chip that it does not know"),
        (not backend, "an engine that it does not know, or none given"),
        (not counts["concurrency"] and row.number("request_rate_per_s"), "load given as a request rate, which its estimate does not take"),
        (not counts["concurrency"], "no concurrency: a best over batch, or unlimited load"),
        (not all(counts.values()), "no layout or no lengths"),
        (not checkpoint, "no checkpoint of these weights"),
        ("power-capped" in row.text["notes"], "a power cap, which it does not take"),
    )  # fmt: skip
    for fails, reason in reasons:
        if fails:
            return reason
    name, more = checkpoint
    experts = catalog.get("architectures", row.text["model"]).get("experts") is not None
    tp, pp, dp, ep = counts["tp"], row.count("pp", 1), row.count("dp", 1), row.count("ep", 1)
    if experts and tp * pp * dp < row.count("n_chips"):
        dp = row.count("n_chips") // (tp * pp)  # more chips than the layout spans: attention is copied
    static = "static batch" in row.text["notes"]
    return {
        "id": row.id, "version": row.text["engine_version"], "model_path": str(local) if name == "local" else name,
        "system_name": system, "backend_name": backend, "mode": "static" if static else "agg",
        "isl": counts["isl"], "osl": counts["osl"], "batch_size": max(round(counts["concurrency"] / dp), 1),
        "tp_size": tp, "pp_size": pp, "attention_dp_size": dp, **more,
        **({"moe_ep_size": ep, "moe_tp_size": max(tp * dp // ep, 1)} if experts else {}),
    }  # fmt: skip


def ask(rows: Sequence[Row], python: Path) -> dict[str, dict]:
    """Ask it about each row: {"id", "ttft", "tpot", ...} in seconds, or the reason why there is no answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        catalog = Catalog.load()
        write_local_checkpoint(folder / "llama-2-70b", catalog)
        questions = {row.id: question(row, folder / "llama-2-70b", catalog) for row in rows}
        (folder / "questions.json").write_text(
            json.dumps([q for q in questions.values() if isinstance(q, dict)]), encoding="utf-8"
        )
        # -I: this folder must not be on its path, where a file has the package's name.
        subprocess.run([python, "-I", WORKER, folder / "questions.json", folder / "answers.jsonl"], check=True)
        found = [json.loads(line) for line in (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = {
        number: {"id": number, "refused": reason} for number, reason in questions.items() if isinstance(reason, str)
    }
    for answer in found:
        answers[answer["id"]] = answer | answer.pop("quantisation", {})
    return answers


def write_local_checkpoint(folder: Path, catalog: Catalog) -> None:
    """Write the shape of Llama 2 70B, which the tool does not ship, as a configuration file that it can read."""
    figures = catalog.get("architectures", "llama-2-70b")
    names = {
        "hidden_size": "hidden", "intermediate_size": "ffn", "num_attention_heads": "heads", "num_hidden_layers": "layers",
        "num_key_value_heads": "kv_heads", "vocab_size": "vocab", "max_position_embeddings": "max_context", "head_dim": "head_dim",
    }  # fmt: skip
    shape = {theirs: int(figures.value(ours)) for theirs, ours in names.items()}
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float16"} | shape)
    )


def timed(name: str, folder: Path, arguments: str) -> dict[str, str]:
    """Time one of its commands from start to end; of its search it also reports the time itself."""
    began, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
    run = subprocess.run([folder / "aiconfigurator", *arguments.split()], capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    own = re.search(r"completed in ([\d.]+) seconds", run.stdout + run.stderr)
    outcome = f"{seconds:.1f}" if run.returncode == 0 else "failed"
    return {
        "what": name,
        "s": outcome,
        "of these, by its own clock": own[1] if own else "",
        "processor s": f"{processor:.1f}",
        "command": f"`aiconfigurator {arguments}`",
    }


def read_ours(path: Path) -> dict[tuple[str, str], float]:
    with open(path, newline="", encoding="utf-8") as file:
        return {
            (row["id"], row["metric"]): float(row["predicted"])
            for row in csv.DictReader(file)
            if row["metric"] in METRICS
        }


def predict_ours(path: Path) -> dict[tuple[str, str], float]:
    from planner.calibration.scores import validate

    return {
        (score.id, score.metric): score.predicted
        for score in validate(path, Catalog.load(), "group").scores
        if score.metric in METRICS
    }


def report(
    rows: Sequence[Row],
    answers: Mapping[str, Mapping],
    ours: Mapping[tuple[str, str], float],
    commands: Sequence[Mapping],
) -> str:
    answered = [row for row in rows if not answers[row.id].get("refused")]
    both = [row for row in answered if all((row.id, metric) in ours for metric in METRICS)]
    reasons = Counter(shortened(answers[row.id]["refused"]) for row in rows if answers[row.id].get("refused"))
    alone, compared = [], []
    for metric in METRICS:
        alone += [
            {"rows": name, "metric": metric.upper(), **scores(chosen, metric, answers_of(answers, metric))}
            for name, chosen in groups(answered)
        ]
    tools = {
        "aiconfigurator": answers_of(answers, "ttft") | answers_of(answers, "tpot"),
        "flopwatt, group left out": ours,
    }
    for name, chosen in groups(both):
        for metric in METRICS:
            compared += [
                {"rows": name, "metric": metric.upper(), "tool": tool, **scores(chosen, metric, found)}
                for tool, found in tools.items()
            ]
    seconds = np.array([float(answers[row.id]["seconds"]) for row in answered])
    over = sum(str(answers[row.id].get("over_memory")) == "True" for row in answered)
    others = sum(answers[row.id]["version"] != row.text["engine_version"] for row in answered)
    notes = (
        f"Of its answers {others} rest on a table of another version of the engine than the row's, or the row names no version (then its "
        f"default is taken); for {over} it warns that the requests do not fit the memory at once."
    )
    parts = [
        HEAD,
        "## Rows", f"{len(rows)} asked; it answers {len(answered)}, and {len(both)} of these are answered by both. Not answered by it:",
        as_markdown([{"reason": reason, "rows": number} for reason, number in reasons.most_common()]), notes,
        "## Errors on the rows that both answer", as_markdown(compared) if compared else "No prediction of ours was given.",
        *(("## Errors of aiconfigurator on all rows that it answers", as_markdown(alone)) if len(both) < len(answered) else ()),
        "## Time", f"In one process that keeps its tables a configuration takes {np.median(seconds):.2f} s (median), {seconds.mean():.2f} s in the mean and "
        f"{seconds.max():.1f} s at most.",
    ]  # fmt: skip
    if commands:
        parts += ["Its commands, start of the program included:", as_markdown(commands)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Split the rows: all of them, and those of each source kind."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    return [("all", list(rows)), *sorted(kinds.items(), key=lambda item: -len(item[1]))] if rows else []


def answers_of(answers: Mapping[str, Mapping], metric: str) -> dict[tuple[str, str], float]:
    return {(number, metric): float(answer[metric]) for number, answer in answers.items() if answer.get(metric)}


def scores(rows: Sequence[Row], metric: str, predicted: Mapping[tuple[str, str], float]) -> dict[str, str | int]:
    ratio = np.array([predicted[row.id, metric] / (row.number(f"{metric}_ms") / KILO) for row in rows])
    error = np.abs(ratio - 1.0)
    return {
        "n": len(rows),
        "median error": f"{np.median(error):.1%}",
        "bias": f"{np.median(ratio) - 1:+.1%}",
        "within 20 %": f"{np.mean(error <= 0.2):.1%}",
    }


def shortened(reason: str) -> str:
    """Shorten its messages by what differs from row to row."""
    kind, colon, message = reason.partition(": ")
    if not colon or not re.fullmatch(r"\w+", kind):
        return reason
    plain = re.sub(r" '[^']*'", "", message)
    return f"its error {kind}: {re.split(r'[(.{]', plain)[0].strip(' :')}"


if __name__ == "__main__":
    main()
