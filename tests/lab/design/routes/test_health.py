# SPDX-License-Identifier: Apache-2.0
"""Router health with its hysteresis, and a topology in which routers fail under flows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from fabric_builders import build_fabric
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sonde.design.routes import health as health_check
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.flow_hash import choose_next_hops, compute_flow_hashes
from sonde.design.routes.flows import compute_fair_rates
from sonde.design.routes.health import (
    HealthCheckTiming,
    RouterHealth,
    WatchedRoutes,
    drop_dead_hops,
    evaluate_answers,
)
from sonde.design.routes.plan import HASH_SEED, PlannedIpRoute, plan_routes
from sonde.design.routes.topology import Topology
from sonde.design.routes.verify import verify_route_plan
from sonde.model.errors import MachineError
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[4]
TIMING = HealthCheckTiming(0.3, down=3, up=5)


def test_router_leaves_and_returns_after_the_configured_rounds() -> None:
    health = RouterHealth(3, TIMING)
    assert not health.add_round([True, False, True])
    assert not health.add_round([True, False, True])
    assert health.add_round([True, False, True])
    assert health.alive == [True, False, True]
    for _ in range(4):
        assert not health.add_round([True, True, True])
    assert health.add_round([True, True, True])
    assert health.alive == [True, True, True]


def test_unstable_router_does_not_change_route() -> None:
    health = RouterHealth(2, TIMING)
    for number in range(50):
        assert not health.add_round([True, number % 3 == 0])


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=60))
def test_last_router_never_leaves_route(rounds: list[tuple[bool, bool, bool]]) -> None:
    health = RouterHealth(3, HealthCheckTiming(0.3, down=1, up=1))
    for answers in rounds:
        health.add_round(answers)
        assert any(health.alive)


def test_unreachable_far_host_is_ignored() -> None:
    assert evaluate_answers([True, True], [[False, False]]) == [True, True]
    assert evaluate_answers([True, True], [[True, False], [False, False]]) == [True, False], "its far link is down"
    assert evaluate_answers([True, False], [[True, True]]) == [True, False], "it does not answer itself"
    assert evaluate_answers([True, True], []) == [True, True]


def test_route_without_router_keeps_order_and_weights() -> None:
    fabric = build_fabric(3)
    (route,) = [route for route in plan_routes(fabric).find_host_plan("clients").routes if route.table == "main"]
    gateways = [router.near_address for router in fabric.routers]
    assert [hop.via for hop in drop_dead_hops(route, gateways, [True, False, True]).hops] == ["10.1.0.1", "10.1.0.3"]
    assert drop_dead_hops(route, gateways, [False, False, False]) == route


def test_failover_times_follow_from_interval() -> None:
    assert HealthCheckTiming(0.3, 3, 10).failover_s == pytest.approx(1.2)
    assert HealthCheckTiming(0.3, 3, 10).stall_s == pytest.approx(2.6)


def test_missing_interface_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The routes are tried again until the interface is there; the reason is reported once."""
    fabric = build_fabric(2)
    host = plan_routes(fabric).find_host_plan("clients")
    watched = WatchedRoutes(host, ("10.2.0.1", "10.2.0.2"), ())

    class SilentSecondRouter:
        def __init__(self, version: int) -> None:
            pass

        def find_answering_targets(self, addresses_and_marks: object, wait_s: float) -> list[bool]:
            return [True, False]

    monkeypatch.setattr(health_check, "Pinger", SilentSecondRouter)
    attempts, reports = list[PlannedIpRoute](), list[str]()

    def replace_route(route: PlannedIpRoute) -> None:
        attempts.append(route)
        if len(attempts) < 4:
            raise MachineError("There is no interface eth0 on this host.")

    timing = HealthCheckTiming(0.001, down=1, up=1)
    health_check.watch_routers(watched, timing, replace_route, reports.append, max_rounds=6)
    assert len(attempts) == 4, "three in vain, and none after it worked"
    assert [hop.via for hop in attempts[-1].hops] == ["10.1.0.1"]
    assert sum("no interface eth0" in report for report in reports) == 1


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="network namespaces need root and iproute2",
)


def list_namespaces() -> list[str]:
    output = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in output.splitlines() if line.startswith(f"sonde-{os.getpid()}-")]


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_cumulus_topology_survives_lost_routers() -> None:
    path = ROOT / "systems" / "cumulus.toml"
    (fabric,) = find_fabrics(read_system(path))
    result = verify_route_plan(fabric, str(path), loss_count=2, timing=HealthCheckTiming(0.3, 3, 4))
    assert result.spread.is_as_predicted, result.spread
    assert sum(share > 0 for share in result.spread.counted) == 6
    assert [loss.broken for loss in result.losses] == [0, 0]
    assert result.clean
    assert list_namespaces() == []
    # not the time of a loaded machine, but that the flows went on long before TCP gives up
    assert max(loss.stall_s for loss in result.losses) < 4 * result.limit_s


@needs_root
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("routers", "version", "layer"), [(3, 6, 4), (5, 4, 3), (4, 6, 3)])
def test_counted_spread_of_versions_and_policies_is_predicted(routers: int, version: int, layer: int) -> None:
    """Flows between several clients and servers, so that addresses alone spread them too."""
    result = verify_route_plan(
        build_fabric(routers, clients=4, servers=4, ip_version=version),
        "",
        flow_count=32,
        loss_count=0,
        hash_layer=layer,
    )
    assert result.spread.is_as_predicted, result.spread
    assert sum(share > 0 for share in result.spread.predicted) >= 2
    assert result.clean
    assert list_namespaces() == []


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_total_rate_of_limited_routers_is_predicted() -> None:
    """Token buckets of 1 and 2 MB/s: the total is what fair shares of the links come to. A loaded computer that does
    not fill the links makes some windows slower, and none faster."""
    fabric = build_fabric(2, clients=1, servers=1)
    plan = plan_routes(fabric)
    limits, window_s, max_windows, flow_count = (1e6, 2e6), 2.0, 20, 16
    flow_ends = [("10.1.0.100", 42000 + number, "10.2.0.100", 5001) for number in range(flow_count)]
    ports = [flow_end[1] for flow_end in flow_ends]
    hashes = compute_flow_hashes(["10.1.0.100"] * flow_count, ["10.2.0.100"] * flow_count, ports, 5001, seed=HASH_SEED)
    hop_indexes = choose_next_hops(hashes, [1, 1])
    predicted = compute_fair_rates(np.asarray([hop_indexes]), np.asarray(limits)).sum()
    rates: list[float] = []
    with Topology(plan, ["10.1.0.100"], ["10.2.0.100"]) as topology:
        topology.apply_plan()
        for router, limit in zip(fabric.routers, limits, strict=True):
            topology.limit_router(router.name, limit)
        topology.start_python("far", "-m", "sonde.design.routes.traffic", "serve", "5001")
        time.sleep(0.5)
        order = {"flows": flow_ends, "seconds": (max_windows + 1) * window_s, "pace_s": 0.0}
        topology.start_python("near", "-m", "sonde.design.routes.traffic", "send", json.dumps(order))
        while len(rates) < max_windows and (not rates or max(rates) < 0.95 * predicted):
            rates.append(measure_rate_towards_far(topology, fabric, window_s))
    assert set(hop_indexes) == {0, 1}
    assert max(rates) == pytest.approx(predicted, rel=0.05), rates


def measure_rate_towards_far(topology: Topology, fabric: Fabric, window_s: float) -> float:
    """Bytes per second that the routers send together. One program reads clock and counter, since the start of a
    program takes long on a loaded computer."""

    def read_clocks_and_bytes() -> NDArray[np.float64]:
        files = [("/proc/uptime", f"/sys/class/net/{router.far_device}/statistics/tx_bytes") for router in routers]
        outputs = [
            topology.run_program(router.name, "cat", *paths) for router, paths in zip(routers, files, strict=True)
        ]
        return np.asarray([(output.split()[0], output.split()[2]) for output in outputs], dtype=float)

    routers = fabric.routers
    before = read_clocks_and_bytes()
    time.sleep(window_s)
    passed_s, sent_bytes = (read_clocks_and_bytes() - before).T
    return float((sent_bytes / passed_s).sum())
