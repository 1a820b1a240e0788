# SPDX-License-Identifier: Apache-2.0
"""Which router lives: the rule with its hysteresis, and a topology in which routers die under flows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_fabric import made

from sonde.design.routes.fabric import fabrics
from sonde.design.routes.flows import fair_rates
from sonde.design.routes.health import Health, Timing, judged, living_route
from sonde.design.routes.plan import HASH_SEED, plan_routes
from sonde.design.routes.spread import chosen, flow_hashes
from sonde.design.routes.topology import Topology
from sonde.design.routes.verify import verify
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[4]
TIMING = Timing(0.3, down=3, up=5)


def test_a_router_is_out_after_as_many_failed_rounds_as_said_and_back_after_good_ones() -> None:
    health = Health(3, TIMING)
    assert not health.round([True, False, True])
    assert not health.round([True, False, True])
    assert health.round([True, False, True])
    assert health.living == [True, False, True]
    for _ in range(4):
        assert not health.round([True, True, True])
    assert health.round([True, True, True])
    assert health.living == [True, True, True]


def test_a_router_that_comes_and_goes_moves_nothing() -> None:
    health = Health(2, TIMING)
    for number in range(50):
        assert not health.round([True, number % 3 == 0])


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=60))
def test_the_last_router_is_never_taken_out(rounds: list[tuple[bool, bool, bool]]) -> None:
    health = Health(3, Timing(0.3, down=1, up=1))
    for answers in rounds:
        health.round(answers)
        assert any(health.living)


def test_a_host_behind_that_nobody_reaches_says_nothing_about_a_router() -> None:
    assert judged([True, True], [[False, False]]) == [True, True]
    assert judged([True, True], [[True, False], [False, False]]) == [True, False], "its far link is down"
    assert judged([True, False], [[True, True]]) == [True, False], "it does not answer itself"
    assert judged([True, True], []) == [True, True]


def test_the_route_without_a_router_keeps_order_and_weights() -> None:
    fabric = made(3)
    (route,) = [one for one in plan_routes(fabric).of("clients").routes if one.table == "main"]
    gateways = [way.near for way in fabric.ways]
    assert [hop.via for hop in living_route(route, gateways, [True, False, True]).hops] == ["10.1.0.1", "10.1.0.3"]
    assert living_route(route, gateways, [False, False, False]) == route


def test_the_stated_times_follow_from_the_rhythm() -> None:
    assert Timing(0.3, 3, 10).failover_s == pytest.approx(1.2)
    assert Timing(0.3, 3, 10).stall_s == pytest.approx(2.6)


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="network namespaces need root and iproute2",
)


def namespaces() -> list[str]:
    said = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in said.splitlines() if line.startswith(f"sonde-{os.getpid()}-")]


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_the_worked_example_is_built_spreads_as_predicted_and_survives_its_routers() -> None:
    path = ROOT / "systems" / "cumulus.toml"
    (fabric,) = fabrics(read_system(path))
    found = verify(fabric, str(path), losses=2, timing=Timing(0.3, 3, 4))
    assert found.spread.holds, found.spread
    assert sum(share > 0 for share in found.spread.counted) == 6
    assert [loss.broken for loss in found.losses] == [0, 0]
    assert found.clean
    assert namespaces() == []
    # not the time of a loaded machine, but that the flows went on long before TCP gives up
    assert max(loss.stall_s for loss in found.losses) < 4 * found.limit_s


@needs_root
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("routers", "version", "layer"), [(3, 6, 4), (5, 4, 3), (4, 6, 3)])
def test_flows_of_both_versions_and_policies_are_counted_as_predicted(routers: int, version: int, layer: int) -> None:
    """Flows between several clients and servers, so that addresses alone spread them too."""
    found = verify(made(routers, clients=4, servers=4, version=version), "", flows=32, losses=0, layer=layer)
    assert found.spread.holds, found.spread
    assert sum(share > 0 for share in found.spread.predicted) >= 2
    assert found.clean
    assert namespaces() == []


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_limited_routers_carry_in_all_what_is_predicted() -> None:
    """Token buckets of 3 and 6 MB/s: the total is what fair shares of the links come to."""
    fabric = made(2, clients=1, servers=1)
    plan = plan_routes(fabric)
    limits, seconds, flows = (3e6, 6e6), 4.0, 16
    wanted = [("10.1.0.100", 42000 + at, "10.2.0.100", 5001) for at in range(flows)]
    ports = [one[1] for one in wanted]
    hashes = flow_hashes(["10.1.0.100"] * flows, ["10.2.0.100"] * flows, ports, 5001, seed=HASH_SEED)
    places = chosen(hashes, [1, 1])
    predicted = fair_rates(np.asarray([places]), np.asarray(limits)).sum()
    with Topology(plan, ["10.1.0.100"], ["10.2.0.100"]) as built:
        built.apply()
        for way, limit in zip(fabric.ways, limits, strict=True):
            built.limit(way.router, limit)
        built.start("far", "-m", "sonde.design.routes.traffic", "answer", "5001")
        time.sleep(0.5)
        order = {"flows": wanted, "seconds": seconds + 2.0, "pace_s": 0.0}
        process = built.start("near", "-m", "sonde.design.routes.traffic", "ask", json.dumps(order))
        time.sleep(1.5)
        begin, first = time.monotonic(), sum(built.counted(way.router)[1] for way in fabric.ways)
        time.sleep(seconds)
        last, end = sum(built.counted(way.router)[1] for way in fabric.ways), time.monotonic()
        process.communicate()
    assert set(places) == {0, 1}
    assert (last - first) / (end - begin) == pytest.approx(predicted, rel=0.05)
