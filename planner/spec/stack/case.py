"""A case: one workload on one system, as `flopwatt layouts` and `flopwatt estimate` read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from planner.messages import Message
from planner.spec.base import MOST_ENTRIES, Block
from planner.spec.fabrics import AnyFabric
from planner.spec.model import GuessPath, GuessReason, Override
from planner.spec.quantities import WHOLE, Name, Real, RequestRate, shown
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Demand, Origin, Serving, Training

WORDS: Mapping[str, Mapping[str, Any]] = {
    "load": {"max": {}},
    "pools": {"best": {}},
}  # for blocks in which nothing is stated


Sizes = dict[str, Annotated[int, Field(ge=0, le=65536)]]


def _worded(key: str) -> Callable[[Any], Any]:
    """Return a reader that replaces a word by the block that it stands for."""
    words = WORDS[key]

    def read(value: Any) -> Any:
        if isinstance(value, str) and value not in words:
            raise ValueError(
                Message.of(
                    "spec.word_or_object_expected", words=" or ".join(map(json.dumps, words)), given=shown(value)
                ).text()
            )
        return words[value] if isinstance(value, str) else value

    return read


class CaseServing(Serving):
    """A serving workload as in a spec; demand and origins may be omitted."""

    name: Name = "workload"
    demand: Demand | None = None  # type: ignore[assignment]  # a case may leave out what a spec needs
    origins: list[Origin] = []


class CaseTraining(Training):
    """A training job as in a spec; the name may be omitted."""

    name: Name = "workload"


class CaseReinforcement(Reinforcement):
    """A job of reinforcement learning as in a spec; the number and rate of iterations may be omitted."""

    name: Name = "workload"

    @property
    def needs_an_amount(self) -> bool:
        """Whether the number or rate of iterations must be stated."""
        return False


class Load(Block):
    """Load of the case: requests per second, or concurrent requests; with neither, the most that it can carry."""

    requests_per_s: RequestRate | None = None
    """Poisson arrivals (open loop)."""
    concurrency: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | None = None
    """Clients that each send a request when their last one ends (closed loop)."""

    @model_validator(mode="after")
    def _one(self) -> Load:
        if self.requests_per_s is not None and self.concurrency is not None:
            raise ValueError(Message.of("spec.one_load").text())
        if self.requests_per_s == 0:
            raise ValueError(Message.of("spec.rate_above_zero").text())
        return self


class CasePool(Block):
    """One of the separate pools; what is omitted is searched."""

    layout: Sizes | None = None
    """tp, pp, dp, ep of one worker."""
    workers: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = None
    """Copies of the layout."""
    system: Name | None = None
    """System of this pool, if not the case's; the chips of both pools must then be stated."""
    chips: Annotated[int, Field(ge=1, le=4_194_304), WHOLE] | None = None
    """Chips of this pool; the best split of the case's chips if omitted."""


class CasePools(Block):
    """Prefill and decode in separate pools."""

    prefill: CasePool = CasePool()
    decode: CasePool = CasePool()

    @model_validator(mode="after")
    def _both(self) -> CasePools:
        if (self.prefill.chips is None) != (self.decode.chips is None):
            raise ValueError(Message.of("spec.chips_of_one_pool").text())
        if (self.prefill.system or self.decode.system) and self.prefill.chips is None:
            raise ValueError(Message.of("spec.pools_without_chips").text())
        return self


class Case(Block):
    """One workload on one system. `layout` fixes the parallel sizes; without it all legal ones are tried."""

    workload: Annotated[CaseServing | CaseTraining | CaseReinforcement, Field(discriminator="kind")]
    system: Name
    chips: Annotated[int, Field(ge=1, le=4_194_304)]
    topology: AnyFabric = "rail-optimised"
    """Topology of the network between the systems; "provider" for a rented one at the full rate of the NICs."""
    fabric: Name = "InfiniBand NDR"
    """A fabric of the catalog, for the ports of its switches."""
    network_share: Annotated[Real, Field(gt=0, le=1)] = 1.0
    """Share of the link rate of the network between the systems that messages reach, as `network_share` of a site."""
    power_cap: Annotated[Real, Field(ge=0.3, lt=1)] | None = None
    """Share of nameplate that the systems may draw, at the lower speed of measured curves, as `power_caps` of a site; none if omitted."""
    layout: Sizes | None = None
    load: Annotated[Load, BeforeValidator(_worded("load"))] | None = None
    """Of a serving case: {"requests_per_s": ...}, {"concurrency": ...}, or "max"; its demand, or else the most it can, if omitted."""
    pools: Annotated[CasePools, BeforeValidator(_worded("pools"))] | None = None
    """Of a serving case: separate pools for prefill and decode, with what is fixed of them; "best" to search them all."""
    rollout_chips: Annotated[int, Field(ge=1, le=4_194_304), WHOLE] | None = None
    """Of a reinforcement case: chips of the rollout pool, where it is apart; every eighth of the chips is tried if omitted."""
    overrides: dict[str, Override] = {}
    catalog: dict[str, list[dict[str, Any]]] = {}
    assumptions: Annotated[dict[GuessPath, GuessReason], Field(max_length=MOST_ENTRIES)] = {}
    """Values of this case that are guesses, by their paths such as "workload.architecture", each with the reason; the answer lists them."""
    note: str = ""

    @model_validator(mode="after")
    def _bursts_of_open_arrivals(self) -> Case:
        stated = isinstance(self.workload, Serving) and "arrival_cv" in self.workload.model_fields_set
        if stated and self.load is not None and self.load.concurrency is not None:
            raise ValueError(Message.of("queues.arrivals_of_clients").text())
        return self
