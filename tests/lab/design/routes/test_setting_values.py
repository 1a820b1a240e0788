# SPDX-License-Identifier: Apache-2.0
"""Settings of NFS, of connection tracking and of the network that limit or break storage traffic, by their values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.check_settings import audit_host_settings
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.kernel_settings import REQUIRED_OPTIONS


def find_kinds(cumulus: Fabric, name: str, settings: Mapping[str, str]) -> set[str]:
    faults = check_host_routes([cumulus], name, HostTables(settings=settings)).faults
    return {fault.kind for fault in faults if not fault.location.endswith("= not set")}


@pytest.mark.parametrize(
    ("name", "setting", "sound", "wrong", "fault_kind"),
    [
        ("routers", "net.netfilter.nf_conntrack_tcp_loose", "1", "0", "moved connections invalid"),
        ("routers", "net.ipv4.icmp_ratelimit", "1000", "600000", "path MTU not discovered"),
        ("routers", "net.ipv4.icmp_msgs_per_sec", "1000", "1", "path MTU not discovered"),
        ("routers", "vm.min_free_kbytes", "67584", "128", "packets dropped early"),
        ("compute", "net.ipv4.route.min_pmtu", "552", "9500", "path MTU not discovered"),
        ("compute", "net.ipv4.tcp_recovery", "1", "0", "connections limited"),
        ("compute", "net.ipv4.tcp_keepalive_time", "7200", "2000000", "dead peers are noticed late"),
        ("compute", "net.ipv4.tcp_max_orphans", "65536", "4", "connections reset"),
        ("compute", "net.ipv4.ipfrag_time", "30", "0", "fragments dropped"),
        ("compute", "net.core.rmem_default", "212992", "4096", "small socket buffers"),
        ("compute", "net.core.wmem_default", "212992", "4096", "small socket buffers"),
        ("compute", "net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 33554432 16777216", "wrong order of sizes"),
        ("compute", "sunrpc.rpc_debug", "0x0000", "0x7fff", "debug messages on"),
        ("compute", "sunrpc.nfs_debug", "0", "65535", "debug messages on"),
        ("compute", "sunrpc.min_resvport", "665", "1020", "few local ports"),
        ("compute", "sunrpc.max_resvport", "1023", "700", "few local ports"),
        ("compute", "sunrpc.max_resvport", "1023", "4000", "ports refused"),
    ],
)
def test_setting_of_the_network_is_judged_by_its_value(
    cumulus: Fabric, name: str, setting: str, sound: str, wrong: str, fault_kind: str
) -> None:
    assert find_kinds(cumulus, name, {setting: sound}) == set()
    assert find_kinds(cumulus, name, {setting: wrong}) == {fault_kind}


@pytest.mark.parametrize(("buckets", "expected_kinds"), [("8192", {"slow table of connections"}), ("262144", set())])
def test_lists_of_tracked_connections_are_short(cumulus: Fabric, buckets: str, expected_kinds: set[str]) -> None:
    settings = {"net.netfilter.nf_conntrack_max": "1048576", "net.netfilter.nf_conntrack_buckets": buckets}
    assert find_kinds(cumulus, "routers", settings) == expected_kinds


@pytest.mark.parametrize(
    ("setting", "option", "state", "expected_kinds"),
    [
        ("net.ipv4.tcp_congestion_control = htcp", "TCP_CONG_HTCP", "n", {"setting wrong"}),
        ("net.ipv4.tcp_congestion_control = htcp", "TCP_CONG_CUBIC", "y", {"setting wrong"}),
        ("net.ipv4.tcp_congestion_control = htcp", "TCP_CONG_HTCP", "m", {"setting risky"}),
        ("net.ipv4.tcp_congestion_control = htcp", "TCP_CONG_HTCP", "y", set()),
        ("net.ipv4.tcp_congestion_control = bbr", "TCP_CONG_BBR", "n", {"setting wrong"}),
        ("net.ipv4.tcp_congestion_control = highspeed", "TCP_CONG_HSTCP", "y", set()),
        ("net.ipv4.tcp_congestion_control = reno", "TCP_CONG_CUBIC", "y", set()),
        ("net.core.default_qdisc = fq", "NET_SCH_FQ", "n", {"setting wrong"}),
        ("net.core.default_qdisc = fq", "NET_SCH_FQ", "m", set()),
    ],
)
def test_part_of_the_kernel_that_is_absent_is_no_module(
    cumulus: Fabric, setting: str, option: str, state: str, expected_kinds: set[str]
) -> None:
    name, _, value = setting.partition(" = ")
    drivers = {f"CONFIG_DRIVER_{number}": "m" for number in range(300)}  # a configuration that is complete
    options = drivers | dict.fromkeys(REQUIRED_OPTIONS, "y") | {f"CONFIG_{option}": state}
    tables = HostTables(settings={name: value}, options=options)
    faults = check_host_routes([cumulus], "compute", tables).faults
    assert {fault.kind for fault in faults} == expected_kinds
    assert all(("is not in this kernel" in fault.problem) == (fault.kind == "setting wrong") for fault in faults)


def test_kernel_excerpt_decides_by_its_lines_only(cumulus: Fabric) -> None:
    settings = {"net.ipv4.tcp_congestion_control": "htcp"}
    for options, kinds in (
        ({"CONFIG_INET": "y"}, []),
        ({"CONFIG_INET": "y", "CONFIG_TCP_CONG_HTCP": "n"}, ["setting wrong"]),
        ({"CONFIG_INET": "y", "CONFIG_IP_MULTIPLE_TABLES": "n"}, ["kernel option missing"]),
        ({f"CONFIG_DRIVER_{number}": "m" for number in range(400)},
         [*["kernel option missing"] * len(REQUIRED_OPTIONS), "setting wrong"]),
    ):  # fmt: skip
        tables = HostTables(settings=settings, options=options)
        faults = check_host_routes([cumulus], "compute", tables).faults
        assert [fault.kind for fault in faults if fault.kind != "setting risky"] == kinds


@pytest.mark.parametrize(("available", "kinds"), [
    ("reno cubic htcp", []), ("reno cubic", ["setting risky"]),
])  # fmt: skip
def test_loaded_congestion_control_is_no_risk(tmp_path: Path, available: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += f"net.ipv4.tcp_available_congestion_control = {available}\n"
    outputs["sysctl"] += "net.ipv4.tcp_congestion_control = htcp\n"
    assert [fault.kind for fault in check_outputs(tmp_path / "live", outputs).faults] == kinds
    outputs["99-site.conf"] = "net.ipv4.tcp_congestion_control = htcp\n"
    assert [fault.kind for fault in check_outputs(tmp_path / "file", outputs).faults] == kinds


def test_options_of_the_kernel_count_for_files_too(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {
        "config": "\n".join([*(f"{name}=y" for name in REQUIRED_OPTIONS), "CONFIG_INET=y",
                             "CONFIG_IPV6_MULTIPLE_TABLES=y", "# CONFIG_TCP_CONG_HTCP is not set"]),
        "99-site.conf": "net.ipv4.tcp_congestion_control = htcp\n",
    }  # fmt: skip
    verdict = check_outputs(tmp_path, outputs)
    (fault,) = verdict.faults
    assert "is not in this kernel (CONFIG_TCP_CONG_HTCP is not set)" in fault.problem
    assert not any(item.subject == "kernel options in the configuration files" for item in verdict.comparisons)


def test_hosts_may_drop_connections_in_their_midst(cumulus: Fabric) -> None:
    assert find_kinds(cumulus, "compute", {"net.netfilter.nf_conntrack_tcp_loose": "0"}) == set()


@pytest.mark.parametrize(("planned", "is_planned"), [({"net.ipv4.tcp_timestamps": 0}, True), ({}, False)])
def test_risky_setting_of_the_system_file_refers_to_it(planned: dict[str, int], is_planned: bool) -> None:
    results = audit_host_settings({"net.ipv4.tcp_timestamps": "0"}, None, planned)
    (fault,) = [result for result in results if isinstance(result, RouteFault)]
    assert fault.remedy.endswith("also in the system file, which asks for it") is is_planned


@pytest.mark.parametrize(("count", "is_fault"), [("128", True), ("1024", False)])
def test_table_of_few_neighbors_is_reported(tmp_path: Path, count: str, is_fault: bool) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += f"net.ipv4.neigh.default.gc_thresh3 = {count}\n"
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults] == ["neighbor table too small"] * is_fault


@pytest.mark.parametrize("device", ["all", "hsn0"])
def test_router_that_answers_no_arp_is_one_fault(tmp_path: Path, device: str) -> None:
    settings = f"net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\nnet.ipv4.conf.{device}.arp_ignore = 8\n"
    faults = check_outputs(tmp_path, {"sysctl": settings}, "gw1").faults
    assert [fault.kind for fault in faults] == ["ARP not answered"] * (2 if device == "all" else 1)
