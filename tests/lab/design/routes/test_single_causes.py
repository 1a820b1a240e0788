# SPDX-License-Identifier: Apache-2.0
"""One cause is one fault: what the kernel removes with an interface, an address or a rule is no further fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

BOND = "bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP"
ADDRESS4 = "    inet 10.160.0.1/20 brd 10.160.15.255 scope global bond0\n"
ADDRESS6 = "    inet6 fd00:160::1/64 scope global\n"

Outputs = dict[str, str]


def remove_routes(outputs: Outputs, *names: str) -> None:
    """Removes the routes by bond0, as the kernel does when they lose their interface or address."""
    for name in names:
        outputs[name] = "".join(line for line in outputs[name].splitlines(keepends=True) if "bond0" not in line)
        outputs[name] += "default via 192.168.9.1 dev mgmt\n" if name == "route" else "fe80::/64 dev mgmt metric 256\n"


def check_kinds(folder: Path, outputs: Outputs) -> list[tuple[str, str]]:
    return [(fault.kind, fault.location) for fault in check_outputs(folder, outputs).faults]


def edit(outputs: Outputs, name: str, old: str, new: str) -> None:
    assert old in outputs[name], old
    outputs[name] = outputs[name].replace(old, new)


def test_interface_down_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", BOND, BOND.replace("UP,LOWER_UP", "UP").replace("state UP", "state DOWN"))
    edit(outputs, "addr", ADDRESS6, "")
    remove_routes(outputs, "route", "route6")
    assert check_kinds(tmp_path, outputs) == [("interface down", "bond0")]


def test_interface_without_carrier_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", BOND, BOND.replace("UP,LOWER_UP", "UP").replace("state UP", "state DOWN"))
    outputs["neigh"] = "10.160.15.1 dev bond0 FAILED\n"
    for name in ("route", "route6"):
        outputs[name] = re.sub(r"(dev bond0 weight \d+)", r"\1 dead linkdown", outputs[name])
    assert check_kinds(tmp_path, outputs) == [("interface down", "bond0")]


@pytest.mark.parametrize("keeps_address", [True, False])
def test_missing_interface_is_one_fault(tmp_path: Path, keeps_address: bool) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", f"5: {BOND}", f"5: {BOND.replace('bond0', 'team0')}")
    edit(outputs, "addr", ADDRESS6, "")
    edit(outputs, "addr", ADDRESS4, ADDRESS4.replace("bond0", "team0") if keeps_address else "")
    outputs["addr"] = outputs["addr"].replace("master bond0", "master team0")
    remove_routes(outputs, "route", "route6")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("interface missing", "bond0")
    assert ("team0 has 10.160.0.1" in fault.problem) == keeps_address


@pytest.mark.parametrize(("address", "listing"), [(ADDRESS4, "route"), (ADDRESS6, "route6")])
def test_missing_address_is_one_fault(tmp_path: Path, address: str, listing: str) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", address, "")
    remove_routes(outputs, listing)
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "not on the network"
    assert address.split()[1].partition("/")[0] in fault.problem
    assert "apply the plan" in fault.remedy


def test_address_on_another_interface_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", ADDRESS4, "")
    edit(outputs, "addr", "3: eth2", f"{ADDRESS4.replace('bond0', 'mgmt')}3: eth2")
    remove_routes(outputs, "route")
    outputs["route"] += "10.160.0.0/20 dev mgmt proto kernel scope link src 10.160.0.1\n"
    assert check_kinds(tmp_path, outputs) == [("wrong interface", "mgmt")]


@pytest.mark.parametrize(("prefix", "fault"), [
    ("24", ("hosts out of reach", "10.160.0.1/24")), ("32", ("next hop out of reach", "bond0")),
    ("16", ("prefix too short", "10.160.0.1/16")),
])  # fmt: skip
def test_wrong_prefix_is_one_fault(tmp_path: Path, prefix: str, fault: tuple[str, str]) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", "10.160.0.1/20", f"10.160.0.1/{prefix}")
    if prefix != "16":
        remove_routes(outputs, "route")
        outputs["route"] += f"10.160.0.0/{prefix} dev bond0 proto kernel scope link\n" if prefix == "24" else ""
    assert check_kinds(tmp_path, outputs) == [fault]


def test_mtu_of_the_interface_explains_the_mtu_of_ipv6_routes(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", BOND, BOND.replace("9000", "1500"))
    edit(outputs, "route6", "mtu 9000", "mtu 1500")
    outputs["sysctl"] += "net.ipv6.conf.bond0.mtu = 1500\n"
    assert check_kinds(tmp_path, outputs) == [("MTU mismatch", "bond0")]


def test_script_that_stopped_at_a_long_prefix_is_one_fault(tmp_path: Path) -> None:
    """The kernel refuses the multipath route, and the script does not come to its rules."""
    outputs = print_server_outputs()
    edit(outputs, "addr", "10.160.0.1/20", "10.160.0.1/24")
    edit(outputs, "route", "10.160.0.0/20 dev bond0 proto kernel", "10.160.0.0/24 dev bond0 proto kernel")
    outputs["route"] = re.sub(r"(?m)^10\.150\S* (?!.*table).*\n", "", outputs["route"])
    outputs["rule"] = re.sub(r"(?m)^.*fwmark.*\n", "", outputs["rule"])
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("hosts out of reach", "10.160.0.1/24")
    assert fault.remedy == "give it the prefix /20, then apply the plan: its multipath route and its rules are missing"


def test_rules_that_a_daemon_removed_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["rule"] = re.sub(r"(?m)^.*fwmark.*\n", "", outputs["rule"])
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("table without a rule", "tables 1, 2, 3, 4")
    assert fault.remedy.endswith("apply the plan for the others")
    assert "ip rule add pref 1001 fwmark 2 table 2" in fault.remedy


@pytest.mark.parametrize("is_table_empty", [True, False])
def test_empty_table_of_a_router_is_one_fault(tmp_path: Path, is_table_empty: bool) -> None:
    outputs = print_server_outputs()
    pattern = r"^.* table 2 .*\n" if is_table_empty else r"^10\.150\S* .*table 2 .*\n"
    outputs["route"] = re.sub(pattern, "", outputs["route"], flags=re.MULTILINE)
    assert check_kinds(tmp_path, outputs) == [
        ("rule without a table", "rule, line 3") if is_table_empty else ("table without a route", "table 2")
    ]


@pytest.mark.parametrize("destination", ["10.150.0.0/16", "default"])
def test_table_that_gives_packets_back_is_one_fault(tmp_path: Path, destination: str) -> None:
    outputs = print_server_outputs()
    pattern = r"(?m)^10\.150\S* .*table 2 .*$"
    outputs["route"], count = re.subn(pattern, f"throw {destination} table 2", outputs["route"])
    assert count == 1
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("table without a route", "table 2")
    assert f"(the one to {destination} gives packets back: throw)" in fault.problem


def test_main_table_that_gives_packets_back_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] += "throw 10.150.7.0/24\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "no route"
    assert fault.problem.startswith("the route to 10.150.7.0/24 in the main table gives packets back (throw)")
    assert fault.remedy.startswith("remove this route")


def test_temporary_address_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    address = "    inet6 fd00:160::1/64 scope global\n"
    assert address in outputs["addr"]
    temporary = "    inet6 fd00:160::8d3c:51ff:2b07:9e14/64 scope global temporary dynamic\n"
    outputs["addr"] = outputs["addr"].replace(address, address + temporary)
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("temporary address", "bond0: fd00:160::8d3c:51ff:2b07:9e14")
    assert "prefers it as source" in fault.problem


@pytest.mark.parametrize(("used", "kinds"), [("200000", []), ("262141", ["few tracked connections"])])
def test_full_table_of_connections_is_reported(tmp_path: Path, used: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] = outputs.get("sysctl", "") + (
        f"net.netfilter.nf_conntrack_max = 262144\nnet.netfilter.nf_conntrack_count = {used}\n"
    )
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == kinds


def test_missing_active_route_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] = re.sub(r"^10\.150\S* (?!.*(table|metric)).*\n", "", outputs["route"], flags=re.MULTILINE)
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "active routers not used"
    assert "gw1, gw2, gw3" in fault.problem


@pytest.mark.parametrize("more", ["", "default via 192.168.9.1 dev mgmt\n"])
def test_missing_connected_route_is_reported(tmp_path: Path, more: str) -> None:
    outputs = print_server_outputs()
    edit(outputs, "route", "10.160.0.0/20 dev bond0 proto kernel\n", more)
    assert check_kinds(tmp_path, outputs) == [("own network missing", "10.160.0.0/20 in table main")]


def test_main_table_without_rule_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "rule", "32766:\tfrom all lookup main\n", "")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("no route", "rules")
    assert "no rule leads packets into the main table" in fault.problem


def test_virtual_address_before_the_planned_address_is_no_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", ADDRESS4, f"    inet 10.160.0.99/32 scope global bond0\n{ADDRESS4}")
    outputs["route"] += "local 10.160.0.99 dev bond0 table local proto kernel\n"
    assert check_kinds(tmp_path, outputs) == []


def test_address_before_the_planned_address_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", ADDRESS4, f"    inet 10.160.0.99/20 scope global bond0\n{ADDRESS4}")
    outputs["route"] += "local 10.160.0.99 dev bond0 table local proto kernel\n"
    assert check_kinds(tmp_path, outputs) == [("another source address", "10.160.0.99")]
    edit(outputs, "addr", f"    inet 10.160.0.99/20 scope global bond0\n{ADDRESS4}",
         f"{ADDRESS4}    inet 10.160.0.99/20 scope global secondary bond0\n")  # fmt: skip
    assert check_kinds(tmp_path, outputs) == []


@pytest.mark.parametrize(("line", "fault_kind"), [
    ("10.160.15.2 via 10.160.15.1 dev bond0", "router by a detour"), ("blackhole 10.160.15.2", "traffic discarded"),
])  # fmt: skip
def test_route_that_hides_a_router_is_reported(tmp_path: Path, line: str, fault_kind: str) -> None:
    outputs = print_server_outputs()
    outputs["route"] += f"{line}\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == fault_kind
    assert "gw2 (10.160.15.2)" in fault.problem


@pytest.mark.parametrize(("attribute", "fault_kind"), [
    ("mtu 1400", "MTU too small"), ("advmss 500", "segments too small"), ("initcwnd 2", "connections limited"),
])  # fmt: skip
def test_attribute_of_the_connected_route_is_reported(tmp_path: Path, attribute: str, fault_kind: str) -> None:
    outputs = print_server_outputs()
    line = "10.160.0.0/20 dev bond0 proto kernel"
    edit(outputs, "route", f"{line}\n", f"{line} {attribute}\n")
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == [fault_kind]


def test_interface_without_multicast_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "addr", BOND, BOND.replace("BROADCAST,MULTICAST,", "BROADCAST,"))
    assert check_kinds(tmp_path, outputs) == [("no multicast", "bond0")]


@pytest.mark.parametrize(("sizes", "is_fault"), [("65536 gso_max_segs 65535", False), ("1500 gso_max_segs 65535", True),
                                                 ("65536 gso_max_segs 1", True)])  # fmt: skip
def test_small_segments_of_the_kernel_are_reported(tmp_path: Path, sizes: str, is_fault: bool) -> None:
    outputs = print_server_outputs()
    edit(
        outputs,
        "addr",
        ADDRESS4,
        f"    bond mode 802.3ad miimon 100 gso_max_size {sizes} tso_max_size 65536\n{ADDRESS4}",
    )
    assert check_kinds(tmp_path, outputs) == ([("interface slowed down", "bond0")] if is_fault else [])


def test_routes_of_ipv6_in_two_files_are_no_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] += outputs["route6"]
    assert check_outputs(tmp_path, outputs).faults == ()


@pytest.mark.parametrize(("name", "member"), [("route6", "routes"), ("rule6", "rules")])
def test_listing_of_one_ip_version_leaves_the_other_unknown(tmp_path: Path, name: str, member: str) -> None:
    outputs = print_server_outputs()
    del outputs[name]
    verdict = check_outputs(tmp_path, outputs)
    assert verdict.faults == ()
    assert f"{member} of IPv6" in verdict.unknown


def test_rules_of_a_listing_without_the_local_table_have_a_version(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    edit(outputs, "rule", "0:\tfrom all lookup local\n", "")
    assert check_kinds(tmp_path, outputs) == [("no rule for local addresses", "rules")]


def test_outputs_of_another_host_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    for name in ("addr", "route", "route6"):
        outputs[name] = re.sub(r"\b10\.160\.0\.1\b", "10.160.0.2", outputs[name])
        outputs[name] = re.sub(r"\bfd00:160::1\b", "fd00:160::2", outputs[name])
    (fault,) = check_outputs(tmp_path, outputs, "nsd1").faults
    assert (fault.kind, fault.location) == ("address of another host", "bond0")
    assert "this host has 10.160.0.2 of nsd2; its address in the system file is 10.160.0.1" in fault.problem
    assert "this host has fd00:160::2 of nsd2; its address in the system file is fd00:160::1" in fault.problem


@pytest.mark.parametrize(("used", "location"), [("4096", "count = 4096"), ("100", "max = 4096")])
def test_full_table_of_few_connections_is_one_fault(tmp_path: Path, used: str, location: str) -> None:
    settings = f"net.netfilter.nf_conntrack_max = 4096\nnet.netfilter.nf_conntrack_count = {used}\n"
    faults = check_outputs(tmp_path, {"sysctl": settings}, "gw1").faults
    tracked = [fault.location for fault in faults if fault.kind == "few tracked connections"]
    assert tracked == [f"net.netfilter.nf_conntrack_{location}"]


@pytest.mark.parametrize(("seconds", "kinds"), [("95sec", ["address expires"]), ("3600sec", []), ("forever", [])])
def test_lease_that_ends_soon_is_reported(tmp_path: Path, seconds: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    dynamic = "" if seconds == "forever" else "dynamic "
    edit(
        outputs,
        "addr",
        ADDRESS4,
        f"{ADDRESS4.rstrip()} {dynamic}\n       valid_lft {seconds} preferred_lft {seconds}\n",
    )
    assert check_kinds(tmp_path, outputs) == [(kind, "10.160.0.1") for kind in kinds]
