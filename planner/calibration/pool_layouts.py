"""Parse the layouts of prefill and decode workers of a disaggregated run, in the spellings in which they are published."""

from __future__ import annotations

import re

from models.serving.many_runs import Pool
from planner.calibration.measurements import Row, Unpredictable

# "prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode 1x(…)"
IN_FULL = re.compile(r"(prefill|decode)\s+(\d+)x\(tp(\d+)(?: pp(\d+))?(?: dp(\d+))?(?: moetp\d+)?(?: ep(\d+))?\)")
# "2P1D" and "P1D3": prefill and decode workers
COUNTS = re.compile(r"\b(\d+)P(\d+)D\b|\bP(\d+)D(\d+)\b")
# "TP4 + TP8": of a prefill and of a decode worker; "TP8 each", "each worker TP2": of every worker
APART = re.compile(r"\bTP(\d+)\s*\+\s*TP(\d+)\b", re.IGNORECASE)
ALIKE = re.compile(r"\bTP(\d+) each\b|\beach worker TP(\d+)\b", re.IGNORECASE)
# "1 prefill worker on 8 GPUs + 1 decode worker on 8 GPUs"
ON_CHIPS = re.compile(r"(\d+) (prefill|decode) workers? on (\d+) (?:GPUs|chips|cards)")


def pools_of(row: Row) -> tuple[Pool, Pool]:
    """Parse (prefill, decode) pools from columns `other_metric` and `notes`; counts without a layout take column `tp` for every worker.

    "prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode …", "1P3D TP4 + TP8", "1P1D, TP8 each", "P1D3, each worker TP2", "2P2D", "1 prefill worker on
    8 GPUs + 1 decode worker on 8 GPUs" (tensor parallel over the GPUs of a worker). Raises Unpredictable where none of them is there.
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
    raise Unpredictable("no layout of prefill and decode workers")


def _tensor_parallel(told: str, row: Row) -> tuple[int, int]:
    """Return the tensor parallelism of a prefill and of a decode worker."""
    if apart := APART.search(told):
        return int(apart[1]), int(apart[2])
    if alike := ALIKE.search(told):
        each = int(alike[1] or alike[2])
        return each, each
    if each := row.count("tp"):
        return each, each
    raise Unpredictable("no layout of prefill and decode workers")


def _worker(tp: str | int, pp: str = "", dp: str = "", ep: str = "", *, workers: str | int) -> Pool:
    ranks = int(dp or 1)
    return Pool({"tp": int(tp), "pp": int(pp or 1), "dp": ranks, "ep": max(int(ep or 1), ranks)}, float(workers))
