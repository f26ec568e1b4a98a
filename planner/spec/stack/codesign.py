"""The block `codesign` of a case: which architectures, precisions and chips `flopwatt codesign` combines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, AmountPerSecond, Name, Real
from planner.spec.stack.case import Case
from planner.spec.stack.priced import Priced, SystemPrice
from planner.spec.workloads import Precisions

AS_NAMED: Literal["as named"] = "as named"
NAMES = ("systems", "attention")  # lists in which a name may stand for its block
AttentionKind = Literal["as named", "mha", "gqa", "mqa", "mla", "sliding", "linear"]
MOST_OF_AXIS = 64
SHARES = {"sliding": 0.5, "linear": 0.75}  # shares of the layers, where none is stated
_NEEDS = {
    "kv_heads": ("gqa",),
    "kv_lora_rank": ("mla",),
    "q_lora_rank": ("mla",),
    "share": ("sliding", "linear"),
    "window_tokens": ("sliding",),
}
Count = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]


def _kind_alone(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


class Attention(Block):
    """A kind of attention; a kind alone may stand for its block, as in "mqa"."""

    kind: AttentionKind
    """mha, gqa or mqa: all, some or one head of keys and values; mla: a latent; sliding: windows in a share of the layers; linear: no KV cache in a share."""
    kv_heads: Count | None = None
    """Of gqa: heads of keys and values; 8 if omitted."""
    kv_lora_rank: Count | None = None
    """Of mla: width of the latent of keys and values; four heads if omitted."""
    q_lora_rank: Count | None = None
    """Of mla: width of the latent of queries; none if omitted."""
    share: Annotated[Real, Field(gt=0, le=1)] | None = None
    """Of sliding and linear: share of the layers; 0.5 and 0.75 if omitted."""
    window_tokens: Count | None = None
    """Of sliding: tokens that a window sees; 4,096 if omitted."""

    @model_validator(mode="after")
    def _fitting(self) -> Attention:
        for name, kinds in _NEEDS.items():
            if getattr(self, name) is not None and self.kind not in kinds:
                raise ValueError(Message.of("spec.key_of_other_kinds", key=name, kinds=" and ".join(kinds)).text())
        return self

    @property
    def label(self) -> str:
        """Name the attention in tables."""
        stated = [str(getattr(self, name)) for name in _NEEDS if getattr(self, name) is not None]
        return " ".join([self.kind, *stated])


class Experts(Block):
    """Feed-forward layers of experts; {"experts": 0} makes them dense."""

    experts: Annotated[int, Field(ge=0, le=65536), WHOLE]
    """Routed experts of a layer."""
    topk: Annotated[int, Field(ge=0, le=1024), WHOLE] = 0
    """Experts that a token visits."""
    expert_ffn: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] = 0
    """Inner width of one; if omitted, so wide that a token passes as much as in the named architecture."""

    @model_validator(mode="after")
    def _possible(self) -> Experts:
        if bool(self.experts) != bool(self.topk) or self.topk > self.experts:
            raise ValueError(Message.of("spec.topk_out_of_range", count=self.experts).text())
        return self

    @property
    def label(self) -> str:
        """Name the experts in tables."""
        if not self.experts:
            return "dense"
        return f"{self.topk} of {self.experts}" + (f" x {self.expert_ffn}" if self.expert_ffn else "")


class OnSystem(Block):
    """A system on which the variants are compared; its name alone may stand for the block."""

    system: Name
    chips: Annotated[int, Field(ge=1, le=4_194_304), WHOLE] | None = None
    """Chips of it; as many as the case has if omitted."""
    price: SystemPrice | None = None
    """Purchase such as "310000 USD", or rent such as "98 USD/h", of one system; the catalog's if omitted."""


def _name_alone(value: Any) -> Any:
    return {"system": value} if isinstance(value, str) else value


class PortingHours(Block):
    """Work of bringing an architecture to a family of chips."""

    family: Name
    """Family of chips as in the catalog, such as "ascend"."""
    hours: Annotated[Real, Field(ge=0, le=1e7)]
    """Engineering hours for one architecture."""
    note: str = ""


class Codesign(Priced):
    """What varies. Each axis holds the named architecture as well, and all combinations are tried."""

    systems: Annotated[list[Annotated[OnSystem, BeforeValidator(_name_alone)]], Field(max_length=MOST_OF_AXIS)] = []
    """Systems beside that of the case."""
    attention: Annotated[list[Annotated[Attention, BeforeValidator(_kind_alone)]], Field(max_length=MOST_OF_AXIS)] = [
        Attention(kind=kind) for kind in ("mha", "gqa", "mqa", "mla", "sliding", "linear")
    ]
    """Kinds of attention."""
    precision: Precisions | None = None
    """Precisions of the weights; all that a chip computes in if omitted."""
    experts: Annotated[list[Experts], Field(max_length=MOST_OF_AXIS)] = []
    """Experts of the feed-forward layers; as named only if omitted."""
    width: Annotated[list[Annotated[Real, Field(ge=0.25, le=4)]], Field(max_length=MOST_OF_AXIS)] = [0.75, 1.25]
    """Factors on the width, at nearly the same parameters: fewer or more layers."""
    porting: Annotated[list[PortingHours], Field(max_length=MOST_OF_AXIS)] = []
    """Hours of engineering per architecture and family of chips; none if omitted."""
    rate: AmountPerSecond | None = None
    """Cost of an engineering hour, such as "100 USD/h"; needed with `porting`."""

    @model_validator(mode="after")
    def _rated(self) -> Codesign:
        if self.porting and self.rate is None:
            raise ValueError(Message.of("spec.porting_needs_rate").text())
        families = [entry.family for entry in self.porting]
        if twice := sorted({family for family in families if families.count(family) > 1}):
            raise ValueError(Message.of("spec.porting_twice", names=", ".join(twice)).text())
        return self


class CodesignCase(Case):
    """A serving case whose architecture and chips vary."""

    codesign: Codesign = Codesign()
