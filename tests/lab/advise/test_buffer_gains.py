# SPDX-License-Identifier: Apache-2.0
"""The predicted gain of the preload library, for traces and costs whose gain follows by arithmetic."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sonde.advise import page_costs
from sonde.advise.buffer_gains import BufferGain, predict_buffer_gain, predict_buffering
from sonde.advise.buffers import choose_file_buffers
from sonde.advise.page_costs import PageCosts, TransferCost, measure_page_costs
from sonde.model.trace import Trace, TracedFile

PRELOAD = Path(__file__).resolve().parents[3] / "preload"
PATH = "/scratch/data"
#: 100 microseconds a call and 1 GB/s; copies are free.
SLOW = TransferCost(100e-6, 1e-9, 1e-9, 1e-9)
CALL_S = 100e-6 + 1000e-9


def make_trace(
    direction: str,
    size: int = 1000,
    calls: int = 10_000,
    call_s: float = CALL_S,
    stride: int | None = None,
    **counts: int,
) -> Trace:
    """One file that is accessed at a constant distance; `counts` are other calls by kind."""
    file = TracedFile(PATH)
    step = size if stride is None else stride
    moves = {
        "calls": calls,
        "bytes": calls * size,
        "s": calls * call_s,
        "consecutive": calls - 1 if step == size else 0,
        "highest": calls * abs(step) - 1,
    }
    file.add_file_line({direction: moves, "common_strides": [[step, calls - 1]], "calls": {"open": 1, **counts}})
    return Trace(processes=[{"started_unix_s": 0.0, "seconds": 2 * calls * call_s}], files={PATH: file})


def predict(trace: Trace, automatic: bool = False, leases: bool = True, cost: TransferCost = SLOW) -> BufferGain:
    costs = PageCosts(cost, cost, 0.0, 0.0, leases)
    gain = predict_buffer_gain(choose_file_buffers(trace), {PATH: costs}, automatic, processors=1)
    assert gain is not None
    return gain


@pytest.mark.parametrize("direction", ["read", "write"])
def test_small_calls_become_page_transfers(direction: str) -> None:
    gain = predict(make_trace(direction))
    pages = 10_000_000 / (1 << 20)
    assert gain.calls == 10_000
    assert gain.storage_calls == pytest.approx(pages + 1)  # the last, partial page at the close
    expected_s = 10_000 * 60e-9 + (pages + 1) * 100e-6 + 10_000_000 * 1e-9
    assert gain.predicted_s == pytest.approx(expected_s)
    assert gain.saved_s == pytest.approx(10_000 * CALL_S - expected_s)


def test_threads_transfer_pages_while_the_program_copies() -> None:
    cost = TransferCost(0.0, 1e-9, 1e-9, 1.5e-9)
    costs = {PATH: PageCosts(cost, cost, 1e-9, 0.0, True)}
    buffers = choose_file_buffers(make_trace("write"))
    gains = [predict_buffer_gain(buffers, costs, False, processors=count) for count in (1, 2)]
    seconds = [gain.predicted_s for gain in gains if gain is not None]
    assert seconds == pytest.approx([10_000 * 60e-9 + 10_000_000 * 2e-9, 10_000_000 * 1.5e-9])


def test_auto_buffers_after_the_watched_calls() -> None:
    gain = predict(make_trace("write"), automatic=True)
    first_calls = 24 + 200  # calls that take longer than 10 microseconds are looked at early
    assert gain.storage_calls == pytest.approx(
        first_calls + (10_000 - first_calls) / 10_000 * 10_000_000 / (1 << 20) + 1
    )
    assert gain.predicted_s > first_calls * CALL_S


@pytest.mark.parametrize("trace", [make_trace("write"), make_trace("read")])
def test_auto_without_leases_buffers_no_file(trace: Trace) -> None:
    gain = predict(trace, automatic=True, leases=False)
    assert (gain.storage_calls, gain.saved_s) == (10_000, 0.0)


def test_auto_does_not_buffer_files_of_several_processes() -> None:
    trace = make_trace("write")
    trace.files[PATH].processes = 2
    assert predict(trace, automatic=True).saved_s == 0.0


def test_synchronized_writes_save_no_calls() -> None:
    gain = predict(make_trace("write", sync=10_000))
    assert gain.storage_calls >= gain.calls


def test_gap_between_written_records_ends_a_transfer() -> None:
    assert predict(make_trace("write", stride=4000)).storage_calls == 10_001
    assert predict(make_trace("write", stride=-1000)).storage_calls < 20


def test_reads_transfer_the_bytes_between_records() -> None:
    near, far = (predict(make_trace("read", stride=stride)) for stride in (1000, 4000))
    assert far.predicted_s - near.predicted_s == pytest.approx(30_000_000 * (1e-9 + 100e-6 / (1 << 20)))


def test_bytes_read_again_are_transferred_once() -> None:
    gain = predict(make_trace("read", size=8000, stride=-1000))
    assert gain.storage_calls == pytest.approx(10_000_000 / (1 << 20) + 1)


def test_large_calls_from_memory_bypass_the_buffer() -> None:
    memory = TransferCost(0.0, 1 / 6e9, 1 / 12e9, 1 / 5e9)
    (buffer,) = choose_file_buffers(make_trace("read", size=10_000))
    buffer.file.read.s = buffer.file.read.bytes / 4e9
    costs = {PATH: PageCosts(memory, memory, 0.0, 0.0, True)}
    gains = [predict_buffer_gain([buffer], costs, automatic) for automatic in (True, False)]
    auto_calls, named_calls = (gain.storage_calls for gain in gains if gain is not None)
    assert auto_calls == 10_000
    assert named_calls < 200


@pytest.mark.parametrize(
    ("size", "rate", "stride", "page_bytes"),
    [
        (100_000, 1.4e9, 100_000, 8 << 20),
        (100_000, 1.6e9, 100_000, None),
        (8_192, 1.6e9, 8_192, None),
        (8_191, 1.6e9, 8_191, 1 << 20),
        (100_000, 1.6e9, -8_000, 1 << 20),  # most of these bytes were just read: pages of 64 times 8,000
    ],
)
def test_large_calls_from_memory_get_no_entry(size: int, rate: float, stride: int, page_bytes: int | None) -> None:
    buffers = choose_file_buffers(make_trace("read", size=size, call_s=size / rate, stride=stride))
    assert [buffer.page_bytes for buffer in buffers] == ([] if page_bytes is None else [page_bytes])


def test_expensive_pages_are_predicted_as_a_loss() -> None:
    slow_pages = TransferCost(0.0, 4e-9, 4e-9, 4e-9)
    trace = make_trace("read", call_s=1e-6)
    assert predict(trace, cost=slow_pages).saved_s < 0
    assert predict(trace, automatic=True, cost=slow_pages).saved_s == 0.0  # the library notices


@pytest.mark.parametrize(
    ("call_s", "calls_per_open", "chosen"), [(1e-6, 199, 0), (1e-6, 200, 1), (20e-6, 24, 1), (20e-6, 23, 0)]
)
def test_files_with_few_calls_per_open_get_no_entry(call_s: float, calls_per_open: int, chosen: int) -> None:
    trace = make_trace("read", calls=100 * calls_per_open, call_s=call_s, open=100)
    assert len(choose_file_buffers(trace)) == chosen


def test_no_prediction_without_costs_of_the_file_system() -> None:
    assert predict_buffer_gain(choose_file_buffers(make_trace("read")), {}, automatic=False) is None


def test_costs_are_measured_without_a_visible_file(tmp_path: Path) -> None:
    trace = make_trace("write")
    (file,) = trace.files.values()
    file.path = str(tmp_path / "data")
    before = tmp_path.stat().st_mtime_ns
    (costs,) = measure_page_costs(choose_file_buffers(trace), tmp_path).values()
    assert list(tmp_path.iterdir()) == []
    if hasattr(os, "O_TMPFILE"):
        assert tmp_path.stat().st_mtime_ns == before
    for cost in (costs.read, costs.write):
        assert 0 < cost.byte_s < 1e-6
        assert cost.call_s < 1.0
    assert 0 < costs.cached_copied_byte_s <= costs.copied_byte_s


def test_removed_folder_gives_no_prediction(tmp_path: Path) -> None:
    trace = make_trace("write")
    trace.files[PATH].path = str(tmp_path / "gone" / "data")
    forecast = predict_buffering(trace, tmp_path)
    assert (forecast.files, forecast.automatic, forecast.chosen) == (1, None, None)
    assert forecast.build_document()["auto"] is None


# Names of /proc/mounts and the numbers of statfs that the library compares (linux/magic.h, and those of its comment).
FILE_SYSTEM_NUMBERS = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), "EXT4_SUPER_MAGIC"),
    "xfs": "0x58465342",
    "btrfs": "BTRFS_SUPER_MAGIC",
    "tmpfs": "TMPFS_MAGIC",
    "ramfs": "RAMFS_MAGIC",
    "overlay": "OVERLAYFS_SUPER_MAGIC",
    "f2fs": "0xF2F52010",
    "zfs": "0x2FC12FC1",
    "bcachefs": "0xCA451A4E",
    "jfs": "0x3153464A",
    "erofs": "0xE0F5E1E2",
}


def test_lab_and_library_agree_on_local_file_systems() -> None:
    source = (PRELOAD / "files" / "lifecycle.cpp").read_text(encoding="utf-8")
    (numbers,) = re.findall(r"local\[\] = \{([^}]*)\}", source)
    assert {FILE_SYSTEM_NUMBERS[name] for name in page_costs._LOCAL_FILE_SYSTEMS} == set(
        re.split(r",\s*", numbers.strip())
    )


def test_lab_and_library_agree_on_the_offset_of_page_data() -> None:
    source = (PRELOAD / "cache" / "pages.cpp").read_text(encoding="utf-8")
    assert re.findall(r"usual_offset = (\d+)", source) == [str(page_costs._PAGE_OFFSET)]
