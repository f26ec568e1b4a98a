"""Price lists as published become overlays: instances in SkyPilot's layout, tariffs of the US Utility Rate Database."""

from __future__ import annotations

import json

import pytest

from catalog.lookup import Catalog
from catalog.tariffs import hourly_values
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID
from planner.ways_in.price_lists import read_price_list

HEADER = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice,Arch\n"
ROWS = """p5.48xlarge,192,2048,H100,8,"{'Gpus': []}",us-east-1,us-east-1a,50.00,20.5,x86_64
p5.48xlarge,192,2048,H100,8,"{'Gpus': []}",us-east-1,us-east-1b,52.00,,x86_64
p5.48xlarge,192,2048,H100,8,"{'Gpus': []}",eu-south-9,eu-south-9a,60.00,0,x86_64
m5.large,2,8,,,,us-east-1,us-east-1a,0.096,0.03,x86_64
"""
VIRGINIA = "AWS p5.48xlarge, on_demand, us-virginia, us-east-1"


def price_list(folder, rows=ROWS, header=HEADER, cloud="aws"):
    path = folder / cloud / "vms.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(header + rows)
    return path


def test_prices_replace_those_of_the_catalog_by_name_and_add_others(tmp_path, capsys):
    path = price_list(tmp_path)
    assert (
        main(
            [
                "catalog",
                "refresh",
                str(path),
                "--date",
                "2026-11-20",
                "--output",
                str(tmp_path / "own"),
                "--format",
                "json",
            ]
        )
        == 0
    )
    rows = {row["record"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows[f"offers/{VIRGINIA}/price"]["now"] == "50 USD/h", "the least of the zones"
    assert rows["offers/AWS p5.48xlarge, on_demand, aws:eu-south-9, eu-south-9/price"]["before"] == ""
    catalog = Catalog.load([tmp_path / "own"])
    figure = catalog.get("offers", VIRGINIA).figure("price")
    assert (figure.number, figure.date, figure.source) == (pytest.approx(50 / 3600), "2026-11-20", ("aws/vms.csv",))
    added = catalog.get("offers", "AWS p5.48xlarge, on_demand, aws:eu-south-9, eu-south-9")
    assert (added.words("region"), added.value("price")) == ("aws:eu-south-9", pytest.approx(60 / 3600))
    assert not [
        offer for offer in catalog.records("offers") if offer.words("how") == "spot" and "eu-south-9" in offer.name
    ]


def test_files_of_two_clouds_are_two_sources(tmp_path):
    azure = price_list(tmp_path, "Standard_ND96isr_H100_v5,96,1900,H100,8,,eastus,,80.0,30.0,\n", cloud="azure")
    files = [str(price_list(tmp_path)), str(azure)]
    assert main(["catalog", "refresh", *files, "--date", "2026-11", "--output", str(tmp_path / "own"), "--quiet"]) == 0
    catalog = Catalog.load([tmp_path / "own"])
    found = {source for offer in catalog.records("offers") for source in offer.figure("price").source}
    assert {"aws/vms.csv", "azure/vms.csv"} <= found


def test_rows_left_out_are_counted(tmp_path):
    notes = [fact.message.code for fact in read_price_list(price_list(tmp_path), Catalog.load(), "2026-11").notes]
    assert notes == ["ways_in.prices_read", "ways_in.free_instances", "ways_in.other_instances"]


@pytest.mark.parametrize(
    ("rows", "header", "cloud", "words"),
    [
        (ROWS.replace("52.00", "dear"), HEADER, "aws", r"vms.csv line 3, column 9: expected a price"),
        (ROWS.replace("50.00", "-1"), HEADER, "aws", r"line 2, column 9"),
        (ROWS, "Instance,Price\n", "aws", "lacks the columns instancetype, region"),
        ("p5.48xlarge,192\n", HEADER, "aws", "line 2"),
        (ROWS, HEADER, "elsewhere", "names no cloud"),
        (ROWS.replace("p5.48xlarge", "p99.large"), HEADER, "aws", "no price of an instance of AWS"),
    ],
)
def test_what_is_malformed_is_refused_by_line_and_column(tmp_path, rows, header, cloud, words):
    with pytest.raises(SpecError, match=words):
        read_price_list(price_list(tmp_path, rows, header, cloud), Catalog.load(), "2026-11")


def test_nothing_is_written_when_one_file_is_refused(tmp_path, capsys):
    files = [str(price_list(tmp_path)), str(price_list(tmp_path, cloud="elsewhere"))]
    assert main(["catalog", "refresh", *files, "--output", str(tmp_path / "own")]) == INVALID
    assert not (tmp_path / "own").exists() or not list((tmp_path / "own").iterdir())
    assert "names no cloud" in capsys.readouterr().err


def rate(**changes):
    """Write a rate with two periods of energy by the clock, a flat demand charge by season, and one by time of use."""
    day, night = [0] * 8 + [1] * 12 + [0] * 4, [0] * 24
    return {
        "label": "abc", "utility": "Example Power", "name": "Large general service",
        "energyratestructure": [[{"rate": 0.05, "adj": 0.01}], [{"max": 1000, "rate": 0.2}, {"rate": 0.1}]],
        "energyweekdayschedule": [day] * 12, "energyweekendschedule": [night] * 12,
        "flatdemandstructure": [[{"rate": 10.0}], [{"rate": 4.0}]], "flatdemandmonths": [1] * 6 + [0] * 6,
        "demandratestructure": [[{"rate": 0.0}], [{"rate": 3.0}]],
        "demandweekdayschedule": [day] * 12, "demandweekendschedule": [night] * 12, "fixedchargefirstmeter": 100.0, **changes,
    }  # fmt: skip


def tariff(folder, document):
    path = folder / "rates.json"
    path.write_text(json.dumps(document))
    return read_price_list(path, Catalog.load(), "2026-11")


def test_a_rate_becomes_a_tariff_with_bands_and_demand(tmp_path):
    found = tariff(tmp_path, {"items": [rate()]})
    assert "fixed charges" in found.notes[0].message.text()
    overlay = tmp_path / "own" / "rates.json"
    overlay.parent.mkdir()
    overlay.write_text(json.dumps({"sources": {f"{tmp_path.name}/rates.json": {"title": "rates"}}, **found.records}))
    record = Catalog.load([overlay]).get("tariffs", "Example Power: Large general service")
    kwh = 3.6e6
    weekday, weekend = hourly_values(record, 7, 2), hourly_values(record, 7, 6)
    assert weekday[3] * kwh == pytest.approx(0.06) and weekday[12] * kwh == pytest.approx(0.1), "the last block counts"
    assert [hour * kwh for hour in weekend] == pytest.approx([0.06] * 24)
    month_s = 365 * 86400 / 12
    assert record.value("demand_charge") * 1e3 * month_s == pytest.approx((4 + 10) / 2 + 3.0, rel=1e-3)


def test_blocks_by_hours_of_use_are_weighted(tmp_path):
    tiers = [{"unit": "kWh/kW", "max": 200, "rate": 0.2}, {"unit": "kWh/kW", "rate": 0.1}]
    (found,) = tariff(tmp_path, rate(energyratestructure=[tiers, tiers])).records["tariffs"]
    assert found["figures"]["price_period_a"]["value"] == f"{(200 * 0.2 + 530 * 0.1) / 730:.6g} USD/kWh"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"energyweekdayschedule": [[0] * 23] * 12}, "energyweekdayschedule"),
        ({"energyweekendschedule": [[7] * 24] * 12}, "energyweekendschedule"),
        ({"energyratestructure": [[]]}, "energyratestructure"),
        ({"energyratestructure": [[{"rate": "x"}], [{"rate": 0.1}]]}, "rate rate"),
        ({"energyratestructure": [[{"rate": 1e9}], [{"rate": 0.1}]]}, "rate rate"),
        ({"flatdemandmonths": [0] * 11}, "flatdemandmonths"),
        ({"name": "", "label": ""}, "rate name"),
        ({"energyratestructure": [[{"unit": "barrel", "rate": 0.1}]] * 2}, 'unit "barrel"'),
    ],
)
def test_a_malformed_rate_is_refused_by_its_key(tmp_path, changes, words):
    with pytest.raises(SpecError, match=words):
        tariff(tmp_path, rate(**changes))
