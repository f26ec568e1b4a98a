"""A quote in words: what is written is read back, parts stand in any order, and what is not understood is named with its remedy."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.lookup import shipped_catalog
from catalog.units import DAY_S, MONTH_S, YEAR_S
from planner.errors import SpecError
from planner.spec.offers import Offer
from planner.studies.quotes.mapping import quotes_in, read_quotes
from planner.studies.quotes.quote import HOUR_S, Quote
from planner.studies.quotes.sentence import read_sentence
from tests.conftest import few_of

CATALOG = shipped_catalog()
COUNTED = [record.name for record in CATALOG.records("systems") if record.get("chips") is not None]
TIMES = st.one_of(
    st.integers(1, 30).map(lambda n: n * YEAR_S),
    st.integers(1, 60).map(lambda n: n * MONTH_S),
    st.integers(1, 400).map(lambda n: n * DAY_S),
    st.integers(1, 100).map(lambda n: n * HOUR_S),
)
TERMS = TIMES.filter(lambda seconds: seconds >= 30 * DAY_S)  # the shortest that specs take
MOMENTS = st.one_of(st.integers(0, 4000).map(lambda n: date(2026, 1, 1) + timedelta(days=n)), TIMES)


def maybe(strategy):
    return st.none() | strategy


@st.composite
def quotes(draw):
    """Quotes that hold together."""
    how = draw(st.sampled_from(("buy", "reserved", "on_demand", "spot")))
    system = draw(st.sampled_from(COUNTED))
    chips = CATALOG.get("systems", system).value("chips")
    counted = draw(st.sampled_from(("chip", "system")))
    one = int(chips) if counted == "chip" else 1
    least, most = sorted(draw(st.tuples(st.integers(1, 2000), st.integers(1, 2000))))
    least, most = draw(maybe(st.just(least * one))), draw(maybe(st.just(most * one)))
    reserved = how == "reserved"
    term, notice = (draw(maybe(TERMS)) if reserved else None for _ in range(2))
    return Quote(
        system=system,
        how=how,
        amount=draw(st.floats(0.1, 1e8)),
        currency=draw(st.sampled_from(("USD", "EUR", "CNY", "JPY"))),
        per=draw(st.sampled_from(("chip", "system"))),
        time="" if how == "buy" else draw(st.sampled_from(("h", "day", "month", "year"))),
        term_s=term,
        regions=tuple(draw(st.lists(st.sampled_from(CATALOG.names("regions")), max_size=3, unique=True))),
        least=least,
        most=most,
        counted="system" if least is None and most is None else counted,
        notice_s=notice,
        exit_fee=draw(maybe(st.integers(0, 100).map(lambda n: n / 100))) if term or notice else None,
        delivery=draw(maybe(MOMENTS)),
        until=draw(maybe(MOMENTS)),
        interruption_s=draw(TIMES) if how == "spot" else None,
    )


@settings(max_examples=few_of(300))
@given(quotes())
def test_a_quote_in_words_is_read_back(quote):
    assert read_sentence(quote.sentence(), CATALOG) == (quote, [])


@settings(max_examples=few_of(100))
@given(quotes(), st.randoms(use_true_random=False))
def test_the_parts_after_the_first_may_stand_in_any_order(quote, random):
    first, *parts = quote.sentence().split(", ")
    random.shuffle(parts)
    assert read_sentence(", ".join([*parts, first]), CATALOG)[0] == quote


@settings(max_examples=few_of(100))
@given(quotes())
def test_specs_take_the_offer_of_a_quote(quote):
    chips = CATALOG.get("systems", quote.system).value("chips")
    offer = Offer.model_validate(quote.offer(chips))
    assert (offer.system, offer.how, offer.least) == (quote.system, quote.how, quote.systems(chips)[0])
    assert offer.supply == quote.systems(chips)[1]
    bare = {"chip": chips, "system": 1.0}[quote.per]
    per_s = {"": 1.0, "h": 3600.0, "day": 86400.0, "month": 365 * 7200.0, "year": 365 * 86400.0}[quote.time]
    from planner.spec.quantities import offer_price

    amount, currency = offer_price(offer.price, quote.how == "buy", chips=chips)
    assert currency == quote.currency and amount == pytest.approx(quote.amount * bare / per_s)


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (
            "DGX H100 reserved 1y at 2.10 USD/chip/h in us-virginia, 400 chips",
            "DGX H100 reserved for 1 year at 2.1 USD/chip/h in us-virginia, at most 400 chips",
        ),
        (
            "exactly 400 chips of H100 at $2.10 per GPU-hour for 12 months in us-virginia or Texas, exit fee 25%, delivery in 3 months",
            "DGX H100 reserved for 1 year at 2.1 USD/chip/h in us-virginia or us-texas, exactly 400 chips, exit fee 25%, delivery in 3 months",
        ),
        (
            "p5.48xlarge on-demand 55.04 USD/h in us-east-1",
            "AWS p5.48xlarge on demand at 55.04 USD/system/h in us-virginia",
        ),
        (
            "buy 16 DGX B200 at 310k USD each, delivered 2027-06-01",
            "DGX B200 to buy at 310000 USD/system anywhere, at most 16 systems, delivery on 2027-06-01",
        ),
        (
            "MI300X node, rented 12000 USD per system per month, 50 to 100 systems, 90 days' notice",
            "MI300X 8x OAM node reserved at 12000 USD/system/month anywhere, 50 to 100 systems, notice 90 days",
        ),
        ("400 H100, on demand, €2/gpu/h", "DGX H100 on demand at 2 EUR/chip/h anywhere, at most 400 chips"),
        ("1,600 chips, dgx-h100, 310,000 USD", "DGX H100 to buy at 310000 USD/system anywhere, at most 1600 chips"),
        (
            "DGX H200 lease, 36-month term, USD 9.5k/node/mo, at least 8 nodes at most 20 nodes",
            "DGX H200 reserved for 3 years at 9500 USD/system/month anywhere, 8 to 20 systems",
        ),
        (
            "take it or leave it: 64 nodes of DGX H100 at 1.9 USD/GPU/h for 2 years",
            "DGX H100 reserved for 2 years at 1.9 USD/chip/h anywhere, exactly 64 systems",
        ),
        (
            "spot DGX H100 $1.10/gpu/h interrupted every 12 h until 2028-01-01",
            "DGX H100 spot at 1.1 USD/chip/h anywhere, until 2028-01-01, interrupted every 12 hours",
        ),
    ],
)
def test_as_people_write_them(words, read):
    quote, wrong = read_sentence(words, CATALOG)
    assert quote is not None, [str(each) for each in wrong]
    assert quote.sentence() == read


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("foo 100 at 3 USD in nowhere", {"where", "system", ""}),
        ("DGX H100 reserved 1y 2.10 USD/chip/h shiny", {""}),
        ("DGX H100 reserved 1y", {"price"}),
        ("DGX H100 at 2 USD/h", {"how"}),
        ("DGX H100 to buy at 2 USD/h, exit fee 20%", {"price", "exit_fee"}),
        ("DGX H100 reserved at 2 USD", {"price"}),
        ("DGX H100 reserved at 2 USD/h, exit fee 20%", {"exit_fee"}),
        ("DGX H100 reserved 1y at 2 USD/h, exit fee 120%", {"exit_fee"}),
        ("DGX H100 spot at 2 USD/h", {"interruption"}),
        ("DGX H100 on demand at 2 USD/h, interrupted every 2 h", {"interruption"}),
        ("DGX H100 on demand at 2 USD/h, exactly 33 chips", {"count"}),
        ("DGX H100 on demand at 2 USD/h, 4 chips", {"count"}),
        ("DGX H100 on demand at 2 USD/h, 9 to 3 systems", {"count"}),
        ("DGX H100 on demand at 2 USD/h, delivery on 2027-02-30", {"delivery"}),
        ("DGX H100 on demand at 2 USD/chip/node/h", {"price"}),
        ("DGX H100 or DGX H200 on demand at 2 USD/h", {""}),
        ("", {""}),
        ("x" * 2000, {""}),
    ],
)
def test_what_is_not_understood_is_named_all_at_once(words, places):
    quote, wrong = read_sentence(words, CATALOG)
    assert quote is None and {issue.path for issue in wrong} == places


@settings(max_examples=few_of(300))
@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(("DGX H100", "reserved", "at 2", "USD", "/h", ",", "400", "chips", "in", "exactly", "1y", "%"))
    ).map(" ".join)
)
def test_any_text_is_read_or_refused(words):
    quote, wrong = read_sentence(words, CATALOG)
    assert (quote is None) == bool(wrong)


BY_PARTS = {
    "system": "HGX H100",
    "how": "reserved",
    "price": "2.10 USD/chip/h",
    "term": "1 year",
    "regions": ["us-virginia"],
    "at_most": "400 chips",
    "notice": "90 d",
    "exit_fee": 0.25,
    "delivery": "2027-03-01",
}


def test_a_quote_by_parts_is_the_one_in_words():
    words = "DGX H100 reserved 1y at 2.10 USD/chip/h in us-virginia, 400 chips, 90 d notice, exit fee 25%, delivery on 2027-03-01"
    one, other = read_quotes([BY_PARTS, words], CATALOG)
    assert one == other
    assert read_quotes([one], CATALOG) == (one,)
    (exact,) = read_quotes([{**BY_PARTS, "at_most": None, "exactly": 50}], CATALOG)
    assert exact.is_all_or_nothing and exact.systems(8) == (50, 50)


def test_all_quotes_are_checked_at_once(tmp_path):
    with pytest.raises(SpecError) as refused:
        read_quotes(
            [
                {
                    **BY_PARTS,
                    "system": "DGX H10",
                    "price": "cheap",
                    "colour": "green",
                    "at_most": "some",
                    "term": "soon",
                },
                {"how": "lend"},
                {**BY_PARTS, "at_least": 3},
                "nonsense",
            ],
            CATALOG,
        )
    places = {issue.path for issue in refused.value.problems}
    first = {f"quotes[0].{key}" for key in ("system", "price", "colour", "at_most", "term")}
    assert places >= first | {"quotes[1].how", "quotes[1].price", "quotes[1].system", "quotes[2].at_least", "quotes[3]"}
    with pytest.raises(SpecError, match="at least one"):
        read_quotes([], CATALOG)
    file = tmp_path / "quotes.json"
    file.write_text('{"quotes": ["a", {"system": "DGX H100"}]}')
    assert len(quotes_in(file)) == 2
    file.write_text('{"quotes": 3}')
    with pytest.raises(SpecError, match="list of quotes"):
        quotes_in(file)
