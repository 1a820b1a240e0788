# SPDX-License-Identifier: Apache-2.0
"""Usual mistakes of administrators in the outputs of a server: each is one fault with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, build_site, check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.check_host import check_host
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.scripts import make_route_arguments
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.shell import quote_command

MAIN, MAIN6 = r"(?m)^10\.150\.0\.0/16(?= proto 77 mtu)", r"(?m)^fd00:150::/64(?= proto 77 metric 1024)"
# A default route by the network of management, which takes what no other route does.
DEFAULT = "default via 192.168.9.1 dev mgmt\n192.168.9.0/24 dev mgmt proto kernel\n"


def check_edited(folder: Path, output: str, pattern: str, replacement: str, more: str = "") -> tuple[RouteFault, ...]:
    """The faults of a healthy server of which one text of one output is replaced."""
    outputs = print_server_outputs()
    outputs["route"] += DEFAULT
    outputs[output], count = re.subn(pattern, replacement, outputs[output], count=1)
    assert count == 1, pattern
    outputs[output] += more
    return check_outputs(folder, outputs).faults


@pytest.mark.parametrize(
    ("output", "pattern", "replacement", "fault_kind", "expected_sentence"),
    [
        ("route", MAIN, "10.150.0.0/24", "route for a part",
         "leads to 10.150.0.0/24 only by the routers, a part of 10.150.0.0/16 (hsn): packets to the other hosts, as"
         " 10.150.1.0, take standby routers (10.160.15.4)"),
        ("route", MAIN, "10.15.0.0/16", "unknown destination", "10.15.0.0/16 is neither hsn (10.150.0.0/16) nor"),
        ("route6", MAIN6, "fd00:150::/46", "destination too wide", "fd00:150::/46 is wider than fd00:150::/64"),
        ("route", r"nexthop via 10.160.15.2 ", "nexthop via 10.160.15.22 ", "unknown router",
         "is no router of hsn to storage-net, instead of gw2 (10.160.15.2)"),
        ("route", r"nexthop via 10.160.15.2 ", "nexthop via 10.150.255.2 ", "next hop out of reach",
         "it is the address of gw2 on hsn, instead of gw2 (10.160.15.2)"),
        ("route", r"nexthop via 10.160.15.2 ", "nexthop via 10.160.15.3 ", "router named twice",
         "names 10.160.15.3 2 times and not gw2 (10.160.15.2)"),
        ("route", r"(nexthop via 10.160.15.1 \S+ \S+ \S+ \S+) (nexthop via 10.160.15.2 \S+ \S+ \S+ \S+)", r"\2 \1",
         "order not as planned", "names gw2 as number 1, the plan gw1"),
        ("route", r"table 2 mtu 9000 via 10.160.15.2", "table 2 mtu 9000 via 10.160.15.3", "router in several tables",
         "10.160.15.3 (gw3) is the next hop of 2 tables; table 2 is that of gw2 in the plan"),
        ("rule", "fwmark 0x2 lookup 2", "fwmark 0x1 lookup 2", "mark without a rule", "with mark 2 into table 2"),
        ("rule", "fwmark 0x2 lookup 2", "fwmark 0x2 lookup 3", "mark of another router", "its table 3 leads to gw3"),
    ],
)  # fmt: skip
def test_usual_mistake_is_one_fault(
    tmp_path: Path, output: str, pattern: str, replacement: str, fault_kind: str, expected_sentence: str
) -> None:
    (fault,) = check_edited(tmp_path, output, pattern, replacement)
    assert fault.kind == fault_kind
    assert expected_sentence in fault.problem


@pytest.mark.parametrize(("lines", "fate"), [
    (DEFAULT, "take the default route (192.168.9.1)"), ("", "have no route"),
])  # fmt: skip
def test_route_to_a_part_without_standby_is_reported(tmp_path: Path, lines: str, fate: str) -> None:
    outputs = print_server_outputs()
    outputs["route"] = re.sub(MAIN, "10.150.0.0/24", re.sub(r"(?m)^\S+ proto 77 metric 101 .*\n", "", outputs["route"]))
    faults = check_outputs(tmp_path, {**outputs, "route": outputs["route"] + lines}).faults
    assert [fault.kind for fault in faults] == ["route for a part"]
    assert faults[0].problem.endswith(fate)


def test_route_to_a_single_host_by_a_single_router_is_reported(tmp_path: Path) -> None:
    (fault,) = check_edited(tmp_path, "route", "^", "", "10.150.0.7 via 10.160.15.1 dev bond0\n")
    assert (fault.kind, fault.remedy) == ("router not used", "remove this route")
    assert "10.150.0.7/32 is narrower than that to 10.150.0.0/16 and leads by gw1 (10.160.15.1) alone" in fault.problem


def test_routers_of_the_other_side_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    main = next(line for line in outputs["route"].splitlines() if re.match(MAIN, line))
    outputs["route"] = outputs["route"].replace(main, main.replace("via 10.160.15.", "via 10.150.255."))
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "next hop out of reach"
    assert "10.150.255.1, 10.150.255.2, 10.150.255.3 of the route to 10.150.0.0/16 are the addresses" in fault.problem


def test_route_by_old_routers_before_a_standby_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    main = next(line for line in outputs["route"].splitlines() if re.match(MAIN, line))
    outputs["route"] = outputs["route"].replace(main, main.replace("via 10.160.15.", "via 10.160.1."))
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "traffic diverted"
    assert "all packets to 10.150.0.0/16 go to unknown routers, 10.160.1.1 on bond0, 10.160.1.2" in fault.problem


def test_interface_without_ipv6_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = re.sub(r"(?m)^    inet6 f.*\n", "", outputs["addr"])
    outputs["route6"] = "fe80::/64 dev mgmt metric 256\n"
    outputs["sysctl"] += "net.ipv6.conf.bond0.disable_ipv6 = 1\n"
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["IPv6 is off"]


def test_profile_of_another_interface_is_one_fault(tmp_path: Path) -> None:
    files = {name.rpartition("/")[2]: text for name, text in make_files_of_format("networkmanager").items()}
    name = "bond0.nmconnection"
    assert "interface-name=bond0" in files[name]
    files[name] = files[name].replace("interface-name=bond0", "interface-name=bond1")
    (fault,) = check_outputs(tmp_path, {**print_server_outputs(), **files}).faults
    assert fault.kind == "wrong device"
    assert fault.problem.startswith("4 next hops (10.160.15.1, …) are sought on bond1 in 6 routes; storage-net is on")


@pytest.mark.parametrize("pattern", ["10.160.15.1 dev bond0 weight 1 nexthop via 10.160.15.2", "no such text"])
def test_order_is_compared_with_the_other_side(pattern: str) -> None:
    """Where a host of the other side has the same order, no packet depends on that of the plan."""

    def read_tables(outputs: dict[str, str]) -> HostTables:
        tables = HostTables()
        for name, text in outputs.items():
            tables = tables.merge_tables(parse_host_tables(text, name))
        return tables

    server = print_server_outputs()
    client = {"addr": "5: hsn0: <UP,LOWER_UP> mtu 9000 state UP\n    inet 10.150.0.1/16 scope global hsn0\n"
                      "    inet6 fd00:150::1/64 scope global\n"}  # fmt: skip
    for version, plan in zip((4, 6), plan_all_routes(find_fabrics(build_site())), strict=True):
        host = plan.find_host_plan("compute")
        client[f"route{version}"] = "".join(
            f"{quote_command(make_route_arguments(route, host.mtu))}\n" for route in host.routes
        )
    is_exchanged = pattern in server["route"]
    if is_exchanged:
        first, second = ("10.160.15.1 dev bond0 weight 1 nexthop", "10.160.15.2 dev bond0 weight 1 nexthop")
        server["route"] = exchange(server["route"], first, second)
    alone = check_host(build_site(), "nsd1", read_tables(server))
    both = check_host(build_site(), "nsd1", read_tables(server), read_tables(client))
    assert [fault.kind for fault in alone.faults] == (["order not as planned"] if is_exchanged else [])
    assert [fault.kind for fault in both.faults] == (["order differs"] if is_exchanged else [])
    client["route4"] = exchange(client["route4"], "10.150.255.1 dev hsn0 weight 1 nexthop",
                                "10.150.255.2 dev hsn0 weight 1 nexthop")  # fmt: skip
    alike = check_host(build_site(), "nsd1", read_tables(server), read_tables(client))
    assert [fault.kind for fault in alike.faults] == ([] if is_exchanged else ["order differs"])


def exchange(text: str, first: str, second: str) -> str:
    assert first in text
    assert second in text
    return text.replace(first, "FIRST").replace(second, first).replace("FIRST", second)


def test_wrong_name_of_an_lnet_network_is_one_fault(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace("net: kfi", "net: kfi1")
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert fault.kind == "LNet network differs"
    assert "by 10.160.14.1@tcp, 10.160.14.2@tcp lead to kfi1; the system file says kfi" in fault.problem


def test_missing_routes_of_an_lnet_network_are_one_fault(tmp_path: Path) -> None:
    head, _, tail = LNET_EXPORT.partition("route:\n")
    export = f"{head}route: []\nrouting:{tail.partition('routing:')[2]}"
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert (fault.kind, fault.location) == ("LNet route missing", "kfi by 10.160.14.1@tcp, 10.160.14.2@tcp")


def test_weights_of_many_routers_are_not_all_written(tmp_path: Path) -> None:
    site = build_site()
    routers = site.list_part_ids("routers")
    assert len(routers) > 3
    (fault,) = check_edited(tmp_path, "route", "(nexthop via 10.160.15.2 dev bond0) weight 1", r"\1 weight 2")
    assert "are 10.160.15.1 1, 10.160.15.2 2, 10.160.15.3 1; the system file says 10.160.15.1 1" in fault.problem


def test_wrong_gateway_of_an_lnet_route_is_one_fault(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace("gateway: 10.160.14.2@tcp", "gateway: 10.160.14.2@tcp1")
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert fault.kind == "unknown LNet route"
    assert fault.problem.endswith("by 10.160.14.2@tcp1 names no router of this network, instead of 10.160.14.2@tcp")
    assert re.search(
        r"^exchange it: lnetctl route del .*; lnetctl route add --net \S+ --gateway 10.160.14.2@tcp$", fault.remedy
    )


@pytest.mark.parametrize(("line", "location", "expected_remedy"), [
    ("net.ipv4.conf.bond0.rp_fliter = 2", "net.ipv4.conf.bond0.rp_fliter = 2", "write net.ipv4.conf.bond0.rp_filter"),
    ("net.ipv4.conf.bond7.rp_filter = 2", "net.ipv4.conf.bond7.rp_filter = 2", "write net.ipv4.conf.bond0.rp_filter"),
    ("net.core.no_such_thing = 1", "net.core.no_such_thing = 1", "correct its name, or remove it"),
    ("net.ipv4.conf.bond0.rp_filter = 2", "", ""), ("net.ipv4.fib_multipath_hash_seed = 20240601", "", ""),
    ("net.ipv4.conf.*.rp_filter = 2", "", ""), ("net.netfilter.nf_conntrack_max = 1048576", "", ""),
])  # fmt: skip
def test_setting_that_the_host_lacks_is_reported(
    tmp_path: Path, line: str, location: str, expected_remedy: str
) -> None:
    outputs = print_server_outputs()
    files = {"99-site.conf": f"{line}\n"}
    some = check_outputs(tmp_path / "some", outputs | files)
    assert some.faults == ()
    outputs["sysctl"] += "".join(f"net.ipv4.neigh.dummy{number}.gc_stale_time = 60\n" for number in range(200))
    outputs["sysctl"] = outputs["sysctl"].replace("net.ipv4.fib_multipath_hash_seed = 20240601\n", "")
    faults = check_outputs(tmp_path / "all", outputs | files).faults
    assert [(fault.kind, fault.location, fault.remedy) for fault in faults] == (
        [
            (
                "setting not applied",
                f"{location} in the configuration files",
                f"{expected_remedy} (99-site.conf, line 1 sets it)",
            )
        ]
        if location
        else []
    )


def test_route_in_the_table_of_another_router_is_one_fault(tmp_path: Path) -> None:
    files = {name.rpartition("/")[2]: text for name, text in make_files_of_format("networkmanager").items()}
    name = "bond0.nmconnection"
    assert "route4_options=table=2,mtu" in files[name]
    files[name] = files[name].replace("route4_options=table=2,mtu", "route4_options=table=3,mtu")
    (fault,) = check_outputs(tmp_path, {**print_server_outputs(), **files}).faults
    assert fault.kind == "table without a route"
    assert "no route of table 2 leads to hsn" in fault.problem
    assert fault.problem.endswith("; table 3 has the one through gw2 (10.160.15.2)")


@pytest.mark.parametrize(
    ("file_format", "name", "old", "new", "fault_kind"),
    [
        ("network-scripts", "rule-bond0", "fwmark 2 table 2", "fwmark 0x12 table 2", "mark without a rule"),
        ("network-scripts", "rule6-bond0", "fwmark 2 table 2", "fwmark 0x12 table 2", "mark without a rule"),
        ("network-scripts", "route-bond0", "10.160.0.0/20 dev bond0 scope link table 2",
         "10.160.0.0/24 dev bond0 scope link table 2", "own network missing"),
        ("iproute2", "routes-stores.sh", "fwmark 2 table 2", "fwmark 0x12 table 2", "mark without a rule"),
    ],
)  # fmt: skip
def test_file_next_to_live_outputs_is_compared_alone(
    tmp_path: Path, file_format: str, name: str, old: str, new: str, fault_kind: str
) -> None:
    files = {file.rpartition("/")[2]: text for file, text in make_files_of_format(file_format).items()}
    assert check_outputs(tmp_path / "healthy", {**print_server_outputs(), **files}).faults == ()
    assert name in files, files.keys()
    assert old in files[name]
    files[name] = files[name].replace(old, new)
    for number, live in enumerate((print_server_outputs(), {})):
        (fault,) = check_outputs(tmp_path / str(number), {**live, **files}).faults
        assert fault.kind == fault_kind
        assert ("in the configuration files" in fault.location) == bool(live)


def test_settings_that_no_file_sets_are_not_compared(tmp_path: Path) -> None:
    files = {file.rpartition("/")[2]: text for file, text in make_files_of_format("network-scripts").items()}
    assert "rule-bond0" in files
    verdict = check_outputs(tmp_path, {**files, "90-site.conf": "net.core.rmem_max = 268435456\n"})
    assert verdict.faults == ()
    assert any("net.ipv4.fib_multipath_hash_policy" in text for text in verdict.not_compared)
