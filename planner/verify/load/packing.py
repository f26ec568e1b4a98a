"""Check the rows of packing: workers put on nodes anew, from the residents of the schedule alone."""

from __future__ import annotations

from bisect import insort
from typing import Any

from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import HeldKey, key_at

TABLE = "packing"
MOST_SLOTS = 1000
Worker = tuple[str, int, int]  # point, pool, chips that it takes


def check_packing(plan: CheckedPlan) -> None:
    """Compare the table with the workers that hold weights in each slot; plans of earlier releases have none."""
    if TABLE not in plan.document:
        return
    rows = {key_at(row["site"], row): (f"{TABLE}[{i}]", row) for i, row in enumerate(plan.document.get(TABLE, []))}
    if len(rows) < len(plan.document[TABLE]):
        plan.say(TABLE, "verify.row_twice")
    pools = _resident(plan)
    for key in sorted({*rows, *pools}, key=str):
        if key not in pools or key not in rows:
            code = "verify.no_row_for" if key in pools else "verify.row_without_workers"
            plan.say(TABLE, code, place="/".join(map(str, key[:3])))
            continue
        path, row = rows[key]
        if (slot := _overfull(plan, key, pools[key])) is not None:
            plan.say(path, "verify.workers_overfill", slot=str(slot))
            continue
        if not 0 <= row["slot"] < plan.problem.calendar.slots:
            plan.say(f"{path}.slot", "verify.slots", last=str(plan.problem.calendar.slots - 1))
            continue
        plan.equal(path, {**row, "shapes": dict(enumerate(row["shapes"]))}, _expected(plan, key, pools[key], row))


def _overfull(plan: CheckedPlan, key: HeldKey, workers: dict[Worker, list[int]]) -> int | None:
    """Find a slot in which workers take more chips than there are on the systems held."""
    chips, calendar = plan.fleet_options[key].system.chips, plan.problem.calendar
    for slot in range(calendar.slots):
        taken = sum(worker[2] * counts[slot] for worker, counts in workers.items())
        if taken > chips * plan.running[key][slot]:
            return slot
    return None


def _resident(plan: CheckedPlan) -> dict[HeldKey, dict[Worker, list[int]]]:
    """Collect the workers of each fleet option by slot."""
    found: dict[HeldKey, dict[Worker, list[int]]] = {}
    slots = plan.problem.calendar.slots
    for row in plan.document["schedule"]:
        for name, counts in row.get("resident", {}).items():
            point = plan.points[name][0]
            for j, (pool, count) in enumerate(zip(point["pools"], counts, strict=True)):
                key = key_at(point["site"], pool)
                node = plan.fleet_options[key].system.chips
                worker = (name, j, _block(pool["layout"], node))
                found.setdefault(key, {}).setdefault(worker, [0] * slots)[row["slot"]] = count
    return found


def _block(layout: Row, node: int) -> int:
    """Round the chips of a worker up to a power of two or an even part of a node, whichever is less; whole nodes beyond one."""
    chips = int(layout["tp"] * layout["dp"] * layout["pp"])
    if chips > node:
        return -(-chips // node) * node
    sizes = {node}
    part = node
    while part % 2 == 0:
        part //= 2
        sizes.add(part)
    power = 1
    while power <= node:
        sizes.add(power)
        power *= 2
    return min(size for size in sizes if size >= chips)


def _fill(sizes: list[int], node: int) -> tuple[list[int], list[int]]:
    """Put blocks on nodes, the largest first, each on the first that has room: (free chips, blocks) of each node."""
    free: list[int] = []
    blocks: list[int] = []
    last, place = 0, 0
    for size in sorted(sizes, reverse=True):
        if size >= node:
            free.extend([0] * (size // node))
            blocks.extend([1] * (size // node))
            continue
        if size != last:  # nodes without room for a size never get it back
            last, place = size, 0
        while place < len(free) and free[place] < size:
            place += 1
        if place == len(free):
            free.append(node)
            blocks.append(0)
        free[place] -= size
        blocks[place] += 1
    return free, blocks


def _followed(workers: dict[Worker, list[int]], node: int, after: list[int]) -> list[int]:
    """Follow workers that never move twice round each ring of slots, and count the nodes in use."""
    slots, used, done = len(after), [0] * len(after), set[int]()
    larger_first = sorted(workers, key=lambda worker: (-worker[2], worker[:2]))
    for start in range(slots):
        if start in done:
            continue
        ring, t = [], start
        while t not in done:
            done.add(t)
            ring.append(t)
            t = after[t]
        taken: list[int] = []
        with_room: dict[int, list[int]] = {room: [] for room in range(node + 1)}  # nodes in order
        where: dict[Worker, list[int]] = {worker: [] for worker in workers}
        for t in ring + ring:
            for worker in larger_first:
                surplus = len(where[worker]) - workers[worker][t]
                for i in where[worker][: max(surplus, 0)]:
                    with_room[node - taken[i]].remove(i)
                    taken[i] -= worker[2]
                    insort(with_room[node - taken[i]], i)
                where[worker] = where[worker][max(surplus, 0) :]
            for worker in larger_first:
                for _ in range(workers[worker][t] - len(where[worker])):
                    least = next((room for room in range(worker[2], node + 1) if with_room[room]), None)
                    if least is not None:
                        i = with_room[least].pop(0)
                    else:
                        taken.append(0)
                        i = len(taken) - 1
                    taken[i] += worker[2]
                    insort(with_room[node - taken[i]], i)
                    where[worker].append(i)
            used[t] = sum(full > 0 for full in taken)
    return used


def _expected(plan: CheckedPlan, key: HeldKey, workers: dict[Worker, list[int]], row: Row) -> dict[str, Any]:
    """Compute the row of a fleet option, of the first slot with most nodes."""
    calendar, node = plan.problem.calendar, plan.fleet_options[key].system.chips
    by_slot = [
        len(_fill([worker[2] for worker, counts in workers.items() for _ in range(counts[t])], node)[0])
        for t in range(calendar.slots)
    ]
    slot = by_slot.index(max(by_slot))
    free, blocks = _fill([worker[2] for worker, counts in workers.items() for _ in range(counts[slot])], node)
    count = sum(counts[slot] for counts in workers.values())
    largest = min(max(worker[2] for worker in workers), node)
    held = plan.running[key][slot]
    kept = None
    if max(worker[2] for worker in workers) <= node and calendar.slots <= MOST_SLOTS:
        kept = _followed(workers, node, [int(t) for t in calendar.next])
    total = float(sum(calendar.seconds))

    def mean(nodes: list[int]) -> float:
        return sum(n * float(s) for n, s in zip(nodes, calendar.seconds, strict=True)) / total

    option = plan.fleet_options[key]
    return {
        "site": row["site"],
        "system": option.system.name,
        "how": option.offer.how,
        "topology": row["topology"],
        "network_size": row["network_size"],
        "offer": row["offer"],
        **({"tenant": row["tenant"]} if "tenant" in row else {}),
        "slot": slot,
        "held": held,
        "nodes": len(free),
        "partly": sum(room > 0 for room in free),
        "free_chips": sum(free),
        "stranded_chips": sum(room % largest for room in free),
        "workers": count,
        "lost_packed": max(blocks),
        "lost_spread": -(-count // min(max(held, len(free)), count)),
        "nodes_without_moves": None if kept is None else max(kept),
        "mean_nodes": mean(by_slot),
        "mean_nodes_without_moves": None if kept is None else mean(kept),
        "shapes": {
            i: {"point": name, "role": plan.points[name][0]["pools"][j]["role"], "chips": chips, "workers": counts[slot]}
            for i, ((name, j, chips), counts) in enumerate(_in_order(plan, workers).items())
        },
    }  # fmt: skip


def _in_order(plan: CheckedPlan, workers: dict[Worker, list[int]]) -> dict[Worker, list[int]]:
    """Sort workers as the points and pools of the plan are."""
    place = {point["id"]: i for i, point in enumerate(p for w in plan.document["workloads"] for p in w["points"])}
    return dict(sorted(workers.items(), key=lambda item: (place[item[0][0]], item[0][1])))
