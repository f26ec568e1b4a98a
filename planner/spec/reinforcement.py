"""Blocks of a spec about reinforcement learning: responses, tools, and the job itself."""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from catalog.units import HOUR_S, YEAR_S
from planner.messages import Message
from planner.spec.base import SOME, Block
from planner.spec.load.lengths import Variation
from planner.spec.load.routing import Routing
from planner.spec.quantities import WHOLE, AmountPerSecond, Bytes, Name, Real, Seconds, SecondsFromStart, Switch
from planner.spec.requirements.checkpoints import Checkpoints
from planner.spec.requirements.preemption import Preemption
from planner.spec.requirements.priority import Priority
from planner.spec.workloads import Adapters, Engine, Precisions, Recipes, Workload

Way = Literal["colocated", "synchronous", "asynchronous", "streaming"]
WAYS: tuple[Way, ...] = get_args(Way)
Algorithm = Literal["ppo", "grpo", "dpo"]
LONGEST_S = 30 * YEAR_S
SEQUENCE_MULTIPLE = 16  # tokens to which a mean sample is rounded up
SCORING = {"ppo": 1, "grpo": 1, "dpo": 0}  # passes of the policy over a batch before the update
GIVEN_RESPONSES = 2  # responses of DPO: chosen and rejected


class Responses(Block):
    """Tokens of prompts and responses."""

    prompt: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Mean tokens of a prompt."""
    response: Annotated[int, Field(ge=2, le=10_000_000), WHOLE]
    """Mean tokens that the policy generates for one response, over all its turns."""
    limit: Annotated[int, Field(ge=2, le=10_000_000), WHOLE]
    """Most tokens of a response, at which it is cut off."""
    cv: Variation = 1.0
    """Standard deviation over mean of the lengths before they are cut off."""
    endless: Annotated[Real, Field(ge=0, le=1)] | None = None
    """Share of the responses that run to the limit because they never end by themselves; a usual one if omitted."""

    @field_validator("limit")
    @classmethod
    def _holds_the_mean(cls, limit: int, known: ValidationInfo) -> int:
        if limit < known.data.get("response", limit):
            raise ValueError(
                Message.of("spec.response_limit_below_mean", count=known.data["response"], given=limit).text()
            )
        return limit


class Tools(Block):
    """Calls of tools or environments within a response, spread evenly over its tokens."""

    calls: Annotated[Real, Field(gt=0, le=100_000)]
    """Mean calls of a response."""
    think: SecondsFromStart = 0.0
    """Mean wait per call outside of an environment slot."""
    service: SecondsFromStart = 0.0
    """Mean time per call in an environment slot."""
    cv: Variation = 1.0
    """Standard deviation of both times over their means."""
    environments: Annotated[int, Field(ge=1, le=100_000_000), WHOLE] | None = None
    """Environment slots of the whole job; as many as it wants if omitted."""
    slot_price: AmountPerSecond | None = None
    """Price of a slot for the time that the job is at work, such as "0.05 USD/h"; nothing if omitted. Needs `environments`."""
    slot_cores: Annotated[Real, Field(gt=0, le=10_000)] = 1.0
    """CPU cores of a slot, of which the plan states the number."""
    answer: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] = 0
    """Mean tokens that a call adds to the context."""

    @model_validator(mode="after")
    def _priced_slots_are_counted(self) -> Tools:
        if self.slot_price is not None and self.environments is None:
            raise ValueError(Message.of("spec.slot_price_alone").text())
        return self


class Controller(Block):
    """Software that hands out prompts, collects responses and forms batches."""

    workers: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = None
    """Processes that share the responses; one for every eight chips if omitted."""
    response: SecondsFromStart | None = None
    """Time of a worker for one response; as in published runs if omitted."""


class Reinforcement(Workload):
    """Reinforcement learning: iterations of rollout, scoring, update and synchronisation of weights."""

    kind: Literal["reinforcement"]
    algorithm: Algorithm = "grpo"
    """PPO has a critic; GRPO compares the responses to one prompt; DPO trains on two given responses to each prompt, without rollout."""
    iterations: Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE] | None = None
    """Iterations until the deadline; give this or `iterations_per_hour`."""
    iterations_per_hour: Annotated[Real, Field(gt=0, le=1e6)] | None = None
    """Mean rate from start to deadline; give this or `iterations`."""
    start: SecondsFromStart = 0.0
    deadline: Seconds = LONGEST_S
    """End of the job; the end of the horizon if that is earlier."""
    prompts: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Prompts of one iteration."""
    samples: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 1
    """Responses to each prompt, which share its prefill; DPO has two."""
    lengths: Responses
    tools: Tools | None = None
    """Tool calls within a response; none if omitted."""
    reward: Name | None = None
    """An architecture that scores responses; a rule, which costs nothing, if omitted."""
    critic: Name | None = None
    """Of PPO: the architecture of the critic; that of the policy if omitted."""
    reference: Switch = True
    """Whether a frozen reference scores the responses too."""
    epochs: Annotated[int, Field(ge=1, le=1000), WHOLE] = 1
    """Passes of the update over a batch."""
    mini_batches: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 1
    """Optimizer steps of one such pass."""
    tuning: Literal["full", "lora"] = "full"
    """Whether all weights are trained, or adapters beside frozen weights."""
    adapters: Adapters | None = None
    """Adapters of the tuning "lora"; of rank 16 on attention if omitted."""
    precision: Recipes = ["bf16"]
    """Precisions of the update that may be used."""
    rollout_precision: Precisions = ["bf16"]
    """Precisions of the weights in the rollout that may be used."""
    ways: Annotated[list[Way], SOME, Field(max_length=len(WAYS))] = list(WAYS)
    """Ways to run among which the plan chooses: one pool in turns, or two pools in turns, ahead of each other, or by mini-batches."""
    staleness: Annotated[Real, Field(ge=0, le=1000)] = 1.0
    """Of the asynchronous way: by how many batches the rollout may be ahead of the update."""
    across_sites: Switch = False
    """Whether the rollout may run at one site and the update at another, where a line of `lines` with a capacity of its own carries the weights, and the rollouts back."""
    partial_rollout: Switch = False
    """Of the asynchronous way: whether responses go on with new weights, rather than that the batch waits for the last of them."""
    engine: Engine | None = None
    """Serving engine of the rollout; others if omitted."""
    controller: Controller | None = None
    """Software that hands out prompts and collects responses; as in published runs if omitted."""
    routing: Routing | None = None
    """How the gate of a mixture of experts loads them, in rollout and update alike; redundant copies in the rollout alone. As measured runs do on
    average if omitted."""
    checkpoints: Checkpoints | None = None
    """Rate of checkpoints, and what each of them and each restart costs; as published runs do if omitted."""
    preemption: Preemption | None = None
    """Cost of interrupting it. If omitted, that of the catalog where the calendar is a typical day, the plan not robust and no site has `electricity`; null counts none."""
    priority: Priority | None = None
    """Class of the job, 1 first: where limits leave no room for all jobs, those of the highest numbers are done after their deadlines, or not at
    all. It never waits if omitted."""
    token_bytes: Bytes | None = None
    """Stored data that it reads per trained token; that of text if omitted."""
    availability: Annotated[Real, Field(gt=0, lt=1)] | None = None
    """Share of time in which it has all its systems, for which spares of our own are held; 0.95 if omitted."""
    note: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Reinforcement:
        wrong = []
        if self.needs_an_amount and (self.iterations is None) == (self.iterations_per_hour is None):
            wrong.append(Message.of("spec.iterations_or_rate").text())
        if self.deadline <= self.start:
            wrong.append(Message.of("spec.deadline_before_start").text())
        if self.critic is not None and self.algorithm != "ppo":
            wrong.append(Message.of("spec.critic_only_with_ppo").text())
        if self.adapters is not None and self.tuning != "lora":
            wrong.append(Message.of("spec.adapters_only_with_lora").text())
        if self.algorithm == "dpo" and self.samples not in (1, GIVEN_RESPONSES):
            wrong.append(Message.of("spec.dpo_responses", count=GIVEN_RESPONSES, given=self.samples).text())
        if self.algorithm == "dpo" and (self.tools is not None or self.reward is not None):
            wrong.append(Message.of("spec.dpo_without_rollout").text())
        if self.responses % self.mini_batches:
            wrong.append(Message.of("spec.mini_batches_do_not_divide", count=self.responses).text())
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def needs_an_amount(self) -> bool:
        """Whether the number or rate of iterations must be stated."""
        return True

    @property
    def responses(self) -> int:
        """Count the responses of one iteration."""
        return self.prompts * (GIVEN_RESPONSES if self.algorithm == "dpo" else self.samples)

    @property
    def sample_tokens(self) -> float:
        """Compute the mean tokens of a prompt with its response and what tools added to it."""
        tools = 0.0 if self.tools is None else self.tools.calls * self.tools.answer
        return self.lengths.prompt + self.lengths.response + tools

    @property
    def longest_tokens(self) -> int:
        """Count the tokens of the longest sample."""
        tools = 0.0 if self.tools is None else self.tools.calls * self.tools.answer
        return math.ceil(self.lengths.prompt + self.lengths.limit * (1.0 + tools / self.lengths.response))

    @property
    def iteration_tokens(self) -> float:
        """Count the trained tokens of one iteration, each once however many epochs pass over it."""
        return self.responses * self.sample_tokens

    @property
    def all_iterations(self) -> float:
        """Count the iterations from start to deadline."""
        if self.iterations is not None:
            return float(self.iterations)
        return (self.iterations_per_hour or 0.0) * (self.deadline - self.start) / HOUR_S

    @property
    def tokens(self) -> float:
        """Count the trained tokens of the whole job."""
        return self.all_iterations * self.iteration_tokens

    # The optimizer step of one mini-batch, in the words of a training job.

    @property
    def sequence_tokens(self) -> int:
        """Count the tokens of a mean sample, rounded up: the sequence of the update."""
        return SEQUENCE_MULTIPLE * math.ceil(self.sample_tokens / SEQUENCE_MULTIPLE)

    @property
    def batch_tokens(self) -> float:
        """Count the tokens of one optimizer step."""
        return float(self.responses // self.mini_batches * self.sequence_tokens)

    @property
    def example_tokens(self) -> None:
        """Return None: a sequence of the update is one sample."""
        return None
