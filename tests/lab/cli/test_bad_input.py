# SPDX-License-Identifier: Apache-2.0
"""Wrong plans and command lines: each gets one sentence that names the place and the remedy, and exit code 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BASE: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "base",
    "target": {"path": "/tmp"},
    "data": {"access": {"transfer": "1MiB", "segments": 4}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}

# --set, and what the sentence must contain
SETTINGS: list[tuple[str, list[str]]] = [
    ("data.access.transfer=4k", ["data.access.transfer", "4KiB", "4kB"]),
    ("data.access.transfer=4", []),  # allowed: bytes
    ("data.access.transfer=1.5", ["data.access.transfer", "whole number of bytes"]),
    ("data.access.transfer=-1", ["data.access.transfer", "-1"]),
    ("data.access.transfer=0", ["transfer", "at least one byte"]),
    ("data.access.transfer=fast", ["data.access.transfer", '"fast"']),
    ("data.access.transfer=true", ["data.access.transfer", "true"]),
    ("data.access.block=3MB", ["access.block", "multiple", "access.transfer"]),
    ("data.access.block=0", ["access.block", "multiple"]),
    ("data.access.volume=10", []),  # allowed: bytes
    ("data.access.volume=lots", ["data.access.volume", '"lots"']),
    ('data.access.volume={"of":"memory","x":2}', ["data.access.volume.of", "node_memory"]),
    ('data.access.volume={"of":"bytes","bytes":"3k"}', ["data.access.volume.bytes", "3KiB"]),
    ('data.access.volume={"x":2}', ["data.access.volume.of", "missing"]),
    ('data.access={"segments":2,"volume":"1GiB"}', ["data.access", "segments and volume"]),
    ("data.access.segments=0", ["data.access.segments", "at least 1"]),
    ("data.access.segments=two", ["data.access.segments", "whole number"]),
    ("data.access.order=randm_permute", ["data.access.order", 'Did you mean "random_permute"']),
    ("data.acess.transfer=4KiB", ['"acess"', 'Did you mean "access"']),
    ("data.queue_depth=32", ['"queue_depth"', "data.io.queue_depth"]),
    ("data.io.queue_depth=0", ["data.io.queue_depth", "at least 1"]),
    ("data.io.queue_depth=9999", ["data.io.queue_depth", "at most 4096"]),
    ('data.io.queue_depth="32"', ["data.io.queue_depth", "without quotation marks"]),
    ("data.io.direct=yes", ["data.io.direct", "true or false"]),
    ("data.io.fsync=always", ["data.io.fsync", "per_op"]),
    ("data.backend=3", ["data.backend", "text"]),
    ("data.files.mapping=per-task", ["data.files.mapping", 'Did you mean "per_task"']),
    ("data.files=many", ["data.files", "table"]),
    ("data.payload.compressible=2", ["data.payload.compressible", "at most 1"]),
    ("data.verify=yes", ["data.verify", "on_read"]),
    ("data.paced.rate=10MB", ["data.paced.rate", '"/s"']),
    ("data.paced.rate=0", ["data.paced.rate", "larger than 0"]),
    ("phases.read.op=raed", ["phases.read.op", 'Did you mean "read"']),
    ("phases.read.stop.time=10m", ["phases.read.stop.time", "min for minutes"]),
    ("phases.read.stop.stonewal=10s", ["phases.read.stop", 'Did you mean "stonewall"']),
    ("phases.raed.op=read", ['"raed"', 'Did you mean "read"']),
    ("phases.7.op=read", ["phases", "2 entries"]),
    ("phases.read.id=write", ['the same id "write"']),
    ("phases.read.id=a b", ["phases", "letters, digits"]),
    ("phases.read=null", []),  # allowed: removes the phase
    ("phases=[]", ["phases", "at least 1"]),
    ("phases.read=write", ["phases.1", "table"]),
    ('phases.read.before=[{"kind":"drop_cache"}]', ["phases.read.before.0.kind", 'Did you mean "drop_page_cache"']),
    ('phases.read.before=[{"time":"1s"}]', ["phases.read.before.0.kind", "missing"]),
    ("phases.read.streams=[]", ["phases.read.streams", "at least 2"]),
    ("tasks.threads=0", ["tasks.threads", "at least 1"]),
    ("tasks.threads=100000", ["tasks.threads", "at most 4096"]),
    ("tasks.thread=4", ['"thread"', 'Did you mean "threads"']),
    ("tasks.threads.n=4", ["tasks.threads", "whole number"]),
    ("target.path=null", ["target.path", "--on DIR"]),
    ("target.pth=/x", ['"pth"', 'Did you mean "path"']),
    ("target.min_free=1g", ["target.min_free", "1GiB"]),
    ("schema=sonde-plan/3", ["schema", "sonde-plan/2"]),
    ("id=a/b", ["id", "letters, digits"]),
    ("observe.max_slices=1", ["observe.max_slices", "at least 16"]),
    ("limits.time=forever", ["limits.time", '"forever"']),
    ("limits={time:3}", ["neither JSON nor TOML"]),
    ("nonsense", ['"="']),
    ("=4KiB", ["empty name"]),
    ("data..transfer=4KiB", ["empty name"]),
    ("title.x=1", ["title", "a text"]),
]


def write_as_plan(tmp_path: Path, document: Any) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize(
    ("setting", "expected_fragments"), [case for case in SETTINGS if case[1]], ids=lambda value: str(value)[:40]
)
def test_invalid_setting_prints_one_sentence(
    sonde: Any,
    fake_engine: Callable[..., Path],
    tmp_path: Path,
    archive: Path,
    setting: str,
    expected_fragments: list[str],
) -> None:
    result = sonde("run", write_as_plan(tmp_path, BASE), "--set", setting)
    assert result.code == 2
    assert result.out == ""
    assert len(result.sentences) == 1
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert result.err.rstrip().endswith((".", "?", ".)"))
    for word in expected_fragments:
        assert word in result.err
    assert not archive.exists() or not list(archive.iterdir()), "a refused plan must leave nothing behind"


@pytest.mark.parametrize("setting", [case[0] for case in SETTINGS if not case[1]])
def test_settings_at_limits_are_accepted(
    sonde: Any, fake_engine: Callable[..., Path], tmp_path: Path, setting: str
) -> None:
    assert sonde("plan", write_as_plan(tmp_path, BASE), "--set", setting).code == 0


FILES: list[tuple[str, bytes, list[str]]] = [
    ("empty.json", b"", ["not valid JSON"]),
    ("empty.toml", b"", ['"target" is missing', "--on DIR"]),
    ("list.json", b"[1, 2]", ["list"]),
    ("number.json", b"3", ["int"]),
    ("broken.json", b'{"id": }', ["not valid JSON", "line 1"]),
    ("broken.toml", b"id = \n", ["not valid TOML", "line 1"]),
    ("twice.json", b'{"id": "a", "id": "b"}', ['"id" appears twice']),
    ("nan.json", b'{"id": NaN}', ["NaN"]),
    ("deep.json", b"[" * 100_000, ["nested too deeply"]),
    ("latin.toml", b'title = "caf\xe9"', ["not UTF-8"]),
    ("binary.json", bytes(range(256)), ["not UTF-8"]),
    ("date.toml", b'id = 2026-11-21\ntarget={path="/tmp"}\nphases=[{id="w",op="write"}]', ["id", "text"]),
    ("phases.toml", b'target = {path="/tmp"}', ['"phases" is missing']),
    (
        "unknown.toml",
        b'target={path="/tmp"}\nphaes=[]\nphases=[{id="w",op="write"}]',
        ['"phaes"', 'Did you mean "phases"'],
    ),
]


@pytest.mark.parametrize(("file_name", "content", "expected_fragments"), FILES, ids=[case[0] for case in FILES])
def test_invalid_file_prints_one_sentence(
    sonde: Any,
    fake_engine: Callable[..., Path],
    tmp_path: Path,
    file_name: str,
    content: bytes,
    expected_fragments: list[str],
) -> None:
    file = tmp_path / file_name
    file.write_bytes(content)
    result = sonde("run", file)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert str(file) in result.err
    for word in expected_fragments:
        assert word in result.err


COMMANDS: list[tuple[list[str], list[str]]] = [
    (["rnu"], ['"rnu"', 'Did you mean "run"']),
    (["--frobnicate"], ["--frobnicate"]),
    (["run"], ["PLAN", "quick", "sustained", "--help"]),
    (["run", "quick"], ["target", "--on DIR"]),
    (["run", "quik", "--on", "."], ['"quik"', 'Did you mean "quick"']),
    (["run", "no/such/plan.toml"], ["no plan file"]),
    (["run", "/"], ["directory, not a plan"]),
    (["run", "/dev/null"], ["not a regular file"]),
    (["run", "quick", "--on", "/no/such/place"], ["no directory /no/such/place"]),
    (["run", "quick", "--on", "/etc/hostname"], ["not a directory"]),
    (["run", "quick", "--on", ""], ["--on", "blank"]),
    (["run", "quick", "--on", ".", "--tasks", "0"], ["--tasks"]),
    (["run", "quick", "--on", ".", "--tasks", "many"], ["--tasks", "a whole number"]),
    (["run", "quick", "--on", ".", "--tasks", "3", "--processes", "2"], ["divided evenly"]),
    (["run", "quick", "--on", ".", "--tasks", "100000"], ["too many", "--processes"]),
    (["run", "quick", "--on", ".", "--launcher", "mpirun"], ["--launcher", "mpiexec"]),
    (["run", "quick", "--on", ".", "--launcher-args", "-hosts a"], ["--launcher-args needs"]),
    (
        ["run", "quick", "--on", ".", "--launcher", "mpiexec", "--launcher-args", '"'],
        ["--launcher-args", "cannot be split"],
    ),
    (["run", "quick", "--on", ".", "--mpi-module", "/no/such.so"], ["--mpi-module"]),
    (["run", "quick", "--on", ".", "--st", "a=1"], ["--st"]),
    (["run", "quick", "extra", "--on", "."], ["extra"]),
    (["check"], ["DIRECTORY"]),
    (["check", "/no/such/place"], ["no directory"]),
    (["check", "/etc/hostname"], ["not a directory"]),
    (["check", ".", "--ful"], ["--ful"]),
    (["clean"], ["DIRECTORY"]),
    (["clean", "/no/such/place"], ["no directory"]),
    (["doctor", "/no/such/place"], ["no directory"]),
    (["list", "--since", "yesterday"], ["--since", "7d"]),
    (["list", "--status", "good"], ["--status", "done"]),
    (["list", "-n", "0"], ["-n"]),
    (["show"], ["no runs in the archive"]),
    (["show", "nothing"], ["no runs in the archive"]),
    (["show", "--json", "a", "b"], ["b"]),
    (["report"], ["no runs in the archive"]),
    (["plan"], ["PLAN", "quick"]),
    (["plan", "quick", "--on", ".", "--set", "tasks.threads=x"], ["tasks.threads"]),
]


@pytest.mark.parametrize(
    ("arguments", "expected_fragments"), COMMANDS, ids=[" ".join(case[0])[:50] for case in COMMANDS]
)
def test_invalid_command_line_prints_one_sentence(
    sonde: Any,
    fake_engine: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    target: Path,
    arguments: list[str],
    expected_fragments: list[str],
) -> None:
    monkeypatch.chdir(target)
    result = sonde(*arguments)
    assert result.code == 2, result.err
    assert result.out == ""
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert result.err.startswith("sonde: ")
    for word in expected_fragments:
        assert word in result.err
    assert "Traceback" not in result.err


def test_message_names_every_problem_of_a_plan(sonde: Any, fake_engine: Callable[..., Path], tmp_path: Path) -> None:
    result = sonde("plan", write_as_plan(tmp_path, BASE), "--set", "tasks.threads=0", "--set", "data.io.direct=3")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert "tasks.threads" in result.err
    assert "data.io.direct" in result.err


def test_engine_rejection_names_plan_file(sonde: Any, fake_engine: Callable[..., Path], tmp_path: Path) -> None:
    fake_engine("refuse")
    file = write_as_plan(tmp_path, BASE)
    for verb in ("run", "plan"):
        result = sonde(verb, file)
        assert result.code == 2
        assert result.err.count("\n") <= 2
        assert result.sentences == [f"sonde: {file}: phases[0].op is not what this fake engine likes."]
