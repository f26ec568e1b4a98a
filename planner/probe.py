"""Measure the kernels of the accelerator at hand in at most five minutes. Needs PyTorch and the standard library alone.

Copied to a server, `python probe.py --output probe.json` writes what `flopwatt calibrate probe.json` reads. Each measurement stands alone:
what fails is listed under `errors` with its reason, what the time did not allow under `skipped`, and the rest is kept. Inputs are random,
rotate among copies that exceed the last-level cache, and are timed by device events; small kernels replay from a captured graph, so that
the times are the device's own. Not here: what the figures mean for a plan (`planner.calibration.probes`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

SCHEMA = "flopwatt.probe/1"
DEFAULT_SECONDS = 240.0  # within five minutes with start and data
SAMPLES = 9  # samples, whose median counts
SAMPLE_S = 4e-3  # least time of a sample, so that the resolution of events does not show
WORK_S = 0.5  # most time of the samples of one measurement
CACHES = 4  # last-level caches' worth of inputs that samples rotate among
MOST_COPIES = 32
BYTES = {"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "tf32": 4, "fp32": 4}
STANDARD: dict[str, Any] = {
    "name": "standard",
    "products": [  # weights of layers of 8 and 70 billion parameters: [n outputs, k inputs]
        *({"name": name, "n": n, "k": k} for name, n, k in (("gate-up-8b", 28672, 4096), ("down-8b", 4096, 14336))),
        *({"name": name, "n": n, "k": k} for name, n, k in (("qkv-70b", 10240, 8192), ("out-70b", 8192, 8192))),
        *({"name": name, "n": n, "k": k} for name, n, k in (("gate-up-70b", 57344, 8192), ("down-70b", 8192, 28672))),
    ],
    "attention": {"heads": 64, "kv_heads": 8, "head_dim": 128},
}
TINY: dict[str, Any] = {
    "name": "tiny",
    "products": [{"name": "square", "n": 64, "k": 64}, {"name": "wide", "n": 128, "k": 32}],
    "attention": {"heads": 4, "kv_heads": 2, "head_dim": 16},
}
Run = Callable[[int], object]  # executes the work on the inputs of that number


class Unsupported(Exception):
    """A measurement that this device or this version of the software does not have."""


@dataclass(frozen=True, slots=True)
class Work:
    """One measurement: the operation, and how many operations and bytes that takes at least."""

    kind: str
    format: str = ""
    name: str = ""
    shape: dict[str, int] = field(default_factory=dict)
    flop: float = 0.0
    bytes: float = 0.0

    def row(self, seconds: list[float]) -> dict[str, Any]:
        """Write the measurement with its median, the quartiles around it over the median, and the rates that follow."""
        middle = statistics.median(seconds)
        quarters = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [middle] * 3
        rates = {f"{what}_per_s": getattr(self, what) / middle for what in ("flop", "bytes") if getattr(self, what)}
        head = {"kind": self.kind, "format": self.format, "name": self.name, "shape": self.shape}
        spread = (quarters[2] - quarters[0]) / middle
        return {**head, "seconds": middle, "spread": spread, "samples": len(seconds), **rates}


# -- what is measured --------------------------------------------------------------------------------------------------


def product(name: str, numbers: str, m: int, n: int, k: int) -> Work:
    """Describe a product of m rows of activations with weights [n, k]."""
    size = BYTES[numbers]
    written = 4 if size == 4 else 2
    return Work("gemm", numbers, name, {"m": m, "n": n, "k": k}, 2.0 * m * n * k, size * (m + n) * k + written * m * n)


def works(shapes: dict[str, Any], formats: list[str], tiny: bool) -> list[Work]:
    """List the measurements, what matters most first, so that those that the time does not allow are the least."""
    rows, decode = (256, (1, 8)) if tiny else (8192, (16, 1, 64, 256))
    products, (main, *others) = shapes["products"], formats
    large = max(products, key=lambda of: of["n"] * of["k"])
    found = [Work("launch", name="host"), Work("launch", name="graph node"), Work("launch", name="graph")]
    found += [*_memory(tiny), *(product(of["name"], main, rows, of["n"], of["k"]) for of in products)]
    found += [*_attention(shapes["attention"], main, tiny)]
    found += [product(of["name"], main, decode[0], of["n"], of["k"]) for of in products]
    found += [product(large["name"], numbers, rows, large["n"], large["k"]) for numbers in others]
    narrow = [numbers for numbers in others if numbers == "fp8"]
    found += [product(of["name"], numbers, m, of["n"], of["k"])
              for m in (rows, *decode[:1]) for numbers in narrow for of in products if (m, of) != (rows, large)]  # fmt: skip
    found += [product(of["name"], numbers, m, of["n"], of["k"])
              for m in decode[1:] for numbers in (main, *narrow) for of in products]  # fmt: skip
    found += [product(of["name"], main, rows // 4, of["n"], of["k"]) for of in products]
    return found


def _memory(tiny: bool) -> list[Work]:
    """List copies, reads, and gathers of a KV cache by blocks of 16 tokens and by single tokens."""
    size = 1 << (20 if tiny else 31)
    gathers = [("blocks of 16 tokens", 1 << 15), ("tokens", 1 << 11)]
    return [
        Work("copy", "bytes", "copy", {"bytes": size // 2}, bytes=size),
        Work("read", "fp32", "read", {"bytes": size // 2}, bytes=size // 2),
        *(
            Work("gather", "bytes", name, {"bytes": size // 4, "row_bytes": row}, bytes=size / 2)
            for name, row in gathers
        ),
    ]


def _attention(heads: dict[str, int], numbers: str, tiny: bool) -> Iterator[Work]:
    """List causal attention over prompts, and attention of one query a sequence over long caches."""
    q, kv, d = heads["heads"], heads["kv_heads"], heads["head_dim"]
    size = BYTES[numbers]
    for batch, tokens in ((1, 64), (1, 128)) if tiny else ((4, 2048), (1, 8192), (1, 16384)):
        shape = {"batch": batch, "tokens": tokens, **heads}
        moved = size * batch * tokens * d * 2.0 * (q + kv)
        yield Work("prefill attention", numbers, "causal", shape, 2.0 * batch * q * d * tokens**2, moved)
    for batch, tokens in ((2, 64), (1, 128)) if tiny else ((32, 8192), (1, 131072)):
        shape = {"batch": batch, "tokens": tokens, **heads}
        read = size * batch * tokens * d * 2.0 * kv
        yield Work("decode attention", numbers, "one query", shape, 4.0 * batch * q * d * tokens, read)


def checked_shapes(shapes: Any) -> dict[str, Any]:
    """Check a description of shapes. Raises ValueError that names the fault."""
    if not isinstance(shapes, dict) or not isinstance(shapes.get("products"), list) or not shapes["products"]:
        raise ValueError('shapes: expected {"name": …, "products": [{"name", "n", "k"}, …], "attention": {…}}')
    wrong = [
        f"products[{i}].{key}" for i, of in enumerate(shapes["products"]) for key in ("n", "k") if not _count(of, key)
    ]
    heads = shapes.get("attention") or STANDARD["attention"]
    wrong += [f"attention.{key}" for key in ("heads", "kv_heads", "head_dim") if not _count(heads, key)]
    if wrong:
        raise ValueError(f"shapes: expected whole positive numbers at {', '.join(wrong)}")
    if heads["heads"] % heads["kv_heads"]:
        raise ValueError("shapes: attention.heads is no multiple of attention.kv_heads")
    products = [{"name": str(of.get("name", i)), "n": of["n"], "k": of["k"]} for i, of in enumerate(shapes["products"])]
    heads = {key: heads[key] for key in ("heads", "kv_heads", "head_dim")}
    return {"name": str(shapes.get("name", "")), "products": products, "attention": heads}


def _count(of: Any, key: str) -> bool:
    return isinstance(of, dict) and isinstance(of.get(key), int) and of[key] > 0


# -- NumPy, for tests ---------------------------------------------------------------------------------------------------


class NumpyBackend:
    """Small measurements on the processor: for trying the program without an accelerator."""

    name, tiny, formats = "numpy", True, ["fp32", "fp16"]

    def __init__(self) -> None:
        import numpy

        self.np, self.random = numpy, numpy.random.default_rng(0)

    def describe(self) -> dict[str, Any]:
        """Describe device and software."""
        device = {"name": platform.processor() or platform.machine(), "type": "cpu", "count": 1}
        return {"device": device, "software": {"python": platform.python_version(), "numpy": self.np.__version__}}

    def time(self, work: Work) -> list[float]:
        """Measure a work: seconds of each sample."""
        run = self._run(work)
        for _ in range(2):
            run(0)
        seconds = []
        for i in range(SAMPLES):
            start = time.perf_counter()
            run(i)
            seconds.append(max(time.perf_counter() - start, 1e-9))
        return seconds

    def _run(self, work: Work) -> Run:
        np, shape, numbers = self.np, work.shape, "float16" if work.format == "fp16" else "float32"

        def drawn(*size: int) -> Any:
            return self.random.standard_normal(size).astype(numbers)

        if work.kind == "gemm":
            x, w = drawn(shape["m"], shape["k"]), drawn(shape["n"], shape["k"])
            return lambda _: x @ w.T
        if work.kind in ("copy", "read"):
            source = drawn(shape["bytes"] // 4)
            target = np.empty_like(source)
            return (lambda _: np.copyto(target, source)) if work.kind == "copy" else (lambda _: source.sum())
        if work.kind == "gather":
            width = shape["row_bytes"] // 4
            rows = drawn(shape["bytes"] // shape["row_bytes"], width)
            order = self.random.permutation(len(rows))
            return lambda _: rows[order]
        if work.kind.endswith("attention"):
            return self._attention(drawn, work)
        if work.name == "host":
            one = np.zeros(1)
            return lambda _: np.add(one, 1.0, out=one)
        raise Unsupported("numpy has no graphs")

    def _attention(self, drawn: Callable[..., Any], work: Work) -> Run:
        np, s = self.np, work.shape
        asked = s["tokens"] if work.kind.startswith("prefill") else 1
        q = drawn(s["batch"], s["kv_heads"], s["heads"] // s["kv_heads"] * asked, s["head_dim"])
        k, v = (drawn(s["batch"], s["kv_heads"], s["tokens"], s["head_dim"]) for _ in range(2))

        def run(_: int) -> Any:
            scores = np.exp((q @ k.swapaxes(-1, -2)) / math.sqrt(s["head_dim"]))
            return (scores / scores.sum(-1, keepdims=True)) @ v

        return run

    def sync(self) -> None:
        """Wait for the device."""

    def power(self, _seconds: float) -> dict[str, Any]:
        """Measure no power: a processor tells none."""
        raise Unsupported("the power of a processor is not read")

    def collectives(self, _seconds: float) -> list[dict[str, Any]]:
        """Measure nothing between devices: there is one."""
        return []


# -- PyTorch -----------------------------------------------------------------------------------------------------------


class TorchBackend:
    """Measurements on the first accelerator that PyTorch sees."""

    name, tiny = "torch", False
    types: ClassVar[dict[str, str]] = {
        "cuda": "",
        "npu": "torch_npu",
        "musa": "torch_musa",
        "mlu": "torch_mlu",
        "xpu": "",
    }
    """Types of devices, and the module that brings each."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.type = next((name for name in self.types if self._available(name)), "")
        if not self.type:
            raise SystemExit(
                "probe: PyTorch sees no accelerator. Install the build of PyTorch for yours, and check that its driver works; "
                "--backend numpy tries the program without one."
            )
        self.api = getattr(torch, self.type)
        self.dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}
        self.formats = ["bf16", "fp16", "tf32", "fp32"]
        if self.type == "cuda" and hasattr(torch, "float8_e4m3fn") and self._has_fp8():
            self.dtypes["fp8"] = torch.float8_e4m3fn
            self.formats.insert(1, "fp8")
        if self.type == "cuda" and hasattr(torch, "_int_mm"):
            self.dtypes["int8"] = torch.int8
            self.formats.append("int8")
        self.cache_bytes = int(getattr(self.api.get_device_properties(0), "L2_cache_size", 0) or 1 << 26)

    def _available(self, name: str) -> bool:
        """Tell whether a type of device is there, after loading its module."""
        try:
            if self.types[name]:
                __import__(self.types[name])
            return bool(getattr(self.torch, name).is_available())
        except (ImportError, AttributeError):
            return False

    def _has_fp8(self) -> bool:
        return bool(self.torch.version.hip) or self.api.get_device_capability(0) >= (8, 9)

    def describe(self) -> dict[str, Any]:
        """Describe device, driver and software; no name of a host or a user."""
        torch, about = self.torch, self.api.get_device_properties(0)
        device: dict[str, Any] = {
            "name": self.api.get_device_name(0),
            "type": self.type,
            "count": self.api.device_count(),
        }
        for key, attribute in (("memory_bytes", "total_memory"), ("multiprocessors", "multi_processor_count")):
            if hasattr(about, attribute):
                device[key] = int(getattr(about, attribute))
        if hasattr(about, "major"):
            device["capability"] = f"{about.major}.{about.minor}"
        software = {"python": platform.python_version(), "torch": torch.__version__, "system": platform.system()}
        for key, value in (("cuda", torch.version.cuda), ("hip", torch.version.hip)):
            if value:
                software[key] = str(value)
        if self.type == "cuda" and torch.backends.cudnn.is_available():
            software["cudnn"] = str(torch.backends.cudnn.version())
        read = smi("driver_version", "power.limit", "clocks.max.sm", "clocks.max.memory")
        if read:
            software["driver"] = str(read.pop("driver_version"))
        return {"device": {**device, "cache_bytes": self.cache_bytes, **read}, "software": software}

    def sync(self) -> None:
        """Wait for the device."""
        self.api.synchronize()

    def time(self, work: Work) -> list[float]:
        """Measure a work: seconds of each sample, its inputs freed afterwards."""
        try:
            return self._launch(work) if work.kind == "launch" else self._sampled(work)
        finally:
            self.torch.set_float32_matmul_precision("highest")
            self.api.empty_cache()

    def _sampled(self, work: Work) -> list[float]:
        copies = min(MOST_COPIES, max(1, math.ceil(CACHES * self.cache_bytes / max(work.bytes, 1.0))))
        run = self._run(work, copies)
        for i in range(max(3, min(copies, 8))):
            run(i % copies)
        once = self._elapsed(lambda: [run(i) for i in range(copies)]) / copies
        times = math.ceil(SAMPLE_S / max(once, 1e-7) / copies) * copies if once < SAMPLE_S else copies
        count = max(3, min(SAMPLES, int(WORK_S / (times * once)) or 3))
        replay = (
            self._captured(run, copies, min(times, 512)) if once < 1e-3 and work.kind != "copy" else None
        )  # a graph copies by other means
        if replay is None:

            def each() -> None:
                for i in range(times):
                    run(i % copies)

            return [self._elapsed(each) / times for _ in range(count)]
        graph, held = replay
        graph.replay()
        return [self._elapsed(graph.replay) / held for _ in range(SAMPLES)]

    def _elapsed(self, run: Callable[[], object]) -> float:
        start, end = (self.api.Event(enable_timing=True) for _ in range(2))
        self.sync()
        start.record()
        run()
        end.record()
        self.sync()
        return max(float(start.elapsed_time(end)) * 1e-3, 1e-9)

    def _captured(self, run: Run, copies: int, times: int) -> tuple[Any, int] | None:
        """Capture runs in a graph; None where the device or the work has none."""
        if not hasattr(self.api, "CUDAGraph"):
            return None
        graph = self.api.CUDAGraph()
        try:
            self.sync()
            with self.api.graph(graph):
                for i in range(times):
                    run(i % copies)
        except RuntimeError:
            self.sync()
            return None
        return graph, times

    def _drawn(self, numbers: str, *size: int) -> Any:
        torch = self.torch
        if numbers == "int8":
            return torch.randint(-127, 128, size, dtype=torch.int8, device=self.type)
        if numbers == "fp8":
            out = torch.empty(size, dtype=self.dtypes["fp8"], device=self.type)
            for part in out.split(1024):
                part.copy_(torch.randn(part.shape, dtype=torch.float16, device=self.type))
            return out
        return torch.randn(size, dtype=self.dtypes.get(numbers, torch.float32), device=self.type)

    def _run(self, work: Work, copies: int) -> Run:
        """Draw the inputs of a work and return how to execute it on each copy."""
        torch, s = self.torch, work.shape
        if work.kind == "gemm":
            return self._product(work, copies)
        if work.kind == "copy":
            pairs = [
                (self._drawn("fp32", s["bytes"] // 4), torch.empty(s["bytes"] // 4, device=self.type))
                for _ in range(copies)
            ]
            return lambda i: pairs[i][1].copy_(pairs[i][0])
        if work.kind == "read":
            sources = [self._drawn("fp32", s["bytes"] // 4) for _ in range(copies)]
            return lambda i: sources[i].sum()
        if work.kind == "gather":
            rows, width = s["bytes"] // s["row_bytes"], s["row_bytes"] // 2
            cache = self._drawn("bf16", 2 * rows, width)  # half of it is read, at random places
            orders = [torch.randperm(2 * rows, device=self.type)[:rows] for _ in range(copies)]
            out = torch.empty((rows, width), dtype=cache.dtype, device=self.type)
            return lambda i: torch.index_select(cache, 0, orders[i], out=out)
        return self._attention(work, copies)

    def _product(self, work: Work, copies: int) -> Run:
        torch, numbers, s = self.torch, work.format, work.shape
        if numbers == "int8" and s["m"] <= 16:
            raise Unsupported("int8 products take more than 16 rows")
        if numbers in ("fp8", "int8") and (s["n"] % 16 or s["k"] % 16):
            raise Unsupported(f"{numbers} products take multiples of 16")
        pairs = [(self._drawn(numbers, s["m"], s["k"]), self._drawn(numbers, s["n"], s["k"])) for _ in range(copies)]
        if numbers == "fp8":
            one = torch.ones((), dtype=torch.float32, device=self.type)
            return lambda i: torch._scaled_mm(
                pairs[i][0], pairs[i][1].t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        if numbers == "int8":
            return lambda i: torch._int_mm(pairs[i][0], pairs[i][1].t())
        torch.set_float32_matmul_precision("high" if numbers == "tf32" else "highest")
        return lambda i: torch.matmul(pairs[i][0], pairs[i][1].t())

    def _attention(self, work: Work, copies: int) -> Run:
        """Return causal attention of prompts, or that of one query over a cache, whose heads of a group are rows of one product."""
        s, attend = work.shape, self.torch.nn.functional.scaled_dot_product_attention
        prompt, group = work.kind.startswith("prefill"), s["heads"] // s["kv_heads"]
        asked = (s["heads"], s["tokens"]) if prompt else (s["kv_heads"], group)
        held = (s["heads"] if prompt else s["kv_heads"], s["tokens"])
        draws = [
            [self._drawn(work.format, s["batch"], *size, s["head_dim"]) for size in (asked, held, held)]
            for _ in range(copies)
        ]
        return lambda i: attend(*draws[i], is_causal=prompt)

    def _launch(self, work: Work) -> list[float]:
        """Measure what starting a kernel takes: from the host, as a node of a graph, and a graph of one node."""
        one = self.torch.zeros(1, device=self.type)
        times = 500
        if work.name == "host":
            return self._host_seconds(lambda: one.add_(1.0), times)
        nodes = times if work.name == "graph node" else 1
        replay = self._captured(lambda _: one.add_(1.0), 1, nodes)
        if replay is None:
            raise Unsupported("this device captures no graphs")
        graph = replay[0]
        graph.replay()
        if nodes == 1:
            return self._host_seconds(graph.replay, times)
        return [self._elapsed(graph.replay) / nodes for _ in range(SAMPLES)]

    def _host_seconds(self, run: Callable[[], object], times: int) -> list[float]:
        """Time the host between waiting for the device before many runs and after them."""
        seconds = []
        for _ in range(SAMPLES + 1):
            self.sync()
            start = time.perf_counter()
            for _ in range(times):
                run()
            self.sync()
            seconds.append((time.perf_counter() - start) / times)
        return seconds[1:]

    def power(self, seconds: float) -> dict[str, Any]:
        """Measure power and clocks with nothing to do, under matrix products, and under copies; nothing is set."""
        if not smi("power.draw"):
            raise Unsupported("nvidia-smi gives no power")
        torch = self.torch
        x, w = (self._drawn("bf16", 8192, 8192) for _ in range(2))
        a, b = (self._drawn("fp32", 1 << 28) for _ in range(2))
        loads: dict[str, Callable[[], object]] = {
            "idle": lambda: time.sleep(0.05), "matrix products": lambda: torch.matmul(x, w), "copies": lambda: b.copy_(a),
        }  # fmt: skip
        found = {}
        for name, load in loads.items():
            end = time.monotonic() + seconds / len(loads)
            with _Sampler() as sampled:
                while time.monotonic() < end:
                    for _ in range(1 if name == "idle" else 20):
                        load()
                    self.sync()
            found[name] = sampled.medians()
        return found

    def collectives(self, seconds: float) -> list[dict[str, Any]]:
        """Measure all-reduce and all-to-all among all devices, one process each."""
        world = self.api.device_count()
        if world < 2 or self.type != "cuda":
            return []
        import torch.multiprocessing as processes

        with tempfile.TemporaryDirectory() as folder:
            processes.spawn(_collective_rank, args=(world, folder, seconds), nprocs=world, join=True)
            rows: list[dict[str, Any]] = json.loads((Path(folder) / "rows.json").read_text("utf-8"))
            return rows


def _collective_rank(rank: int, world: int, folder: str, seconds: float) -> None:
    """Run the collectives as one of `world` processes; the first writes the rows."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/meet", rank=rank, world_size=world, device_id=device)
    rows, end = [], time.monotonic() + seconds
    for size, kind in itertools.product((1 << 13, 1 << 17, 1 << 21, 1 << 25, 1 << 29), ("all-reduce", "all-to-all")):
        source = torch.randn(size // 2 // world * world, device="cuda").to(torch.bfloat16)
        target = torch.empty_like(source)
        if kind == "all-reduce":
            run: Callable[[], object] = lambda source=source: dist.all_reduce(source)  # type: ignore[misc]
        else:
            run = lambda source=source, target=target: dist.all_to_all_single(target, source)  # type: ignore[misc]
        taken, times = [], 10
        for _ in range(SAMPLES + 1):
            dist.barrier()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(times):
                run()
            stop.record()
            torch.cuda.synchronize()
            taken.append(start.elapsed_time(stop) * 1e-3 / times)
        bytes_out = size * (2.0 if kind == "all-reduce" else 1.0) * (world - 1) / world  # that each device sends
        rows.append(
            Work(kind, "bf16", f"{world} devices", {"bytes": size, "devices": world}, bytes=bytes_out).row(taken[1:])
        )
        late = torch.tensor([float(time.monotonic() > end)], device="cuda")
        dist.broadcast(late, 0)
        if late.item():
            break
    if rank == 0:
        Path(folder, "rows.json").write_text(json.dumps(rows), "utf-8")
    dist.destroy_process_group()


SMI_UNITS = {"power.draw": "power_w", "power.limit": "power_limit_w", "clocks.sm": "sm_mhz", "clocks.mem": "memory_mhz",
             "clocks.max.sm": "max_sm_mhz", "clocks.max.memory": "max_memory_mhz", "temperature.gpu": "temperature_c"}  # fmt: skip


def smi(*names: str) -> dict[str, Any]:
    """Ask nvidia-smi for figures of the first visible device, numbers by name with unit; empty where there is no such program."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    command = ["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits", "-i", first]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    figures: dict[str, Any] = {}
    for name, text in zip(names, (found.splitlines() or [""])[0].split(","), strict=False):
        if name not in SMI_UNITS:
            figures[name] = text.strip()
            continue
        try:
            figures[SMI_UNITS[name]] = float(text)
        except ValueError:
            continue
    return figures


class _Sampler:
    """Reads power and clocks beside a load."""

    def __enter__(self) -> _Sampler:
        self.found: list[dict[str, float]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def _read(self) -> None:
        while not self.over.is_set():
            self.found.append(smi("power.draw", "clocks.sm", "clocks.mem", "temperature.gpu"))
            self.over.wait(0.1)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def medians(self) -> dict[str, float]:
        """Return the median of each figure over the later half of the readings, when the load is steady."""
        late = self.found[len(self.found) // 2 :]
        return {key: statistics.median([one[key] for one in late if key in one]) for key in late[-1]} if late else {}


# -- the program -------------------------------------------------------------------------------------------------------


def probe(backend: Any, shapes: dict[str, Any], seconds: float, tell: Callable[[str], object]) -> dict[str, Any]:
    """Measure within `seconds` and return the document. An error of one measurement is kept, and the others go on."""
    begun = time.monotonic()
    document: dict[str, Any] = {"schema": SCHEMA, "date": time.strftime("%Y-%m-%d"), "backend": backend.name}
    document |= {**backend.describe(), "architecture": shapes["name"]}
    rows: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []

    def attempt(what: dict[str, Any], run: Callable[[], Any]) -> Any:
        try:
            return run()
        except Unsupported as reason:
            skipped.append({**what, "reason": str(reason)})
        except Exception as error:  # one failure must not lose the rest
            errors.append({**what, "error": f"{type(error).__name__}: {str(error)[:300]}"})
        return None

    extra = min(15.0, seconds / 8)  # for power, and the same for collectives
    document["power"] = attempt({"kind": "power"}, lambda: backend.power(extra * 0.6)) or {}
    rows += attempt({"kind": "collectives"}, lambda: backend.collectives(extra)) or []
    for work in works(shapes, backend.formats, backend.tiny):
        what = {"kind": work.kind, "format": work.format, "name": work.name, "shape": work.shape}
        if time.monotonic() - begun > seconds:
            skipped.append({**what, "reason": "time"})
            continue
        taken = attempt(what, lambda work=work: backend.time(work))  # type: ignore[misc]
        if taken:
            rows.append(work.row(taken))
            tell(_line(rows[-1]))
    document |= {"measurements": rows, "skipped": skipped, "errors": errors}
    return {**document, "seconds": time.monotonic() - begun}


def _line(row: dict[str, Any]) -> str:
    rate = f"{row['flop_per_s'] / 1e12:8.1f} TFLOP/s" if row["kind"] == "gemm" else ""
    moved = f"{row['bytes_per_s'] / 1e9:8.0f} GB/s" if "bytes_per_s" in row else ""
    shape = " ".join(f"{key}={value}" for key, value in row["shape"].items())
    return f"{row['kind']:18}{row['format']:6}{row['name']:20}{row['seconds'] * 1e6:12.2f} us {rate} {moved}  {shape}"


def parser() -> argparse.ArgumentParser:
    """Build the parser of the program."""
    found = argparse.ArgumentParser(prog="probe", description=(__doc__ or "").split("\n")[0])
    found.add_argument("--output", metavar="FILE.json", required=True, help="where the measurements are written")
    found.add_argument(
        "--shapes", metavar="FILE.json", help="weights and heads of an architecture (default: a standard set)"
    )
    add_options(found)
    return found


def add_options(found: argparse.ArgumentParser) -> None:
    """Add the options that the command of the package has as well."""
    found.add_argument(
        "--backend", choices=("torch", "numpy"), default="torch", help="numpy: tiny shapes on the processor"
    )
    found.add_argument(
        "--seconds", type=float, default=DEFAULT_SECONDS, help=f"most time (default: {DEFAULT_SECONDS:g})"
    )


def run(
    backend: str, shapes: dict[str, Any] | None, seconds: float, output: str, quiet: bool = False
) -> dict[str, Any]:
    """Measure and write the document. Raises ValueError for shapes that cannot be, SystemExit without PyTorch or an accelerator."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"seconds: expected a positive number, got {seconds}")
    target = Path(output)
    if not target.resolve().parent.is_dir():
        raise ValueError(f"output: there is no folder {target.parent}")
    chosen = checked_shapes(shapes or (TINY if backend == "numpy" else STANDARD))
    try:
        found = NumpyBackend() if backend == "numpy" else TorchBackend()
    except ImportError as error:
        raise SystemExit(f"probe: {error}; install PyTorch for your accelerator, or try --backend numpy") from None
    tell = (lambda _: None) if quiet else (lambda line: print(line, file=sys.stderr, flush=True))
    document = probe(found, chosen, seconds, tell)
    target.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return document


def main(arguments: list[str] | None = None) -> int:
    """Run the program: 0 for measurements, 1 where none worked, 2 for inputs that cannot be."""
    given = parser().parse_args(arguments)
    try:
        shapes = json.loads(Path(given.shapes).read_text("utf-8")) if given.shapes else None
        document = run(given.backend, shapes, given.seconds, given.output)
    except (OSError, ValueError) as error:
        print(f"probe: {error}", file=sys.stderr)
        return 2
    for failed in document["errors"]:
        print(f"probe: {failed}", file=sys.stderr)
    counts = f"{len(document['measurements'])} measurements, {len(document['skipped'])} skipped, {len(document['errors'])} failed"
    print(f"wrote {given.output}: {counts} in {document['seconds']:.0f} s", file=sys.stderr)
    return 0 if document["measurements"] else 1


if __name__ == "__main__":
    sys.exit(main())
