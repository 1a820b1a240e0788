# SPDX-License-Identifier: Apache-2.0
"""Closed queueing networks against textbook results, native against forwarded mounts against published results."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.mount_throughput import (
    COMPARED_OPERATIONS,
    SizedOperation,
    build_mount_path,
    compare_mounts,
    compute_throughput,
    compute_throughput_by_clients,
    list_compared_mounts,
)
from sonde.design.routes.queueing import StationGroup, solve_queueing_network
from sonde.design.routes.route_text import describe_leading_mounts, describe_unknown_parameters, make_comparison_rows
from sonde.model.system import System, read_system
from sonde.model.system.changes import apply_changes

ROOT = Path(__file__).resolve().parents[4]
EVEN = (1 / 6,) * 6


def compute_exact_rate(times: list[float], jobs: int, delay_s: float = 0.0) -> float:
    """Exact mean value analysis of one class over single servers (Reiser and Lavenberg, 1980)."""
    queues = [0.0] * len(times)
    rate = 0.0
    for population in range(1, jobs + 1):
        waits = [time * (1 + queue) for time, queue in zip(times, queues, strict=True)]
        rate = population / (delay_s + sum(waits))
        queues = [rate * wait for wait in waits]
    return rate


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 60), st.floats(1e-6, 1e-1))
def test_equal_stations_have_textbook_rate(stations: int, jobs: int, time: float) -> None:
    """A balanced closed network: n / (n + m - 1) of the rate of one station."""
    solution = solve_queueing_network([StationGroup(str(index), time) for index in range(stations)], 1, jobs)
    assert solution.rate == pytest.approx(jobs / (jobs + stations - 1) / time, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1e-5, 1e-2), min_size=1, max_size=5), st.integers(1, 40), st.floats(0, 1e-2))
def test_one_client_is_near_exact_mean_values(times: list[float], jobs: int, delay_s: float) -> None:
    rate = solve_queueing_network(
        [StationGroup(str(index), time) for index, time in enumerate(times)], 1, jobs, delay_s
    ).rate
    assert rate == pytest.approx(compute_exact_rate(times, jobs, delay_s), rel=0.12)
    if jobs == 1:
        assert rate == pytest.approx(1 / (delay_s + sum(times)), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 1e-2), st.integers(1, 64), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(1, 100_000),
    st.integers(1, 64),
    st.floats(0, 0.1),
)
def test_rate_never_exceeds_station_or_unqueued_rate(
    stages: list[tuple[float, int, int]], clients: int, jobs: int, delay_s: float
) -> None:
    station_groups = [
        StationGroup(str(index), time, threads, (1 / station_count,) * station_count if station_count else ())
        for index, (time, threads, station_count) in enumerate(stages)
    ]
    solution = solve_queueing_network(station_groups, clients, jobs, delay_s)
    unqueued_rate = clients * jobs / (delay_s + sum(group.seconds for group in station_groups))
    max_rate = min(
        group.max_operations_per_s if group.shares else group.max_operations_per_s * clients for group in station_groups
    )
    assert 0 < solution.rate <= min(unqueued_rate, max_rate) * (1 + 1e-6)
    assert solution.seconds * solution.rate == pytest.approx(clients * jobs), "Little's law"


def test_many_clients_fill_slowest_shared_station() -> None:
    stages = [StationGroup("own", 1e-3), StationGroup("shared", 1e-3, threads=4, shares=(0.25, 0.75))]
    solution = solve_queueing_network(stages, 1000, 8)
    assert solution.rate == pytest.approx(4 / 1e-3 / 0.75, rel=1e-3)
    assert solution.bottleneck == "shared"
    assert solution.utilization == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("clients", "jobs"), [(0, 1), (1, 0)])
def test_zero_clients_or_jobs_are_refused(clients: int, jobs: int) -> None:
    with pytest.raises(ValueError, match="at least one client"):
        solve_queueing_network([StationGroup("one", 1.0)], clients, jobs)


@pytest.fixture(scope="module")
def system() -> System:
    return read_system(ROOT / "systems" / "cumulus.toml")


def compute_rate_ratio(system: System, operation: SizedOperation, clients: int, tasks: int) -> float:
    """Native over forwarded."""
    (fabric,) = find_fabrics(system)
    rates = []
    for mount in ("wolf-native", "wolf-dvs"):
        throughput = compute_throughput(build_mount_path(system, fabric, mount, operation, EVEN), clients, tasks)
        assert throughput is not None
        rates.append(throughput.rate)
    return rates[0] / rates[1]


READ, WRITE = SizedOperation("read", 1 << 20), SizedOperation("write", 1 << 20)


def test_native_read_of_one_client_has_published_rate(system: System, cumulus: Fabric) -> None:
    assert 1.8 <= compute_rate_ratio(system, READ, 1, 1) <= 2.3
    four = compute_throughput(build_mount_path(system, cumulus, "wolf-native", READ, EVEN), 1, 4)
    assert four is not None
    assert four.rate == pytest.approx(9.3e9, rel=0.03)


def test_native_write_of_one_client_has_published_ratio(system: System) -> None:
    assert compute_rate_ratio(system, WRITE, 1, 1) == pytest.approx(0.95, abs=0.03)
    assert compute_rate_ratio(system, WRITE, 1, 8) == pytest.approx(1.15, abs=0.02)


@pytest.mark.parametrize(
    ("kind", "size", "least"),
    [
        ("create", 0, 10),
        ("stat", 0, 10),
        ("remove", 0, 10),
        ("create", 1024, 3),
        ("create", 4096, 3),
        ("create", 32768, 3),
    ],
)
def test_native_metadata_of_one_client_has_published_ratio(system: System, kind: str, size: int, least: float) -> None:
    assert compute_rate_ratio(system, SizedOperation(kind, size), 1, 1) >= least  # type: ignore[arg-type]


def test_many_clients_rank_as_in_published_charts(system: System, cumulus: Fabric) -> None:
    """Forwarding has the higher peak of streaming, native metadata is ahead at 64 nodes, and empty files are created
    faster than files with contents."""
    peak = {}
    for mount in ("wolf-native", "wolf-dvs"):
        peak[mount] = max(
            throughput.rate
            for throughput in compute_throughput_by_clients(
                build_mount_path(system, cumulus, mount, READ, EVEN), 64, 16
            )
        )
    assert peak["wolf-dvs"] > peak["wolf-native"]
    for size in (0, 32768):
        assert compute_rate_ratio(system, SizedOperation("create", size), 64, 36) > 1
    empty, full = (
        compute_throughput(
            build_mount_path(system, cumulus, "wolf-native", SizedOperation("create", size), EVEN), 64, 36
        )
        for size in (0, 32768)
    )
    assert empty is not None
    assert full is not None
    assert empty.rate > full.rate


def test_metadata_without_forward_cost_are_equal(system: System) -> None:
    """The negative control: only the cost of the forwarded call makes the difference."""
    equal = apply_changes(system, {"mounts.wolf-dvs.model.forward_cost": "0 s"})
    assert compute_rate_ratio(equal, SizedOperation("stat", 0), 1, 1) == pytest.approx(1.0)


def test_slow_forwarders_limit_streaming(system: System) -> None:
    slow = apply_changes(system, {"mounts.wolf-dvs.model.forward_rate": "1 GB/s"})
    (fabric,) = find_fabrics(slow)
    throughput = compute_throughput(build_mount_path(slow, fabric, "wolf-dvs", READ, EVEN), 64, 4)
    assert throughput is not None
    assert throughput.rate == pytest.approx(6e9, rel=0.01)
    assert throughput.bottleneck == "the forwarders"


def test_missing_description_is_reported_and_takes_no_time(system: System, cumulus: Fabric) -> None:
    compared = compare_mounts(system, cumulus, EVEN, client_count=4, task_count=1)
    assert "client_read_rate of wolf-dvs" not in describe_unknown_parameters(compared)
    bare = apply_changes(system, {"mounts.wolf-dvs.model": {}})
    (fabric,) = find_fabrics(bare)
    compared = compare_mounts(bare, fabric, EVEN, client_count=4, task_count=1)
    assert "forward_cost of wolf-dvs" in describe_unknown_parameters(compared)


def test_rate_of_many_clients_never_falls(system: System, cumulus: Fabric) -> None:
    path = build_mount_path(system, cumulus, "wolf-native", READ, EVEN)
    rates = compute_throughput_by_clients(path, 100_000, 4)
    assert [throughput.clients for throughput in rates][-2:] == [65536, 100_000]
    assert all(a.rate <= b.rate * (1 + 1e-6) for a, b in itertools.pairwise(rates)), "never less with more"
    assert rates[-1].rate == pytest.approx(24e9, rel=1e-3), "six routers of 4 GB/s"


def test_system_with_one_kind_of_mount_is_not_compared(system: System) -> None:
    native = apply_changes(system, {"mounts.wolf-native.through": "fuse"})
    (fabric,) = find_fabrics(native)
    assert list_compared_mounts(native, fabric) == []
    assert compare_mounts(native, fabric, EVEN, client_count=4, task_count=1) == ()


def test_comparison_text_names_client_count_of_change(system: System, cumulus: Fabric) -> None:
    compared = compare_mounts(system, cumulus, EVEN, client_count=112, task_count=4)
    assert [comparison.operation for comparison in compared] == list(COMPARED_OPERATIONS)
    read, write, create = list(describe_leading_mounts(compared))[:3]
    assert read.startswith("read of 1 MiB: wolf-native is ahead, wolf-dvs from 8 clients on. With 112 clients")
    assert "wolf-dvs from 4 clients on" in write
    assert create.startswith("create of an empty file: wolf-native is ahead at any number of clients.")
    rows = list(make_comparison_rows(compared))
    assert [row[0] for row in rows[:3]] == ["read of 1 MiB", "", "write of 1 MiB"]
    assert [row[1] for row in rows[:2]] == ["1", "112"]


def test_page_has_drawing_and_charts(tmp_path: Path, sonde: Any) -> None:
    page = tmp_path / "routes.html"
    result = sonde("route", "simulate", "cumulus", "-o", str(page))
    assert result.code == 0
    assert str(page) in result.out
    text = page.read_text()
    assert text.count('data-chart="curves"') == len(COMPARED_OPERATIONS)
    assert text.count("<svg xmlns") == 1
    assert "Predicted from the system file: nothing here was measured." in text


def test_unwritable_page_prints_one_sentence(tmp_path: Path, sonde: Any) -> None:
    result = sonde("route", "simulate", "cumulus", "-o", str(tmp_path / "no" / "routes.html"))
    assert result.code == 2
    assert "is no existing directory, so routes.html cannot" in result.err
