"""Traces in the published layouts, made here: rate, shape, lengths and reuse, and what is wrong by line and column."""

from __future__ import annotations

import gzip
import json
import statistics
from datetime import UTC, datetime, timedelta

import pytest

from planner.errors import SpecError
from planner.ways_in import traces
from planner.ways_in.traces import read_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def written(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def azure_week(per_hour):
    """A week from Monday 2023-11-13, UTC, with `per_hour(moment)` requests at even distances in each hour, written as the 2024 files are."""
    start = datetime(2023, 11, 13, tzinfo=UTC)
    lines = []
    for hour in range(7 * 24):
        moment = start + timedelta(hours=hour)
        count = per_hour(moment)
        lines += [
            f"{(moment + timedelta(seconds=3600 * i / count)).isoformat(sep=' ')},{100 + i},{10}\n"
            for i in range(count)
        ]
    end = start + timedelta(days=7)
    return AZURE + "".join(lines) + f"{end.isoformat(sep=' ')},100,10\n"


def test_azure_2023_has_seven_decimals_and_no_zone(tmp_path):
    text = AZURE + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:13.9799600,3180,8\n"
    found = read_trace(written(tmp_path, text))
    assert found.layout == "Azure LLM inference" and found.start == "2023-11-16T18:17:03"
    assert found.rate == pytest.approx(0.1) and found.span_s == pytest.approx(10.0)
    assert found.input.mean == 3994 and found.input.cv == pytest.approx(814 / 3994)
    assert found.profile is None and found.week is None
    assert [note.message.code for note in found.notes] == ["ways_in.trace_read", "ways_in.trace_is_short"]


def test_a_week_gives_the_hours_of_the_zone_and_the_weekdays(tmp_path):
    text = azure_week(lambda moment: 40 if moment.hour == 12 else 20 if moment.weekday() < 5 else 10)
    found = read_trace(written(tmp_path, text), "Asia/Tokyo")
    weekly = 7 * 40 + 23 * (5 * 20 + 2 * 10)
    assert found.rate == pytest.approx(weekly / (7 * 24 * 3600), rel=1e-3)
    busiest = max(range(24), key=lambda hour: found.profile[hour])
    assert busiest == 21 and found.profile[21] == pytest.approx(40 * 168 / weekly, rel=1e-3)
    assert sum(found.profile) == pytest.approx(24)
    utc = read_trace(written(tmp_path, text))
    assert utc.week[0] == pytest.approx((40 + 23 * 20) * 7 / weekly, rel=1e-2) and utc.week[6] < 0.7
    assert utc.peak_to_mean == pytest.approx(40 * 168 / weekly, rel=1e-3)


def test_half_hours_of_a_zone_are_kept_apart(tmp_path):
    text = azure_week(lambda moment: 30 if moment.hour == 3 else 10)
    found = read_trace(written(tmp_path, text), "Asia/Kolkata")  # 03:00 UTC is 08:30
    assert found.profile[8] == pytest.approx(found.profile[9], rel=1e-2) and found.profile[8] > 1.5 * found.profile[7]


def test_burstgpt_is_told_by_its_midnight_and_fails_are_left_out(tmp_path):
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    rows = [f"{3600 * i + 1800},ChatGPT,{500},{100},{600},Conversation log\n" for i in range(26)]
    found = read_trace(written(tmp_path, head + "".join(rows) + "90010,GPT-4,30,0,30,API log\n"))
    assert found.layout == "BurstGPT" and found.requests == 26 and found.left_out == 1
    assert found.profile is not None and found.week is None and found.start == ""
    assert "ways_in.trace_left_out" in [note.message.code for note in found.notes]


def mooncake(*rows):
    return "".join(
        json.dumps({"timestamp": t, "input_length": i, "output_length": o, "hash_ids": blocks}) + "\n"
        for t, i, o, blocks in rows
    )


def test_mooncake_reuse_is_that_of_leading_blocks(tmp_path):
    text = mooncake(
        (0, 1024, 50, [1, 2]), (3000, 1100, 70, [1, 2, 3]), (6000, 900, 60, [4, 2]), (9000, 1024, 50, [1, 2])
    )
    found = read_trace(written(tmp_path, text, "t.jsonl"))
    assert found.layout == "Mooncake" and found.rate == pytest.approx(3 / 9)
    assert (
        found.reuse.hit_rate == 0.5 and found.reuse.prefix_tokens == 1024
    )  # the second and the fourth; block 2 does not lead the third
    assert found.reuse.found_by_size[-1] == (float("inf"), pytest.approx(2048 / 4048))


def test_a_small_cache_forgets_the_block_used_longest_ago(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "CACHE_TOKENS", (1024.0, 1536.0))
    text = mooncake((0, 512, 5, [1]), (1, 512, 5, [2]), (2, 512, 5, [3]), (3, 512, 5, [1]))
    shares = dict(read_trace(written(tmp_path, text, "t.jsonl")).reuse.found_by_size)
    assert shares == {1024.0: 0.0, 1536.0: 0.25, float("inf"): 0.25}


def test_pairs_have_lengths_and_no_rate(tmp_path):
    pairs = [[100, 10], [200, 20], [300, 30], [400, 40]]
    found = read_trace(written(tmp_path, json.dumps(pairs), "p.json"))
    assert found.rate is None and found.correlation == pytest.approx(1.0) and found.requests == 4
    assert found.input.quantiles == (200, 400, 400, 400) and found.input.most == 400
    assert [(band.share, band.least, band.output_mean) for band in found.joint] == [
        (0.25, 100, 10.0), (0.25, 200, 20.0), (0.25, 300, 30.0), (0.25, 400, 40.0),
    ]  # fmt: skip


def test_long_traces_are_thinned_for_the_joint_distribution_alone(tmp_path, monkeypatch):
    pairs = [[i + 1, 2 * (i + 1)] for i in range(100)]
    path = written(tmp_path, json.dumps(pairs), "p.json")
    whole = read_trace(path)
    monkeypatch.setattr(traces, "MOST_PAIRS", 60)
    thin = read_trace(path)
    assert thin.input == whole.input and thin.correlation == pytest.approx(1.0)
    assert "ways_in.trace_thinned" in [note.message.code for note in thin.notes]


def test_compressed_files_and_columns_in_another_order_are_read(tmp_path):
    path = tmp_path / "t.csv.gz"
    text = "NumImages,GeneratedTokens,TIMESTAMP,ContextTokens\n0,7,2025-01-01 00:00:00,70\n1,9,2025-01-01 00:00:02,90\n"
    path.write_bytes(gzip.compress(text.encode()))
    found = read_trace(path)
    assert found.input.mean == 80 and found.output.mean == 8


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("", "t.csv", ["t.csv: is empty"]),
        ("a,b\n1,2\n", "t.csv", ["t.csv: is no trace that is read"]),
        (
            AZURE + "2023-11-16 18:17,10,x\nnoon,-1,5\n2023-11-16 18:17,10\n",
            "t.csv",
            [
                "t.csv line 2, column 3: GeneratedTokens: expected a whole number of tokens",
                "t.csv line 3, column 1: TIMESTAMP: expected a date",
                "t.csv line 3, column 2: ContextTokens: expected a whole number",
                "t.csv line 4, column 3: GeneratedTokens: the cell is missing",
            ],
        ),
        ("Timestamp,Request tokens,Response tokens\nnan,1,1\n", "t.csv", ["line 2, column 1: Timestamp: expected seconds"]),
        ('{"timestamp": 1}\n{"timestamp": 2,}\n', "t.jsonl", ["line 1: input_length: expected", "line 2, column 17: is not JSON"]),
        ('{"timestamp": 1, "wait_for": 2}\n', "t.jsonl", ["line 1 is of the layout agentic_mooncake"]),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": ["a"]}\n', "t.jsonl", ["hash_ids: expected a list"]),
        ("[[1, 2], [3], [1.5, 2]]", "p.json", ["2 entries are different: number 2, 3"]),
        ("[[1, 2],\n [3 4]]", "p.json", ["p.json line 2, column 5: is not JSON"]),
        (AZURE, "t.csv", ["holds no request"]),
        ("[]", "t.json", ["holds no request"]),
        (AZURE + "1990-01-01 00:00,1,1\n2024-01-01 00:00,1,1\n", "t.csv", ["covers more than 3 years"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_line_and_column_all_at_once(tmp_path, text, name, words):
    with pytest.raises(SpecError) as caught:
        read_trace(written(tmp_path, text, name))
    for expected in words:
        assert expected in str(caught.value)


def test_reading_ends_at_a_number_of_problems(tmp_path):
    with pytest.raises(SpecError) as caught:
        read_trace(written(tmp_path, AZURE + "x,y,z\n" * 5000))
    assert len(caught.value.problems) == 1000 and "and 950 more problems" in str(caught.value)


def test_a_file_of_bytes_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="is not text"):
        read_trace(path)
    path.write_bytes(b'{"timestamp": 0}' + b" " * 20_000 + b"\xff\n")
    with pytest.raises(SpecError, match="is not text"):
        read_trace(path)


def test_the_histogram_has_every_request_once_and_the_answers_of_its_band(tmp_path):
    pairs = [[10 * (i // 3 + 1), 5 + i % 7] for i in range(300)]
    found = read_trace(written(tmp_path, json.dumps(pairs), "pairs.json"))
    below = 0
    for band in found.histogram:
        mine = [(prompt, answer) for prompt, answer in pairs if below < prompt <= band.most]
        assert band.share == pytest.approx(len(mine) / len(pairs))
        assert band.input_mean == pytest.approx(sum(prompt for prompt, _ in mine) / len(mine))
        assert band.output_mean == pytest.approx(sum(answer for _, answer in mine) / len(mine))
        below = band.most
    assert sum(band.share for band in found.histogram) == pytest.approx(1.0) and below == 1000
    spread = statistics.pstdev(prompt for prompt, _ in pairs if prompt <= found.histogram[0].most)
    assert found.histogram[0].input_cv == pytest.approx(spread / found.histogram[0].input_mean)
