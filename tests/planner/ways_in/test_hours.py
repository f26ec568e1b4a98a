"""Hourly files in the published layouts, made here: zones, summer time, parts of hours, gaps, and what is wrong by line and column."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from planner.errors import SpecError
from planner.pipeline import checked
from planner.resolve.resolver import resolve_document
from planner.spec.series import read_series, with_series
from planner.ways_in.hours import LAYOUTS

PRICE = "price_eur_per_mwh"

ENTSOE = '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)","Intraday Period (CET/CEST)","Intraday Price (EUR/MWh)"\n'
MAPS = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle),Data source,"
    "Data estimated\n2025-01-01 00:00:00,Germany,Germany,DE,300,350,x,false\n2025-01-01 01:00:00,Germany,Germany,DE,310,360,x,true\n"
)
FILES = {
    "ENTSO-E export": (
        ENTSOE
        + '"01/07/2025 01:00:00 - 01/07/2025 02:00:00","BZN|DE-LU","Sequence 1","65.76","",""\n'
        + '"01/07/2025 01:00:00 - 01/07/2025 02:00:00","BZN|DE-LU","Sequence 2","99","",""\n'
        + '"01/07/2025 02:00:00 - 01/07/2025 03:00:00","BZN|DE-LU","Sequence 1","-70.35","",""\n',
        "2025-06-30T23", {PRICE: [65.76, -70.35]},
    ),
    "ENTSO-E export, before 2024": (
        '"MTU (UTC)","Day-ahead Price [GBP/MWh]","Currency","BZN|GB"\n"01.01.2024 00:00 - 01.01.2024 01:00","65.76","GBP",""\n',
        "2024-01-01T00", {"price_gbp_per_mwh": [65.76]},
    ),
    "entsoe-py": (",0\n2024-01-01 00:00:00+01:00,65.76\n2024-01-01 01:00:00+01:00,70.35\n", "2023-12-31T23", {PRICE: [65.76, 70.35]}),
    "Electricity Maps": (MAPS, "2025-01-01T00", {"carbon_g_per_kwh": [300.0, 310.0], "carbon_lca_g_per_kwh": [350.0, 360.0]}),
    "Electricity Maps, before 2025": (
        "Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA)\n2024-01-01 00:00:00,F,F,FR,30,\n",
        "2024-01-01T00", {"carbon_g_per_kwh": [30.0], "carbon_lca_g_per_kwh": [None]},
    ),
    "Ember": (
        "Country,ISO3 Code,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)\nFrance,FRA,2024-01-01 00:00:00,2024-01-01 01:00:00,10\n",
        "2024-01-01T00", {PRICE: [10.0]},
    ),
    "SMARD": (
        "Datum von;Datum bis;Deutschland/Luxemburg [€/MWh] Berechnete Auflösungen\n01.01.2025 01:00;01.01.2025 02:00;1.065,76\n01.01.2025 02:00;01.01.2025 03:00;-\n",
        "2025-01-01T00", {PRICE: [1065.76, None]},
    ),
    "SMARD, English": (
        "Start date;End date;Germany/Luxembourg [€/MWh] Original resolutions\nJan 1, 2025 12:00 AM;Jan 1, 2025 1:00 AM;65.76\n",
        "2024-12-31T23", {PRICE: [65.76]},
    ),
    "PJM": (
        "datetime_beginning_utc,datetime_beginning_ept,pnode_id,pnode_name,type,system_energy_price_da,total_lmp_da,row_is_current\n"
        "1/1/2025 5:00:00 AM,1/1/2025 12:00:00 AM,51288,DOM,ZONE,20,25.5,TRUE\n1/1/2025 5:00:00 AM,1/1/2025 12:00:00 AM,51288,DOM,ZONE,20,99,FALSE\n",
        "2025-01-01T05", {"price_usd_per_mwh": [25.5]},
    ),
    "AEMO": (
        "REGION,SETTLEMENTDATE,TOTALDEMAND,RRP,PERIODTYPE\n"
        + "".join(f"NSW1,2025/01/01 {(5 * i) // 60:02d}:{(5 * i) % 60:02d}:00,7000,{i},TRADE\n" for i in range(1, 13)),
        "2024-12-31T14", {"price_aud_per_mwh": [6.5]},
    ),
    "GB carbon intensity": (
        "Datetime (UTC),Actual Carbon Intensity (gCO2/kWh),Forecast Carbon Intensity (gCO2/kWh),Index\n"
        "2024-01-01T00:00Z,100,110,low\n2024-01-01T00:30Z,120,110,low\n2024-01-01T01:00Z,,110,low\n2024-01-01T01:30Z,90,110,low\n",
        "2024-01-01T00", {"carbon_g_per_kwh": [110.0, None]},
    ),
    "NESO": ("DATETIME,GAS,CARBON_INTENSITY\n2024-01-01 00:00:00+00,1,100\n2024-01-01 00:30:00+00,1,140\n", "2024-01-01T00", {"carbon_g_per_kwh": [120.0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_each_layout_is_read_in_utc(name):
    text, start, columns = FILES[name]
    found = read_series(text.encode())
    assert (found["start"], found["columns"], found["layout"]) == (start, columns, name.partition(",")[0])


def test_every_layout_of_the_table_has_a_file_here():
    tested = {name.partition(",")[0] for name in FILES} | {"OMIE marginal price"}
    assert tested == {layout.name for layout in LAYOUTS}


@pytest.mark.parametrize("periods", [(24, 25, 24), (96, 100, 96)])
def test_omie_numbers_the_periods_of_a_day_of_25_hours(periods):
    """26 October 2025 has 25 hours in Spain; the first hour of the 27th begins at 23 UTC."""
    rows = "".join(
        f"2025;10;{day};{n};{day};{1000 * day + n};\n"
        for day, most in zip((25, 26, 27), periods)
        for n in range(1, most + 1)
    )
    found = read_series(f"MARGINALPDBC;\n{rows}*\n".encode(), "ES")
    values = found["columns"][PRICE]
    assert found["start"] == "2025-10-24T22" and len(values) == 73 and None not in values
    first = [1, 4][periods[0] > 24]
    assert values[24] == 26000 + (1 + first) / 2 and values[49] == 27000 + (1 + first) / 2
    assert read_series(f"MARGINALPDBC;\n{rows}*\n".encode(), "pt")["columns"][PRICE][0] == 25


def smard(first, hours, step):
    """Local German times from a moment in UTC on, each with its number from 0 as the price."""
    from zoneinfo import ZoneInfo

    moments = [first + step * i for i in range(hours)]
    rows = [f"{moment.astimezone(ZoneInfo('Europe/Berlin')):%d.%m.%Y %H:%M};;{i}\n" for i, moment in enumerate(moments)]
    return "Datum von;Datum bis;Deutschland/Luxemburg [€/MWh] Originalauflösungen\n", rows


@pytest.mark.parametrize("day", [datetime(2025, 10, 25, 22, tzinfo=UTC), datetime(2025, 3, 29, 23, tzinfo=UTC)])
@pytest.mark.parametrize("falling", [False, True])
def test_the_hour_that_occurs_twice_and_the_one_that_is_left_out(day, falling):
    head, rows = smard(day, 24, timedelta(hours=1))
    text = head + "".join(reversed(rows) if falling else rows)
    assert read_series(text.encode())["columns"][PRICE] == list(range(24))
    head, rows = smard(day, 96, timedelta(minutes=15))
    found = read_series((head + "".join(rows)).encode())
    assert found["columns"][PRICE] == [4 * i + 1.5 for i in range(24)] and found["per_hour"] == 4


def test_the_marker_of_summer_time_counts_before_the_order():
    """A file that leaves out the summer hour of the two has a gap there, not in the winter hour."""
    rows = [
        ("26/10/2025 01:00:00 - 26/10/2025 02:00:00", 1),
        ("26/10/2025 02:00:00 (CET) - 26/10/2025 03:00:00 (CET)", 3),
    ]
    text = ENTSOE + "".join(f'"{time}","BZN|FR","","{value}","",""\n' for time, value in rows)
    assert read_series(text.encode())["columns"][PRICE] == [1.0, None, 3.0]


def test_hours_become_quarters_within_a_file():
    lines = [
        ("00:00", 10),
        ("01:00", 20),
        ("02:00", 1),
        ("02:15", 2),
        ("02:30", 3),
        ("02:45", 4),
        ("03:00", 5),
        ("03:15", 6),
        ("03:45", 8),
    ]
    rows = "".join(f"2025-10-01T{time}Z,{value}\n" for time, value in lines)
    found = read_series(f"time_utc,{PRICE}\n{rows}".encode())
    assert found["columns"][PRICE] == [10.0, 20.0, 2.5, None] and found["per_hour"] == 4


def test_of_several_years_the_latest_whole_one_is_kept():
    start = datetime(2022, 6, 1, tzinfo=UTC)
    rows = "".join(f"{start + timedelta(hours=i):%Y-%m-%d %H:%M:%S},F,FRA,{i}\n" for i in range(700 * 24))
    found = read_series(f"Datetime (UTC),Country,ISO3 Code,Price (EUR/MWhe)\n{rows}".encode())
    assert found["start"] == "2023-01-01T00" and len(found["columns"][PRICE]) == 8760


def test_of_hours_years_apart_the_last_ones_are_kept():
    found = read_series(b",0\n2024-01-01 00:00:00+01:00,65.76\n2034-06-01 01:00:00+01:00,70.35\n")
    assert found["start"] == "2034-06-01T00" and found["columns"][PRICE] == [70.35]


AREAS = "Country,ISO3 Code,Datetime (UTC),Price (EUR/MWhe)\nFrance,FRA,2024-01-01 00:00:00,10\nSpain,ESP,2024-01-01 00:00:00,20\n"


def test_a_zone_is_chosen_by_its_name():
    assert read_series(AREAS.encode(), "spain")["columns"][PRICE] == [20.0]
    columns = "Datum von;Datum bis;Deutschland/Luxemburg [€/MWh] x;Frankreich [€/MWh] x\n01.01.2025 01:00;;1,5;2,5\n"
    assert read_series(columns.encode(), "Frankreich")["columns"][PRICE] == [2.5]


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        (AREAS, "", ["holds several zones: France, Spain; name one", '"zone": "France"']),
        (AREAS, "Italy", ["has no such zone; it has France, Spain"]),
        ("Datum von;Datum bis;A [€/MWh] x;B [€/MWh] x\n01.01.2025 01:00;;1;2\n", "", ["several zones: A, B"]),
        (MAPS.replace("310", "n.a.").replace("01:00:00", "one"), "", ["line 3, column 1: expected a time", "line 3, column 5: expected a number"]),
        (MAPS.replace("300", "inf"), "", ["line 2, column 5: expected a number"]),
        (MAPS.replace("01:00:00", "00:00:00"), "", ["line 3 has the same time as line 2"]),
        (ENTSOE, "", ["holds no hour"]),
        (MAPS.replace("2025-01-01 01", "0001-01-01 01"), "", ["line 3, column 1: expected a time"]),
        ("MARGINALPDBC;\n1;1;1;1;5;5;\n", "ES", ["line 2, column 1: expected year"]),
        (MAPS + '"' + "x" * 200_000 + '"', "", ["is not text in UTF-8 of the expected layout"]),
        ('"' + "x" * 200_000 + '"\n', "", ["is not text in UTF-8 of the expected layout"]),
        ("MARGINALPDBC;\n2025;13;1;1;5;5;\n2025;1;1;101;5;5;\n*\n", "ES", ["line 2, column 1: expected year", "line 3, column 1"]),
        (f"utc,{PRICE}\n2024-01-01T00,1\n", "FR", ['"zone" belongs to a published file']),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_line_and_column_all_at_once(text, zone, words):
    with pytest.raises(ValueError) as caught:
        read_series(text.encode(), zone)
    for expected in words:
        assert expected in str(caught.value)


def spec(**hourly):
    return {
        "name": "hours",
        "workloads": [
            {
                "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 1}, "lengths": {"input": 100, "output": 50},
                "origins": [{"region": "fr-paris", "share": 1}],
            }
        ],
        "sites": [{"region": "fr-paris", "systems": ["DGX H100"], "hourly": {"file": "prices.csv", **hourly}}],
    }  # fmt: skip


def test_a_spec_names_the_zone_and_the_plan_says_how_it_was_read(tmp_path):
    start = datetime(2027, 1, 1, tzinfo=UTC)
    rows = "".join(
        f"{country},X,{start + timedelta(hours=i):%Y-%m-%d %H:%M:%S},{base + i % 24}\n"
        for i in range(8760)
        for country, base in (("France", 10), ("Spain", 50))
        if not (country == "France" and i in (30, 31))
    )
    (tmp_path / "prices.csv").write_text("Country,ISO3 Code,Datetime (UTC),Price (EUR/MWhe)\n" + rows)
    with pytest.raises(SpecError, match=r"sites\[0\]\.hourly: .*holds several zones: France, Spain"):
        with_series(spec(), [tmp_path])
    document = with_series(spec(zone="France", fill="linear"), [tmp_path])
    assert list(document["series"]) == ["prices.csv [France]"]
    _, notes = checked(document)
    told = {fact.message.code: fact.message.text() for fact in notes}
    assert "read as Ember, zone France" in told["series.read_as"]
    assert "2 hours have no value, the first of them 2027-01-02 06:00" in told["series.blank"]
    with pytest.raises(SpecError, match="2 hours are blank"):
        resolve_document(with_series(spec(zone="France") | {"horizon": {"calendar": "full-year"}}, [tmp_path]), ())
