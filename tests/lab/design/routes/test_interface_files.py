# SPDX-License-Identifier: Apache-2.0
"""Files of interfaces without routes, and options of modules: what they set at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables

IFCFG = """# made by the installer
DEVICE=bond0
TYPE=Bond
BONDING_MASTER=yes
IPADDR=10.160.0.1
PREFIX=20
ONBOOT=yes
MTU="9000"
BONDING_OPTS="mode=802.3ad miimon=100 xmit_hash_policy=layer3+4"
"""
NETDEV = "[NetDev]\nName=bond0\nKind=bond\nMTUBytes=9000\n\n[Bond]\nMode=802.3ad\n"
NETWORK = "[Match]\nName=bond0\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=10.160.0.1/20\n"
MODULES = """# LNet of this host
options lnet networks="tcp0(bond0)" live_router_check_interval=60 \\
    dead_router_check_interval=60
options ksocklnd peer_credits=8 credits=256
options mlx5_core prof_sel=2
"""


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "fault_kind", "location"),
    [
        ("ifcfg-bond0", IFCFG, "ONBOOT=yes", "ONBOOT=no", "not applied at the start", "ifcfg-bond0, ONBOOT=no"),
        ("ifcfg-bond0", IFCFG, "9000", "1500", "MTU mismatch", "bond0"),
        ("ifcfg-bond0", IFCFG, "mode=802.3ad", "mode=0", "bond mode", "bond0"),
        ("ifcfg-bond0", IFCFG, "mode=802.3ad miimon=100", "mode=1", "bond ports not watched", "bond0"),
        ("10-bond0.netdev", NETDEV, "9000", "1500", "MTU mismatch", "bond0"),
        ("10-bond0.network", NETWORK, "9000", "1500", "MTU mismatch", "bond0"),
    ],
)
def test_file_of_an_interface_is_compared(
    tmp_path: Path, name: str, text: str, old: str, new: str, fault_kind: str, location: str
) -> None:
    outputs = print_server_outputs()
    assert old in text
    assert check_outputs(tmp_path / "right", outputs | {name: text}).faults == ()
    (fault,) = check_outputs(tmp_path / "wrong", outputs | {name: text.replace(old, new)}).faults
    assert (fault.kind, fault.location) == (fault_kind, f"{location} in the configuration files")


@pytest.mark.parametrize(
    ("file_format", "name", "old", "line"),
    [
        ("networkmanager", "bond0.nmconnection", "[ipv4]", "[ethernet]\nmtu={mtu}\n\n[ipv4]"),
        ("networkd", "routes-4.conf", "[Rout", "[Match]\nName=bond0\n\n[Link]\nMTUBytes={mtu}\n\n[Rout"),
    ],
)
def test_mtu_in_a_file_of_routes_is_compared(tmp_path: Path, file_format: str, name: str, old: str, line: str) -> None:
    files = {file.rpartition("/")[2]: text for file, text in make_files_of_format(file_format).items()}
    assert old in files[name]
    for mtu, kinds in (("9000", set()), ("1500", {"MTU mismatch"})):
        changed = files | {name: files[name].replace(old, line.format(mtu=mtu), 1)}
        faults = check_outputs(tmp_path / mtu, print_server_outputs() | changed).faults
        assert {fault.kind for fault in faults} == kinds


@pytest.mark.parametrize(
    ("old", "new", "expected_problem"),
    [
        ("live_router_check_interval=60", "live_router_check_interval=0",
         "module lnet has live_router_check_interval 0: LNet does not ask gateways whether they are alive"),
        ("dead_router_check_interval=60", "auto_down=0", "module lnet has auto_down 0: a gateway that does not answer"),
        ("peer_credits=8", "peer_credits=1", "module ksocklnd has peer_credits 1: so few messages to one peer"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_beside_export", [True, False])
def test_option_of_a_module_is_judged(
    tmp_path: Path, old: str, new: str, expected_problem: str, is_beside_export: bool
) -> None:
    outputs = print_server_outputs() | ({"lnet": LNET_EXPORT} if is_beside_export else {})
    assert check_outputs(tmp_path / "right", outputs | {"lustre.conf": MODULES}).faults == ()
    (fault,) = check_outputs(tmp_path / "wrong", outputs | {"lustre.conf": MODULES.replace(old, new)}).faults
    assert fault.kind == "LNet tunable"
    assert fault.problem.startswith(expected_problem)
    assert fault.remedy.endswith("in lustre.conf)")


def test_file_of_an_interface_sets_no_sysctl() -> None:
    tables = parse_host_tables(IFCFG, "ifcfg-bond0")
    assert (tables.settings, tables.mtus) == (None, {"bond0": 9000})


ROUTES = 'options lnet networks="tcp(bond0)" routes="kfi 1 10.160.14.{}@tcp"\n'


@pytest.mark.parametrize(("gateways", "kinds"), [("[1-2]", []), ("[1,2]", []), ("1", ["LNet route missing"])])
def test_module_routes_are_compared_with_the_plan(tmp_path: Path, gateways: str, kinds: list[str]) -> None:
    verdict = check_outputs(tmp_path, {"lnet": LNET_EXPORT, "lnet.conf": ROUTES.format(gateways)})
    assert [fault.kind for fault in verdict.faults] == kinds
    assert all(fault.location == "kfi by 10.160.14.2@tcp in the configuration files" for fault in verdict.faults)
    remedy = "add the gateways to the routes in lnet.conf; the running host has these routes"
    assert all(fault.remedy == remedy for fault in verdict.faults)
    assert not any("options lnet networks=" in text for text in verdict.not_examined)


def test_several_networks_of_module_routes_are_read() -> None:
    text = 'options lnet routes="tcp1 10.1.0.[1-5/2]@tcp:1; o2ib [2] 10.1.0.9@tcp"\n'.replace("[2]", "2")
    routes = parse_host_tables(text, "lnet.conf").lnet_routes or ()
    assert [(route.network, route.gateway, route.hops, route.priority) for route in routes] == [
        ("tcp1", "10.1.0.1@tcp", None, 1), ("tcp1", "10.1.0.3@tcp", None, 1), ("tcp1", "10.1.0.5@tcp", None, 1),
        ("o2ib", "10.1.0.9@tcp", 2, None),
    ]  # fmt: skip


def test_file_that_brings_back_a_missing_route_is_reported(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace(LNET_EXPORT[LNET_EXPORT.rindex("    - net: kfi") : LNET_EXPORT.index("routing:")], "")
    (fault,) = check_outputs(tmp_path, {"lnet": export, "lnet.conf": ROUTES.format("1")}).faults
    assert fault.kind == "LNet route missing"
    assert fault.remedy.endswith("correct lnet.conf too, which brings this back at the next start")


def test_lnet_files_do_not_concern_options_of_ip(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    alone = check_outputs(tmp_path / "ip", outputs).not_compared
    both = check_outputs(tmp_path / "both", outputs | {"lnet": LNET_EXPORT, "lnet.conf": ROUTES.format("[1-2]")})
    assert both.not_compared == alone
