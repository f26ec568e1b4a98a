"""Hold the figures of a point against laws that need no model: caches read are held, bytes sent pass their links, parts add up, no chip
exceeds its rates. Counts and bounds are written here a second time, from below: efficiencies, waits and starts only add to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.messages import Message
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.findings import RELATIVE_TOL
from planner.verify.fleet.options import CheckedOption, key_at
from planner.verify.points.counts import Weights, cache_bytes_per_token, weight_bytes, weights_of
from planner.verify.points.serving import cache_of

GIGA = 1e9
ACTIVATION_BYTES = 2.0
NO_PART = ("mean", "p50", "p90", "p95", "p99")
FORWARD, FROZEN, WHOLE = (
    2.0,
    4.0,
    6.0,
)  # FLOP of a weight and token: forward alone, with adapters, with gradients of all


@dataclass(slots=True)
class Conservation:
    """Laws of one point; each that is broken is said at the figure that breaks it. `tolerance`: relative."""

    plan: CheckedPlan
    path: str
    point: Row
    tolerance: float = RELATIVE_TOL

    def at_most(self, figure: str, used: float, allowed: float, code: str, **words: str | int | float) -> None:
        """Say a message where more is used than there is; both are among its arguments."""
        if not used <= allowed * (1 + self.tolerance):
            text = Message.of(code, used=used, allowed=allowed, **words).text()
            self.plan.tell(f"{self.path}.{figure}" if figure else self.path, text)

    def adds_up(self, figure: str, parts: Mapping[str, float], whole: float) -> None:
        """Check that the parts of a time or of all time make the whole, and that none is negative."""
        total = math.fsum(parts.values())
        if abs(total - whole) > self.tolerance * abs(whole) or any(part < 0 for part in parts.values()):
            text = Message.of("conservation.parts", total=total, whole=whole).text()
            self.plan.tell(f"{self.path}.{figure}", text)


def check_conservation(
    plan: CheckedPlan, path: str, facts: ServingFacts | TrainingFacts, point: Row, tolerance: float
) -> None:
    """Check the laws of one point of a plan; of an API only the plan of who runs it could break one."""
    if [pool["role"] for pool in point["pools"]] == ["api"]:
        return
    law = Conservation(plan, path, point, tolerance)
    options = [plan.fleet_options[key_at(point["site"], pool)] for pool in point["pools"]]
    for i, (pool, option) in enumerate(zip(point["pools"], options, strict=True)):
        if "memory_bytes" in pool:
            used, room = pool["memory_bytes"] / GIGA, option.system.hbm_bytes / GIGA
            law.at_most(f"pools[{i}].memory_bytes", used, room, "conservation.memory", system=option.system.name)
    if isinstance(facts, TrainingFacts):
        _training(law, facts, options)
    else:
        _serving(law, facts, options)


# -- serving -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Requests:
    """What a request brings at least: tokens of the prompt that is held, of it that is computed, of the answer after its first, and its mean context while it decodes."""

    prompt: float
    computed: float
    later: float
    context: float
    own: float  # tokens of `context` that no other request shares

    @classmethod
    def of(cls, facts: ServingFacts) -> _Requests:
        """Count from the spec's lengths: long answers are met most among those that run, so that they hold (O - 1)(1 + cv^2)/2 on average."""
        lengths = facts.spec.lengths
        prompt, later = float(lengths.input), max(lengths.output - 1.0, 0.0)
        answered = 0.5 * later * (1.0 + lengths.output_cv**2)
        alone = facts.spec.cache is None and facts.spec.session is None
        return cls(prompt, prompt if alone else 0.0, later, prompt + answered, (prompt if alone else 0.0) + answered)


def _serving(law: Conservation, facts: ServingFacts, options: Sequence[CheckedOption]) -> None:
    point, asked, counted = law.point, _Requests.of(facts), weights_of(facts.architecture)
    if facts.architecture.routing is not None:  # which may drop tokens
        counted = Weights(counted.passed, counted.table, counted.experts, 0.0)
    law.adds_up("breakdown", point["breakdown"], 1.0)
    first = point.get("first_token_s")
    if first:
        law.adds_up("first_token_s", {n: s for n, s in first.items() if n not in NO_PART}, first["mean"])
    for i, (pool, option) in enumerate(zip(point["pools"], options, strict=True)):
        if pool["role"] in ("serve", "decode"):
            _decode(law, i, facts, option, asked, counted)
        if pool["role"] in ("serve", "decode", "prefill"):
            _worked(law, i, facts, option, asked, counted)
    if len(options) == 2 and point["pools"][1]["role"] == "decode":
        _between_pools(law, facts, options, asked)


def _decode(
    law: Conservation, place: int, facts: ServingFacts, option: CheckedOption, asked: _Requests, counted: Weights
) -> None:
    """Check what a decode pool holds, and that no step is shorter than reading it: weights once for all, the cache of each that runs."""
    pool, system, shape = law.point["pools"][place], option.system, facts.architecture
    layout, batch, each = pool["layout"], pool["batch"], weight_bytes(pool["precision"])
    tp, pp, ranks = layout["tp"], layout["pp"], layout["tp"] * layout["dp"]
    cache = cache_of(facts, pool)
    if "memory_bytes" in pool:
        weights = each * ((counted.passed + counted.table) / tp + counted.experts / ranks) / pp
        caches = batch * asked.own * cache_bytes_per_token(shape, cache) / (ranks * pp)
        law.at_most(
            f"pools[{place}].memory_bytes", (weights + caches) / GIGA, pool["memory_bytes"] / GIGA, "conservation.held", batch=batch
        )  # fmt: skip
    passed = each * ((counted.passed + counted.table) / tp + counted.one_token / ranks)
    read = batch * asked.context * cache_bytes_per_token(shape, cache, read=True) / (ranks * pp)
    most = 1 if facts.spec.speculation is None else 1 + facts.spec.speculation.draft_tokens
    for name, seconds in law.point["latency_s"].items():
        if name.startswith(("tpot.", "ttft.")):
            least = passed / system.hbm_bytes_per_s / (most if name.startswith("tpot.") else 1)
            law.at_most(f"latency_s.{name}", least, seconds, "conservation.pass", system=system.name)
    tokens = law.point["capacity"] * asked.later
    bound = pool["workers"] * batch * most / ((passed + read) / system.hbm_bytes_per_s)
    law.at_most("capacity", tokens, bound, "conservation.bandwidth", batch=batch, system=system.name)


def _worked(
    law: Conservation, place: int, facts: ServingFacts, option: CheckedOption, asked: _Requests, counted: Weights
) -> None:
    """Check the operations of a pool against the peak of its chips, and what its tensor ranks exchange against their links."""
    pool, system, shape = law.point["pools"][place], option.system, facts.architecture
    layout, role, rate = pool["layout"], pool["role"], law.point["capacity"]
    tokens = rate * (asked.computed * (role != "decode") + asked.later * (role != "prefill"))
    chips = pool["workers"] * layout["tp"] * layout["pp"] * layout["dp"]
    done = tokens * FORWARD * (counted.passed + counted.one_token)
    peak = chips * system.rates(pool["precision"], None, facts.spec.arithmetic).flop_per_s
    law.at_most("capacity", done / GIGA, peak / GIGA, "conservation.operations", system=system.name)
    if (tp := layout["tp"]) > 1:
        mixers = shape.attending_layers + shape.state_layers
        vector = ACTIVATION_BYTES * shape.hidden * 2.0 * (tp - 1) / tp
        sent = tokens / (pool["workers"] * layout["dp"]) * mixers / layout["pp"] * vector
        links = system.scaleup_bytes_per_s + option.scaleout_bytes_per_s
        law.at_most("capacity", sent / GIGA, links / GIGA, "conservation.tensor_links", system=system.name)


def _between_pools(law: Conservation, facts: ServingFacts, options: Sequence[CheckedOption], asked: _Requests) -> None:
    """Check that the caches of all prompts pass the links of the side that has fewer: rate x bytes <= links x bandwidth."""
    rate, pools = law.point["capacity"], law.point["pools"]
    moved = rate * asked.prompt * cache_bytes_per_token(facts.architecture, cache_of(facts, pools[1]))
    for pool, option in zip(pools, options, strict=True):
        chips = pool["workers"] * pool["layout"]["tp"] * pool["layout"]["pp"] * pool["layout"]["dp"]
        links = chips * option.scaleout_bytes_per_s
        law.at_most("capacity", moved / GIGA, links / GIGA, "conservation.links", role=pool["role"])


# -- training ------------------------------------------------------------------------------------------------------------


def _training(law: Conservation, facts: TrainingFacts, options: Sequence[CheckedOption]) -> None:
    """Check the use of FLOPs, the operations against the peak and, where steps follow each other, the parts and tokens of a step."""
    point, counted = law.point, weights_of(facts.architecture)
    law.at_most("mfu", point["mfu"], point.get("hfu", 1.0), "conservation.useful")
    law.at_most("hfu", point.get("hfu", 0.0), 1.0, "conservation.useful")
    once = isinstance(facts, ReinforcementFacts)  # some tokens of reinforcement learning may only be generated
    passes = FORWARD if once else FROZEN if facts.spec.tuning == "lora" else WHOLE
    experts = counted.one_token if facts.architecture.routing is None else 0.0
    rate = point["capacity"] / point["goodput"]
    peak = math.fsum(
        pool["systems_per_replica"] * option.system.chips * option.system.rates(pool["precision"]).flop_per_s
        for pool, option in zip(point["pools"], options, strict=True)
    )
    done = rate * passes * (counted.passed + experts)
    law.at_most("capacity", done / GIGA, peak / GIGA, "conservation.operations", system=options[0].system.name)
    if once:
        return
    law.adds_up("breakdown", point["breakdown"], 1.0)
    pool, option = point["pools"][0], options[0]
    step_s, batch = point["time_s"].get("step"), facts.batch_sequences * facts.spec.sequence_tokens
    if step_s is not None:
        law.adds_up("time_s.step", {"tokens": rate * step_s}, float(batch))
        _gradients(law, facts, pool, option, step_s, counted)


def _gradients(
    law: Conservation, facts: TrainingFacts, pool: Mapping[str, Any], option: CheckedOption, step_s: float, counted: Weights
) -> None:  # fmt: skip
    """Check that the gradients of weights that each replica has pass its links within a step, in 16 bit: 2 (dp - 1)/dp of them."""
    layout = pool["layout"]
    if facts.spec.tuning == "lora" or layout["dp"] < 2:
        return
    each = counted.passed / (layout["tp"] * layout["pp"])
    sent = ACTIVATION_BYTES * each * 2.0 * (layout["dp"] - 1) / layout["dp"]
    links = (option.system.scaleup_bytes_per_s + option.scaleout_bytes_per_s) * step_s
    law.at_most("time_s.step", sent / GIGA, links / GIGA, "conservation.gradients", system=option.system.name)
