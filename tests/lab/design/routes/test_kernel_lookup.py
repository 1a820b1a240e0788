# SPDX-License-Identifier: Apache-2.0
"""The lookup of routes chooses as the kernel does: `ip route get` in a namespace is the truth."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from sonde.design.routes.kernel_lookup import find_kernel_route
from sonde.design.routes.table_reader import parse_host_tables

NAMESPACE = f"sonde-lookup-{os.getpid()}"

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
    ),
]

COMMANDS = {
    4: """
        -4 addr add 10.1.0.100/16 dev eth0
        -4 addr add 10.5.0.1/24 dev eth1
        -4 route add default via 10.1.0.254
        -4 route add 10.2.0.0/16 nexthop via 10.1.0.1 dev eth0 nexthop via 10.1.0.2 dev eth0
        -4 route add 10.2.0.0/16 metric 101 via 10.1.0.3
        -4 route add 10.2.8.0/24 metric 50 via 10.1.0.4
        -4 route add 10.2.8.0/24 metric 20 via 10.1.0.5
        -4 route add blackhole 10.2.9.0/24
        -4 route add unreachable 10.2.10.7
        -4 route add throw 10.2.11.0/24 table 7
        -4 route add 10.2.0.0/17 via 10.5.0.9 table 7
        -4 route add 10.2.200.0/24 via 10.5.0.8 table 8
        -4 route add 10.2.128.0/17 via 10.5.0.7 table 9
        -4 rule add pref 880 nop
        -4 rule add pref 881 goto 99999
        -4 rule add pref 882 to 10.2.8.0/23 goto 901
        -4 rule add pref 883 ipproto sctp lookup 7
        -4 rule add pref 884 tos 0x10 blackhole
        -4 rule add pref 885 iif missing0 blackhole
        -4 rule add pref 886 iif lo to 10.2.66.64/26 lookup 9
        -4 rule add pref 887 uidrange 4000000-4000001 blackhole
        -4 rule add pref 888 dport 988 blackhole
        -4 rule add pref 900 to 10.2.8.0/21 lookup 7
        -4 rule add pref 901 from 10.5.0.1 to 10.2.200.0/24 lookup 8
        -4 rule add pref 902 fwmark 0x10/0xf0 lookup 9
        -4 rule add pref 903 to 10.2.66.0/24 prohibit
        -4 rule add pref 904 lookup main suppress_prefixlength 0
        -4 rule add pref 905 not fwmark 0x7 to 10.77.0.0/16 blackhole
        """,
    6: """
        -6 addr add fd01::64/64 dev eth0 nodad
        -6 route add default via fd01::fe metric 1024
        -6 route add fd02::/64 metric 1024 nexthop via fd01::1 dev eth0 nexthop via fd01::2 dev eth0
        -6 route add fd02::/64 via fd01::3 metric 101
        -6 route add fd03::/64 via fd01::4 dev eth0
        -6 route add fd03::/64 via fd01::5 dev eth0 metric 2000
        -6 route add blackhole fd02::9:0/112
        -6 rule add pref 900 to fd03::/96 lookup 7
        -6 route add fd03::/80 via fd01::7 dev eth0 table 7
        """,
}
PROBES = {
    4: ["10.2.0.9", "10.2.7.255", "10.2.8.1", "10.2.9.1", "10.2.10.7", "10.2.10.8", "10.2.11.3", "10.2.66.1",
        "10.2.66.65", "10.2.127.1", "10.2.128.1", "10.2.200.1", "10.3.0.1", "10.77.0.1", "192.0.2.1"],
    6: ["fd02::1", "fd02::9:5", "fd03::1", "fd03::1:0:0:1", "fd04::1"],
}  # fmt: skip


def run_ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", "-n", NAMESPACE, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def namespace() -> Iterator[None]:
    if subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed here")
    try:
        for arguments in ("link set lo up", "link add eth0 type veth peer name other0",
                          "link add eth1 type veth peer name other1", "link set eth0 up", "link set other0 up",
                          "link set eth1 up", "link set other1 up"):  # fmt: skip
            assert run_ip(*arguments.split()).returncode == 0
        for commands in COMMANDS.values():
            for line in commands.strip().splitlines():
                completed = run_ip(*line.split())
                assert completed.returncode == 0, (line, completed.stderr)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True, check=False)


@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("form", ["json", "text"])
def test_lookup_equals_ip_route_get(version: int, form: str) -> None:
    options = ["-j"] if form == "json" else []
    rules = run_ip(*options, f"-{version}", "rule").stdout
    routes = run_ip(*options, f"-{version}", "route", "show", "table", "all").stdout
    tables = parse_host_tables(rules, "rules").merge_tables(parse_host_tables(routes, "routes"))
    compared = 0
    for probe in PROBES[version]:
        address = ipaddress.ip_address(probe)
        for mark in (0, 0x10, 0x17, 0x7):
            for source in (None, "10.5.0.1") if version == 4 else (None,):
                arguments = ["get", probe, *(["from", source] if source else []), "mark", hex(mark)]
                answer = run_ip("-j", f"-{version}", "route", *arguments)
                lookup = find_kernel_route(
                    tables, address, packet_mark=mark, source_address=ipaddress.ip_address(source) if source else None
                )
                compared += 1
                if answer.returncode:
                    assert lookup is None or lookup.is_discarded, (probe, mark, source, answer.stderr)
                    continue
                (row,) = json.loads(answer.stdout)
                if row.get("type") in ("blackhole", "unreachable", "prohibit"):
                    assert lookup is not None
                    assert lookup.is_discarded, (probe, mark, source)
                    continue
                assert lookup is not None
                assert lookup.route is not None, (probe, mark, source, row)
                assert row["gateway"] in [hop.via for hop in lookup.route.hops], (probe, mark, source, row)
    assert compared >= 20
