"""Parse the layouts of prefill and decode workers of a disaggregated run, in the spellings in which they are published."""

from __future__ import annotations

import re
from dataclasses import replace

from models.serving.many_runs import Pool
from planner.calibration.measurements import Row, Unpredictable
from planner.messages import Message

# "prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode 1x(…)"
IN_FULL = re.compile(r"(prefill|decode)\s+(\d+)x\(tp(\d+)(?: pp(\d+))?(?: dp(\d+))?(?: moetp\d+)?(?: ep(\d+))?\)")
# "2P1D" and "P1D3": prefill and decode workers
COUNTS = re.compile(r"\b(\d+)P(\d+)D\b|\bP(\d+)D(\d+)\b")
# "TP4 + TP8": of a prefill and of a decode worker; "TP8 each", "each worker TP2": of every worker
APART = re.compile(r"\bTP(\d+)\s*\+\s*TP(\d+)\b", re.IGNORECASE)
ALIKE = re.compile(r"\bTP(\d+) each\b|\beach worker TP(\d+)\b", re.IGNORECASE)
# "1 prefill worker on 8 GPUs + 1 decode worker on 8 GPUs"
ON_CHIPS = re.compile(r"(\d+) (prefill|decode) workers? on (\d+) (?:GPUs|chips|cards)")
# "prefill 2 nodes (tp8 dp4, tp8 dp4); decode 1 nodes (…)" and "P:tp16dp2 | D:tp4dp8": the layout that each node states, of the whole worker
OF_NODES = re.compile(r"\b(prefill|decode) \d+ nodes? \(([^)]*)\)")
OF_A_NODE = re.compile(r"\b([PD]):tp(\d+) ?dp(\d+)\b")
LAYOUT = re.compile(r"\btp(\d+) ?dp(\d+)\b")
DIES = re.compile(r"\b(\d+) dies\b")


def dies_of(row: Row) -> int | None:
    """Read of how many dies the chips of a run consist, where its notes say so ("64 dies (2 per 910C)"); a layout then counts dies."""
    found = DIES.search(row.text["notes"])
    return int(found[1]) if found else None


def pools_of(row: Row) -> tuple[Pool, Pool]:
    """Parse (prefill, decode) pools from columns `other_metric` and `notes`; counts without a layout take column `tp` for every worker.

    "prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode …", "1P3D TP4 + TP8", "1P1D, TP8 each", "P1D3, each worker TP2", "2P2D", "1 prefill worker on
    8 GPUs + 1 decode worker on 8 GPUs" (tensor parallel over the GPUs of a worker), "prefill 2 nodes (tp8 dp4, tp8 dp4); decode …" and
    "P:tp16dp2 | D:tp4dp8" by node. Raises Unpredictable where none of them is there.
    """
    told = f"{row.text['other_metric']}; {row.text['notes']}"
    full = {found[0]: _worker(*found[2:], workers=found[1]) for found in IN_FULL.findall(told)}
    if set(full) == {"prefill", "decode"}:
        return full["prefill"], full["decode"]
    chips = {name: _worker(int(of) // int(n), workers=n) for n, name, of in ON_CHIPS.findall(told)}
    if set(chips) == {"prefill", "decode"}:
        return chips["prefill"], chips["decode"]
    if counts := COUNTS.search(told):
        prefill, decode = (number for number in counts.groups() if number)
        first, second = _tensor_parallel(told, row)
        return _worker(first, workers=prefill), _worker(second, workers=decode)
    return _of_nodes(told, row)


def _of_nodes(told: str, row: Row) -> tuple[Pool, Pool]:
    """Read the layouts that nodes state: of a worker, which may span several of them; all nodes have as many ranks.

    A pool of n nodes of r ranks has n r / (tp dp) workers. Raises Unpredictable where nodes of a pool differ, or hold no whole worker.
    """
    nodes: dict[str, list[tuple[str, str]]] = {}
    for name, listed in OF_NODES.findall(told):
        nodes.setdefault(name, []).extend(LAYOUT.findall(listed))
    for letter, tp, dp in OF_A_NODE.findall(told):
        nodes.setdefault({"P": "prefill", "D": "decode"}[letter], []).append((tp, dp))
    if set(nodes) == {"prefill", "decode"} and all(nodes.values()):
        each = (dies_of(row) or row.required("n_chips")) / sum(map(len, nodes.values()))
        found = {name: _worker(tp, dp=dp, workers=1) for name, [(tp, dp), *_] in nodes.items()}
        workers = {name: each * len(nodes[name]) / pool.chips for name, pool in found.items()}
        if all(len(set(alike)) == 1 for alike in nodes.values()) and all(
            n >= 1 and n == int(n) for n in workers.values()
        ):
            prefill, decode = (replace(found[name], workers=workers[name]) for name in ("prefill", "decode"))
            return prefill, decode
    raise Unpredictable(Message.of("row.no_worker_layout").text())


def _tensor_parallel(told: str, row: Row) -> tuple[int, int]:
    """Return the tensor parallelism of a prefill and of a decode worker."""
    if apart := APART.search(told):
        return int(apart[1]), int(apart[2])
    if alike := ALIKE.search(told):
        each = int(alike[1] or alike[2])
        return each, each
    if each := row.count("tp"):
        return each, each
    raise Unpredictable(Message.of("row.no_worker_layout").text())


def _worker(tp: str | int, pp: str = "", dp: str = "", ep: str = "", *, workers: str | int) -> Pool:
    ranks = int(dp or 1)
    return Pool({"tp": int(tp), "pp": int(pp or 1), "dp": ranks, "ep": max(int(ep or 1), ranks)}, float(workers))
