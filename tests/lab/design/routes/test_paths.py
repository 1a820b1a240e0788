# SPDX-License-Identifier: Apache-2.0
"""Closed networks against textbook results, and native against forwarded as the slides find them."""

from __future__ import annotations

import itertools
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.routes.fabric import Fabric, fabrics
from sonde.design.routes.paths import (
    COMPARED,
    Operation,
    carried,
    compare_paths,
    mounts_compared,
    over_clients,
    path_of,
)
from sonde.design.routes.queueing import Stage, solve
from sonde.design.routes.words import ahead_words, path_rows, unknown_words
from sonde.model.system import System, read_system
from sonde.model.system.changing import with_changes

ROOT = File(__file__).resolve().parents[4]
EVEN = (1 / 6,) * 6


def exact(times: list[float], jobs: int, delay_s: float = 0.0) -> float:
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
def test_equal_stations_carry_the_textbook_rate(stations: int, jobs: int, time: float) -> None:
    """A balanced closed network: n / (n + m - 1) of what one station does."""
    solved = solve([Stage(str(at), time) for at in range(stations)], 1, jobs)
    assert solved.rate == pytest.approx(jobs / (jobs + stations - 1) / time, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1e-5, 1e-2), min_size=1, max_size=5), st.integers(1, 40), st.floats(0, 1e-2))
def test_one_client_is_near_the_exact_mean_values(times: list[float], jobs: int, delay_s: float) -> None:
    found = solve([Stage(str(at), time) for at, time in enumerate(times)], 1, jobs, delay_s).rate
    assert found == pytest.approx(exact(times, jobs, delay_s), rel=0.12)
    if jobs == 1:
        assert found == pytest.approx(1 / (delay_s + sum(times)), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 1e-2), st.integers(1, 64), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(1, 100_000),
    st.integers(1, 64),
    st.floats(0, 0.1),
)
def test_no_rate_is_above_a_stage_or_above_what_nobody_waits_for(
    stages: list[tuple[float, int, int]], clients: int, jobs: int, delay_s: float
) -> None:
    made = [Stage(str(at), time, threads, (1 / many,) * many if many else ())
            for at, (time, threads, many) in enumerate(stages)]  # fmt: skip
    solved = solve(made, clients, jobs, delay_s)
    alone = clients * jobs / (delay_s + sum(one.seconds for one in made))
    cap = min(one.cap if one.shares else one.cap * clients for one in made)
    assert 0 < solved.rate <= min(alone, cap) * (1 + 1e-6)
    assert solved.seconds * solved.rate == pytest.approx(clients * jobs), "Little's law"


def test_many_clients_fill_the_slowest_shared_stage() -> None:
    stages = [Stage("own", 1e-3), Stage("shared", 1e-3, threads=4, shares=(0.25, 0.75))]
    solved = solve(stages, 1000, 8)
    assert solved.rate == pytest.approx(4 / 1e-3 / 0.75, rel=1e-3)
    assert solved.fullest == "shared"
    assert solved.busy == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("clients", "jobs"), [(0, 1), (1, 0)])
def test_nobody_has_no_rate(clients: int, jobs: int) -> None:
    with pytest.raises(ValueError, match="somebody"):
        solve([Stage("one", 1.0)], clients, jobs)


@pytest.fixture(scope="module")
def system() -> System:
    return read_system(ROOT / "systems" / "cumulus.toml")


def ratio(system: System, operation: Operation, clients: int, tasks: int) -> float:
    """Native over forwarded."""
    (fabric,) = fabrics(system)
    rates = []
    for mount in ("wolf-native", "wolf-dvs"):
        one = carried(path_of(system, fabric, mount, operation, EVEN), clients, tasks)
        assert one is not None
        rates.append(one.rate)
    return rates[0] / rates[1]


READ, WRITE = Operation("read", 1 << 20), Operation("write", 1 << 20)


def test_one_client_reads_twice_as_fast_natively_up_to_the_published_rate(system: System, cumulus: Fabric) -> None:
    assert 1.8 <= ratio(system, READ, 1, 1) <= 2.3
    four = carried(path_of(system, cumulus, "wolf-native", READ, EVEN), 1, 4)
    assert four is not None
    assert four.rate == pytest.approx(9.3e9, rel=0.03)


def test_one_client_writes_five_percent_less_and_fifteen_more_with_several_tasks(system: System) -> None:
    assert ratio(system, WRITE, 1, 1) == pytest.approx(0.95, abs=0.03)
    assert ratio(system, WRITE, 1, 8) == pytest.approx(1.15, abs=0.02)


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
def test_metadata_of_one_client_are_as_many_times_faster_as_published(
    system: System, kind: str, size: int, least: float
) -> None:
    assert ratio(system, Operation(kind, size), 1, 1) >= least  # type: ignore[arg-type]


def test_many_clients_come_out_as_in_the_charts_without_a_fit(system: System, cumulus: Fabric) -> None:
    """Forwarding has the higher peak of streaming, native metadata are ahead at 64 nodes, files with contents are
    fewer than empty ones."""
    peak = {}
    for mount in ("wolf-native", "wolf-dvs"):
        peak[mount] = max(one.rate for one in over_clients(path_of(system, cumulus, mount, READ, EVEN), 64, 16))
    assert peak["wolf-dvs"] > peak["wolf-native"]
    for size in (0, 32768):
        assert ratio(system, Operation("create", size), 64, 36) > 1
    empty, full = (carried(path_of(system, cumulus, "wolf-native", Operation("create", size), EVEN), 64, 36)
                   for size in (0, 32768))  # fmt: skip
    assert empty is not None
    assert full is not None
    assert empty.rate > full.rate


def test_without_the_cost_of_forwarding_metadata_are_equal(system: System) -> None:
    """The negative control: what makes the difference is the forwarded call, nothing else."""
    equal = with_changes(system, {"mounts.wolf-dvs.model.forward_cost": "0 s"})
    assert ratio(equal, Operation("stat", 0), 1, 1) == pytest.approx(1.0)


def test_slow_forwarders_hold_streaming_back(system: System) -> None:
    slow = with_changes(system, {"mounts.wolf-dvs.model.forward_rate": "1 GB/s"})
    (fabric,) = fabrics(slow)
    one = carried(path_of(slow, fabric, "wolf-dvs", READ, EVEN), 64, 4)
    assert one is not None
    assert one.rate == pytest.approx(6e9, rel=0.01)
    assert one.limit == "the forwarders"


def test_what_is_not_described_is_named_and_costs_nothing(system: System, cumulus: Fabric) -> None:
    compared = compare_paths(system, cumulus, EVEN, clients=4, tasks=1)
    assert "client_read_rate of wolf-dvs" not in unknown_words(compared)
    bare = with_changes(system, {"mounts.wolf-dvs.model": {}})
    (fabric,) = fabrics(bare)
    compared = compare_paths(bare, fabric, EVEN, clients=4, tasks=1)
    assert "forward_cost of wolf-dvs" in unknown_words(compared)


def test_a_hundred_thousand_clients_are_as_quick_as_one(system: System, cumulus: Fabric) -> None:
    path = path_of(system, cumulus, "wolf-native", READ, EVEN)
    rates = over_clients(path, 100_000, 4)
    assert [one.clients for one in rates][-2:] == [65536, 100_000]
    assert all(a.rate <= b.rate * (1 + 1e-6) for a, b in itertools.pairwise(rates)), "never less with more"
    assert rates[-1].rate == pytest.approx(24e9, rel=1e-3), "six routers of 4 GB/s"


def test_a_system_with_one_kind_of_way_is_not_compared(system: System) -> None:
    native = with_changes(system, {"mounts.wolf-native.through": "fuse"})
    (fabric,) = fabrics(native)
    assert mounts_compared(native, fabric) == []
    assert compare_paths(native, fabric, EVEN, clients=4, tasks=1) == ()


def test_words_say_where_the_lead_turns(system: System, cumulus: Fabric) -> None:
    compared = compare_paths(system, cumulus, EVEN, clients=112, tasks=4)
    assert [one.operation for one in compared] == list(COMPARED)
    read, write, create = list(ahead_words(compared))[:3]
    assert read.startswith("read of 1 MiB: wolf-native is ahead, wolf-dvs from 8 clients on. With 112 clients")
    assert "wolf-dvs from 4 clients on" in write
    assert create.startswith("create of nothing: wolf-native is ahead at any number of clients.")
    rows = list(path_rows(compared))
    assert [row[0] for row in rows[:3]] == ["read of 1 MiB", "", "write of 1 MiB"]
    assert [row[1] for row in rows[:2]] == ["1", "112"]


def test_the_page_has_its_pictures(tmp_path: File, sonde: Any) -> None:
    page = tmp_path / "routes.html"
    said = sonde("route", "simulate", "cumulus", "-o", str(page))
    assert said.code == 0
    assert str(page) in said.out
    text = page.read_text()
    assert text.count('data-chart="curves"') == len(COMPARED)
    assert text.count("<svg xmlns") == 1
    assert "Predicted from the system file: nothing here was measured." in text


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: File, sonde: Any) -> None:
    said = sonde("route", "simulate", "cumulus", "-o", str(tmp_path / "no" / "routes.html"))
    assert said.code == 2
    assert "cannot be written to" in said.err
