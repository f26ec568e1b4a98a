"""Finding records, overriding figures, laying a user's files over ours, and saying all that is wrong at once."""

import json
import pickle

import pytest

from catalog import Catalog, CatalogError, MissingFigure, UnknownName
from catalog.units import TERA

CATALOG = Catalog.load()
H100 = "chips/H100 SXM5 80GB/hbm_bytes_per_s"


def problems(call):
    with pytest.raises(CatalogError) as error:
        call()
    return dict(error.value.problems)


def test_a_record_is_found_by_name_or_alias_in_any_spelling():
    names = ("H100 SXM5 80GB", "H100", "h100-sxm", "H100_SXM", " h100 sxm5 80gb ")
    assert {CATALOG.get("chips", n).name for n in names} == {"H100 SXM5 80GB"}
    assert CATALOG.get("regions", "aws:us-east-1").name == "us-virginia"
    assert CATALOG.get("chips", "H100").value("hbm_bytes_per_s") == 3.35 * TERA


def test_an_unknown_name_lists_close_ones():
    with pytest.raises(UnknownName) as error:
        CATALOG.get("chips", "H100 SMX5 80GB")
    assert error.value.close[0] == "H100 SXM5 80GB"
    assert 'chips: unknown name "H100 SMX5 80GB"; close names: "H100 SXM5 80GB"' in str(error.value)
    with pytest.raises(UnknownName) as error:
        CATALOG.get("regions", "us-virgina")
    assert error.value.close[0] == "us-virginia"
    with pytest.raises(UnknownName) as error:
        CATALOG.get("chip", "H100")
    assert "chips" in error.value.close
    with pytest.raises(UnknownName):
        CATALOG.source("S9999")


def test_a_missing_figure_says_how_to_state_it():
    record = CATALOG.get("chips", "A800")
    assert record.get("price") is None
    with pytest.raises(MissingFigure) as error:
        record.figure("price")
    assert error.value.path == "chips/A800 SXM 80GB/price"
    assert '"chips/A800 SXM 80GB/price": {"value": "420M CNY", "note": "…"}' in str(error.value)


def test_errors_survive_a_worker_process():
    for error in (
        UnknownName("chips", "x", ("y",)),
        MissingFigure("chips", "x", "tdp_w", "20 MW"),
        CatalogError([("a", "b")]),
    ):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert pickle.loads(pickle.dumps(CATALOG)).digest == CATALOG.digest


def test_an_override_changes_one_figure_and_says_so():
    changed = CATALOG.with_overrides({H100: {"value": "3.2 TB/s", "note": "measured here"}})
    figure = changed.get("chips", "H100").figure("hbm_bytes_per_s")
    assert (figure.value, figure.kind, figure.note, figure.printed) == (3.2e12, "override", "measured here", "3.2 TB/s")
    assert changed.source(figure.source[0]).title.startswith("stated by the user")
    assert changed.get("chips", "H100").value("tdp_w") == CATALOG.get("chips", "H100").value("tdp_w")
    assert CATALOG.get("chips", "H100").value("hbm_bytes_per_s") == 3.35e12
    assert changed.digest != CATALOG.digest


def test_an_override_may_name_an_alias_a_slash_and_a_text():
    changed = CATALOG.with_overrides(
        {
            "chips/Biren BR104 / 104P/price": {"value": "9k USD", "note": "quote"},
            "chips/H20/export_cn": {"value": "barred", "note": "reading of the new rule"},
            "regions/cn-guizhou/electricity_price": {"value": "0.4 CNY/kWh", "note": "contract"},
        }
    )
    assert changed.get("chips", "Biren BR104 / 104P").value("price") == 9000
    assert changed.get("chips", "H20").words("export_cn") == "barred"
    assert changed.get("regions", "cn-guizhou").figure("electricity_price").unit == "CNY/J"


def test_overrides_add_up_and_the_later_one_holds():
    first = CATALOG.with_overrides({H100: {"value": "3 TB/s", "note": "a"}})
    second = first.with_overrides(
        {H100: {"value": "2 TB/s", "note": "b"}, "chips/H100/tdp_w": {"value": "650 W", "note": "cap"}}
    )
    assert second.get("chips", "H100").value("hbm_bytes_per_s") == 2e12
    assert second.get("chips", "H100").value("tdp_w") == 650


def test_all_that_is_wrong_with_overrides_is_said_at_once():
    found = problems(
        lambda: CATALOG.with_overrides(
            {
                H100: {"value": "3.2 TB", "note": "x"},
                "chips/H100/tdp": {"value": "650 W", "note": "x"},
                "chips/H1000 SXM5 80GB/tdp_w": {"value": "650 W", "note": "x"},
                "chip/H100/tdp_w": {"value": "650 W", "note": "x"},
                "tdp_w": {"value": "650 W", "note": "x"},
                "chips/H100/hbm_bytes": {"value": "80 GB"},
                "chips/H200/hbm_bytes": "80 GB",
                "chips/H100/export_cn": {"value": "maybe", "note": "x"},
            }
        )
    )
    assert found[f"overrides.{H100}.value"] == 'expected a bandwidth such as "4.8 TB/s", got "3.2 TB"'
    assert '"tdp_w"' in found["overrides.chips/H100/tdp"]
    assert '"H100 SXM5 80GB"' in found["overrides.chips/H1000 SXM5 80GB/tdp_w"]
    assert '"chips"' in found["overrides.chip/H100/tdp_w"]
    assert "expected a path" in found["overrides.tdp_w"]
    assert "expected a reason" in found["overrides.chips/H100/hbm_bytes.note"]
    assert "expected an object" in found["overrides.chips/H200/hbm_bytes"]
    assert "expected one of barred" in found["overrides.chips/H100/export_cn"]
    assert len(found) == 8


def overlay(tmp_path, content, name="mine.json"):
    (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def test_an_overlay_changes_a_record_figure_by_figure(tmp_path):
    directory = overlay(
        tmp_path,
        {
            "chips": [
                {
                    "name": "h100-sxm",
                    "aliases": ["our H100"],
                    "text": {"note": "refurbished"},
                    "figures": {"price": {"value": "19k USD", "note": "quote"}},
                }
            ]
        },
    )
    catalog = Catalog.load([directory])
    record = catalog.get("chips", "our h100")
    assert record.name == "H100 SXM5 80GB"
    assert record.value("price") == 19_000 and record.value("tdp_w") == 700 and record.words("note") == "refurbished"
    assert record.figure("price").kind == "override"
    assert catalog.source(record.figure("price").source[0]).title == "stated by the user in overlay:mine.json"
    assert len(catalog.names("chips")) == len(CATALOG.names("chips"))
    assert catalog.digest != CATALOG.digest


def test_an_overlay_adds_records_that_refer_to_each_other(tmp_path):
    directory = overlay(
        tmp_path,
        {
            "sources": {"Q1": {"title": "quotation of a reseller", "date": "2026-10", "confidence": "B"}},
            "chips": [
                {"name": "X1", "figures": {"bf16_flop_per_s": "256 TFLOP/s", "hbm_bytes": {"value": 64, "unit": "GB"}}}
            ],
            "systems": [{"name": "X1 node", "text": {"chip": "X1"}, "figures": {"chips": 8}}],
            "offers": [
                {
                    "name": "X1 node, quoted",
                    "text": {"system": "X1 node", "how": "buy"},
                    "figures": {
                        "price": {
                            "value": "1.1M CNY",
                            "low": "1M CNY",
                            "high": "1.2M CNY",
                            "source": ["Q1"],
                            "kind": "published-price",
                            "confidence": "B",
                        }
                    },
                }
            ],
        },
    )
    catalog = Catalog.load([directory])
    price = catalog.get("offers", "X1 node, quoted").figure("price")
    assert (price.value, price.low, price.unit, price.kind) == (1.1e6, 1e6, "CNY", "published-price")
    assert catalog.source("Q1").date == "2026-10"
    assert catalog.get("chips", "X1").value("hbm_bytes") == 64e9


def test_a_later_overlay_wins(tmp_path):
    overlay(tmp_path, {"chips": [{"name": "H100", "figures": {"tdp_w": "600 W"}}]}, "a.json")
    overlay(tmp_path, {"chips": [{"name": "H100", "figures": {"tdp_w": "500 W"}}]}, "b.json")
    assert Catalog.load([tmp_path]).get("chips", "H100").value("tdp_w") == 500
    assert Catalog.load([tmp_path / "b.json", tmp_path / "a.json"]).get("chips", "H100").value("tdp_w") == 600


def test_a_record_twice_in_one_file_is_refused(tmp_path):
    twice = [{"name": "H100", "figures": {"tdp_w": "600 W"}}, {"name": "h100", "figures": {"tdp_w": "500 W"}}]
    with pytest.raises(CatalogError) as error:
        Catalog.load([overlay(tmp_path, {"chips": twice})])
    assert 'chips[1]: chips[0] has named "h100" already' in str(error.value)


def test_all_that_is_wrong_with_overlays_is_said_at_once(tmp_path):
    directory = overlay(
        tmp_path,
        {
            "chip": [],
            "systems": [
                {"name": "N1", "text": {"chip": "H1000"}, "figures": {"chips": 8}},
                {"name": "N2", "figures": {"chips": "8 s"}},
                {"figures": {}},
                3,
                {"name": "N5", "text": {"chip": "of: nobody"}, "figures": {"chips": 8}},
                {"name": "N6", "text": {"chip": ""}, "figures": {"chips": 8}},
            ],
            "chips": [
                {
                    "name": "C1",
                    "figuers": {},
                    "figures": {
                        "hbm_byte": "80 GB",
                        "tdp_w": {"value": "700 W", "sauce": 1},
                        "price": {"value": "1 USD", "low": "2 USD"},
                        "hbm_bytes": {"value": "80 GB", "source": ["S0"]},
                    },
                }
            ],
            "regions": {},
        },
    )
    found = {path.split(": ")[-1]: words for path, words in problems(lambda: Catalog.load([directory])).items()}
    assert '"chips"' in found["chip"]
    assert 'unknown name "H1000"' in found["systems[0].text.chip"] and "close names" in found["systems[0].text.chip"]
    assert found["systems[1].figures.chips.value"] == 'expected a number of chips such as "2048 chips", got "8 s"'
    assert found["systems[1].text.chip"] == "expected chip record"
    assert "expected the name" in found["systems[2].name"]
    assert "expected an object" in found["systems[3]"]
    assert found["systems[5].text.chip"] == "expected chip record"
    assert 'unknown name "of: nobody"' in found["systems[4].text.chip"]
    assert '"figures"' in found["chips[0].figuers"]
    assert '"hbm_bytes"' in found["chips[0].figures.hbm_byte"]
    assert '"source"' in found["chips[0].figures.tdp_w.sauce"]
    assert found["chips[0].figures.price.low"] == "expected low <= value <= high"
    assert 'unknown source "S0"' in found["chips[0].figures.hbm_bytes.source"]
    assert "expected a list" in found["regions"]


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    found = problems(lambda: Catalog.load([tmp_path, tmp_path / "absent"]))
    assert any("bad.json" in path and "JSON" in words for path, words in found.items())
    assert found[str(tmp_path / "absent")] == "no such file or directory"
    (tmp_path / "bad.json").write_text("[]")
    assert "expected an object" in next(iter(problems(lambda: Catalog.load([tmp_path])).values()))


def test_a_block_of_a_spec_needs_a_reason_for_each_figure():
    block = {"chips": [{"name": "X2", "figures": {"tdp_w": {"value": "500 W", "note": "estimate"}}}]}
    assert Catalog.load(blocks=[block]).get("chips", "X2").value("tdp_w") == 500
    del block["chips"][0]["figures"]["tdp_w"]["note"]
    assert "expected a reason" in problems(lambda: Catalog.load(blocks=[block]))["catalog.chips[0].figures.tdp_w.note"]


@pytest.mark.parametrize(
    "figure",
    [
        {"value": [1, "x"], "unit": "W"},
        {"value": [], "unit": "W"},
        {"value": True, "unit": "W"},
        {"value": 5, "unit": 7},
        {"value": 5, "unit": "s"},
        {"value": 5, "unit": "furlong"},
        {"value": 5},
        {"value": None},
        {},
        [],
        7,
        {"value": "5 W", "kind": "guess"},
        {"value": "5 W", "confidence": "D"},
        {"value": "5 W", "source": "ml-engineering-accelerators-2026"},
        {"value": "5 W", "note": 3},
        {"value": float("nan"), "unit": "W"},
    ],
)
def test_a_malformed_figure_is_a_problem_and_not_a_crash(tmp_path, figure):
    directory = overlay(tmp_path, {"chips": [{"name": "H100", "figures": {"tdp_w": figure}}]})
    assert any("tdp_w" in path for path in problems(lambda: Catalog.load([directory])))


def test_the_digest_depends_on_what_is_stated_and_on_nothing_else():
    one = {H100: {"value": "3 TB/s", "note": "a"}, "chips/H100/tdp_w": {"value": "650 W", "note": "b"}}
    other = dict(reversed(one.items()))
    assert CATALOG.digest == Catalog.load().digest
    assert CATALOG.with_overrides(one).digest == CATALOG.with_overrides(other).digest
    assert len({CATALOG.digest, CATALOG.with_overrides(one).digest, Catalog.load(blocks=[{"chips": []}]).digest}) == 3


def test_constants_come_as_numbers_by_field():
    serving = CATALOG.constants("serving")
    assert 0.5 < serving["memory_efficiency"] < 1
    assert all(isinstance(v, float) for v in serving.values())
    assert CATALOG.constants("nothing") == {}


@pytest.mark.parametrize("value", [1.0, [1.0], [1.0] * 3])
def test_an_overlay_gives_a_series_as_many_values_as_it_has(tmp_path, value):
    name, figure = next(
        (record.name, key)
        for record in Catalog.load().records("constants")
        for key, found in record.figures.items()
        if isinstance(found.value, tuple)
    )
    overlay = {"constants": [{"name": name, "figures": {figure: {"value": value, "unit": "1"}}}]}
    (tmp_path / "a.json").write_text(json.dumps(overlay))
    with pytest.raises(CatalogError, match="expected a list of"):
        Catalog.load([tmp_path])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"sources": [1]}, "sources: expected"),
        ({"sources": {"a": 5}}, "sources: expected"),
        ({"sources": {"a": {"title": "t", "date": 5}}}, "sources: expected"),
        (
            {
                "chips": [
                    {"name": "H100 SXM5 80GB", "figures": {"hbm_bytes_per_s": {"value": "3 TB/s", "low": ["1 TB/s"]}}}
                ]
            },
            "low: expected one value, got a list",
        ),
        (
            {"chips": [{"name": "H100 SXM5 80GB", "figures": {"hbm_bytes_per_s": {"value": ["3 TB/s"]}}}]},
            "expected one value, got a list of 1",
        ),
    ],
)
def test_a_malformed_overlay_is_told_with_its_place(tmp_path, content, words):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(CatalogError, match=words):
        Catalog.load([tmp_path])


def test_specs_and_plans_in_a_folder_of_overlays_are_left_out(tmp_path):
    chip = {"name": "own chip", "figures": {"tdp_w": {"value": 700, "unit": "W"}}}
    (tmp_path / "own.json").write_text(json.dumps({"chips": [chip]}))
    for name, document in (
        ("spec", {"name": "s", "workloads": [], "sites": []}),
        ("case", {"workload": {}}),
        ("run", {"mean_ttft_ms": 3.0, "ttfts": [0.1]}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    assert Catalog.load([tmp_path]).has("chips", "own chip")
    (tmp_path / "wrong.json").write_text(json.dumps({"chipz": []}))
    with pytest.raises(CatalogError, match="chipz"):
        Catalog.load([tmp_path])
    with pytest.raises(CatalogError, match=r"spec\.json.*is a spec, a plan or a case, and no overlay"):
        Catalog.load([tmp_path / "own.json", tmp_path / "spec.json"])
