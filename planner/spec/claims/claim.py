"""The blocks of one claim. Its meaning, judge by judge: `planner.audit.judges`; its quantities in SI: `planner.audit.quantities`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import Real

Judge = Literal[
    "arithmetic",
    "roofline",
    "plan",
    "ratio",
    "ablation",
    "ladder",
    "roi",
    "catalog",
    "attribution",
    "qualitative",
]
JUDGES: tuple[str, ...] = get_args(Judge)
Sense = Literal["about", "at least", "at most"]
MOST_WORDS = 600  # characters of a sentence
Words = Annotated[str, Field(min_length=1, max_length=MOST_WORDS)]
Symbol = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


def _text_alone(value: Any) -> Any:
    return value if isinstance(value, dict) else {"value": value}


class Source(Block):
    """Where a claim was made."""

    title: Words
    """Title of the publication."""
    publisher: Words
    """Who published it."""
    date: Annotated[str, Field(max_length=40)] = ""
    """Its date, as printed."""


class Given(Block):
    """A quantity: a text such as "3.35 TB/s" or "2..4 x", a figure of the catalog, the answer of a command, or a figure of a plan."""

    value: Words | Real | None = None
    """Number and unit, "10..99 tokens/s" for a range; or "@chips/NAME/FIGURE" of the catalog, "@market/CHIP" for what renting a chip costs, "@exchange/CNY"."""
    low: Words | Real | None = None
    """Least value, where the text states no range."""
    high: Words | Real | None = None
    """Largest value, where the text states no range."""
    command: Words | None = None
    """The command whose JSON answered `value`, at `key`."""
    plan: Words | None = None
    """File of a plan in JSON that holds the value at `key`, sought from the folder of the claims; "@examples/…" is one of the examples that come with the program."""
    key: Words | None = None
    """Path inside the JSON, such as "totals.cost" or "tiers[0].share", or "ratios.busy" of a plan for one of its plausibility ratios; of figures without a unit, `unit` follows."""
    by_gap: bool = False
    """Whether a better plan may have less of the figure of a plan: its range then begins lower by the proven gap, in proportion."""
    unit: Annotated[str, Field(max_length=60)] = ""
    """Unit of the number at `key`."""
    source: Annotated[str, Field(max_length=MOST_WORDS)] = ""
    """Where the value is from; what the catalog holds names its own sources."""

    @model_validator(mode="after")
    def _one_way(self) -> Given:
        if (self.value is None) == (self.plan is None):
            raise ValueError(Message.of("audit.value_or_plan").text())
        if (self.plan is not None or self.command is not None) and self.key is None:
            raise ValueError(Message.of("audit.key_needed").text())
        if self.by_gap and (self.plan is None or self.low is not None or self.high is not None):
            raise ValueError(Message.of("audit.gap_of_a_plan").text())
        return self


Quantity = Annotated[Given, BeforeValidator(_text_alone)]


class Free(Block):
    """The quantity over whose range a claim is tried, to find where it begins to hold."""

    name: Symbol
    """Its name among `quantities`, whose value there is the usual one."""
    start: Words | Real = Field(alias="from")
    """Least value tried."""
    end: Words | Real = Field(alias="to")
    """Largest value tried."""
    words: Annotated[str, Field(max_length=80)] = ""
    """The quantity in words, for the verdict; its name if omitted."""


class Reading(Block):
    """What a mislabelled figure is."""

    is_: Words = Field(alias="is")
    """The thing that has this figure, in words."""
    value: Quantity
    """Its figure."""


class Fact(Block):
    """One thing that a claim states of a product, beside the known value."""

    what: Words
    """Name of the property."""
    claimed: Words
    """The property as claimed: a quantity, or a word."""
    known: Quantity
    """The property as known, such as "@chips/NAME/FIGURE"; "none" where there is none."""
    identity: bool = False
    """Whether another word means another product, so that the claim's is mislabelled."""
    readings: Annotated[list[Reading], Field(max_length=20)] = []
    """What else has the claimed figure; other figures of the same record are tried by themselves."""


class Claim(Block):
    """One claim, restated, with the inputs of its judge."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
    """Its name in tables and for `--claim`."""
    source: Source
    """Where it was made."""
    says: Words
    """What it says, restated in own words."""
    systems: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=20)] = []
    """Names that `--only` chooses by."""
    judge: Judge
    """How it is judged."""
    figure: Words | Real | None = None
    """The claimed figure; a range is "2..4 x"."""
    sense: Sense = "about"
    """Whether the claim is that the figure is so much, at least so much or at most so much."""
    within: Annotated[Real, Field(ge=0, lt=1)] = 0.05
    """Relative difference at which a figure that is "about" another one still agrees."""
    quantities: Annotated[dict[Symbol, Quantity], Field(max_length=40)] = {}
    """The quantities that the judge computes with, by name."""
    formula: Annotated[str, Field(max_length=MOST_WORDS)] = ""
    """Our figure in these names, of `arithmetic` and `plan`; other judges bring their own."""
    bound: Literal["", "most", "least"] = ""
    """Whether our figure is the most or the least that can be, so that a claim beyond it is impossible."""
    free: Free | None = None
    """The quantity whose range is tried for where the claim holds."""
    facts: Annotated[list[Fact], Field(max_length=20)] = []
    """What `catalog` compares."""
    command: Annotated[str, Field(max_length=MOST_WORDS)] = ""
    """A command that shows more than the closed form."""
    note: Annotated[str, Field(max_length=MOST_WORDS)] = ""
    """What else a reader should know."""


class Claims(Block):
    """A file of claims. Each is parsed by itself, so that every faulty one is named at once; the whole stands here for the schema."""

    claims: Annotated[list[Claim], Field(min_length=1)]
    """The claims."""
