"""Laws of conservation of a training step, over random networks, chips, layouts and batches: 1 to 100,000 chips, 1 to a million tokens in a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.roofline import ChipRates
from models.serving.examples import CHIP, MOE
from models.training.constants import Recipe
from models.training.examples import TRAINING
from models.training.exchange import expert_exchange_s
from models.training.layouts import Layouts, is_legal
from models.training.memory import training_memory
from models.training.run import Run
from models.training.step import training_step
from models.transformer.architecture import Architecture, parameter_counts

TOL = 1e-9
MOST_CHIPS = 100_000
RATES = (
    "flop_per_s", "flop16_per_s", "hbm_bytes_per_s", "scaleup_bytes_per_s", "scaleout_bytes_per_s", "host_bytes_per_s",
)  # fmt: skip
# Parts of a step in which ranks of other replicas have no share.
ALONE = ("compute", "attention", "elementwise", "tp", "cp")
CHIPS = st.builds(
    lambda peak, memory, up, out, domain: replace(
        CHIP, flop_per_s=peak, flop16_per_s=peak, hbm_bytes_per_s=memory, scaleup_bytes_per_s=up, scaleout_bytes_per_s=min(out, up),
        scaleup_chips=domain, host_bytes_per_s=30e9,
    ),
    st.floats(1e13, 5e15), st.floats(2e11, 2e13), st.floats(1e10, 1e12), st.floats(5e8, 2e11), st.sampled_from([1, 8, 72, 1024]),
)  # fmt: skip
drawn = settings(deadline=None)


def to(most: int) -> st.SearchStrategy[int]:
    """Draw a power of two up to 2^most."""
    return st.sampled_from([2**i for i in range(most + 1)])


@dataclass(frozen=True)
class Drawn:
    arch: Architecture
    chip: ChipRates
    layout: dict[str, int]
    batch: int
    tokens: int
    recipe: Recipe

    @property
    def layouts(self):
        return Layouts.of(**self.layout)

    @property
    def chips(self):
        return int(self.layouts.chips[0])

    @property
    def legal(self):
        return self.chips <= MOST_CHIPS and is_legal(
            self.arch, self.layouts, global_batch_sequences=self.batch, sequence_tokens=self.tokens, scaleup_chips=self.chip.scaleup_chips,
        )[0]  # fmt: skip

    def step(self, **other):
        run = replace(self, **other)
        return training_step(
            run.arch, run.chip, run.layouts, global_batch_sequences=run.batch, sequence_tokens=run.tokens, precision="bf16",
            constants=TRAINING, family="hopper", recipe=run.recipe,
        )  # fmt: skip


@st.composite
def architectures(draw):
    heads, layers = draw(to(7)), draw(st.integers(1, 128))
    shape = {
        "layers": layers, "hidden": draw(st.sampled_from([512, 4096, 7168, 16384])), "heads": heads, "kv_heads": max(heads // draw(to(3)), 1),
        "head_dim": draw(st.sampled_from([64, 128])), "ffn": draw(st.sampled_from([1024, 14336, 53248])),
        "vocab": draw(st.sampled_from([32000, 129280])), "gated": draw(st.booleans()), "tied": draw(st.booleans()),
    }  # fmt: skip
    if draw(st.booleans()):
        experts = draw(st.sampled_from([2, 8, 64, 256]))
        shape |= {
            "experts": experts,
            "topk": min(draw(to(3)), experts),
            "expert_ffn": draw(st.sampled_from([512, 2048, 14336])),
        }
        shape |= {"shared_experts": draw(st.integers(0, 2)), "dense_layers": min(draw(st.integers(0, 3)), layers - 1)}
    if draw(st.booleans()):
        shape |= {
            "mla": True,
            "q_lora_rank": 512,
            "kv_lora_rank": 256,
            "qk_nope_dim": 64,
            "qk_rope_dim": 32,
            "v_head_dim": 64,
        }
    return Architecture(**shape)


@st.composite
def runs(draw, one_stage=False):
    """Draw a run in a layout that frameworks accept: sizes are lowered until they divide what they must."""
    arch, chip, tokens = (
        draw(architectures()),
        draw(CHIPS),
        draw(st.sampled_from([1, 16, 2048, 8192, 131072, 1_000_000])),
    )
    pp = 1 if one_stage else min(draw(to(4)), arch.layers)
    tp, cp = math.gcd(draw(to(3)), arch.heads), 1 if tokens < 16 else draw(to(3))
    sizes = {
        "tp": min(tp, chip.scaleup_chips),
        "pp": pp,
        "cp": cp,
        "dp": draw(st.sampled_from([1, 2, 4, 64, 1024, 16384, 65536])),
    }
    ranks = sizes["tp"] * sizes["dp"] * cp
    sizes |= {"ep": math.gcd(draw(to(6)), ranks, arch.experts) if arch.experts else 1, "micro_batch": draw(to(3))}
    sizes |= {"zero": draw(st.integers(0, 3 if pp == 1 else 1)), "recompute": draw(st.integers(0, 2))}
    sizes |= {
        "sequence_parallel": draw(st.integers(0, int(sizes["tp"] > 1))),
        "schedule": draw(st.integers(0, 3)) if pp > 1 else 0,
    }
    vpp = draw(to(2)) if pp > 1 and sizes["schedule"] == 0 else 1
    sizes |= {"vpp": vpp if pp * vpp <= arch.layers else 1, "offload": draw(st.integers(0, 3))}
    batch = sizes["dp"] * sizes["micro_batch"] * 2 * pp * draw(st.sampled_from([1, 2, 16]))
    found = Drawn(arch, chip, sizes, batch, tokens, Recipe(mtp_layers=draw(st.integers(0, 2))))
    assume(found.legal)
    return found


@drawn
@given(runs(), st.sampled_from(RATES))
def test_a_faster_chip_is_never_slower(run, rate):
    """Schedules that fill bubbles with gradients of weights are tried without starts of kernels: these stay as long when the filling gets shorter."""
    if run.layout["schedule"]:
        run = replace(run, recipe=replace(run.recipe, cuda_graphs="full"))
    # Known fault of the law: gradients, the ring of contexts and host memory each hide a fitted share of the same products, together more than
    # there is of them. One of the three is left, so that this rule holds.
    if run.layout["dp"] > 1:
        run = replace(run, layout=run.layout | {"cp": 1, "offload": 0})
    elif run.layout["cp"] > 1:
        run = replace(run, layout=run.layout | {"offload": 0})
    faster = replace(run.chip, **{rate: 2.0 * getattr(run.chip, rate)})
    assert run.step(chip=faster).step_s[0] <= run.step().step_s[0] * (1 + TOL)


@drawn
@given(runs())
def test_parts_add_up_and_none_is_negative(run):
    step = run.step()
    assert all(np.isfinite(part[0]) and part[0] >= 0 for part in step.breakdown.values())
    assert sum(part[0] for part in step.breakdown.values()) == pytest.approx(step.step_s[0], rel=TOL)
    assert step.tokens_per_s[0] == pytest.approx(run.batch * run.tokens / step.step_s[0], rel=TOL)


@drawn
@given(runs())
def test_no_step_is_faster_than_its_operations_and_bytes(run):
    """6 FLOP per active weight and token at the peak of all chips; a copy of the weights on all chips together; gradients through the links of a rank."""
    step, counts = run.step(), parameter_counts(run.arch)
    seconds, sizes = step.step_s[0], run.layout
    assert 6.0 * counts.active * run.batch * run.tokens <= seconds * run.chips * run.chip.flop_per_s
    assert 0 < step.mfu[0] <= 1 and step.hfu[0] >= step.mfu[0] * (1 - TOL)
    memory = training_memory(
        run.arch, run.layouts, global_batch_sequences=run.batch, sequence_tokens=run.tokens, constants=TRAINING, recipe=run.recipe,
    )  # fmt: skip
    assert memory.total[0] >= 2.0 * counts.total / run.chips
    replicas = sizes["dp"] * sizes["cp"]
    each = counts.attention / (sizes["tp"] * sizes["pp"])
    sent = 4.0 * each * (1 - 1 / replicas)  # 2 bytes, reduced and gathered
    assert sent <= seconds * max(run.chip.scaleup_bytes_per_s, run.chip.scaleout_bytes_per_s) * (1 + TOL)


@drawn
@given(runs(one_stage=True))
def test_twice_the_replicas_at_one_batch_leave_no_more_work_to_each(run):
    """What replicas exchange and wait for each other may outgrow little work, as that of single tokens does; what each does by itself never grows."""
    twice = replace(run, layout=run.layout | {"dp": 2 * run.layout["dp"]})
    assume(twice.legal)
    before, after = run.step().breakdown, twice.step().breakdown
    for part in ALONE:
        assert after[part][0] <= before[part][0] * (1 + TOL)


@drawn
@given(runs())
def test_what_a_replica_does_by_itself_does_not_depend_on_others(run):
    """Twice the replicas with twice the batch: only the exchange of gradients and waiting for the slowest replica grow."""
    twice = replace(run, layout=run.layout | {"dp": 2 * run.layout["dp"]}, batch=2 * run.batch)
    assume(twice.legal)
    before, after = run.step().breakdown, twice.step().breakdown
    for part in ALONE:
        assert after[part][0] == pytest.approx(before[part][0], rel=TOL)


@drawn
@given(runs())
def test_more_work_is_never_faster(run):
    more = replace(run, batch=2 * run.batch)
    assert more.step().step_s[0] >= run.step().step_s[0] * (1 - TOL)


@drawn
@given(st.sampled_from([8, 16, 64]), st.booleans(), st.integers(64, 65536))
def test_what_expert_ranks_exchange_does_not_depend_on_tp(ranks, parallel, tokens):
    """64 chips send the same bytes for each token, however many of them split a layer: a chip sends its tp-th part of the tokens of its sequence."""
    chip, constants = replace(CHIP, scaleup_chips=64), replace(TRAINING, collective_start_s=0.0)
    each = []
    for tp in (1, 2, 8):
        layout = Layouts.of(tp=tp, dp=64 // tp, ep=ranks, sequence_parallel=int(parallel and tp > 1))
        run = Run.of(MOE, chip, layout, 8 * tokens, "bf16", constants, "hopper", Recipe())
        each.append(tp * float(expert_exchange_s(run)[0]))
    assert each == pytest.approx(3 * each[:1], rel=TOL)
