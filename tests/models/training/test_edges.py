"""Laws of a training step where no published run looks: what each level of ZeRO moves and holds, the slowest hop of a pipeline, rings with many starts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving.examples import CHIP, DENSE
from models.training.constants import Recipe
from models.training.examples import TRAINING
from models.training.exchange import context_parallel_s
from models.training.layouts import Layouts
from models.training.memory import gathered_bytes, state_bytes, training_memory
from models.training.run import Run
from models.training.step import data_parallel_s, pipeline_transfer_s, training_step
from models.transformer.architecture import Architecture
from tests.conftest import few_of

LLAMA_405B = Architecture(126, 16384, 128, 8, 128, 53248, 128256)


def run(layouts, chip=CHIP, sequence=4096):
    return Run.of(DENSE, chip, layouts, sequence, "bf16", TRAINING, "hopper", Recipe())


def test_sharded_gradients_are_reduced_after_every_backward():
    """16 micro-batches reduce 16 times and gather once: 17 parts where ZeRO-1 has 2, with nothing to hide behind."""
    one, two = (
        data_parallel_s(run(Layouts.of(dp=64, zero=z)), np.full(1, 16.0), np.zeros(1), np.zeros(1)) for z in (1, 2)
    )
    assert two / one == pytest.approx(17 / 2)
    single = [data_parallel_s(run(Layouts.of(dp=64, zero=z)), np.ones(1), np.ones(1), np.ones(1)) for z in (1, 2)]
    assert single[0] == single[1]  # one micro-batch: the same traffic


def test_zero_3_holds_two_gathered_layers_and_a_gradient():
    """Llama-3.1-405B with ZeRO-3 over 512 chips: 3.19B parameters a layer x 6 bytes are 19.1 GB beside the shards, and 80 GB do not hold it."""
    layouts = Layouts.of(dp=512, zero=3, recompute=2)
    assert gathered_bytes(LLAMA_405B, layouts)[0] == pytest.approx(6 * 3.19e9, rel=0.01)
    assert gathered_bytes(LLAMA_405B, Layouts.of(dp=512, zero=2))[0] == 0.0
    memory = training_memory(LLAMA_405B, layouts, global_batch_sequences=512, sequence_tokens=8192, constants=TRAINING)
    assert 82.7e9 < memory.total[0] < 92e9
    assert memory.total[0] == pytest.approx(sum(getattr(memory, part)[0] for part in memory.__dataclass_fields__))


def test_more_sharding_never_holds_more_state():
    held = [sum(part[0] for part in state_bytes(DENSE, Layouts.of(dp=64, zero=z))) for z in range(4)]
    assert held == sorted(held, reverse=True)


def test_a_pipeline_that_leaves_its_domain_pays_the_network():
    """Stages of stride 4 in domains of 8: two of eight stages share a domain, three of seven hops cross, and each micro-batch makes them all."""
    chip = replace(CHIP, scaleup_chips=8)
    inside, across = (pipeline_transfer_s(run(Layouts.of(dp=dp, pp=8), chip)) for dp in (1, 4))
    whole = pipeline_transfer_s(run(Layouts.of(dp=8, pp=8), chip))
    assert across == whole > inside


def test_a_ring_starts_at_every_hop():
    times = [float(context_parallel_s(run(Layouts.of(cp=cp)), np.full(1, 1e9), 1.0)[0]) for cp in (1, 2, 4, 8)]
    assert times[0] == 0.0
    assert times == sorted(times) and len(set(times)) == 4  # a window of any length hides the traffic, never the starts


@settings(deadline=None, max_examples=few_of(60))
@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    micro_batch=st.sampled_from([1, 4]),
    sequence=st.sampled_from([128, 1024, 8192]),
    faster=st.floats(1.0, 1000.0),
    wider=st.floats(1.0, 100.0),
)
def test_a_chip_that_computes_or_loads_faster_is_never_slower(tp, micro_batch, sequence, faster, wider):
    """Small products pay for moving a share of their operands, which depends on the bandwidth and not on the arithmetic."""
    layouts = Layouts.of(tp=tp, dp=8, micro_batch=micro_batch)

    def step_s(chip):
        return training_step(
            DENSE, chip, layouts, global_batch_sequences=64, sequence_tokens=sequence, precision="bf16", constants=TRAINING, family="hopper"
        ).step_s[0]  # fmt: skip

    computes = replace(CHIP, flop_per_s=CHIP.flop_per_s * faster, flop16_per_s=CHIP.flop16_per_s * faster)
    loads = replace(CHIP, hbm_bytes_per_s=CHIP.hbm_bytes_per_s * wider)
    assert step_s(computes) <= step_s(CHIP) * (1 + 1e-9)
    assert step_s(loads) <= step_s(CHIP) * (1 + 1e-9)
