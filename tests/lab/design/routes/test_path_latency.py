# SPDX-License-Identifier: Apache-2.0
"""Round trips through each router: planted delays and losses are named, equal routers are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from fabric_builders import build_fabric

from sonde.cli.main import main
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.health import WatchedRoutes
from sonde.design.routes.path_latency import PathLatency, describe_latency_fault, measure_paths, summarize_paths
from sonde.design.routes.plan import plan_routes
from sonde.design.routes.topology import Topology

ROUTERS = ["r1", "r2", "r3"]
ROUNDS = 100


class FakeProbe:
    """Answers as `compute` says for the mark of a router and the number of the request."""

    def __init__(self, compute: Callable[[int, int], float | None]) -> None:
        self._compute = compute
        self.requests: list[tuple[str, int]] = []

    def measure_round_trip(self, address: str, mark: int, wait_s: float) -> float | None:
        self.requests.append((address, mark))
        return self._compute(mark, len(self.requests))


def measure(compute: Callable[[int, int], float | None], hosts: tuple[str, ...] = ()) -> list[PathLatency]:
    host = plan_routes(build_fabric(3)).find_host_plan("clients")
    watched = WatchedRoutes(host, ("10.2.0.1", "10.2.0.2", "10.2.0.3"), hosts)
    return measure_paths(watched, ROUTERS, rounds=ROUNDS, interval_s=0, probe=FakeProbe(compute))


def find_named(paths: list[PathLatency]) -> list[str]:
    return [path.router for path in paths if describe_latency_fault(path)]


@pytest.mark.parametrize("factor", [2, 5, 10, 100])
@pytest.mark.parametrize("seed", range(5))
def test_slow_router_is_reported_with_its_ratio(factor: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    paths = measure(lambda mark, _: random.lognormal(-9.2, 0.3) * (factor if mark == 2 else 1))
    assert find_named(paths) == ["r2"]
    relative = paths[1].relative
    assert relative is not None
    assert relative.low is not None
    assert relative.high is not None
    assert relative.low < factor < relative.high
    assert "r2 is slow" in describe_latency_fault(paths[1])


def test_equal_routers_are_not_reported() -> None:
    """100 fabrics of equal routers with scattered round trips, one in ten of them five times as long."""
    named_fabrics = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        times = random.lognormal(-9.2, 0.5, (6, ROUNDS)) * np.where(random.random((6, ROUNDS)) < 0.1, 5, 1)
        paths = summarize_paths([(f"r{number}", "") for number in range(6)], times)
        named_fabrics += bool(find_named(paths))
    assert named_fabrics == 0


def test_common_drift_names_no_router() -> None:
    """All round trips become 20 times as long half way: each router is compared in the same round."""
    random = np.random.default_rng(5)
    paths = measure(lambda _, number: random.lognormal(-9.2, 0.2) * (20 if number > 150 else 1))
    assert find_named(paths) == []


@pytest.mark.parametrize(("share", "is_named"), [(0.001, False), (0.1, True), (0.5, True)])
def test_lost_packets_are_reported_above_1_percent(share: float, is_named: bool) -> None:
    random = np.random.default_rng(3)
    paths = measure(lambda mark, _: None if mark == 3 and random.random() < share else 1e-4)
    assert find_named(paths) == (["r3"] if is_named else [])
    if is_named:
        assert "loses packets" in describe_latency_fault(paths[2])


def test_silent_router_is_reported_and_probing_stops() -> None:
    host = plan_routes(build_fabric(3)).find_host_plan("clients")
    probe = FakeProbe(lambda mark, _: None if mark == 1 else 1e-4)
    watched = WatchedRoutes(host, ("10.2.0.1", "10.2.0.2", "10.2.0.3"), ())
    paths = measure_paths(watched, ROUTERS, rounds=ROUNDS, interval_s=0, probe=probe)
    assert find_named(paths) == ["r1"]
    assert paths[0].lost == ROUNDS
    assert "does not answer" in describe_latency_fault(paths[0])
    assert len([mark for _, mark in probe.requests if mark == 1]) < 10 < ROUNDS


def test_host_behind_routers_is_probed_through_each_router() -> None:
    paths = measure(lambda mark, _: 1e-3 if mark == 2 else 1e-4, hosts=("10.2.0.100",))
    assert [(path.router, path.target) for path in paths] == [
        *((name, "") for name in ROUTERS), *((name, "10.2.0.100") for name in ROUTERS)]  # fmt: skip
    assert [describe_latency_fault(path).partition(" is ")[0] for path in paths if path.is_slow] == [
        "r2", "r2 to 10.2.0.100"]  # fmt: skip


def test_single_router_is_compared_with_nothing() -> None:
    (path,) = summarize_paths([("r1", "")], np.full((1, ROUNDS), 1e-4))
    assert path.relative is None
    assert not describe_latency_fault(path)
    assert path.median_s == pytest.approx(1e-4)


def test_host_of_another_network_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "latency", "cumulus", "--as", "compute", "--host", "192.0.2.1"]) == 2
    assert "192.0.2.1 is not in" in capsys.readouterr().err


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="network namespaces need root and iproute2",
)
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.serial
def test_throttled_router_is_reported_in_namespaces(cumulus: Fabric) -> None:
    """Of the six routers of the worked example one sends few packets a second, and later another one is down."""
    slow, dead, sound = (router.name for router in cumulus.active_routers[:3])
    near, far = cumulus.near.classes[0], cumulus.far.classes[0]
    arguments = ["-m", "sonde", "route", "latency", "cumulus", "--as", near.name, "--probes", "40"]
    with Topology(plan_routes(cumulus), near.addresses[:1], far.addresses[:1]) as topology:
        topology.apply_plan()
        code, output = finish(topology.start_python("near", *arguments))
        assert code == 0, output
        assert "no router is slower" in output
        router = next(router for router in cumulus.active_routers if router.name == slow)
        # 42 bytes of an answer each 168 ms: far longer than a loaded computer takes to ask the other routers meanwhile
        topology.run_program(slow, "tc", "qdisc", "replace", "dev", router.near_device, "root", "tbf",
                             "rate", "2kbit", "burst", "64", "latency", "400ms")  # fmt: skip
        topology.disable_router(dead)
        code, output = finish(topology.start_python("near", *arguments))
    assert code == 1, output
    assert f"{slow} is slow" in output
    assert f"{dead} does not answer" in output
    assert f"{sound} is slow" not in output
    assert f"{sound} does not" not in output


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The exit code of a program, and what it printed."""
    output, _ = process.communicate()
    return process.returncode, " ".join(output.decode().split())
