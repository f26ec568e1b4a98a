"""Score exchanges between experts, hit rates by capacity and moved KV caches against published runs.

    python benchmarks/stack.py --measurements DIR [--write]

DIR holds comm_bandwidth.csv, kv_hit_rate.csv and kv_transfer.csv. No constant is fitted here.

Exchanges: rows of DeepEP, by `models.network.collectives.all_to_all_s` with the rates and the start of serving. Low-latency kernels send a copy for
each expert of a token; normal kernels one to each node that holds an expert (at most four) and, in a node, to each chip, and print a
bandwidth that counts the own node or chip.
Hit rates: users that take turns, each with one context; N equal users over C places, times the share of repeats among the prompt tokens
that a run sent, which the table states (theoretical_infinite_hit_rate: what a cache without a limit would have found). What does not stand in the rows: the KV precision (16 bit taken) and the size of the cache in the host (the host memory of a DGX H100).
Transfers: 25 clients on four Ascend 910B, TTFT without a cache and with all prefixes in the host's memory or in that of another node. The
engine keeps whole blocks of 128 tokens, its default there, and computes the last one of a prompt even where all are found.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from catalog.lookup import shipped_catalog
from catalog.units import GIGA, MICRO
from models.network.collectives import all_to_all_s
from models.queueing.caches import zipf_hit_rate
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import weight_bytes_per_chip
from models.transformer.attention import kv_bytes
from models.transformer.moe import dispatch_copies, distinct_destinations
from planner.estimate.answer import estimate
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger
from planner.tables import as_markdown

CATALOG = shipped_catalog()
SERVING = CATALOG.constants("serving")
NIC, NODE = 50 * GIGA, 8  # 400 Gbit/s, chips of a node
EXPERTS, GROUPS = 256, 4  # routed experts of DeepSeek-V3, and nodes that a token may visit
NVLINK = {"H800": 200 * GIGA, "SM90 (Hopper)": 450 * GIGA, "SM100 (Blackwell)": 900 * GIGA}
WIDTH = {"fp8": 1.0, "bf16": 2.0}
MISSED = """What is missed, and why:

- Hit rates: the order is right, the rates are not: users in turn lose all once one context too many comes, where independent references, which
  are assumed, lose a part; runs on eight chips find nothing in the host although it is on; the size of the host's cache is not stated. Most of
  the order is that of the repeats: slow runs end before users come back. With the repeats of one unloaded run for all (0.95) 71 % of the pairs
  were in order. Of pairs whose repeats are alike the room in the cache decides, and the second line below shows them.
- Moved caches: hits are predicted 30 and 45 % short, 0.22 and 0.43 s of 25 requests that come at once. That the last block of a prompt is computed
  again, which was not counted before, is 0.21 s of a hit (58 and 67 % short without it). Loads are predicted at independent times, a few ms each; one after the other they would take 0.07 s locally and 0.08 s from the
  other node. What remains is 6 to 14 ms for each request, or 5 to 11 us for each of the 1,280 pieces (80 layers, K and V, 8 blocks) that a rank fetches; no
  source states what a piece takes, so none is assumed.
- Within a node of Blackwell and of H800, dispatch is 1.6 to 1.8 times as fast as the share of the link rate that was fitted to serving.
"""
CLEAR = 0.05  # difference of measured hit rates from which their order counts
ALIKE = 0.1  # difference of the shares of repeats up to which two runs differ by their room rather than by them
BLOCK = 128  # tokens of a block of the engine's cache on Ascend


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    """Read a table of measurements."""
    with (folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def exchanges(folder: Path) -> list[dict[str, object]]:
    """Predict each row of DeepEP: the time of low-latency kernels [us], the printed bandwidth of the others [GB/s]."""
    found = []
    for row in rows_of(folder, "comm_bandwidth.csv"):
        if not row["library"].startswith("DeepEP"):
            continue
        tokens, hidden, topk = (float(row[name]) for name in ("tokens_per_rank", "hidden", "topk"))
        ranks = int(row["n_chips"])
        copy = tokens * hidden * WIDTH[row["dtype"]]
        rates = NVLINK[row["chip"]] * SERVING["all_to_all_efficiency"], NIC * SERVING["all_to_all_network_efficiency"]
        if "low-latency" in row["library"]:
            here = min(ranks, NODE)
            inside, outside = topk * (here - 1) / ranks, topk * (ranks - here) / ranks
            seconds = all_to_all_s(copy * inside, copy * outside, *rates, SERVING["all_to_all_start_s"])
            measured, predicted, unit = float(row["latency_us"]), float(seconds) / MICRO, "us"
        else:
            inside, outside = dispatch_copies(int(topk), EXPERTS, ranks, NODE, deduplicated=True, domain_limit=GROUPS)
            seconds = all_to_all_s(copy * inside, copy * outside, *rates, SERVING["all_to_all_start_s"])
            nodes = ranks // NODE
            visited = min(float(distinct_destinations(topk, nodes)), GROUPS)
            logical = copy * (float(distinct_destinations(topk, NODE)) if nodes == 1 else visited)
            measured, predicted, unit = float(row["bandwidth_GBps"]), logical / float(seconds) / GIGA, "GB/s"
        found.append(
            {
                "row": row["id"],
                "case": f"{row['library']}, {row['chip']}, {ranks}, {row['operation']}",
                "unit": unit,
                "measured": measured,
                "predicted": predicted,
            }
        )
    return found


def hit_rates(folder: Path) -> list[dict[str, object]]:
    """Predict the hit rate of each run."""
    ledger = Ledger(CATALOG)
    arch = shape_of(CATALOG.get("architectures", "DeepSeek-R1"), ledger)
    hbm = CATALOG.get("chips", "B200 SXM").value("hbm_bytes")
    host = CATALOG.get("systems", "DGX H100").get("host_bytes")
    usable = CATALOG.get("defaults", "memory_utilisation").value("value")
    found = []
    for row in rows_of(folder, "kv_hit_rate.csv"):
        tp, users = int(row["tp"]), float(row["users"])
        layout = ServingLayouts(tp, 1, 1, tp)
        weights = float(weight_bytes_per_chip(arch, layout, "fp4"))
        room = usable * hbm - weights - SERVING["runtime_bytes"]  # each rank holds a copy of the latent cache
        if row["kv_cpu_offload"] == "on" and host is not None:
            room += host.number / NODE  # each rank keeps its copy there too
        places = room / float(kv_bytes(arch, float(row["mean_input_tokens"]), 2.0))
        measured = float(row["gpu_cache_hit_rate"]) + float(row["cpu_cache_hit_rate"] or 0.0)
        repeats = float(row["theoretical_infinite_hit_rate"])
        predicted = repeats * float(zipf_hit_rate(np.asarray(places), max(users, 2.0), 0.0))
        found.append(
            {
                "row": row["id"],
                "case": f"tp{tp}, {users:.0f} users, offload {row['kv_cpu_offload']}",
                "repeats": repeats,
                "measured": measured,
                "predicted": predicted,
            }
        )
    return found


def in_order(rows: list[dict[str, object]], by: str = "predicted", alike: float = 1.0) -> tuple[float, int]:
    """Count the pairs of clearly different measured rates that `by` puts in order: (share, pairs). `alike`: greatest difference of repeats."""
    clear = [
        (a["measured"] - b["measured"], a[by] - b[by])
        for a, b in combinations(rows, 2)
        if abs(a["measured"] - b["measured"]) > CLEAR and abs(a["repeats"] - b["repeats"]) <= alike
    ]
    return sum(measured * predicted > 0 for measured, predicted in clear) / len(clear), len(clear)


def transfers(folder: Path) -> list[dict[str, object]]:
    """Predict TTFT [ms] without a cache, and with every prefix in the host's memory or in that of another node."""
    tiers = {
        "KV hit in local DRAM": ("dram", 31.5 * 4),
        "KV hit in the other node DRAM over RoCE": ("remote", 25.0 * 4),
    }
    found = []
    for row in rows_of(folder, "kv_transfer.csv"):
        if row["model"] != "Qwen2.5-72B":
            continue
        tokens, answer = int(row["input_tokens"]), int(row["output_tokens"])
        workload: dict[str, object] = {
            "kind": "serving", "architecture": "Qwen2.5-72B", "lengths": {"input": tokens, "output": answer}, "precision": ["bf16"],
            "engine": "vllm", "disaggregation": "never",
        }  # fmt: skip
        if row["case"] in tiers:
            name, rate = tiers[row["case"]]
            tier = {"name": name, "capacity": "1 TB", "bandwidth": f"{rate * 2} GB/s"}  # eight chips
            workload["cache"] = {"prefix_tokens": (tokens - 1) // BLOCK * BLOCK, "hit_rate": 1.0, "tiers": [tier]}
        case = {
            "workload": workload,
            "system": "Atlas 800T A2",
            "chips": 4,
            "layout": {"tp": 4},
            "load": {"concurrency": int(row["concurrency"])},
        }
        point = estimate(case).answer
        assert point is not None
        found.append(
            {
                "row": row["id"],
                "case": row["case"],
                "unit": "ms",
                "measured": float(row["ttft_ms"]),
                "predicted": point["latency_s"]["ttft"]["mean"] * 1000.0,
            }
        )
    return found


def error(rows: list[dict[str, object]]) -> float:
    """Median of |predicted / measured - 1|."""
    return median(abs(float(row["predicted"]) / float(row["measured"]) - 1.0) for row in rows)


def ordered(rows: list[dict[str, object]], by: str = "predicted", alike: float = 1.0) -> str:
    """Write the share of pairs in order."""
    right, clear = in_order(rows, by, alike)
    return f"{right:.1%} of {clear} pairs in order"


def main() -> None:
    """Print the scores, and write them to stack.md with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measurements", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    moved = exchanges(arguments.measurements)
    hits = hit_rates(arguments.measurements)
    sent = transfers(arguments.measurements)
    latency = [row for row in moved if row["unit"] == "us"]
    bandwidth = [row for row in moved if row["unit"] == "GB/s"]
    scores = [
        {"what": "exchanges of experts (comm_bandwidth.csv)", "rows": len(moved), "score": f"median error {error(moved):.1%}", "goal": "20 %"},
        {"what": "of these, time of low-latency kernels", "rows": len(latency), "score": f"median error {error(latency):.1%}", "goal": ""},
        {"what": "of these, bandwidth of normal kernels", "rows": len(bandwidth), "score": f"median error {error(bandwidth):.1%}", "goal": ""},
        {"what": "hit rates by capacity (kv_hit_rate.csv)", "rows": len(hits), "score": ordered(hits), "goal": "85 %"},
        {"what": "of these, pairs whose repeats are alike (within 0.1)", "rows": len(hits), "score": ordered(hits, alike=ALIKE), "goal": ""},
        {"what": "all pairs, by the repeats without the cache", "rows": len(hits), "score": ordered(hits, "repeats"), "goal": ""},
        {"what": "pairs whose repeats are alike, by the repeats without the cache", "rows": len(hits), "score": ordered(hits, "repeats", ALIKE), "goal": ""},
        {"what": "TTFT with moved caches (kv_transfer.csv)", "rows": len(sent), "score": f"median error {error(sent):.1%}", "goal": "25 %"},
    ]  # fmt: skip
    text = "".join(
        f"{heading}\n\n{as_markdown(rows)}\n" for heading, rows in (("## Scores", scores), ("## Exchanges", moved), ("## Hit rates", hits), ("## Moved caches", sent))
    )  # fmt: skip
    print(text)
    if arguments.write:
        head = (
            "# Collectives, hit rates and moved caches against published runs\n\nMade by `python benchmarks/stack.py --measurements DIR --write`. No constant is fitted here.\n\n"
            + MISSED
            + "\n"
        )
        (HERE / "stack.md").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
