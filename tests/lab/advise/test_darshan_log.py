# SPDX-License-Identifier: Apache-2.0
"""The reader of Darshan logs: known contents, the sample logs of the wheel, damaged logs."""

from __future__ import annotations

import os
import random
from pathlib import Path

import darshan
import numpy as np
import pytest
from darshan_builder import DarshanBuilder

from sonde.advise import darshan_log, job_io
from sonde.advise.call_sources import read_call_log
from sonde.advise.darshan_log import read_darshan_job
from sonde.advise.job_logs import find_darshan_logs, read_job_log, read_jobs_and_refusals
from sonde.advise.reader_process import IsolatedLogReader
from sonde.model.errors import MachineError, UserError

SAMPLES = Path(darshan.__file__).parent


def test_counters_of_two_ranks_are_summed_by_file(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=2, hints="cb_nodes=4;romio_no_indep_rw=true")
    first = {"OPENS": 1, "WRITES": 3, "BYTES_WRITTEN": 300, "MAX_BYTE_WRITTEN": 299, "SIZE_WRITE_0_100": 3}
    log.counters("POSIX", "/lus/out", first | {"F_WRITE_TIME": 2.0, "F_META_TIME": 0.5}, rank=0)
    log.counters("POSIX", "/lus/out", {"WRITES": 1, "BYTES_WRITTEN": 50, "F_WRITE_TIME": 1.0}, rank=1)
    log.stripes("/lus/out", 1 << 20, [3, 4, 7])
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    (file,) = job.files
    assert (file.path, file.file_system, file.targets, file.stripe_bytes) == ("/lus/out", "lustre", (3, 4, 7), 1 << 20)
    assert (file.write.calls, file.write.bytes, file.write.end_offset, file.write.small_calls) == (4, 350, 299, 3)
    assert (file.write_ranks.least, file.write_ranks.most, file.has_several_ranks) == (50, 300, True)
    assert job.rank_seconds.tolist() == [2.5, 1.0]
    assert (job.io_seconds, job.mean_io_seconds, job.seconds, job.processes) == (2.5, 1.75, 100.0, 2)
    assert job.hints == {"cb_nodes": "4", "romio_no_indep_rw": "true"}


def test_shared_record_gives_its_slowest_rank_its_time(tmp_path: Path) -> None:
    values = {"READS": 4, "BYTES_READ": 40, "F_READ_TIME": 8.0, "SLOWEST_RANK": 2, "F_SLOWEST_RANK_TIME": 5.0}
    log = DarshanBuilder(processes=4).counters("POSIX", "/lus/in", values)
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert job.files[0].is_shared
    assert job.rank_seconds.tolist() == [2.0, 2.0, 5.0, 2.0]


def test_negative_times_of_old_logs_count_as_zero(tmp_path: Path) -> None:
    log = DarshanBuilder().counters("POSIX", "/lus/a", {"OPENS": 1, "F_META_TIME": -4e9, "F_READ_TIME": -1.0}, rank=0)
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert job.rank_seconds.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_heat_maps_of_unequal_width_are_merged(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=2, seconds=20).counters("POSIX", "/lus/a", {"WRITES": 1, "BYTES_WRITTEN": 1}, rank=0)
    log.bins(0, 0.1, [0] * 100, [10] * 100).bins(1, 4.0, [7] * 5, [0] * 5)
    timeline = read_darshan_job(log.write(tmp_path / "a.darshan")).timeline
    assert timeline is not None
    assert timeline.write.sum() == pytest.approx(1000)
    assert timeline.read.sum() == pytest.approx(35)
    # The first 10 of 20 seconds have all writes, and each of the 200 bins of 0.1 s has its own.
    np.testing.assert_allclose(timeline.write[0, :100], 10)
    assert timeline.write[0, 100:].sum() == 0
    np.testing.assert_allclose(timeline.read[1], 7 * 0.1 / 4.0)


def test_single_calls_fill_the_timeline_without_heat_map(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=1, seconds=20).counters("POSIX", "/lus/a", {"WRITES": 2, "BYTES_WRITTEN": 9}, rank=0)
    log.calls("/lus/a", 0, writes=[(0, 1000, 0.0, 10.0), (1000, 500, 15.0, 15.0)], host="nid7")
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert job.timeline is not None
    assert job.timeline.source == "single calls"
    np.testing.assert_allclose(job.timeline.write[0, :100], 10)
    assert job.timeline.write[0, 149:152].sum() == pytest.approx(500)
    assert job.hosts == ("nid7",)
    assert job.calls.write == [(1000, 10.0), (500, 0.0)]


def test_many_files_are_folded_without_losing_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(darshan_log, "MAX_UNFOLDED_FILES", 10)
    monkeypatch.setattr(job_io.FileListLimiter.__init__, "__defaults__", (10,))
    log = DarshanBuilder(processes=1)
    for number in range(100):
        values = {"OPENS": 1, "WRITES": 1, "BYTES_WRITTEN": 10, "F_WRITE_TIME": float(number)}
        log.counters("POSIX", f"/lus/{number}", values, rank=0)
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert len(job.files) == 11
    assert job.files[0].path == "/lus/99"
    assert sum(file.write.bytes for file in job.files) == job.write.bytes == 1000
    assert sum(file.call_seconds for file in job.files) == pytest.approx(sum(range(100)))
    assert any("counted together" in sentence for sentence in job.missing)


@pytest.mark.parametrize(
    ("module", "expected_sentence"),
    [
        ("", "no records at all"),
        ("STDIO", "no records of POSIX calls"),
        ("POSIX", "neither a heat map nor single calls"),
    ],
)
def test_absent_modules_are_reported(tmp_path: Path, module: str, expected_sentence: str) -> None:
    log = DarshanBuilder()
    if module:
        log.counters(module, "/lus/a", {"OPENS": 1, "READS": 1, "BYTES_READ": 5}, rank=0)
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert sum(expected_sentence in text for text in job.missing) == 1


def test_incomplete_module_is_reported(tmp_path: Path) -> None:
    log = DarshanBuilder(partial=["POSIX"]).counters("POSIX", "/lus/a", {"READS": 1}, rank=0)
    job = read_darshan_job(log.write(tmp_path / "a.darshan"))
    assert job.missing[0].startswith("The records of POSIX are incomplete")


def test_all_sample_logs_are_read() -> None:
    logs = find_darshan_logs(SAMPLES)
    assert len(logs) >= 18
    for log in logs:
        job = read_darshan_job(log)
        assert job.processes > 0, log
        assert job.has_io, log
        assert all(file.call_seconds >= 0 for file in (*job.files, *job.streams)), log


def test_bytes_of_sample_equal_its_published_counters() -> None:
    """Totals of `darshan-parser --total` of this log: POSIX_BYTES_WRITTEN and POSIX_WRITES."""
    job = read_darshan_job(SAMPLES / "tests" / "input" / "sample-badost.darshan")
    assert (job.write.bytes, job.write.calls, len(job.files)) == (549755813888, 131072, 2048)


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.darshan"
    text.write_text("no log")
    with IsolatedLogReader() as process:
        with pytest.raises(UserError, match="neither a Darshan log"):
            read_job_log(text, process)
        with pytest.raises(UserError, match="There is no log"):
            read_job_log(tmp_path / "absent.darshan", process)


@pytest.mark.parametrize("rank", [2, -2, 1 << 62])
def test_record_of_impossible_rank_is_refused(tmp_path: Path, rank: int) -> None:
    """A modified Darshan writes longer records; read as its own they give numbers of any size."""
    log = DarshanBuilder(processes=2)
    log.counters("POSIX", "/lus/a", {"WRITES": 1}, rank=0).counters("POSIX", "/lus/b", {"WRITES": 1}, rank=rank)
    path = log.write(tmp_path / "a.darshan")
    expected = f"is damaged, or a modified Darshan wrote it, .*: a record of POSIX names rank {rank} of 2 processes.$"
    for read in (read_darshan_job, read_call_log):
        with pytest.raises(UserError, match=expected):
            read(path)


def test_damaged_logs_are_refused_or_read_in_part(tmp_path: Path) -> None:
    """Bytes are changed and ends are cut off. Whatever the library does, the process that asks survives."""
    log = DarshanBuilder(processes=2)
    for rank in range(2):
        log.counters("POSIX", f"/lus/{rank}", {"WRITES": 9, "BYTES_WRITTEN": 90}, rank=rank)
        log.calls(f"/lus/{rank}", rank, writes=[(0, 10, 0.0, 1.0)]).bins(rank, 0.1, [1] * 9, [2] * 9)
        log.stripes(f"/lus/{rank}", 1 << 20, [rank])
    content = log.write(tmp_path / "good.darshan").read_bytes()
    generator, logs = random.Random(7), [tmp_path / "good.darshan"]
    for number in range(24):
        damaged = bytearray(content)
        if number % 3:
            for _ in range(5):
                damaged[generator.randrange(16, len(damaged))] = generator.randrange(256)
        else:
            del damaged[generator.randrange(32, len(damaged)) :]
        logs.append(tmp_path / f"{number}.darshan")
        logs[-1].write_bytes(damaged)
    jobs, refused = read_jobs_and_refusals(logs, lambda log: None, timeout_s=20)
    assert jobs[0].write.calls == 18
    assert len(jobs) + len(refused) == 25
    assert all(str(tmp_path) in reason and reason.endswith(".") for reason in refused)


def _crash(path: Path) -> int:
    os.abort()


def _count_bytes(path: Path) -> int:
    return path.stat().st_size


def test_reader_survives_crash_of_library(tmp_path: Path) -> None:
    log = tmp_path / "a"
    log.write_bytes(b"1234")
    with IsolatedLogReader() as process:
        with pytest.raises(UserError, match="crashed while it read"):
            process.read_in_process(_crash, log)
        assert process.read_in_process(_count_bytes, log) == 4


def _fail(path: Path) -> int:
    raise MachineError("no library")


def test_error_classes_pass_through_reader_process(tmp_path: Path) -> None:
    with IsolatedLogReader() as process, pytest.raises(MachineError, match="no library"):
        process.read_in_process(_fail, tmp_path)
