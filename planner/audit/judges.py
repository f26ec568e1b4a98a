"""The ways to judge a claim. Each is a function of the inputs alone; none knows a claim.

judge         our figure                                            inputs that it needs
arithmetic    the stated `formula`                                  its names
roofline      chips · bandwidth / bytes, and no more than           chips, bandwidth, bytes (or parameters, width);
              chips · peak / flop                                   chips, peak, flop: each per token, image, step …
plan          the stated `formula` over answers of commands         an answer with the command that gave it, or a file of a plan
ratio         first / second                                        first, second
ablation      1 / (1 - share + share / speedup)  (Amdahl's law)     share of the time, speedup of that share; without: no end of it
ladder        the product of all quantities, or the stated formula  one factor for each lever
roi           chips · rent · gain                                   chips, rent, gain; market: the rent that others pay
catalog       the known value of each property                     facts
attribution   none: nothing follows from physics or prices          none
qualitative   none: the claim states no figure                      none

roofline bounds from above whatever a real system does. A claim that passes a bound cannot be; a claim that only misses a figure is in conflict
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from planner.audit.inputs import Inputs, Property, is_same
from planner.audit.quantities import digits, shown_unit, unit_of
from planner.audit.verdicts import Condition, Free, Verdict, bisected, decide
from planner.messages import Message, listed
from planner.spec.claims import Claim

LEAST_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """What a judge finds: `ours`, `low` and `high` in the claimed unit, the condition, the arithmetic in a line, the same as Python code."""

    verdict: Verdict
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    condition: Condition | None = None
    line: str = ""
    closed_form: str = ""
    is_: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to judge: the formula that it makes of a claim, whether its figure is a bound, and the judge."""

    formula: Callable[[Claim], str]
    bound: str
    judge: Callable[[Inputs], Finding]
    needs: Callable[[Claim], list[str]]


def by_formula(inputs: Inputs) -> Finding:
    """Judge by a figure that a formula gives."""
    formula = inputs.formula
    assert formula is not None
    usual, low, high = formula.interval()
    decision = decide(formula, inputs.claimed, inputs.bound, inputs.free) if inputs.claimed is not None else None
    number = digits(usual / inputs.factor)
    unit = f" {inputs.unit}" if inputs.unit else ""
    return Finding(
        decision.verdict if decision is not None else Verdict.ATTRIBUTION,
        usual / inputs.factor, low / inputs.factor, high / inputs.factor, inputs.unit,
        decision.condition if decision is not None else None,
        f"{formula.words()} = {number}{unit}", formula.closed(inputs.factor),
    )  # fmt: skip


def by_properties(inputs: Inputs) -> Finding:
    """Judge by the known value of each property: the worst verdict counts, and the first property that is wrong is our figure."""
    within = inputs.claimed.within if inputs.claimed is not None else 0.05
    found = [(_of_property(each, within), each) for each in inputs.properties]
    order = [Verdict.MISLABELLED, Verdict.CONFLICT, Verdict.HOLDS]
    (verdict, is_), chosen = min(found, key=lambda pair: order.index(pair[0][0]))
    lines = [_property_line(each, within) for _, each in found]
    ours = chosen.known_quantity
    factor, unit = _unit_of_property(chosen)
    return Finding(
        verdict,
        None if ours is None else ours.value / factor,
        None if ours is None else ours.low / factor,
        None if ours is None else ours.high / factor,
        "" if ours is None else unit,
        line=listed(lines),
        closed_form="" if ours is None else f"{ours.value:.12g}" + ("" if factor == 1.0 else f" / {factor:.12g}"),
        is_=is_,
    )


def _unit_of_property(found: Property) -> tuple[float, str]:
    if found.claimed_quantity is None:
        return 1.0, ""
    unit = shown_unit(found.claimed)
    return unit_of(unit)[0], unit


def _of_property(found: Property, within: float) -> tuple[Verdict, str]:
    """Return the verdict on one property and, where it is mislabelled, what has the claimed figure."""
    if found.claimed_quantity is None or found.known_quantity is None:
        if _bare(found.claimed) == _bare(found.known):
            return Verdict.HOLDS, ""
        same = [
            each
            for each in found.alike
            if found.claimed_quantity is not None and is_same(each.quantity, found.claimed_quantity)
        ]
        if found.identity:
            return Verdict.MISLABELLED, same[0].is_ if same else found.known
        return (Verdict.MISLABELLED, same[0].is_) if same else (Verdict.CONFLICT, "")
    if is_same(found.claimed_quantity, found.known_quantity, within):
        return Verdict.HOLDS, ""
    same = [each for each in found.alike if is_same(each.quantity, found.claimed_quantity)]
    return (Verdict.MISLABELLED, same[0].is_) if same else (Verdict.CONFLICT, "")


def _property_line(found: Property, within: float) -> str:
    verdict, _ = _of_property(found, within)
    times = ""
    if found.claimed_quantity is not None and found.known_quantity is not None and found.known_quantity.value:
        times = f" ({digits(found.claimed_quantity.value / found.known_quantity.value)} x)"
    code = "audit.property_agrees" if verdict is Verdict.HOLDS else "audit.property_differs"
    return Message.of(code, what=found.what, claimed=found.claimed, known=found.known, times=times).text()


def _bare(text: str) -> str:
    return "".join(each for each in text.lower() if each.isalnum())


def by_rent(inputs: Inputs) -> Finding:
    """Judge a return by its formula, and say first how the stated rent compares with the market's."""
    found = by_formula(inputs)
    rent, market = inputs.quantities["rent"], inputs.quantities.get("market")
    if market is None or rent.dimensions != market.dimensions:
        return found
    times = [digits(rent.value / each) for each in (market.high, market.low)]
    said = Message.of("audit.rent_at_market", rent=rent.stated, least=times[0], most=times[1]).text()
    return replace(found, line=listed((said, found.line)))


def by_ladder(inputs: Inputs) -> Finding:
    """Judge a product of levers: where its usual values fall short, find the share of its range that every lever has to reach.

    The share s of a range from a to b is a (b / a)^s. Beyond s = 1 the ladder breaks, and the missing factor is said.
    """
    found, formula, claimed = by_formula(inputs), inputs.formula, inputs.claimed
    assert formula is not None and claimed is not None and found.ours is not None
    if found.verdict is Verdict.HOLDS:
        return found

    def climbed(share: float) -> float:
        return formula.at(
            {name: each.low * (each.high / each.low) ** share for name, each in inputs.quantities.items()}
        )

    wanted, top = claimed.figure.low, climbed(1.0)
    if top < wanted * (1 - LEAST_MARGIN):
        said = Message.of("audit.ladder_breaks", factor=digits(wanted / top)).text()
        return replace(found, verdict=Verdict.CANNOT_BE, condition=None, line=listed((found.line, said)))
    share = 0.0 if climbed(0.0) >= wanted else bisected(lambda each: climbed(each) >= wanted, 0.0, 1.0)
    said = Message.of("audit.ladder_needs", factor=digits(wanted / (found.ours * inputs.factor))).text()
    free = Free("share_of_each_range", 0.0, 1.0, "", 1.0, Message.of("audit.every_lever").text())
    return replace(
        found,
        verdict=Verdict.HOLDS_WHEN,
        condition=Condition(free, share, None, share, share),
        line=listed((found.line, said)),
    )


def by_nothing(verdict: Verdict) -> Callable[[Inputs], Finding]:
    """Make a judge that finds no arithmetic to do; a formula still gives our figure."""

    def judge(inputs: Inputs) -> Finding:
        if inputs.formula is None:
            return Finding(verdict)
        return replace(by_formula(inputs), verdict=verdict, condition=None)

    return judge


# -- formulas of the judges -------------------------------------------------------------------------------------------


def _stated(claim: Claim) -> str:
    return claim.formula


def _roofline(claim: Claim) -> str:
    parts = []
    if "bytes" in claim.quantities:
        parts.append("chips * bandwidth / bytes")
    if "width" in claim.quantities:
        parts.append("chips * bandwidth / (parameters * width)")
    if "flop" in claim.quantities:
        parts.append("chips * peak / flop")
    return parts[0] if len(parts) == 1 else f"min({', '.join(parts)})"


def _roofline_needs(claim: Claim) -> list[str]:
    of_work = {"bytes": ["bandwidth"], "width": ["bandwidth", "parameters"], "flop": ["peak"]}
    names = [name for work, needed in of_work.items() if work in claim.quantities for name in needed]
    return ["chips", *(names or ["bandwidth", "bytes"])]


def _ablation(claim: Claim) -> str:
    return "1 / (1 - share + share / speedup)" if "speedup" in claim.quantities else "1 / (1 - share)"


def _ladder(claim: Claim) -> str:
    return claim.formula or " * ".join(claim.quantities)


def _names(*names: str) -> Callable[[Claim], list[str]]:
    return lambda claim: list(names)


WAYS: Mapping[str, Way] = {
    "arithmetic": Way(_stated, "", by_formula, _names()),
    "roofline": Way(_roofline, "most", by_formula, _roofline_needs),
    "plan": Way(_stated, "", by_formula, _names()),
    "ratio": Way(lambda claim: "first / second", "", by_formula, _names("first", "second")),
    "ablation": Way(_ablation, "most", by_formula, _names("share")),
    "ladder": Way(_ladder, "", by_ladder, _names()),
    "roi": Way(lambda claim: "chips * rent * gain", "", by_rent, _names("chips", "rent", "gain")),
    "catalog": Way(lambda claim: "", "", by_properties, _names()),
    "attribution": Way(_stated, "", by_nothing(Verdict.ATTRIBUTION), _names()),
    "qualitative": Way(_stated, "", by_nothing(Verdict.NO_ARITHMETIC), _names()),
}
"""Judges by name."""
