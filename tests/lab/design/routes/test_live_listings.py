# SPDX-License-Identifier: Apache-2.0
"""Listings that `ip` prints in a network namespace, and what netlink reports: the commands are the truth."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonde.design.routes.table_reader import parse_host_tables

NAMESPACE = f"sonde-listings-{os.getpid()}"
ROOT = Path(__file__).resolve().parents[4]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
    ),
]

COMMANDS = (
    "link set lo up",
    "link add eth0 type veth peer name peer0",
    "link set eth0 up",
    "link set peer0 up",
    "addr add 10.1.0.2/24 dev eth0",
    "addr add 10.1.0.9/24 dev eth0 valid_lft 600 preferred_lft 0",
    "nexthop add id 1 via 10.1.0.1 dev eth0",
    "nexthop add id 2 via 10.1.0.3 dev eth0",
    "nexthop add id 10 group 1/2",
    "route add 10.8.0.0/16 nhid 10",
    "neigh add 10.1.0.3 lladdr 02:00:00:00:00:03 nud permanent dev eth0",
    "xfrm policy add src 10.1.0.0/24 dst 10.9.0.0/16 dir out priority 7 tmpl src 10.1.0.2 dst 10.1.0.1 proto esp"
    " mode tunnel",
    "xfrm policy add src 10.9.0.0/16 dst 10.1.0.0/24 proto tcp sport 988 dir in action block",
)
RESILIENT = ("nexthop add id 11 group 1/2 type resilient buckets 8", "route add 10.9.0.0/16 nhid 11")


def run_ip(arguments: str) -> str:
    command = ["ip", "-n", NAMESPACE, *arguments.split()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


@pytest.fixture(scope="module", autouse=True)
def _namespace() -> Iterator[None]:
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True, timeout=30)
    try:
        for arguments in COMMANDS:
            run_ip(arguments)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True, timeout=30)


@pytest.mark.parametrize("listing", ["nexthop", "-j nexthop", "-d route", "-j -d route"])
def test_types_of_groups_are_read(listing: str) -> None:
    expected = {"10": "mpath"}
    try:
        for arguments in RESILIENT if "id 11 " not in run_ip("nexthop") else ():
            run_ip(arguments)
        expected["11"] = "resilient"
    except subprocess.CalledProcessError:
        assert "resilient" not in run_ip("nexthop"), "this kernel has no resilient groups"
    tables = parse_host_tables(run_ip(listing), "listing")
    assert {number: kind for number, kind in tables.next_hop_types.items() if int(number) >= 10} == expected
    routes = {route.destination: route.next_hop_id for route in tables.routes or ()}
    assert "route" not in listing or routes["10.8.0.0/16"] == "10"


def test_ipsec_policies_are_parsed_from_ip_xfrm() -> None:
    block, tunnel = parse_host_tables(run_ip("xfrm policy"), "xfrm").security_policies or ()
    assert (block.source, block.destination, block.direction) == ("10.9.0.0/16", "10.1.0.0/24", "in")
    assert (block.is_blocking, block.transformation, block.selectors) == (True, "", "proto tcp sport 988")
    assert (tunnel.priority, tunnel.is_blocking, tunnel.transformation) == (7, False, "esp in mode tunnel")
    assert tunnel.origin == "xfrm, line 3"


def test_netlink_and_text_agree() -> None:
    program = (
        "from sonde.design.routes.kernel_tables import read_this_host\n"
        "tables = read_this_host(4)\n"
        "print(dict(tables.address_devices), dict(tables.address_details))\n"
        "print([route.destination for route in tables.routes if route.next_hop_id])\n"
        "print([(each.address, each.state) for each in tables.neighbors])\n"
    )
    command = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lab")}
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment).stdout
    addresses, destinations, neighbors = output.splitlines()
    listing = parse_host_tables(run_ip("-4 addr"), "addr")
    details = f"{dict(listing.address_devices)} {dict(listing.address_details)}"
    assert re.sub(r"remaining_s=\d+", "remaining_s", addresses) == re.sub(r"remaining_s=\d+", "remaining_s", details)
    assert listing.address_details["10.1.0.9"].is_deprecated
    assert listing.address_details["10.1.0.9"].is_leased
    assert "10.8.0.0/16" in destinations
    assert "10.1.0.0/24" not in destinations
    assert neighbors == "[('10.1.0.3', 'permanent')]"
