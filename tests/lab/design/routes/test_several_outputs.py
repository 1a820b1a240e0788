# SPDX-License-Identifier: Apache-2.0
"""Several outputs in one file, and the tables of a host of the other side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from dual_stack_host import build_site, check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.check_host import check_host
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.route_text import group_faults
from sonde.design.routes.scripts import make_route_arguments
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError
from sonde.model.shell import quote_command

OUTPUTS = ("rule", "rule6", "route", "route6", "addr", "sysctl")
COMPUTE_ADDRESSES = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.0.1/16 brd 10.150.255.255 scope global hsn0
    inet6 fd00:150::1/64 scope global
"""


def read_compute_node(dropped_gateway: str = "") -> HostTables:
    """A compute node as the plan has it, without the routes by one gateway."""
    lines = []
    for plan in plan_all_routes(find_fabrics(build_site())):
        host = plan.find_host_plan("compute")
        lines += [quote_command(make_route_arguments(route, host.mtu)) for route in host.routes]
    text = "\n".join(lines)
    if dropped_gateway:
        text = text.replace(f"nexthop via {dropped_gateway} dev hsn0 weight 1 ", "").replace(
            f" nexthop via {dropped_gateway} dev hsn0 weight 1", ""
        )
        assert dropped_gateway in text, "its own table still names it"
    return parse_host_tables(f"{COMPUTE_ADDRESSES}{text}\n", "all.txt")


def test_outputs_in_one_file_are_all_read(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    separate = check_outputs(tmp_path / "apart", outputs)
    together = check_outputs(tmp_path / "together", {"all": "".join(outputs[name] for name in OUTPUTS)})
    assert together.faults == separate.faults == ()
    assert sorted(item.subject for item in together.comparisons) == sorted(
        item.subject for item in separate.comparisons
    )
    assert together.unknown == separate.unknown


def test_wrong_line_of_a_joint_file_has_its_number(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    text = "".join(outputs[name] for name in OUTPUTS) + "10.150.0.0/17 via 10.160.0.9 dev bond0\n"
    (fault,) = check_outputs(tmp_path, {"all": text}).faults
    assert fault.location == f"all, line {len(text.splitlines())}"


def test_json_documents_of_one_file_are_all_read() -> None:
    rules = '[{"priority": 1000, "src": "all", "fwmark": "0x2", "table": "2"}]'
    routes = '[{"dst": "10.150.0.0/16", "gateway": "10.160.15.1", "dev": "bond0", "flags": []}]'
    tables = parse_host_tables(f"{rules}\n{routes}\n", "all.json")
    assert (len(tables.rules or ()), len(tables.routes or ())) == (1, 1)


def test_lines_before_json_are_an_output_too() -> None:
    routes = '[{"dst": "10.150.0.0/16", "gateway": "10.160.15.1", "dev": "bond0", "flags": []}]'
    tables = parse_host_tables(f"abi.vsyscall32 = 1\nnet.ipv4.ip_forward = 1\n{routes}\n", "all")
    assert (len(tables.settings or {}), len(tables.routes or ())) == (2, 1)
    tables = parse_host_tables(f"0:\tfrom all lookup local\n32766:\tfrom all lookup main\n{routes}\n", "all")
    assert (len(tables.rules or ()), len(tables.routes or ())) == (2, 1)


def test_outputs_between_json_documents_are_all_read() -> None:
    rules = '[{"priority": 0, "src": "all", "table": "local"}]'
    routes = '[{"dst": "10.150.0.0/16", "gateway": "10.160.15.1", "dev": "bond0", "flags": []}]'
    text = f"{rules}\nnet.ipv4.ip_forward = 1\n32766:\tfrom all lookup main\n{routes}\nabi.vsyscall32 = 1\n"
    tables = parse_host_tables(text, "all")
    assert (len(tables.rules or ()), len(tables.routes or ())) == (2, 1)
    assert tables.settings == {"net.ipv4.ip_forward": "1", "abi.vsyscall32": "1"}
    with pytest.raises(UserError, match="is not JSON"):
        parse_host_tables(f"{routes}\n[{{broken\n", "all")


def test_repeated_routes_count_once(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] += outputs.pop("route6") * 2
    assert check_outputs(tmp_path, outputs).faults == ()


def test_other_side_that_answers_has_no_fault() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    verdict = check_host(build_site(), "nsd1", server, read_compute_node())
    assert verdict.faults == ()
    compared = [item for item in verdict.comparisons if item.subject == "the same routers on both sides"]
    assert len(compared) == 2, "of both IP versions"


@pytest.mark.parametrize(("version", "gateway"), [(4, "10.150.255.3"), (6, "fd00:150::f003")])
def test_router_without_replies_is_reported_by_version(version: int, gateway: str) -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    (fault,) = check_host(build_site(), "nsd1", server, read_compute_node(gateway)).faults
    assert (fault.kind, fault.location) == ("one direction only", "gw3")
    assert fault.problem == (
        f"hosts of storage-net send IPv{version} packets through gw3, those of hsn send none back through it"
    )


def test_host_of_a_third_network_is_not_compared() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    third = parse_host_tables(
        COMPUTE_ADDRESSES.replace("10.150.", "10.99.").replace("fd00:150", "fd00:99")
        + "10.160.0.0/20 via 10.99.0.9 dev hsn0\n",
        "all",
    )
    verdict = check_host(build_site(), "nsd1", server, third)
    assert verdict.faults == ()
    assert [text.partition(":")[0] for text in verdict.unknown if text.startswith("how ")] == [
        "how hsn answers by IPv4", "how hsn answers by IPv6"
    ]  # fmt: skip
    assert not any(item.subject == "the same routers on both sides" for item in verdict.comparisons)


def test_version_that_the_other_side_lost_is_unknown() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    node = read_compute_node()
    without_ipv6 = replace(
        node,
        addresses=tuple(address for address in node.addresses or () if ":" not in address),
        routes=tuple(route for route in node.routes or () if ":" not in route.destination),
    )
    verdict = check_host(build_site(), "nsd1", server, without_ipv6)
    assert verdict.faults == ()
    assert [text.partition(":")[0] for text in verdict.unknown if text.startswith("how ")] == [
        "how hsn answers by IPv6"
    ]  # fmt: skip


def test_host_of_the_same_side_is_refused() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    with pytest.raises(
        UserError, match="are of a host of storage-net, as those that are checked; give those of a host"
    ):
        check_host(build_site(), "nsd1", server, server)


def test_other_weights_of_the_other_side_are_reported() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    node = read_compute_node()
    heavy = tuple(
        replace(route, hops=(replace(route.hops[0], weight=4), *route.hops[1:])) if len(route.hops) > 1 else route
        for route in node.routes or ()
    )
    faults = check_host(build_site(), "nsd1", server, replace(node, routes=heavy)).faults
    assert {(fault.kind, fault.location) for fault in faults} == {("weights differ", "multipath routes")}
    assert "(gw1 67 % and 33 %, gw2 17 % and 33 %, gw3 17 % and 33 %)" in faults[0].problem


def test_bridge_with_an_address_of_the_other_side_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] += "7: br-3f2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000\n"
    outputs["addr"] += "    inet 10.150.5.1/24 brd 10.150.5.255 scope global br-3f2\n"
    outputs["route"] += "10.150.5.0/24 dev br-3f2 proto kernel scope link src 10.150.5.1\n"
    outputs["route"] += "local 10.150.5.1 dev br-3f2 table local proto kernel scope host src 10.150.5.1\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("address of the other side", "br-3f2: 10.150.5.1/24")
    assert "those to 10.150.5.0/24 stay on the link of br-3f2" in fault.problem
    assert fault.remedy.startswith("give the network of br-3f2 another range (Docker: ")


def test_address_of_a_far_host_on_the_management_port_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace(
        "3: eth2", "    inet 10.150.0.7/16 brd 10.150.255.255 scope global mgmt\n3: eth2"
    )
    outputs["route"] = (
        "10.150.0.0/16 dev mgmt proto kernel scope link src 10.150.0.7\n"
        f"{outputs['route']}local 10.150.0.7 dev mgmt table local proto kernel scope host src 10.150.0.7\n"
    )
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("address of the other side", "mgmt: 10.150.0.7/16")
    assert (
        "an address of hsn, that of nid07, which is behind the routers: packets to 10.150.0.7 do not" in fault.problem
    )
    assert "those to 10.150.0.0/16 stay on the link of mgmt" in fault.problem
    assert fault.remedy == "ip addr del 10.150.0.7/16 dev mgmt (its routes go with it)"


def test_far_address_behind_a_multipath_route_concerns_itself(tmp_path: Path) -> None:
    """An address that was added after the plan: the kernel appends its route, and uses the first."""
    outputs = print_server_outputs()
    outputs["addr"] += "7: br-3f2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000\n"
    outputs["addr"] += "    inet 10.150.77.1/16 brd 10.150.255.255 scope global br-3f2\n"
    outputs["route"] += "10.150.0.0/16 dev br-3f2 proto kernel scope link src 10.150.77.1\n"
    outputs["route"] += "local 10.150.77.1 dev br-3f2 table local proto kernel scope host src 10.150.77.1\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.problem.endswith("packets to 10.150.77.1 do not leave this host")


def test_problems_of_one_location_are_all_printed() -> None:
    faults = [
        RouteFault("traffic diverted", "rule 200", f"packets to {name} go elsewhere", "remove it")
        for name in ("hsn", "archive", "hsn")
    ] + [RouteFault("traffic diverted", "rule 300", "packets to hsn go elsewhere", "remove it")]
    groups = [(fault.problem, locations) for fault, locations in group_faults(faults)]
    assert groups == [
        ("packets to hsn go elsewhere", ["rule 200", "rule 300"]), ("packets to archive go elsewhere", ["rule 200"])
    ]  # fmt: skip


def test_network_file_for_another_device_is_reported(tmp_path: Path) -> None:
    files = make_files_of_format("networkd")
    name = next(name for name in files if "[Route]" in files[name] and "10.150" in files[name])
    outputs = {Path(other).name: text for other, text in files.items() if other != name}
    text = f"[Match]\nName=bond0\n\n{files[name]}"
    assert check_outputs(tmp_path / "right", outputs | {"50-bond0.network": text}).faults == ()
    wrong = text.replace("Name=bond0", "Name=bond1")
    assert "wrong device" in {fault.kind for fault in check_outputs(tmp_path, outputs | {"50.network": wrong}).faults}


def test_smaller_packets_of_the_other_side_are_reported() -> None:
    server = parse_host_tables("".join(print_server_outputs()[name] for name in OUTPUTS), "all")
    text = COMPUTE_ADDRESSES.replace("mtu 9000", "mtu 1500")
    node = read_compute_node()
    small = node.merge_tables(HostTables(mtus=parse_host_tables(text, "addr").mtus))
    faults = check_host(build_site(), "nsd1", server, small).faults
    assert {(fault.kind, fault.location) for fault in faults} == {("MTU differs", "hsn0 on hsn")}
    assert "the host of hsn takes packets of 1500 B, the other one 9000 B" in faults[0].problem


@pytest.mark.parametrize("metric", [512, 2048])
def test_route_before_that_of_the_routers_is_one_fault(tmp_path: Path, metric: int) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += f"fd00:150::/64 via fe80::bad dev mgmt proto ra metric {metric}\n"
    faults = check_outputs(tmp_path, outputs).faults
    if metric == 512:
        (fault,) = faults
        assert fault.kind == "traffic diverted"
        assert "go to an unknown router, fe80::bad on mgmt: its metric 512 comes before 1024" in fault.problem
    else:
        assert [fault.kind for fault in faults] == ["next hop out of reach"]


def test_lease_of_an_address_is_not_examined(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    assert not any("lease" in text for text in check_outputs(tmp_path, outputs).not_examined)
    outputs["addr"] = outputs["addr"].replace("scope global bond0", "scope global dynamic bond0")
    assert any("lease of 10.160.0.1" in text for text in check_outputs(tmp_path, outputs).not_examined)


def test_work_grows_with_the_routes_and_not_with_their_square() -> None:
    server = "".join(print_server_outputs()[name] for name in OUTPUTS)
    seconds = []
    for count in (800, 6400):
        lines = (f"172.16.{number // 256}.{number % 256} via 10.160.15.1 dev bond0\n" for number in range(count))
        tables = parse_host_tables(server + "".join(lines), "all")
        begin = process_time()
        check_host(build_site(), "nsd1", tables)
        seconds.append(process_time() - begin)
    assert seconds[1] < 16 * seconds[0], "8 times the routes"
