"""Hourly files that a spec names: which may be read, and what an error tells of them."""

from __future__ import annotations

import json

import pytest

from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec import series
from planner.spec.model import parse_spec
from planner.spec.series import read_series, with_series

SECRET = "s3cr3t"
GOOD = "timestamp_utc,price_usd_per_mwh\n2024-01-01T00,50\n2024-01-01T01,60\n"


def naming(file: str) -> dict:
    return {"sites": [{"hourly": file}]}


@pytest.fixture
def folders(tmp_path):
    """`spec/` with a file and a folder, and secrets beside it."""
    inside, outside = tmp_path / "spec", tmp_path / "other"
    (inside / "data").mkdir(parents=True)
    outside.mkdir()
    for place in (inside / "a.csv", inside / "data" / "b.csv", outside / "x.csv"):
        place.write_text(GOOD)
    (inside / "link.csv").symlink_to(outside / "x.csv")
    (inside / "up").symlink_to(outside)
    (inside / "near.csv").symlink_to("data/b.csv")
    return inside, outside


@pytest.mark.parametrize("name", ["a.csv", "data/b.csv", "data/../a.csv", "near.csv"])
def test_names_inside_the_folder_are_read(folders, name):
    assert with_series(naming(name), [folders[0]])["series"][name]["columns"] == {"price_usd_per_mwh": [50.0, 60.0]}


@pytest.mark.parametrize(
    "name", ["../other/x.csv", "/etc/passwd", "link.csv", "up/x.csv", "data/../../other/x.csv", "../nothing.csv"]
)
def test_names_that_lead_out_are_refused_whether_the_file_is_there_or_not(folders, name):
    with pytest.raises(SpecError, match=r"sites\[0\]\.hourly: .* leads out of the folder of the spec"):
        with_series(naming(name), [folders[0]])


def test_a_folder_that_was_given_may_be_named(folders):
    inside, outside = folders
    for name in ("../other/x.csv", "link.csv", str(outside / "x.csv")):
        assert name in with_series(naming(name), [outside, inside])["series"]


def test_profiles_of_plants_obey_the_same_rule(folders):
    document = {"sites": [{"electricity": {"ppa": [{"profile": {"file": "/etc/passwd"}}]}}]}
    with pytest.raises(SpecError, match=r"sites\[0\]\.electricity\.ppa\[0\]\.profile: .* leads out"):
        with_series(document, [folders[0]])


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "a/" * 3000, "data", "\ud800", ""])
def test_what_is_no_file_is_missing(folders, name):
    assert "series" not in with_series(naming(name), [folders[0]])


def test_a_file_of_a_folder_is_read_to_a_size(folders, monkeypatch):
    monkeypatch.setattr(series, "MOST_BYTES", 10)
    with pytest.raises(SpecError, match="is larger than"):
        with_series(naming("a.csv"), [folders[0]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"timestamp_utc,{SECRET}\n2024-01-01T00,{SECRET}\n", "line 2, column 2: expected a number"),
        (f"timestamp_utc,a\n{SECRET},1\n", "line 2: expected an hour"),
        (f"{SECRET}\n", "expected a column"),
        (f'timestamp_utc,a\n"{SECRET}{"x" * 200_000}",1\n', "expected cells between commas"),
        (f"timestamp_utc,a\n2024-01-01T00:30,{SECRET}\n", "line 2: expected a full hour"),
        ("timestamp_utc,a\n9999-12-31T23-05:00,1\n", "line 2: expected an hour"),
        ("timestamp_utc,a\n0001-01-01T00+05:00,1\n", "line 2: expected an hour"),
        ("timestamp_utc,a\n2024-01-01T00,1\n2024-01-01T00,1\n", "every hour once"),
        ("timestamp_utc,a\n2024-01-01T00,1\n2030-01-01T00,1\n", "every hour once"),
        ("timestamp_utc" + ",a" * 300 + "\n2024-01-01T00\n", "more than 200 columns"),
        ("timestamp_utc,a\n" + "2024-01-01T00,1\n" * 9000, "more than 8,784 rows"),
        ("timestamp_utc,a\n2024-01-01T00,1e999\n", "line 2, column 2: expected a number"),
        ("utc;price_usd_per_mwh\n2024-01-01T00;50\n", "line 1: expected columns divided by commas, not by semicolons"),
        ("utc\tprice_usd_per_mwh\n2024-01-01T00\t50\n", "line 1: expected columns divided by commas"),
        ("utc,price_usd_per_mwh\n2024-01-01T00,50,5\n", "line 2: has 3 cells for 2 columns; write numbers with points"),
        ("utc,a,b,a\n2024-01-01T00,1,2,3\n", "column 4 has the name of column 2"),
        ("utc,price_usd_per_mwh,price_usd_per_mwh\n2024-01-01T00,1,2\n", "column 3 has the name of column 2"),
        (
            "utc,price_usd_per_mwh, price_eur_per_kwh\n2024-01-01T00,1,2\n",
            "columns 2 and 3 both state a price; keep one",
        ),
        ("utc,carbon_g_per_kwh,carbon_kg_per_mwh\n2024-01-01T00,1,2\n", "both state direct carbon; keep one"),
        ("utc,price_eur_mwh\n2024-01-01T00,1\n", "such as price_usd_per_mwh"),
        ("utc,Carbon_g_per_kwh\n2024-01-01T00,1\n", "carbon_g_per_kwh"),
        ("utc,a,\n2024-01-01T00,1,\n", "column 3 has no name"),
        (
            "utc,price_usd_per_mwh\n2024-01-01T00,1e20\n",
            "line 2, column 2: expected a price from -1e[+]09 to 1e[+]09 per mwh",
        ),
        (
            "utc,price_usd_per_kwh\n2024-01-01T00,50\n2024-01-01T01,-2e6\n",
            "line 3, column 2: expected a price from -1e[+]06",
        ),
        (
            "utc,carbon_g_per_kwh\n2024-01-01T00,-40\n",
            "line 2, column 2: expected a carbon intensity from 0 to 10000 g per kwh",
        ),
        (
            "utc,carbon_kg_per_mwh\n2024-01-01T00,20000\n",
            "line 2, column 2: expected a carbon intensity from 0 to 10000 kg per mwh",
        ),
        ("", "expected a column"),
        ("timestamp_utc,a\n", "expected a column"),
    ],
)
def test_an_error_tells_the_place_and_not_the_text(text, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_series(text.encode())
    assert SECRET not in str(caught.value)


def test_what_is_not_utf_8_is_told_without_its_bytes():
    with pytest.raises(ValueError, match=r"^is not UTF-8 text \(byte 3\)"):
        read_series(b"ab\xff\xfe")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_may_end_as_on_any_system(end):
    found = read_series(GOOD.replace("\n", end).encode())
    assert found["columns"] == {"price_usd_per_mwh": [50.0, 60.0]} and found["start"] == "2024-01-01T00"
    json.dumps(found, allow_nan=False)


def test_early_years_are_written_in_full():
    assert read_series(b"utc,a\n0999-01-01T00,1\n")["start"] == "0999-01-01T00"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"price_usd_per_mwh": [50.0, 1e20]}, r"price_usd_per_mwh\[1\]: expected a price"),
        ({"carbon_g_per_kwh": [-1.0]}, r"carbon_g_per_kwh\[0\]: expected a carbon intensity from 0"),
        ({"price_usd_per_mwh": [1.0], "price_eur_per_mwh": [1.0]}, "both state a price"),
    ],
)
def test_a_series_that_a_spec_holds_is_checked_alike(tiny, columns, words):
    document = tiny(series={"a.csv": {"start": "2024-01-01T00", "columns": columns}})
    with pytest.raises(SpecError, match=words) as caught:
        parse_spec(document)
    assert str(caught.value).startswith('series["a.csv"]') or str(caught.value).startswith("series")


def test_a_blank_price_is_not_replaced_by_that_of_the_catalog(tiny):
    columns = {"price_usd_per_mwh": [None] * 8760, "carbon_g_per_kwh": [100.0] * 8760}
    document = tiny(series={"a.csv": {"start": "2023-01-01T00", "columns": columns}})
    document["sites"][0]["hourly"] = "a.csv"
    with pytest.raises(
        SpecError, match=r"sites\[0\].hourly: a.csv, price_usd_per_mwh: is blank in every hour; complete it"
    ):
        resolve_document(document)
    document["sites"][0]["electricity_price"] = "0.08 USD/kWh"
    carbon = resolve_document(document).sites[0].carbon_kg_per_j * 3.6e6
    assert carbon.tolist() == pytest.approx([0.1] * len(carbon))
