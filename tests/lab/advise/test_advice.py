# SPDX-License-Identifier: Apache-2.0
"""Gains with known answers, settings, slow storage targets, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import darshan
import numpy as np
import pytest
from browser import browser, find_browser
from darshan_builder import DarshanBuilder

from sonde.advise.advice import JobAdvice, advise_job
from sonde.advise.darshan_log import read_darshan_job
from sonde.advise.job_io import FileIo
from sonde.advise.slow_targets import find_slow_storage_targets
from sonde.advise.storage_rates import RateRange, StorageRates, read_storage_rates
from sonde.advise.triggers import CostKind
from sonde.model.errors import UserError

INPUT = Path(darshan.__file__).parent / "tests" / "input"
SMALL_WRITES = {
    **{"OPENS": 1, "WRITES": 10_000, "SEQ_WRITES": 10_000, "BYTES_WRITTEN": 10**9, "MAX_BYTE_WRITTEN": 10**9},
    **{"SIZE_WRITE_10K_100K": 10_000, "F_WRITE_TIME": 50.0},
}
RATES = StorageRates("test", write=RateRange(50e6, 100e6, 200e6))


def write_log(folder: Path, processes: int = 1) -> Path:
    log = DarshanBuilder(processes=processes)
    for rank in range(processes):
        log.counters("POSIX", f"/lus/out.{rank}", SMALL_WRITES, rank)
    return log.write(folder / "job.darshan")


def find_gain(result: JobAdvice, cost_kind: CostKind) -> tuple[float, float, float]:
    (gain,) = (item.gain for item in result.advice if item.effect is cost_kind)
    return gain.low, gain.value, gain.high


def test_small_writes_gain_the_time_beyond_the_storage_rate(tmp_path: Path) -> None:
    """1 GB took 50 s; at 50, 100 and 200 MB/s it takes 20, 10 and 5 s."""
    result = advise_job(read_darshan_job(write_log(tmp_path)), RATES)
    assert find_gain(result, CostKind.WRITES) == pytest.approx((30, 40, 45))


def test_gain_of_parallel_ranks_is_that_of_the_slowest(tmp_path: Path) -> None:
    result = advise_job(read_darshan_job(write_log(tmp_path, processes=4)), RATES)
    assert find_gain(result, CostKind.WRITES) == pytest.approx((30, 40, 45))


def test_storage_faster_than_calls_never_gives_negative_gain(tmp_path: Path) -> None:
    slow = StorageRates("test", write=RateRange(1e6, 2e6, 4e6))
    result = advise_job(read_darshan_job(write_log(tmp_path)), slow)
    assert find_gain(result, CostKind.WRITES) == (0, 0, 0)


def test_unknown_storage_gives_only_an_upper_bound(tmp_path: Path) -> None:
    (item, *_) = advise_job(read_darshan_job(write_log(tmp_path))).advice
    assert (item.gain.is_bound, item.gain.low, item.gain.high) == (True, 0, 50)


def test_rates_come_from_large_calls_of_the_job(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=1).counters("POSIX", "/lus/out", SMALL_WRITES, 0)
    log.calls("/lus/out", 0, writes=[(0, 2 << 20, 0.0, (2 << 20) / 1e8)] * 30 + [(0, 100, 0.0, 1.0)] * 30)
    result = advise_job(read_darshan_job(log.write(tmp_path / "a.darshan")))
    assert result.rates.write is not None
    assert result.rates.write.value == pytest.approx(1e8)
    assert find_gain(result, CostKind.WRITES)[1] == pytest.approx(40)


def test_imbalance_gains_at_most_the_wait_for_the_slowest(tmp_path: Path) -> None:
    values = {"BYTES_READ": 100, "READS": 1, "SLOWEST_RANK_BYTES": 90, "F_READ_TIME": 40.0, "SLOWEST_RANK": 1}
    values |= {"F_SLOWEST_RANK_TIME": 25.0, "F_FASTEST_RANK_TIME": 5.0}
    log = DarshanBuilder(processes=4).counters("POSIX", "/lus/in", values)
    result = advise_job(read_darshan_job(log.write(tmp_path / "a.darshan")))
    # Ranks take 10, 25, 10 and 10 s: 25 less their mean.
    assert find_gain(result, CostKind.BALANCE) == pytest.approx((0, 5.625, 11.25))


def test_advice_is_ordered_by_gain(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=1).counters("POSIX", "/lus/out", SMALL_WRITES | {"F_META_TIME": 31.0}, 0)
    result = advise_job(read_darshan_job(log.write(tmp_path / "a.darshan")), RATES)
    gains = [item.gain.value for item in result.advice]
    assert gains == sorted(gains, reverse=True)
    assert {item.effect for item in result.advice} >= {CostKind.WRITES, CostKind.METADATA}


def test_only_files_of_one_rank_are_to_be_buffered(tmp_path: Path) -> None:
    log = DarshanBuilder(processes=2).counters("POSIX", "/lus/own", SMALL_WRITES, 0)
    log.counters("POSIX", "/lus/both", SMALL_WRITES, 0).counters("POSIX", "/lus/both", SMALL_WRITES, 1)
    log.counters("POSIX", "/lus/shared", SMALL_WRITES)
    result = advise_job(read_darshan_job(log.write(tmp_path / "a.darshan")), RATES)
    texts = [setting.text for item in result.advice for setting in item.settings if "IOBUF" in setting.text]
    assert texts
    assert all("/lus/own:" in text and "both" not in text and "shared" not in text for text in texts)


def test_large_shared_file_on_one_target_is_to_be_striped(tmp_path: Path) -> None:
    values = SMALL_WRITES | {"BYTES_WRITTEN": 1 << 40}
    log = DarshanBuilder(processes=64).counters("POSIX", "/lus/run/out", values).stripes("/lus/run/out", 1 << 20, [7])
    result = advise_job(read_darshan_job(log.write(tmp_path / "a.darshan")), RATES)
    texts = [setting.text for item in result.advice for setting in item.settings]
    assert "lfs setstripe -c 8 -S 16M /lus/run" in texts


def test_bad_target_of_a_real_log_is_the_only_slow_target() -> None:
    survey = find_slow_storage_targets([read_darshan_job(INPUT / "sample-badost.darshan")])
    assert [target.target for target in survey.slow] == [14]
    assert survey.compared == 24
    assert 40 < survey.slow[0].factor < 50


def test_healthy_log_has_no_slow_targets() -> None:
    assert find_slow_storage_targets([read_darshan_job(INPUT / "sample-goodost.darshan")]).slow == []


def test_shuffled_targets_are_blamed_within_the_error_rate() -> None:
    """The real log with one bad target, its targets drawn anew: no target explains the slow files any more."""
    job = read_darshan_job(INPUT / "sample-badost.darshan")
    generator, targets = np.random.default_rng(11), [file.targets for file in job.files]
    alarms = 0
    for _ in range(40):
        for file, index in zip(job.files, generator.permutation(len(targets)), strict=True):
            file.targets = targets[index]
        alarms += bool(find_slow_storage_targets([job]).slow)
    assert alarms <= 1  # 0.4 are expected at most


@pytest.mark.parametrize(("slowdown", "is_named"), [(1.0, False), (1.2, False), (3.0, True)])
def test_planted_slow_target_is_identified_over_several_logs(tmp_path: Path, slowdown: float, is_named: bool) -> None:
    generator, jobs = np.random.default_rng(5), []
    for _ in range(4):
        log = DarshanBuilder(processes=1)
        job = read_darshan_job(log.write(tmp_path / "a.darshan"))
        for number in range(80):
            target = number % 8
            seconds = float(generator.lognormal(0, 0.3)) * (slowdown if target == 5 else 1)
            file = FileIo(f"/lus/{number}", targets=(target,))
            file.write.bytes, file.write.seconds = 1 << 24, seconds
            job.files.append(file)
        jobs.append(job)
    assert [target.target for target in find_slow_storage_targets(jobs).slow] == ([5] if is_named else [])


def test_check_document_gives_rates_with_range(tmp_path: Path) -> None:
    figures = [("write-storage-1", 1e8), ("write-cached-1", 3e8), ("read-storage-1", 5e8), ("create", 2000.0)]
    path = tmp_path / "check.json"
    document = {"schema": "sonde-check/3", "figures": [{"key": key, "value": value} for key, value in figures]}
    path.write_text(json.dumps(document))
    rates = read_storage_rates(path)
    assert rates.write == RateRange(1e8, 1e8, 3e8)
    assert rates.read == RateRange(5e8, 5e8, 5e8)
    assert (rates.node_write, rates.files_per_s) == (None, 2000.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "sonde-check/3"}', '{"schema": 1, "figures": {}}', "\0"])
def test_file_that_is_no_check_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "check.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"check\.json"):
        read_storage_rates(path)


def test_command_prints_gain_setting_and_page(sonde: Any, tmp_path: Path) -> None:
    result = sonde("advise", write_log(tmp_path), "--storage", "edison", "-o", tmp_path / "page.html")
    assert result.code == 0, result.err
    assert "1. Make writes large and sequential  gains about" in result.out
    assert "IOBUF_PARAMS=/lus/out.0:size=8388608:count=8" in result.out
    assert "rated peak of edison.toml" in result.out
    assert "Make writes large and sequential" in (tmp_path / "page.html").read_text()


def test_document_of_several_logs_lists_rejected_logs(sonde: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.darshan"
    text.write_text("nothing")
    result = sonde("advise", write_log(tmp_path), text, "--json")
    assert result.code == 0, result.err
    (job,) = result.json["jobs"]
    assert job["write"]["calls"] == 10_000
    assert job["advice"][0]["change"] == "writes"
    assert len(result.json["refused"]) == 1


@pytest.mark.parametrize(
    ("arguments", "expected_sentence"),
    [
        ((), "Name a log"),
        (("absent.darshan",), "There is no log"),
        (("{folder}",), "neither a Darshan log"),
        (("{log}", "--storage", "absent.json"), "absent.json"),
        (("{log}", "--storage", "no-such-system"), "no-such-system"),
        (("{log}", "{log}.x"), "There is no log"),
    ],
)
def test_wrong_input_gets_a_sentence(
    sonde: Any, tmp_path: Path, arguments: tuple[str, ...], expected_sentence: str
) -> None:
    log = DarshanBuilder().write(tmp_path / "a.darshan")
    result = sonde("advise", *(text.format(folder=tmp_path, log=log) for text in arguments))
    if len(arguments) == 2 and result.code == 0:  # one of two logs can be read
        assert expected_sentence in result.out
        return
    assert result.code == 2
    assert len(result.sentences) == 1
    assert expected_sentence in result.err


def test_trace_of_sonde_is_advised(sonde: Any, tmp_path: Path) -> None:
    move = {"calls": 5000, "bytes": 5_000_000, "s": 9.0, "sequential": 4999, "sizes": [0, 0, 5000, *[0] * 7]}
    lines = [
        {"type": "process", "schema": "sonde-trace/1", "started_unix_s": 1.7e9, "seconds": 20.0, "command": ["./a"]},
        {"type": "file", "path": "/data/out", "calls": {"open": 1}, "write": move},
        {"type": "end"},
    ]
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    (tmp_path / "a.ndjson").write_text(text + "\n")
    result = sonde("advise", tmp_path)
    assert result.code == 0, result.err
    assert "Make writes large and sequential  gains at most 9 s" in result.out.replace("9.00 s", "9 s")


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (Debian: apt install chromium)")
def test_page_fits_desktop_and_phone(sonde: Any, tmp_path: Path) -> None:
    log = DarshanBuilder(processes=8, seconds=60)
    for rank in range(8):
        log.counters("POSIX", f"/lus/{'long-name-' * 12}{rank}", SMALL_WRITES, rank).bins(rank, 1.0, [0] * 60, [9] * 60)
    page = tmp_path / "page.html"
    assert sonde("advise", log.write(tmp_path / "a.darshan"), "-o", page).code == 0
    assert "<script" not in page.read_text()
    with browser() as tab:
        for width in (1280, 390):
            tab.open(page, width=width)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate("document.querySelectorAll('[data-chart]').length") == 3
        assert tab.messages == []
