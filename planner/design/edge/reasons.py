"""Say why a task cannot run on a tier: alone there, or beside the tasks that run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from catalog.units import GIGA
from planner.design.edge.options import Options
from planner.design.edge.program import DeviceLimits, EdgeData, TierLimits, solve_edge
from planner.estimate.limits import SearchLimits
from planner.messages import Message

WITHIN = 1 + 1e-9


def alone_on_device(options: Options, fleet: int, limits: DeviceLimits, t: int, power_w: float) -> str:
    """Say why a task that ends in time on the device cannot run there, though no other task does; empty where it can.

    `power_w`: mean power of the task above idle.
    """
    task, option = options.spec.tasks[t], options.of(t, 0)
    busy = task.requests_per_s * option.busy_s
    if busy > limits.busy * WITHIN:
        return Message.of(
            "edge.busy", rate=task.requests_per_s, seconds=option.busy_s, share=f"{busy:.1%}", most=f"{limits.busy:.1%}"
        ).text()
    if power_w > limits.power_w * WITHIN:
        idle_w = options.devices[fleet].idle_w
        return Message.of("edge.power", drawn=idle_w + power_w, allowed=idle_w + limits.power_w).text()
    if (held := option.memory_bytes - option.runtime_bytes) > limits.memory_bytes * WITHIN:
        return Message.of("edge.room", held=held / GIGA, room=limits.memory_bytes / GIGA).text()
    return ""


def alone_on_tier(options: Options, limits: TierLimits, t: int, k: int) -> str:
    """Say why a task that ends in time on tier k, from 1 on, cannot run there, though no other task does; empty where it can."""
    tier, wanted = options.spec.tiers[k - 1], options.of(t, k).systems / limits.places
    if wanted <= limits.most * WITHIN:
        return ""
    if not limits.most and tier.power is not None:
        return Message.of("edge.place_power", drawn=options.systems[k - 1].power_w, allowed=tier.power).text()
    return Message.of("edge.systems", systems=math.ceil(wanted / WITHIN), most=int(limits.most)).text()


def beside(
    data: EdgeData, t: int, k: int, running: Sequence[int], names: Sequence[str], limits: SearchLimits | None = None
) -> str:
    """Say for which of the running tasks task t leaves no room on tier k, and what they share too little of.

    No task can be taken off those named: without it the others and task t could run. Raises LimitReached.
    """

    def can(data: EdgeData, kept: Sequence[int]) -> bool:
        out = set(range(len(names))) - {*kept, t}
        return solve_edge(data, {t: k}, out, limits=limits) is not None

    kept = [u for u in running if u != t]
    for u in tuple(kept):
        fewer = [v for v in kept if v != u]
        if not can(data, fewer):
            kept = fewer
    cause = next((name for name, eased in _eased(data) if can(eased, kept)), "several")
    named = ", ".join(f'"{names[u]}"' for u in kept)
    return Message.of("edge.conflict", tasks=named, limit=Message.of(f"edge.conflict_{cause}").text()).text()


def _eased(data: EdgeData) -> Iterator[tuple[str, EdgeData]]:
    """Yield the data without each kind of limit that tasks share, by its name."""
    eased: dict[str, Callable[[DeviceLimits], DeviceLimits]] = {
        "busy": lambda device: replace(device, busy=math.inf),
        "memory": lambda device: replace(device, memory_bytes=math.inf),
        "power": lambda device: replace(device, power_w=math.inf),
        "uplink": lambda device: replace(device, uplink_bytes_per_s=math.inf),
    }
    for name, without in eased.items():
        yield name, replace(data, devices=tuple(map(without, data.devices)))
    yield "order", replace(data, clash=np.zeros_like(data.clash))
    yield "systems", replace(data, tiers=tuple(replace(tier, most=math.inf) for tier in data.tiers))
