# SPDX-License-Identifier: Apache-2.0
"""Mistakes at random places of hosts and routers of random fabrics: each is named with its reason, and nothing else
is."""

from __future__ import annotations

from random import Random

import pytest
from drawn_hosts import DrawnHost, draw_host
from drawn_interface_mistakes import INTERFACE_MISTAKES
from drawn_route_mistakes import ROUTE_MISTAKES
from drawn_router_mistakes import ROUTER_MISTAKES
from drawn_setting_mistakes import SETTING_MISTAKES
from fault_naming import require_only
from route_mistake import RouteMistake

MISTAKES = [*ROUTE_MISTAKES, *INTERFACE_MISTAKES, *SETTING_MISTAKES, *ROUTER_MISTAKES]
SEEDS = (2613, 2614)
KINDS = ("4", "6", "router4", "router6", "site")


def draw_host_for(mistake: RouteMistake, random: Random) -> DrawnHost:
    """A host on which the mistake can be made."""
    host = draw_host(random, mistake.host)
    while mistake.needs_standby and not host.has_standby:
        host = draw_host(random, mistake.host)
    return host


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("host_kind", KINDS)
def test_random_host_has_no_fault_in_many_comparisons(host_kind: str, seed: int) -> None:
    verdict = draw_host(Random(seed), host_kind).check()
    assert verdict.faults == ()
    assert len(verdict.comparisons) > 12


@pytest.mark.parametrize("version", [4, 6])
def test_routes_and_rules_of_other_programs_are_no_fault(version: int) -> None:
    """Rules of VPNs, bridges of containers, routes that catch what the multipath route does not."""
    host = draw_host(Random(7), str(version))
    host.add("rules", "1:\tfrom all lookup [l3mdev-table]", "5210:\tfrom all fwmark 0x80000/0xff0000 lookup main",
             "5270:\tfrom all lookup 52")  # fmt: skip
    host.add("routes", f"blackhole {host.far_range} metric 4294967295")
    host.add("addresses", "9: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN",
             "    inet 172.17.0.1/16 scope global docker0")  # fmt: skip
    if version == 4:
        host.add("routes", "172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 linkdown",
                 "100.64.0.7 dev tailscale0 table 52")  # fmt: skip
    else:
        host.add("routes", "unreachable default dev lo metric 4294967295 error -101 pref medium",
                 "fe80::/64 dev eth0 proto kernel metric 256 pref medium")  # fmt: skip
    assert host.check().faults == ()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_random_mistake_is_reported_with_its_reason(mistake: RouteMistake, seed: int) -> None:
    random = Random(f"{seed}-{mistake.name}")
    host = draw_host_for(mistake, random)
    location = mistake.plant(host, random)
    require_only(host.check().faults, mistake.reason, location, mistake.consequences)


def test_mistakes_are_many_and_different() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 101
