"""Decide which layouts of serving an engine can run on a system: the rules for layouts that are stated, searched and verified."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Ints
from models.serving.decode import ServingLayouts
from models.transformer.architecture import Architecture
from models.transformer.attention import attention_kinds, is_latent
from planner.messages import Message
from planner.problem.facts import SystemFacts


def domain_of(system: SystemFacts) -> int:
    """Return the chips of a system that share a scale-up domain, or else the links of one host."""
    return max(min(system.scaleup_chips, system.chips), system.host_chips)


def broken_rules(arch: Architecture, system: SystemFacts, layouts: ServingLayouts, networked: bool) -> dict[str, Bools]:
    """Tell for each rule, in words, which layouts break it, [layout].

    `networked`: whether chips of different scale-up domains can reach each other. Experts need not divide by `ep`: ranks that would hold
    fewer hold second copies.
    """
    tp, pp, dp, ep = (np.atleast_1d(np.asarray(size)) for size in (layouts.tp, layouts.pp, layouts.dp, layouts.ep))
    domain, experts, stage = domain_of(system), int(arch.experts), tp * dp
    return {
        Message.of("layout.tp_divides_heads", heads=arch.heads).text(): arch.heads % tp != 0,
        Message.of("layout.tp_splits_kv_head", heads=arch.kv_heads).text(): _splits_no_kv_head(arch, tp),
        Message.of("layout.tp_within_domain", chips=domain).text(): np.where(
            tp > domain, tp % domain != 0, (stage > domain) & (domain % tp != 0)
        ),
        Message.of("layout.dp_needs_experts").text(): (dp > 1) & (experts == 0),
        Message.of("layout.ep_of_stage").text(): np.where(dp > 1, ep != stage, (ep != tp) & (ep != 1)),
        (
            Message.of("layout.ep_within_experts", experts=experts)
            if experts
            else Message.of("layout.ep_needs_experts")
        ).text(): ep > max(experts, 1),
        Message.of("layout.pp_within_layers", layers=arch.layers).text(): pp > arch.layers,
        Message.of("layout.stage_within_domain", chips=domain).text(): (pp > 1) & (stage > domain),
        Message.of("layout.network_needed", chips=domain).text(): (stage * pp > domain) & (not networked),
    }


def _splits_no_kv_head(arch: Architecture, tp: Ints) -> Bools:
    """Tell where tensor ranks would hold parts of a KV head: engines give each rank whole heads, or copies of one head."""
    wrong = np.zeros(tp.shape, bool)
    for kind in attention_kinds(arch):
        wrong |= (kind.kv_heads % tp != 0) & (tp % kind.kv_heads != 0) & (not is_latent(arch))
    return wrong


def runnable(arch: Architecture, system: SystemFacts, layouts: ServingLayouts, networked: bool) -> Bools:
    """Tell which layouts an engine can run, [layout]."""
    broken: Bools = np.logical_or.reduce(list(broken_rules(arch, system, layouts, networked).values()))
    return ~broken


def blocks(chips: int) -> list[int]:
    """List the sizes of the blocks into which a system or domain is divided: powers of two, and its whole halved while that is even."""
    halvings = {chips >> i for i in range(chips.bit_length()) if chips % (1 << i) == 0}
    return sorted(halvings | {1 << i for i in range(chips.bit_length())})


def occupied_chips(system_chips: int, chips: Ints) -> Ints:
    """Round the chips of replicas up to the `blocks` into which systems of `system_chips` are divided.

    Whole blocks of different sizes fill a system. Replicas beyond a system keep their number of chips.
    """
    if not system_chips:
        return chips
    sizes = np.array(blocks(system_chips))
    place = np.minimum(np.searchsorted(sizes, chips), sizes.size - 1)
    return np.where(chips <= system_chips, sizes[place], chips)
