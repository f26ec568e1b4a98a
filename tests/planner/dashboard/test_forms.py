"""Forms of a spec: the schema as a tree, values written as fields and read back, and edits of places."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard import sources
from planner.dashboard.editor import forms
from planner.dashboard.editor.draft import Draft
from planner.dashboard.editor.nodes import FIELDS, Node, spec_node, walked
from planner.dashboard.editor.tables import Change
from planner.dashboard.state.scenario import Scenario
from planner.spec.schema import spec_schema
from tests.planner.dashboard.filled import keys_of_schema

MAIN = sources.example(sources.MAIN)


def written_back(node: Node, value):
    """The value that the texts of its fields give, each read without a look at what stood there."""
    if not forms.fits(node, value):
        return forms.read(forms.UNKNOWN, forms.shown(forms.UNKNOWN, value), None)
    match node.kind:
        case "block":
            return {key: written_back(forms.parts_of(node, value)[key], each) for key, each in value.items()}
        case "map":
            return {key: written_back(node.inner, each) for key, each in value.items()}
        case "list" if node.is_flat:
            rows = [
                {key: forms.cell(node.inner.parts.get(key, forms.UNKNOWN), each[key]) for key in each} for each in value
            ]
            empty = [{} for _ in rows]
            return forms.changed_rows(node, empty, Change(dict(enumerate(rows))))
        case "list":
            return [written_back(node.inner, each) for each in value]
        case "variants":
            return written_back(node.variants[forms.variant_of(node, value)], value)
        case "switch":
            return value
    return forms.read(node, forms.shown(node, value), None)


@pytest.mark.parametrize("name", sources.examples())
def test_every_example_opened_in_the_form_and_written_back_is_equal(name):
    document = sources.example(name)
    assert json.dumps(written_back(spec_node(), document)) == json.dumps(document)


def test_the_tree_has_every_key_of_the_schema_and_no_other():
    keys = keys_of_schema(spec_schema())
    assert {path for path, _ in walked(spec_node()) if path} == keys and len(keys) > 500


def test_only_what_the_schema_leaves_open_is_a_text_of_json():
    assert {path for path, node in walked(spec_node()) if node.kind == "json"} == {
        ("catalog", "{}"),  # records of the catalog, of any shape
        ("series", "{}", "columns", "{}"),  # hours, some of them null
    }


def test_a_block_that_is_added_has_what_its_schema_fixes_and_the_blocks_that_it_must_have():
    serving, training, _ = spec_node().parts["workloads"].inner.variants
    assert forms.fresh(serving) == {"kind": "serving", "demand": {}, "lengths": {}, "origins": [{}]}
    assert forms.fresh(training) == {"kind": "training"}
    for path, node in walked(spec_node()):
        if node.kind not in (*FIELDS, "json"):
            assert forms.fits(node, forms.fresh(node)), path


FIELD = {"/".join(path): node for path, node in walked(spec_node()) if node.kind in ("figure", "many")}
TEXTS = st.text(min_size=1).filter(lambda text: text == text.strip())
SCALARS = {"string": TEXTS, "integer": st.integers(), "number": st.floats(allow_nan=False, allow_infinity=False)}


TYPED = sorted(place for place, node in FIELD.items() if node.types)  # lists of fixed words have none


@given(st.sampled_from(TYPED), st.data())
def test_what_a_field_may_hold_is_read_back_as_it_was(place, data):
    node = FIELD[place]
    entry = st.one_of([SCALARS[kind] for kind in sorted(node.types)])
    value = data.draw(st.lists(entry, min_size=1, max_size=4) if node.kind == "many" else entry)
    assert forms.read(node, forms.shown(node, value), None) == value


@given(st.sampled_from(sorted(FIELD)), st.text())
def test_whatever_is_typed_is_read(place, text):
    assert forms.read(FIELD[place], text, None) is not None or not text.strip()


def test_an_edit_of_a_named_entry_writes_the_whole_block():
    """Names such as `chips/H100 SXM5 80GB/hbm_bytes_per_s` or `v1.5` are none of a path."""
    document = {**MAIN, "overrides": {"a.b/c [d]": {"value": 1, "note": "x"}, "e": {"value": 2, "note": "y"}}}
    before = copy.deepcopy(document)
    anchor, place = ("overrides",), ("overrides", "a.b/c [d]", "value")
    assert forms.edit(document, place, 3, anchor) == {
        "overrides": {"a.b/c [d]": {"value": 3, "note": "x"}, "e": {"value": 2, "note": "y"}}
    }
    assert list(forms.edit(document, place[:2], None, anchor)["overrides"]) == ["e"]
    assert document == before
    assert forms.edit(document, ("sites", 1), None) == {"sites": [MAIN["sites"][0], *MAIN["sites"][2:]]}
    assert forms.edit(document, ("sites", 1, "power"), "3 MW") == {"sites[1].power": "3 MW"}


def test_edits_of_a_form_are_problems_at_their_places_all_at_once():
    draft = Draft.of(Scenario.of_upload(MAIN))
    draft = draft.with_edits({"sites[0].power": "3 MB", "workloads[0].lengths.input": "many"})
    assert {problem.path for problem in draft.problems} == {"sites[0].power", "workloads[0].lengths.input"}
    assert not draft.with_edits({"sites[0].power": "3 MW", "workloads[0].lengths.input": 100}).problems
