"""A spec that is begun on the page: questions, a model, files; hostile ones refused in words; a draft of the workspace."""

import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from planner.dashboard import sources
from planner.dashboard.editor.beginning import BOTH, MOST_BYTES, OWNED, QUESTIONS, SERVE, TRAIN, Answers, drafted
from planner.dashboard.state import store
from planner.dashboard.state.scenario import UPLOAD
from planner.dashboard.views import plan as plan_page
from planner.errors import SpecError
from planner.spec.document import at

HOME = Path(__file__).resolve().parents[3]
FLEET = ("fleet.csv", b"system,count,region\nDGX H100,4,us-texas\n")
ROWS = [{"timestamp": 1000 * i, "input_length": 100 + i, "output_length": 20, "hash_ids": [0]} for i in range(50)]
TRACE = ("trace.jsonl", "\n".join(map(json.dumps, ROWS)).encode())
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A folder of its own, and no other host: whoever asks one fails."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))

    def refuse(*_, **__):
        raise AssertionError("another host was asked")

    monkeypatch.setattr(socket, "create_connection", refuse)


def opened() -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    page._page_hash = calc_hash("new")
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def test_a_config_without_a_name_names_no_folder_of_the_server():
    config = "config.json", json.dumps(CONFIG).encode()
    documents = [drafted(Answers(config=config))[0] for _ in range(2)]
    assert documents[0] == documents[1] and documents[0]["workloads"][0]["architecture"] == "model"
    with pytest.raises(SpecError) as caught:
        drafted(Answers(config=("config.json", b"{}")))
    assert {issue.path.partition(".json")[0] for issue in caught.value.problems} == {"config"}


@pytest.mark.parametrize("work", QUESTIONS)
def test_each_question_alone_drafts_a_spec_that_is_right(work):
    document, _ = drafted(Answers(work, fleet=FLEET if work == OWNED else None))
    sources.resolved(document)
    kinds = {SERVE: ["serving"], TRAIN: ["training"], BOTH: ["serving", "training"], OWNED: ["serving"]}
    assert [workload["kind"] for workload in document["workloads"]] == kinds[work]
    assert [(row["system"], row["count"]) for row in document.get("owned", ())] == (
        [("DGX H100", 4)] if work == OWNED else []
    )
    for path in document["assumptions"]:
        assert at(document, path) is not None


def test_what_is_stated_is_no_guess():
    document, _ = drafted(Answers(BOTH, "Qwen3-32B", "500 users", "3T", "60 d", "us-texas"))
    serving, training = document["workloads"]
    assert serving["demand"]["users"]["count"] == 500 and serving["architecture"] == "Qwen3-32B"
    assert (training["tokens"], training["deadline"], training["architecture"]) == ("3T", "60 d", "Qwen3-32B")
    assert document["sites"][0]["region"] == "us-texas"
    stated = ("workloads[1].tokens", "workloads[1].deadline", "sites[0].region", "workloads[0].architecture")
    assert not set(stated) & set(document["assumptions"])


def test_a_trace_alone_is_a_rate_and_lengths():
    document, notes = drafted(Answers(trace=TRACE))
    (workload,) = document["workloads"]
    assert workload["demand"]["requests_per_s"] == pytest.approx(50 / 49, rel=0.05) and notes
    assert workload["lengths"]["input"] == pytest.approx(124.5, abs=1)


def test_a_model_that_the_catalog_lacks_needs_its_config_and_no_host_is_asked():
    with pytest.raises(SpecError, match=r"config\.json"):
        drafted(Answers(model="nobody/NewModel-7"))
    document, _ = drafted(Answers(BOTH, model="nobody/NewModel-7", config=("config.json", json.dumps(CONFIG).encode())))
    assert {each["architecture"] for each in document["workloads"]} == {"NewModel-7"}
    near, _ = drafted(Answers(model="someone/Qwen3-32B-FP8"))
    assert near["workloads"][0]["architecture"] == "Qwen3-32B"
    assert "someone/Qwen3-32B-FP8" in near["assumptions"]["workloads[0].architecture"]


@pytest.mark.parametrize(
    "model", ["..", "/etc", "../../x", "a/../b", "~", "x" * 300, "a\0b", "hf:", "hf:../x", "<b>", "a/b/c", "-x"]
)
def test_a_model_that_is_a_path_or_no_name_is_refused_in_words(model, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    try:
        document, _ = drafted(Answers(model=model))
    except SpecError as error:
        assert str(tmp_path) not in str(error)
    else:
        assert model == "hf:" and "catalog" not in document  # no name at all, which is a guess


def test_a_folder_that_has_the_name_of_a_model_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "org" / "model").mkdir(parents=True)
    (tmp_path / "org" / "model" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="no record"):
        drafted(Answers(model="org/model"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trace.csv", b""),
        ("../../t.csv", b"\xff\xfe\x00"),
        ("t.jsonl", b"{" * 5000),
        ("t.csv", b"a,b\n1,2\n"),
        ("\0.csv", b"[]"),
    ],
)
def test_hostile_files_are_refused_in_words(name, content):
    for given in (
        {"trace": (name, content)},
        {"work": OWNED, "fleet": (name, content)},
        {"model": "a", "config": (name, content)},
    ):
        with pytest.raises(SpecError) as refused:
            drafted(Answers(**given))
        assert "/tmp" not in str(refused.value) and all(problem.message for problem in refused.value.problems)


def test_problems_of_all_answers_are_told_at_once():
    with pytest.raises(SpecError) as refused:
        drafted(Answers(OWNED, "..", "much", trace=("t.csv", b"x" * (MOST_BYTES + 1))))
    assert {problem.path for problem in refused.value.problems} == {"--rate", "--fleet", "t.csv", "--model"}
    with pytest.raises(SpecError) as refused:
        drafted(Answers(TRAIN, tokens="many", deadline="-5 d"))
    assert {problem.path for problem in refused.value.problems} == {"workloads[0].tokens", "workloads[0].deadline"}


def test_a_draft_is_a_scenario_of_the_workspace_with_its_guesses():
    page = opened()
    assert not page.exception
    page.button_group(key="new-aim").set_value(TRAIN).run()
    page.text_input(key="new-tokens").set_value("lots").run()
    page.button(key="new-draft").click().run()
    assert not page.exception and any("Tokens to train on" in each.value for each in page.markdown)
    assert page.session_state.work.scenario.base != UPLOAD
    page.text_input(key="new-tokens").set_value("2T").run()
    page.button(key="new-draft").click().run()
    work = page.session_state.work
    assert not page.exception and page.success and work.scenario.base == UPLOAD
    assert work.scenario.document()["workloads"][0]["tokens"] == "2T" and work.kept
    assert len(page.table[0].value) == len(work.scenario.document()["assumptions"])
    page.button_group(key="new-aim").set_value(OWNED).run()
    page.button(key="new-draft").click().run()
    assert not page.exception and any("inventory" in each.value for each in page.markdown)
    page.file_uploader(key="new-fleet").set_value([(*FLEET, "text/csv")]).run()
    page.button(key="new-draft").click().run()
    assert not page.exception and work.scenario.document()["owned"][0]["count"] == 4
