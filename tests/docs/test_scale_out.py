"""The samples of docs/scale-out.md are well-formed, and the parts of a file make the whole."""

import json
import re
import subprocess

import pytest
import yaml

from planner.cli.main import main


def blocks(root, language):
    text = (root / "docs/scale-out.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_slurm_script_and_the_command_of_the_job_parse(root):
    (script,), (job,) = blocks(root, "bash"), blocks(root, "yaml")
    container = yaml.safe_load(job)["spec"]["template"]["spec"]["containers"][0]
    for text in (script, container["args"][0]):
        assert subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0
    shown = subprocess.run(["bash", "-c", f"JOB_COMPLETION_INDEX=3; echo {container['args'][0]}"], text=True, capture_output=True)
    assert "--shard 4/16 --output /data/answers.3.jsonl" in shown.stdout


def test_the_job_is_indexed_and_its_parts_are_those_of_the_command(root):
    (job,) = blocks(root, "yaml")
    spec = yaml.safe_load(job)["spec"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == 16


def test_shards_answer_every_line_once(tmp_path, tiny, capsys):
    specs = tmp_path / "specs.jsonl"
    specs.write_text("".join(json.dumps({"id": number}) + "\n" for number in range(7)))
    found = []
    for part in (1, 2, 3):
        main(["batch", str(specs), "--shard", f"{part}/3", "-q"])
        found += [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(found) == list(range(7)) and found != sorted(found)
    with pytest.raises(SystemExit):
        main(["batch", str(specs), "--shard", "4/3"])
