# SPDX-License-Identifier: Apache-2.0
"""Streams that tools/diagnosis_real_servers.py measures, and whether the machine was at rest before a trial."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_namespace import ADDRESS, NotStartedError, Room, lacking

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from machine_idleness import compare_processor_statistics  # noqa: E402
from real_clusters import limit_network, lose_packets  # noqa: E402
from real_streams import Stream, find_changed_stream, measure_stream, set_link_rate  # noqa: E402

MEGABITS = 400


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    if reason := lacking("tc", "nft"):
        pytest.skip(reason)
    try:
        room = Room(tmp_path)
    except NotStartedError as why:
        pytest.skip(f"no namespaces here: {why}")
    try:
        set_link_rate(room, "lo", MEGABITS)
        yield room
    finally:
        room.close()


def test_stream_shows_slower_links_and_lost_packets(room: Room) -> None:
    def measure() -> list[Stream]:
        return [measure_stream(room, (), (), ADDRESS)]

    healthy = measure()
    assert 0.5 * MEGABITS < healthy[0].bytes_per_s * 8e-6 < 1.1 * MEGABITS
    with limit_network(room, MEGABITS // 10):
        ratio, loses = find_changed_stream(measure(), healthy)
    assert ratio < 0.25
    assert not loses
    with lose_packets(room, 50):
        assert find_changed_stream(measure(), healthy)[1]


def test_slowest_pair_of_hosts_is_reported() -> None:
    healthy = [Stream(100.0, 10_000, 0), Stream(200.0, 10_000, 8)]
    assert find_changed_stream([Stream(90.0, 9000, 3), Stream(50.0, 9000, 20)], healthy) == (0.25, False)
    assert find_changed_stream([Stream(90.0, 9000, 90), Stream(200.0, 9000, 8)], healthy) == (0.9, True)


def test_few_segments_sent_again_are_no_loss() -> None:
    """A stream that begins may fill a queue."""
    assert not Stream(10.0, 400, 2).loses_more(Stream(100.0, 4000, 0))
    assert Stream(10.0, 400, 6).loses_more(Stream(100.0, 4000, 0))


def test_stalled_stream_that_sent_few_segments_has_losses() -> None:
    """Lost segments that wait for timeouts, which double each time."""
    assert Stream(1e6, 30, 3).loses_more(Stream(100.0, 10_000, 0))


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ("cpu 110 0 105 1085 100 0 0 0", "the machine was at rest: 15% busy, 0% stolen, load average 0.5"),
        ("cpu 200 50 150 1000 100 0 0 0", "the machine was not at rest: 100% busy, 0% stolen, load average 0.5"),
        ("cpu 100 0 100 1100 100 0 0 10", "the machine was not at rest: 0% busy, 9% stolen, load average 0.5"),
    ],
)
def test_busy_or_stolen_processors_end_the_idleness(later: str, message: str) -> None:
    assert compare_processor_statistics("cpu 100 0 100 1000 100 0 0 0", later, 0.5).describe() == message
