"""A training run that is drafted: beside a service or alone, stated figures as they are, guesses marked, options of the other work refused."""

import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.pipeline import checked
from planner.ways_in.training import DEADLINE, TOKENS, TRAIN, Run, with_run, work_problems

SERVICE = {"name": "requests", "kind": "serving", "architecture": "Qwen3-32B", "lengths": {"input": 1, "output": 2}}
DRAFT = {
    "workloads": [SERVICE],
    "assumptions": {"workloads[0].architecture": "why", "workloads[0].lengths.input": "so", "sites[0].region": "there"},
}


def test_a_run_beside_a_service_has_its_network_and_the_guess_at_it():
    found = with_run(DRAFT, Run("2T"))
    service, run = found["workloads"]
    assert service == SERVICE and (run["architecture"], run["tokens"], run["deadline"]) == ("Qwen3-32B", "2T", DEADLINE)
    added = set(found["assumptions"]) - set(DRAFT["assumptions"])
    assert added == {"workloads[1].architecture", "workloads[1].deadline"}
    assert DRAFT["workloads"] == [SERVICE]


def test_a_run_alone_takes_the_place_of_the_service_and_of_the_guesses_at_it():
    found = with_run(DRAFT, Run(deadline="30 d", is_alone=True))
    (run,) = found["workloads"]
    assert run["kind"] == "training" and run["tokens"] == TOKENS
    assert set(found["assumptions"]) == {"sites[0].region", "workloads[0].architecture", "workloads[0].tokens"}
    assert "assumptions" not in with_run({"workloads": [SERVICE]}, Run("1T", "30 d", is_alone=True))


@pytest.mark.parametrize("work", ["serve", "train", "both"])
def test_each_work_alone_is_a_spec(work):
    document = planner.init(work=work)
    kinds = {"serve": ["serving"], "train": ["training"], "both": ["serving", "training"]}[work]
    assert [each["kind"] for each in document["workloads"]] == kinds
    checked(document)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"work": "train", "rate": 5.0, "lengths": "10,20"}, "--rate, --lengths"),
        ({"tokens": "1T"}, "--tokens"),
        ({"work": "sing"}, "serve"),
    ],
)
def test_options_of_another_work_are_refused_by_name(given, option):
    with pytest.raises(SpecError, match=option) as refused:
        planner.init(**given)
    assert [problem.path for problem in refused.value.problems] == ["--work"]


def test_the_command_drafts_a_run(capsys):
    assert (
        main(["init", "--work", "train", "--model", "Qwen3-32B", "--tokens", "2T", "--deadline", "60 d", "--quiet"])
        == 0
    )
    (run,) = json.loads(capsys.readouterr().out)["workloads"]
    assert (run["tokens"], run["deadline"]) == ("2T", "60 d")


def test_bytes_in_another_encoding_are_refused_in_words():
    for name in ("tokens", "deadline"):
        (problem,) = work_problems(TRAIN, {name: "1\udcffT"})
        assert problem.path == f"--{name}" and "half of a character" in problem.message
