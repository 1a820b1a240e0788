# SPDX-License-Identifier: Apache-2.0
"""Traces of DFTracer: recorded ones give exactly what the program did, damaged ones what they have.

The recorded files are of DFTracer 2.2.0 and a program whose parent and child each write 20 times 1,000 bytes, overwrite
100 bytes at 5,000, seek to 0, read five times up to 4,096 bytes of the 20,000, and then 10 bytes at 3. Names of
paths and of the host were replaced.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sonde.advise.dftracer_trace import read_dftracer_job
from sonde.advise.job_logs import read_jobs_and_refusals
from sonde.model.errors import EXIT_BAD_INPUT, UserError

RECORDED = Path(__file__).resolve().parents[2] / "data" / "dftracer"


def write_trace(path: Path, *events: dict[str, Any]) -> Path:
    """A trace in the form of earlier versions: an array with letters as kinds."""
    lines = [
        json.dumps({"pid": 1, "tid": 1, "ts": 0, "dur": 1, "cat": "POSIX", "ph": "X", **event}) for event in events
    ]
    path.write_text("[\n" + "\n".join(lines) + "\n]", encoding="utf-8")
    return path


def make_call_event(name: str, file: str = "a", **arguments: object) -> dict[str, Any]:
    return {"name": name, "args": {"hhash": 7, "fname": file, **arguments}}


def test_recorded_trace_has_the_calls_of_the_program() -> None:
    (job,), refused = read_jobs_and_refusals([RECORDED], lambda path: None)
    assert refused == []
    assert (job.format, job.program, job.processes, job.hosts) == ("DFTracer", "python3 prog.py", 2, ("node1",))
    assert sorted(file.path for file in job.files) == ["/scratch/outc", "/scratch/outp"]
    for file in job.files:
        write, read = file.write, file.read
        assert (write.calls, write.bytes, write.end_offset) == (21, 20 * 1000 + 100, 20_000)
        assert (write.consecutive, write.sequential, write.random_calls) == (19, 19, 2)
        assert write.sizes[:3] == [1, 20, 0]
        assert (read.calls, read.bytes, read.end_offset) == (6, 20_000 + 10, 20_000)
        assert (read.consecutive, read.sequential) == (4, 4)
        assert (file.opens, file.is_shared) == (1, False)
    assert (job.write.calls, job.write.bytes) == (42, 40_200)
    assert job.io_seconds > 0.03  # the parent's fsync of 31 ms
    assert 0 < job.seconds < 1


def test_packed_file_is_read_like_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.pfw.gz").write_bytes(gzip.compress((RECORDED / "parent.pfw").read_bytes()))
    packed, plain = read_dftracer_job(tmp_path / "a.pfw.gz"), read_dftracer_job(RECORDED / "parent.pfw")
    assert packed.files == plain.files
    assert packed.processes == plain.processes == 1


def test_earlier_form_with_letters_is_read(tmp_path: Path) -> None:
    trace = write_trace(
        tmp_path / "a.pfw",
        make_call_event("open64", ret=3),
        make_call_event("pwrite", ret=10, offset=100, count=10),
        make_call_event("lseek", ret=500),
        make_call_event("write", ret=5),
        {**make_call_event("fwrite", "s", ret=3, size=8), "cat": "STDIO"},
        {**make_call_event("write", ret=10), "cat": "MPI"},
    )
    job = read_dftracer_job(trace)
    (file,) = job.files
    assert (file.write.calls, file.write.bytes, file.write.end_offset, file.write.sequential) == (2, 15, 505, 1)
    assert [(stream.path, stream.write.bytes) for stream in job.streams] == [("s", 24)]
    assert job.seconds == pytest.approx(1e-6)


def test_file_of_several_processes_is_shared(tmp_path: Path) -> None:
    trace = write_trace(
        tmp_path / "a.pfw", make_call_event("write", ret=1), {**make_call_event("write", ret=1), "pid": 2}
    )
    job = read_dftracer_job(trace)
    assert job.files[0].is_shared
    assert job.processes == 2


def test_failed_calls_transfer_nothing(tmp_path: Path) -> None:
    job = read_dftracer_job(
        write_trace(tmp_path / "a.pfw", make_call_event("read", ret=-1), make_call_event("lseek", ret=-1))
    )
    assert (job.read.calls, job.read.bytes) == (1, 0)


def test_damaged_traces_list_missing_data(tmp_path: Path) -> None:
    shutil.copy(RECORDED / "child.pfw", tmp_path)
    packed = gzip.compress((RECORDED / "parent.pfw").read_bytes())
    (tmp_path / "cut.pfw.gz").write_bytes(packed[: len(packed) // 2])
    with (tmp_path / "child.pfw").open("a", encoding="utf-8") as file:
        file.write('{"name": "wri\nnull\n')
    job = read_dftracer_job(tmp_path)
    assert "cut.pfw.gz is damaged: calls after the damage are missing." in job.missing
    assert "2 lines are damaged." in job.missing
    assert job.write.calls >= 21


def test_calls_without_file_are_counted_as_missing(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "a.pfw", {"name": "read", "args": {}}, make_call_event("read", ret=1))
    assert any(text.startswith("1 calls do not name their file") for text in read_dftracer_job(trace).missing)


@pytest.mark.parametrize("content", [b"", b"[\n]", b"\x1f\x8b garbage", b'{"ph": 1, "name": "start"}\n'])
def test_trace_without_calls_is_one_sentence(sonde: Any, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pfw.gz"
    path.write_bytes(content if content[:1] == b"\x1f" else gzip.compress(content) if content else b"")
    with pytest.raises(UserError, match="holds no call of DFTracer"):
        read_dftracer_job(path)
    answer = sonde("advise", path)
    assert (answer.code, len(answer.sentences)) == (EXIT_BAD_INPUT, 1)


def test_advice_follows_from_trace(sonde: Any, tmp_path: Path) -> None:
    """5,000 writes of 100 bytes are small writes (Drishti's code P06)."""
    writes = [{**make_call_event("write", ret=100), "ts": 1000 * number, "dur": 900} for number in range(5000)]
    document = sonde("advise", write_trace(tmp_path / "a.pfw", make_call_event("open", ret=3), *writes), "--json").json
    (job,) = document["jobs"]
    assert (job["format"], job["write"]["calls"], job["write"]["bytes"]) == ("DFTracer", 5000, 500_000)
    assert "P06" in job["codes"]
