"""Read how an engine is launched: a command `vllm serve …`, of SGLang's server or `trtllm-serve …`, or a YAML file of its flags.

The flags that exist are stored under `data/`, of vLLM 0.33.0, SGLang 0.5.23 and TensorRT-LLM 1.x. Others are refused, with similar names, so that
no typing error goes unnoticed; known ones without a bearing on a plan are listed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError, close_matches
from planner.messages import Message
from planner.ways_in.problems import FileProblems

_DATA = Path(__file__).parent / "data"
VLLM, SGLANG, TRTLLM = "vllm", "sglang", "trtllm"
VERSIONS = {VLLM: "0.33.0", SGLANG: "0.5.23", TRTLLM: "1.x"}
NAMES = {VLLM: "vllm", SGLANG: "sglang", TRTLLM: "tensorrt_llm"}
"""Option of `init` -> engine of a spec."""
EXAMPLES = {
    VLLM: "vllm serve ORG/NAME --tensor-parallel-size 8",
    SGLANG: "python -m sglang.launch_server --model-path ORG/NAME --tp-size 8",
    TRTLLM: "trtllm-serve ORG/NAME --tp_size 8",
}

FRONT_END = (
    "host", "port", "uds", "uvicorn-log-level", "disable-uvicorn-access-log", "allow-credentials", "allowed-origins", "allowed-methods",
    "allowed-headers", "api-key", "lora-modules", "chat-template", "chat-template-content-format", "trust-request-chat-template",
    "response-role", "ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "enable-ssl-refresh", "ssl-cert-reqs", "root-path", "middleware",
    "return-tokens-as-token-ids", "disable-frontend-multiprocessing", "enable-request-id-headers", "enable-auto-tool-choice",
    "exclude-tools-when-tool-choice-none", "tool-call-parser", "tool-parser-plugin", "tool-server", "log-config-file", "max-log-len",
    "disable-fastapi-docs", "enable-prompt-tokens-details", "enable-server-load-tracking", "enable-force-include-usage",
    "enable-tokenizer-info-endpoint", "enable-log-outputs", "headless", "api-server-count", "config",
)  # fmt: skip
"""Flags of vLLM's server in front of the engine, from its documentation."""

SHORT = {
    VLLM: {
        "tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size", "ep": "enable-expert-parallel",
        "q": "quantization", "sc": "speculative-config", "asc": "api-server-count", "n": "nnodes", "r": "node-rank",
        "dcp": "decode-context-parallel-size", "pcp": "prefill-context-parallel-size",
    },
    SGLANG: {
        "tp": "tp-size", "pp": "pp-size", "dp": "dp-size", "ep": "ep-size", "model": "model-path", "tensor-parallel-size": "tp-size",
        "pipeline-parallel-size": "pp-size", "data-parallel-size": "dp-size", "expert-parallel-size": "ep-size",
    },
    TRTLLM: {
        "tp-size": "tensor-parallel-size", "pp-size": "pipeline-parallel-size", "cp-size": "context-parallel-size",
        "ep-size": "moe-expert-parallel-size", "cluster-size": "moe-cluster-parallel-size", "extra-llm-api-options": "config",
        "kv-cache-free-gpu-memory-fraction": "free-gpu-memory-fraction",
    },
}  # fmt: skip
"""Short names of flags -> their full names."""

COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
"""A line of a script that is a comment."""
SWITCH = re.compile(
    r"(?:enable|disable|no|trust|skip|use|enforce|async|allow|fail-fast|headless|return|language-model-only|log-requests)\b"
)
KEYS = {
    VLLM: {
        "model": "model", "tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size", "context": "max-model-len",
        "memory": "gpu-memory-utilization", "weights": "quantization", "cache": "kv-cache-dtype",
    },
    SGLANG: {
        "model": "model-path", "tp": "tp-size", "pp": "pp-size", "dp": "attn-dp-size", "context": "context-length",
        "memory": "mem-fraction-static", "weights": "quantization", "cache": "kv-cache-dtype",
    },
    TRTLLM: {
        "model": "model", "tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "cp": "context-parallel-size", "context": "max-seq-len",
        "weights": "quant-config.quant-algo", "cache": "kv-cache-config.dtype",
    },
}  # fmt: skip
"""Property of a launch -> the flag of each engine. TensorRT-LLM has none for the share of the memory: its fraction is of what the weights leave free."""

DRAFTED = (
    "speculative-config", "spec-tokens", "speculative-num-steps", "speculative-num-draft-tokens", "speculative-config.max-draft-len",
    "speculative-config.num-nextn-predict-layers",
)  # fmt: skip
USED = {*DRAFTED, "enforce-eager", "dp-size", "enable-dp-attention", "disable-cuda-graph", "config", "dtype"}
WEIGHTS = {
    "fp8": "fp8", "w8a8_fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp8": "mxfp8", "modelopt_fp8": "fp8", "mxfp4": "mxfp4", "modelopt_fp4": "nvfp4", "nvfp4": "nvfp4",
    "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4", "w8a8_int8": "int8", "experts_int8": "int8",
}  # fmt: skip
"""Values of --quantization -> format of the weights; names of tools whose format the config states (compressed-tensors, modelopt) are left to it."""
WIDE = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
"""Values of --dtype -> format of weights that nothing quantises."""
ACCEPTANCE = 0.7


@dataclass(frozen=True, slots=True)
class Launch:
    """A launched engine: its name, model, keys of a serving workload, guesses among them (key -> reason), chips of a replica, and flags left aside."""

    engine: str
    model: str
    workload: Mapping[str, Any]
    guesses: Mapping[str, str]
    chips: int
    most_context: int
    left: tuple[str, ...]


def read_launch(text: str, engine: str) -> Launch:
    """Read a command, or the YAML file or script that `text` names. Raises SpecError with every flag that is unknown or malformed."""
    option = f"--{engine}"
    problems: list[Issue] = []
    path = Path(text)
    is_file = path.suffix.lower() in (".yaml", ".yml", ".sh") and (len(text.split()) == 1 or path.is_file())
    if is_file and path.suffix.lower() == ".sh":
        text, is_file = _text_of(path), False
    given = _from_yaml(path, engine) if is_file else _from_command(text, engine, problems)
    if not is_file and isinstance(given.get("config"), str):
        of_file = _from_yaml(Path(str(given["config"])), engine)
        given = {**given, **of_file} if engine == TRTLLM else {**of_file, **given}
    flags = {}
    for name, value in given.items():
        known = _known(engine)
        full = SHORT[engine].get(name, name)
        if full.partition(".")[0] in known or full.removeprefix("no-") in known:
            flags[full] = value
        else:
            close = close_matches(full, known)
            problems.append(
                Issue(
                    f"{option} --{name}",
                    Message.of("ways_in.unknown_flag", engine=engine, version=VERSIONS[engine], close=close).text(),
                )
            )
    launch = _launch(flags, engine, problems)
    if problems:
        raise SpecError(problems)
    return launch


@cache
def _known(engine: str) -> frozenset[str]:
    names = (_DATA / f"{engine}_flags.txt").read_text(encoding="utf-8").split()
    return frozenset(name.lstrip("-") for name in names) | (frozenset(FRONT_END) if engine == VLLM else {"config"})


def _from_command(text: str, engine: str, problems: list[Issue]) -> dict[str, Any]:
    """Cut a command into flags with their values; the model of vLLM stands without a flag."""
    option = f"--{engine}"
    try:
        words = shlex.split(COMMENT.sub("", text).replace("\\\n", " "))
    except ValueError as error:
        raise SpecError([Issue(option, Message.of("ways_in.not_a_command", error=str(error)).text())]) from None
    start = next(
        (i for i, word in enumerate(words) if word.endswith(("launch_server", "serve")) or word == "launch_server.py"),
        None,
    )
    if start is None or (
        engine == TRTLLM and words[start + 1 : start + 2] in (["disaggregated"], ["mm_embedding_serve"])
    ):
        raise SpecError([Issue(option, Message.of("ways_in.no_command", example=EXAMPLES[engine]).text())])
    found: dict[str, Any] = {}
    rest = words[start + 1 :]
    if engine == TRTLLM and rest[:1] == ["serve"]:
        rest = rest[1:]
    while rest:
        word = rest.pop(0)
        if word == "$@":  # a script hands its own arguments on
            continue
        if not word.startswith("-"):
            if "model" in found:
                problems.append(Issue(option, Message.of("ways_in.word_without_flag", word=word).text()))
            found.setdefault("model", word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = SHORT[engine].get(name.replace("_", "-"), name.replace("_", "-"))
        if equals:
            found[name] = value
        elif rest and not re.match(r"-{1,2}[A-Za-z]", rest[0]) and not SWITCH.match(name):
            found[name] = rest.pop(0)
        else:
            found[name] = True
    return found


def _text_of(path: Path) -> str:
    """Read a file. Raises SpecError where it is no text, and OSError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileProblems(path.name).refuse("ways_in.not_text", error=str(error)) from None


def _from_yaml(path: Path, engine: str) -> dict[str, Any]:
    """Read a YAML file of flags: `name: value` on each line, names with hyphens or underscores. Raises SpecError by line.

    Of TensorRT-LLM also blocks of such lines; a value there is called block.name.
    """
    problems, block = FileProblems(path.name), ""
    found: dict[str, Any] = {}
    for number, line in enumerate(_text_of(path).splitlines(), start=1):
        bare = re.sub(r"(?:^|\s)#.*$", "", line).rstrip()
        if not bare or bare == "---":
            continue
        inside = engine == TRTLLM and bool(block) and bare[0] in " -"
        if inside and bare.lstrip().startswith("-"):
            continue  # entries of lists have no bearing on a plan
        match = re.fullmatch(r"([A-Za-z][\w-]*)\s*:\s*(.*)", bare.lstrip() if inside else bare)
        if match is None:
            problems.add(number, "ways_in.not_flat_yaml", len(bare) - len(bare.lstrip()) + 1)
            continue
        text = match[2].strip()
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        word = text[1:-1] if quoted else text
        name = match[1].replace("_", "-")
        if not inside:
            block = "" if text else f"{name}."
        if engine == TRTLLM and (pairs := re.fullmatch(r"\{(.*)\}", text)):
            found |= {f"{name}.{key.strip().replace('_', '-')}": value.strip()
                      for key, _, value in (part.partition(":") for part in pairs[1].split(","))}  # fmt: skip
            continue
        found[f"{block}{name}" if inside else name] = True if not quoted and word.lower() == "true" else word
    problems.raise_all()
    return {name: value for name, value in found.items() if str(value).lower() not in ("false", "null", "")}


def _launch(flags: Mapping[str, Any], engine: str, problems: list[Issue]) -> Launch:
    """Turn known flags into keys of a workload."""
    keys = KEYS[engine]
    model = str(flags.get(keys["model"], flags.get("model", "")))
    if model in ("", "True"):
        problems.append(Issue(f"--{engine}", Message.of("ways_in.no_model").text()))

    def number(what: str, default: float, most: float) -> float:
        name = keys.get(what, what)
        try:
            value = float(str(flags.get(name, default)).lower().removesuffix("k")) * (
                1024 if str(flags.get(name)).lower().endswith("k") else 1
            )
        except ValueError:
            value = -1.0
        if not 0 < value <= most:
            problems.append(Issue(f"--{engine} --{name}", Message.of("ways_in.expected_number", most=most).text()))
            return default
        return value

    workload: dict[str, Any] = {"engine": NAMES[engine]}
    guesses: dict[str, str] = {}
    if keys.get("memory") in flags:
        workload["memory_utilisation"] = number("memory", 0.9, 1.0)
    weights = str(flags.get(keys["weights"], "")).lower()
    if weights in WEIGHTS:
        workload["precision"] = [WEIGHTS[weights]]
    elif not weights and (wide := WIDE.get(str(flags.get("dtype")).lower())) is not None:
        workload["precision"] = [wide]
        guesses["precision"] = Message.of("ways_in.guess_wide_weights").text()
    cache_format = str(flags.get(keys["cache"], "auto")).lower()
    if cache_format.startswith("fp8"):
        workload["kv_precision"] = ["fp8"]
    elif cache_format in ("bf16", "bfloat16", "fp16", "float16"):
        workload["kv_precision"] = ["bf16"]
    if flags.get("enforce-eager") or flags.get("disable-cuda-graph"):
        workload["eager"] = True
    if drafted := _drafted(flags, engine, problems):
        workload["speculation"] = {"draft_tokens": drafted, "acceptance": ACCEPTANCE}
        guesses["speculation.acceptance"] = Message.of("ways_in.guess_acceptance").text()
    ranks = number("dp", 1, 4096) if keys.get("dp") in flags else number("dp-size", 1, 4096) if engine == SGLANG else 1
    inside = engine == SGLANG and (
        flags.get("enable-dp-attention") or keys.get("dp") in flags
    )  # these ranks share the tensor ranks' chips
    chips = int(
        number("tp", 1, 4096)
        * number("pp", 1, 4096)
        * (number("cp", 1, 4096) if "cp" in keys else 1)
        * (1 if inside else ranks)
    )
    most_context = int(number("context", 1, 1e9)) if flags.get(keys["context"]) not in (None, "auto", "-1") else 0
    read = {*keys.values(), *USED}
    left = tuple(sorted(f"--{name}" for name in flags if name not in read))
    return Launch(engine, model, workload, guesses, chips, most_context, left)


def _drafted(flags: Mapping[str, Any], engine: str, problems: list[Issue]) -> int:
    """Return the tokens drafted per step; 0 for none."""
    name = next((name for name in DRAFTED if name in flags), "")
    if not name:
        return 0
    try:
        value = json.loads(str(flags[name]))
        drafted = value["num_speculative_tokens"] if isinstance(value, dict) else value
        if isinstance(drafted, int) and 1 <= drafted <= 32:
            return drafted
    except (ValueError, KeyError):
        pass
    problems.append(Issue(f"--{engine} --{name}", Message.of("ways_in.expected_draft").text()))
    return 0
