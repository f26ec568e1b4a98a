"""Resolve the block `components` of an offer: the price of a system from its parts, each booked as an assumption."""

from __future__ import annotations

from catalog.errors import MissingFigure
from models.components import ChipParts, price_at_yield
from planner.errors import words_of
from planner.messages import Message
from planner.resolve.context import STATED, ResolveContext
from planner.resolve.ledger import origin_of
from planner.spec.stack.components import Components

AMOUNTS = ("dies", "package", "board", "server")
SHARES = ("die_yield", "package_yield", "margin")


def price_of_parts(context: ResolveContext, block: Components, system: str, path: str) -> float | None:
    """Return the price of a system in the currency of the plan; None, with a problem, where the memory of its chip is not known."""
    scope = "systems", "*", system
    ledger, currency = context.ledger, context.spec.currency
    amounts = {}
    for name in AMOUNTS:
        stated: tuple[float, str] | None = getattr(block, name)
        amounts[name] = 0.0 if stated is None else context.convert(stated, path=f"{path}.{name}")
        reason = Message.of("resolve.none_stated").text() if stated is None else STATED
        ledger.assume(f"{path}.{name}", amounts[name], currency, reason, scope)
    for name in SHARES:
        context.assume_stated(f"{path}.{name}", getattr(block, name), "1", scope)
    record = context.catalog.get("systems", system)
    try:
        held = ledger.value("chips", context.catalog.get("chips", record.words("chip")).name, "hbm_bytes")
        chips = ledger.value("systems", record.name, "chips")
        per_byte = _memory_price(context, block, path)
    except MissingFigure as error:
        context.add_problem(path, words_of(error))
        return None
    if per_byte is None:
        return None
    parts = ChipParts(
        amounts["dies"], block.die_yield, held * per_byte, amounts["package"], block.package_yield, amounts["board"]
    )
    price = chips * parts.price * (1.0 + block.margin) + amounts["server"]
    ledger.assume(path, price, currency, Message.of("resolve.price_of_parts", system=system).text(), scope)
    return price


def _memory_price(context: ResolveContext, block: Components, path: str) -> float | None:
    """Return the price of good memory per byte; None, with a problem, for an unknown name."""
    currency = context.spec.currency
    if block.hbm_price is not None:
        price = context.convert(block.hbm_price, path=f"{path}.hbm_price")
        context.assume_stated(f"{path}.hbm_price", price, f"{currency}/byte")
        return price
    record = context.find("components", block.hbm or "", f"{path}.hbm")
    if record is None:
        return None
    figures = {**record.claimed, **record.figures}
    for name in ("price", "bytes", "good_share"):
        if name not in figures:
            context.add_problem(
                f"{path}.hbm", Message.of("resolve.hbm_price_missing", name=record.name, figure=name).text()
            )
            return None
        figure = figures[name]
        place = f"components/{record.name}/{name}"
        code = "resolve.used_at" if name in record.figures else "resolve.claimed_at"
        reason = Message.of(code, reason=origin_of(place, figure), path=path).text()
        context.ledger.assume(place, figure.printed, figure.unit, reason)
    price = context.price(figures["price"]) / figures["bytes"].number
    if block.hbm_yield is None:
        return price
    context.assume_stated(f"{path}.hbm_yield", block.hbm_yield, "1")
    return price_at_yield(price, figures["good_share"].number, block.hbm_yield)
