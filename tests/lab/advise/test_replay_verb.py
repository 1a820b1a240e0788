# SPDX-License-Identifier: Apache-2.0
"""`sonde replay` and `sonde advise --prove`: wrong inputs are one sentence, and a trace is replayed and proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from built_programs import needs_programs

from sonde.model.errors import EXIT_BAD_INPUT

WRITES = [[20_000 * k, 10_000, 0, "write", 1000 * k, 1000] for k in range(1500)]
READS = [[50_000_000 + 20_000 * k, 10_000, 1, "read", 1000 * k, 1000] for k in range(100)]


def write_trace(path: Path, rows: list[list[Any]], left_out: int = 0) -> None:
    counts = {"calls": len(WRITES), "bytes": 1_500_000, "s": 0.015, "consecutive": 1499,
              "sequential": 1499,
              "highest": 1_499_999, "sizes": [0, 1500, 0, 0, 0, 0, 0, 0, 0, 0]}  # fmt: skip
    lines = [
        {"type": "process", "schema": "sonde-trace/1", "command": ["./a"], "started_unix_s": 5.0, "seconds": 1.0,
         "events_left_out": left_out},
        {"type": "file", "number": 0, "path": "/data/run/x", "calls": {"open": 1}, "write": counts},
        {"type": "file", "number": 1, "path": "/data/in/y", "calls": {"open": 1}},
        {"type": "events", "columns": ["t_ns", "ns", "file", "op", "offset", "bytes"], "rows": rows},
        {"type": "end"},
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "a.ndjson", WRITES + READS)
    write_trace(tmp_path / "part.ndjson", WRITES, left_out=7)
    write_trace(tmp_path / "none.ndjson", [[0, 1, 0, "open", 0, 0]])
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.darshan").write_text("no log")
    (tmp_path / "empty.pfw").write_text("[\n]\n")
    (tmp_path / "target").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected_sentence"),
    [
        (["replay"], "Missing argument 'LOG'"),
        (["replay", "a.ndjson"], "Say where to replay: --on DIR, or --on-model SYSTEM"),
        (["replay", "a.ndjson", "--on", ".", "--on-model", "edison"], "one of them"),
        (["replay", "a.ndjson", "--on", ".", "--mount", "x"], "--mount belongs to --on-model"),
        (["replay", "a.ndjson", "--on", "missing"], "There is no directory missing"),
        (["replay", "a.ndjson", "--on-model", "nowhere"], "nowhere"),
        (["replay", "missing", "--on", "."], "There is no log missing"),
        (["replay", "empty", "--on", "."], "is neither a Darshan log"),
        (["replay", "text.darshan", "--on", "."], "is neither a Darshan log"),
        (["replay", "part.ndjson", "--on", "."], "no single calls for 7 of its calls"),
        (["replay", "none.ndjson", "--on", "."], "holds no reads and writes"),
        (["replay", "empty.pfw", "--on", "."], "holds no reads and writes"),
        (["replay", "a.ndjson", "--on", ".", "--below", "/elsewhere"], "on files below /elsewhere"),
        (["replay", "a.ndjson", "--on", ".", "--below", "run"], "by its whole path, like /scratch/run"),
        (["replay", "a.ndjson", "--on", ".", "--think-time", "some"], "--think-time"),
        (["advise", "a.ndjson", "--prove"], "Say where to replay: --on DIR"),
        (["advise", "a.ndjson", "--on", "."], "belong to --prove"),
        (["advise", "a.ndjson", "part.ndjson", "--prove", "--on", "."], "--prove takes one log"),
        (["advise", "--prove", "--on", "."], "--prove takes one log"),
        (["advise", "a.ndjson", "--prove", "--on", ".", "--blocks", "6"], "--blocks"),
    ],
)
@needs_programs
def test_wrong_input_is_refused_in_one_sentence(sonde: Any, arguments: list[str], expected_sentence: str) -> None:
    result = sonde(*arguments)
    assert result.code == EXIT_BAD_INPUT
    assert expected_sentence in " ".join(result.err.split())
    assert "Traceback" not in result.err


@needs_programs
@pytest.mark.parametrize("storage", [["--on", "target"], ["--on-model", "edison"]])
def test_replay_issues_the_calls_of_the_trace(sonde: Any, folder: Path, storage: list[str]) -> None:
    result = sonde("replay", "a.ndjson", *storage, "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    rows = {row["kind"]: row for row in document["kinds"]}
    assert (rows["write"]["calls"], rows["write"]["bytes"]) == (1500, 1_500_000)
    assert (rows["read"]["calls"], rows["read"]["bytes"]) == (100, 100_000)
    assert document["is_exact"]
    assert document["original_s"] == pytest.approx(1600 * 10e-6)
    assert document["ratio"] == pytest.approx(document["replayed_s"] / document["original_s"])
    assert list((folder / "target").iterdir()) == []


@needs_programs
def test_buffering_is_proven_on_a_model(sonde: Any, folder: Path) -> None:
    result = sonde("advise", "a.ndjson", "--prove", "--on-model", "edison", "--below", "/data/run", "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    buffer = next(proof for proof in document["proofs"] if proof["change"] == "buffer")
    assert buffer["verdict"] == "better"
    assert 0 < buffer["proven"]["low"] <= buffer["proven"]["value"] <= buffer["proven"]["high"] < 1
    assert buffer["after_s"] < buffer["before_s"]
    assert buffer["predicted"]["value"] == pytest.approx(buffer["proven"]["value"], rel=0.25)
    assert [json.loads(path.read_text()) for path in folder.rglob("proof.json")] == [document]
