"""A user's own claims, in JSON and CSV: right verdicts, and every faulty row named at once."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import planner
from catalog.lookup import shipped_catalog
from planner.audit.inputs import quantity_of
from planner.cli.main import main
from planner.errors import SpecError
from planner.spec.claims import Given

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "claims"
SOURCE = {"title": "t", "publisher": "p"}


def claim(**changes):
    usual = {
        "id": "X",
        "source": SOURCE,
        "says": "s",
        "judge": "arithmetic",
        "figure": "6 chips",
        "quantities": {"a": "2 chips", "b": "3"},
        "formula": "a * b",
    }
    return {key: value for key, value in {**usual, **changes}.items() if value is not None}


def faults(*claims):
    with pytest.raises(SpecError) as error:
        planner.audit({"claims": list(claims)})
    return [str(problem) for problem in error.value.problems]


def test_ten_claims_two_of_them_impossible_and_one_true_on_condition():
    found = {each.claim.id: str(each.finding.verdict) for each in planner.audit(EXAMPLES / "ten.json").judged}
    assert found == {
        "A01": "holds",  # 72 x 7.7 TB/s / 405 GB = 1,369 tokens/s
        "A02": "cannot be",  # 3.35 TB/s / 70 GB = 48 tokens/s
        "A03": "holds when",  # 1 / (1 - s) = 2 at s = 1/2
        "A04": "mislabelled",  # 1,979 is FP8
        "A05": "attribution only",
        "A06": "holds",
        "A07": "cannot be",  # 6 x 70e9 x 15e12 / (1,024 x 989e12) = 6.2e6 s = 10.3 weeks at the full peak
        "A08": "not a matter of arithmetic",
        "A09": "holds",  # 7.7 / 3.35 = 2.3
        "A10": "holds",  # 2.5 x 2 x 3 = 15
    }


def test_the_condition_of_the_third_is_half_of_a_step():
    (third,) = (each for each in planner.audit(EXAMPLES / "ten.json").judged if each.claim.id == "A03")
    assert third.finding.condition is not None and third.finding.condition.least == pytest.approx(0.5, abs=1e-9)


def test_csv_is_judged_as_the_same_claims_in_json(capsys):
    found = {each.claim.id: each for each in planner.audit(EXAMPLES / "three.csv").judged}
    assert {id: str(each.finding.verdict) for id, each in found.items()} == {
        "B01": "cannot be",
        "B02": "holds when",
        "B03": "conflict",
    }
    # 1e12 tokens a day / (2,000 tokens/s x 86,400 s) = 5,787 chips
    assert found["B02"].finding.condition.least == pytest.approx(1e12 / 86400 / 2000, rel=1e-9)
    assert main(["audit", str(EXAMPLES / "three.csv"), "--format", "json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["B01", "B02", "B03"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"figure": "6 flurbs"}, "unknown unit"),
        ({"figure": "six"}, "expected a number with a unit"),
        ({"figure": None}, "needs the claimed `figure`"),
        ({"formula": None}, "needs a `formula`"),
        ({"formula": "a + b"}, "different units"),
        ({"formula": "a * c"}, "no quantity of the claim"),
        ({"formula": "__import__('os')"}, "expected arithmetic"),
        ({"formula": "a.b"}, "expected arithmetic"),
        ({"formula": "a / (b - 3)"}, "no value"),
        ({"formula": "a * a"}, "gives chip"),
        ({"formula": "a ** b"}, "exponent"),
        ({"judge": "guess"}, "judge"),
        ({"judge": "roofline"}, "needs under `quantities`: chips, bandwidth, bytes"),
        ({"judge": "plan"}, "needs a quantity with a `command`"),
        ({"judge": "catalog"}, "at least one of `facts`"),
        ({"judge": "ladder", "quantities": {"a": "2 x"}}, "two levers"),
        ({"quantities": {"a": "@chips/H101/hbm_bytes_per_s", "b": "3"}}, "H101"),
        ({"quantities": {"a": "@chips/H100 SXM5 80GB/speed", "b": "3"}}, "expected a figure of the catalog"),
        ({"quantities": {"a": "@market/Ascend 960", "b": "3"}}, "no offer"),
        ({"quantities": {"a": {"plan": "nowhere.json", "key": "x"}, "b": "3"}}, "nowhere.json"),
        ({"quantities": {"a": {"value": "2 chips", "low": "3 chips"}, "b": "3"}}, '"low" and "high"'),
        ({"free": {"name": "c", "from": "1", "to": "2"}}, "no quantity of the formula"),
        ({"free": {"name": "a", "from": "5 chips", "to": "2 chips"}}, 'expected "from" below'),
        ({"free": {"name": "a", "from": "1 GB", "to": "2 GB"}}, 'expected "from" below'),
        ({"source": {"title": "t"}}, "publisher"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_malformed_claim_is_refused_with_place_and_remedy(changes, expected):
    (first, *_) = faults(claim(id="fine"), claim(**changes))
    assert first.startswith("claims[1] (X)") and expected in first


def test_every_faulty_claim_is_named_at_once_and_repeats_too():
    found = faults(claim(id="A", formula="a + b"), claim(id="B"), claim(id="B"), claim(id="C", figure="?"), {"id": "D"})
    assert {each.split()[0] for each in found} == {"claims[0]", "claims[2]", "claims[3]", "claims[4]"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,title\nA,t\n", "expected a first row"),
        ("id,title,publisher,says,judge,colour\nA,t,p,s,qualitative,red\n", "unknown columns: colour"),
        ("id,title,publisher,says,judge\nA,t,p,s\n", "row 2: expected 5 cells"),
        (
            "id,title,publisher,says,judge,figure,quantities,formula\nA,t,p,s,qualitative,,,\nB,t,p,s,arithmetic,1 x,a = 2 GB,a\n",
            "row 3 (B)",
        ),
    ],
)
def test_a_malformed_csv_is_refused_by_row(tmp_path, capsys, text, expected):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    assert main(["audit", str(tmp_path / "c.csv")]) == 3
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"claims": {}}', '{"claims": []}', '{"claims": [1]}', "nonsense", '{"claims": [{"id": "A"}], "x": 1}'],
)
def test_a_file_without_claims_is_refused(tmp_path, text):
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError):
        planner.audit(tmp_path / "c.json")


def test_a_plan_beside_the_claims_gives_a_figure(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"totals": [{"cost": 284.0}]}), encoding="utf-8")
    stated = claim(
        judge="plan",
        figure="280 USD",
        formula="cost",
        quantities={"cost": {"plan": "plan.json", "key": "totals[0].cost", "unit": "USD"}},
    )
    (tmp_path / "c.json").write_text(json.dumps([stated]), encoding="utf-8")
    (found,) = planner.audit(tmp_path / "c.json").judged
    assert found.finding.ours == 284.0 and str(found.finding.verdict) == "holds"  # 284 is 1.4 % above 280


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"objective": 3}', "[" * 100_000, '{"ratios": {"busy": 1' + "0" * 400 + "}}"]
)
@pytest.mark.parametrize("key", ["ratios.busy", "totals.cost"])
def test_a_file_that_is_no_plan_is_refused_in_words(tmp_path, text, key):
    (tmp_path / "plan.json").write_text(text)
    file = tmp_path / "claims.json"
    quantities = {"a": {"plan": "plan.json", "key": key, "unit": "chips"}, "b": "1"}
    file.write_text(json.dumps({"claims": [claim(judge="plan", quantities=quantities)]}))
    with pytest.raises(SpecError) as error:
        planner.audit(file)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(("value", "low"), [(8.0, 7.2), (-8.0, -8.8)])
def test_a_better_plan_may_have_less_by_its_gap(tmp_path, value, low):
    (tmp_path / "plan.json").write_text(json.dumps({"totals": {"cost": value}, "gap": 0.1}))
    given = Given(plan="plan.json", key="totals.cost", unit="USD", by_gap=True)
    assert quantity_of(given, shipped_catalog(), tmp_path).low == pytest.approx(low)


def test_an_overlay_changes_what_is_known(tmp_path):
    stated = claim(
        judge="catalog",
        figure=None,
        formula=None,
        quantities=None,
        facts=[{"what": "bandwidth", "claimed": "4 TB/s", "known": "@chips/H100 SXM5 80GB/hbm_bytes_per_s"}],
    )
    (tmp_path / "o").mkdir()
    record = {"name": "H100 SXM5 80GB", "figures": {"hbm_bytes_per_s": {"value": "4 TB/s", "note": "own"}}}
    (tmp_path / "o" / "own.json").write_text(json.dumps({"chips": [record]}), encoding="utf-8")
    verdicts = [
        str(planner.audit({"claims": [stated]}, overlays=each).judged[0].finding.verdict)
        for each in ((), (tmp_path / "o",))
    ]
    assert verdicts == ["conflict", "holds"]


def test_new_asks_on_a_terminal_alone(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["audit", "--new"]) == 3
    assert "--new: asks its questions on a terminal" in capsys.readouterr().err
    assert main(["audit", "--new", "--claim", "N02"]) == 3


def test_new_writes_a_claim_that_is_judged_again_alike(tmp_path, monkeypatch, capsys):
    answers = "\n".join([
        "A01", "Talk", "a conference", "One H100 decodes 300 tokens a second", "guess", "roofline", "300 tokens/s", "", "chips = 1 chips", "bandwidth = 3 flurbs",
        "bandwidth = @chips/H100 SXM5 80GB/hbm_bytes_per_s", "bytes = 70 GB/token", "", "bytes = 1..200 GB/token",
    ])  # fmt: skip
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})(answers + "\n"))
    assert main(["audit", "--new", "--output", str(tmp_path / "mine.json")]) == 0
    said = capsys.readouterr().err
    assert "unknown unit" in said and "expected one of" in said and "bytes ≤ 11.17 GB/token" in said  # 3.35 TB/s / 300
    (found,) = planner.audit(tmp_path / "mine.json").judged
    assert found.finding.condition is not None and found.finding.condition.most == pytest.approx(3.35e12 / 300)


def test_new_asks_for_properties_and_a_formula(monkeypatch, capsys):
    from catalog.lookup import Catalog
    from planner.cli.claims.new import asked

    for lines, verdict in (
        (["A", "t", "p", "s", "catalog", "memory: HBM3 | @chips/H100 SXM5 80GB/memory", ""], "holds"),
        (["A", "t", "p", "s", "arithmetic", "5 x", "at least", "a = 2 x", "", "a * 2", ""], "conflict"),
        (["A", "t", "p", "s", "attribution"], "attribution only"),
    ):
        answers = iter(lines)
        _, judged = asked(Catalog.load(), lambda text, answers=answers: next(answers))
        assert str(judged.finding.verdict) == verdict
    with pytest.raises(SpecError, match="expected a text"):
        asked(Catalog.load(), lambda text: "")
    with pytest.raises(SpecError, match="flurbs"):
        planner.audit(
            {
                "claims": [
                    claim(
                        judge="catalog",
                        formula=None,
                        quantities=None,
                        facts=[
                            {
                                "what": "bandwidth",
                                "claimed": "3 flurbs",
                                "known": "@chips/H100 SXM5 80GB/hbm_bytes_per_s",
                            }
                        ],
                    )
                ]
            }
        )


def test_the_schema_accepts_what_the_parser_accepts_and_names_every_key():
    from jsonschema import Draft202012Validator

    from planner.spec.claims import Claim
    from planner.spec.schema import schema_text

    schema = json.loads(schema_text("claims"))
    assert set(schema["$defs"]["Claim"]["properties"]) == {
        field.alias or name for name, field in Claim.model_fields.items()
    }
    assert all("description" in each for each in schema["$defs"]["Claim"]["properties"].values())
    shipped = EXAMPLES.parents[1] / "catalog" / "data" / "claims.json"
    for path in (shipped, EXAMPLES / "ten.json"):
        Draft202012Validator(schema).validate(json.loads(path.read_text(encoding="utf-8")))
    assert list(Draft202012Validator(schema).iter_errors({"claims": [claim(judge="guess")]}))
    assert "`judge`" in schema_text("claims", "md")
