# SPDX-License-Identifier: Apache-2.0
"""Files of interfaces without routes, folders with files of no known kind, and line ends of Windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import build_site, check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.check_host import check_host
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.table_reader import parse_host_tables, read_host_sources
from sonde.model.errors import UserError

PLAIN_FILES = [
    ("networkd", "50-bond0.network", "[Match]\nName=bond0\n[Link]\nMTUBytes=9000\n[Network]\nAddress=10.160.0.1/20\n"),
    (
        "networkd",
        "50-bond0.network",
        "# site profile\n[Match]\nName=bond0\n[Network]\nDHCP=no\n[Link]\nMTUBytes=9000\n",
    ),
    ("networkd", "10-bond0.netdev", "[NetDev]\nName=bond0\nKind=bond\n\n[Bond]\nMode=802.3ad\n"),
    ("networkd", "10-bond0.link", "[Match]\nMACAddress=52:54:00:a0:00:01\n[Link]\nName=eth2\n"),
    ("networkd", "80-docker.network", "[Match]\nName=docker0\n[Link]\nUnmanaged=yes\n"),
    ("networkmanager", "eth2.nmconnection", "[connection]\nid=eth2\ninterface-name=eth2\nmaster=bond0\n"),
    ("networkmanager", "wlan0.nmconnection", "[connection]\ninterface-name=wlan0\nautoconnect=false\n[ipv4]\n"),
    ("network-scripts", "ifcfg-bond0", 'DEVICE=bond0\nTYPE=Bond\nBONDING_OPTS="mode=802.3ad"\nONBOOT=yes\nMTU=9000\n'),
    ("network-scripts", "ifcfg-usb0", "BOOTPROTO=dhcp\nONBOOT=no\n"),
]


def list_files(file_format: str) -> dict[str, str]:
    return {name.rpartition("/")[2]: text for name, text in make_files_of_format(file_format).items()}


@pytest.mark.parametrize(("file_format", "name", "text"), PLAIN_FILES)
def test_file_without_routes_is_no_fault(tmp_path: Path, file_format: str, name: str, text: str) -> None:
    files = list_files(file_format)
    without = check_outputs(tmp_path, files)
    check = check_outputs(tmp_path, files | {name: text})
    assert check.faults == without.faults == ()
    assert set(check.unknown) <= set(without.unknown)
    assert set(check.comparisons) >= set(without.comparisons)
    assert check_outputs(tmp_path, print_server_outputs() | {name: text}).faults == ()


def test_routes_with_an_interface_file_are_compared(tmp_path: Path) -> None:
    files = list_files("network-scripts")
    interface = {"ifcfg-bond0": "DEVICE=bond0\nONBOOT=yes\n"}
    assert {"routes", "rules"}.isdisjoint(check_outputs(tmp_path, files | interface).unknown)
    files["route-bond0"] = files["route-bond0"].replace("10.160.15.2", "10.160.15.77")
    faults = check_outputs(tmp_path, files | interface).faults
    assert "10.160.15.77" in " ".join(fault.problem for fault in faults)


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("ifcfg-bond0", "ONBOOT=no\n", "ONBOOT=no"),
        ("50-bond0.network", "[Match]\nName=bond0\n[Link]\nUnmanaged=yes\n", "Unmanaged=yes"),
        ("bond0.nmconnection", "[connection]\ninterface-name=bond0\nautoconnect=false\n", "autoconnect=false"),
    ],
)
def test_planned_interface_that_stays_down_is_a_fault(tmp_path: Path, name: str, text: str, option: str) -> None:
    (fault,) = check_outputs(tmp_path, print_server_outputs() | {name: text}).faults
    location = fault.location.removesuffix(" in the configuration files")
    assert (fault.kind, location) == ("not applied at the start", f"{name}, {option}")


def check_folder(folder: Path, contents: dict[str, bytes]) -> RouteCheck:
    """Checks a folder of outputs and of other files, of which none is required."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sources = read_host_sources(sorted(folder.iterdir()), required_files=[])
    return check_host(build_site(), "nsd1", sources.live, configured_tables=sources.configured)


def test_unknown_file_in_a_folder_is_reported(tmp_path: Path) -> None:
    outputs = {name: text.encode() for name, text in print_server_outputs().items()}
    check = check_folder(tmp_path, outputs | {"notes": b"see the ticket\n", "core": b"\x7fELF\xff"})
    assert check.faults == ()
    assert len(check.comparisons) > 60
    assert [text.split()[0].rpartition("/")[2].strip(",") for text in check.not_understood] == ["core", "notes"]


def test_required_file_has_to_be_understood(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("see the ticket\n")
    (tmp_path / "route").write_text(print_server_outputs()["route"])
    with pytest.raises(UserError, match="notes"):
        read_host_sources(sorted(tmp_path.iterdir()), required_files=[tmp_path / "notes"])
    (tmp_path / "route").unlink()
    with pytest.raises(UserError, match="notes"):
        read_host_sources(sorted(tmp_path.iterdir()), required_files=[])


@pytest.mark.parametrize("name", ["route-bond0", "rule-bond0", "route6-bond0", "rule6-bond0"])
def test_script_with_line_ends_of_windows_is_a_fault(tmp_path: Path, name: str) -> None:
    contents = {file: text.encode() for file, text in list_files("network-scripts").items()}
    contents[name] = contents[name].replace(b"\n", b"\r\n")
    (fault,) = check_folder(tmp_path, contents).faults
    assert (fault.kind, fault.location) == ("not applied at the start", f"{name}, line ends of Windows")
    assert "ip refuses" in fault.problem
    assert fault.remedy == rf"sed -i 's/\r$//' {name}"


def test_other_shell_files_with_line_ends_of_windows(tmp_path: Path) -> None:
    contents = {file: text.encode() for file, text in list_files("iproute2").items()}
    contents["ifcfg-bond0"] = b"DEVICE=bond0\r\nONBOOT=yes\r\n"
    contents["routes-stores.sh"] = contents["routes-stores.sh"].replace(b"\n", b"\r\n")
    assert {fault.location for fault in check_folder(tmp_path, contents).faults} == {
        "ifcfg-bond0, line ends of Windows", "routes-stores.sh, line ends of Windows",
    }  # fmt: skip


@pytest.mark.parametrize("file_format", ["networkd", "networkmanager", "nmstate"])
def test_readers_that_ignore_line_ends_of_windows(tmp_path: Path, file_format: str) -> None:
    contents = {file: text.encode().replace(b"\n", b"\r\n") for file, text in list_files(file_format).items()}
    check = check_folder(tmp_path, contents)
    assert check.faults == ()
    assert len(check.comparisons) > 30


def test_live_outputs_may_have_line_ends_of_windows(tmp_path: Path) -> None:
    contents = {name: text.encode().replace(b"\n", b"\r\n") for name, text in print_server_outputs().items()}
    assert check_folder(tmp_path, contents).faults == ()


def test_networkd_rule_without_family_is_of_ipv4(tmp_path: Path) -> None:
    files = list_files("networkd")
    files["routes-6.conf"] = files["routes-6.conf"].replace("Family=ipv6\nPriority=1001", "Priority=1001")
    (fault,) = check_outputs(tmp_path, files).faults
    assert fault.kind == "mark without a rule"
    assert "no rule of IPv6 leads all packets with mark 2" in fault.problem
    assert fault.remedy == "ip -6 rule add pref 1001 fwmark 2 table 2"


@pytest.mark.parametrize(
    ("members", "version"),
    [("", 4), ("From=fd00:160::/64\n", 6), ("To=10.1.0.0/16\n", 4), ("Family=both\n", None), ("Family=ipv6\n", 6)],
)
def test_family_of_networkd_rule_follows_its_addresses(members: str, version: int | None) -> None:
    (rule,) = parse_host_tables(f"[RoutingPolicyRule]\n{members}Table=7\n", "10-x.network").rules or ()
    assert rule.version == version


def test_assignments_without_dots_are_no_sysctls() -> None:
    with pytest.raises(UserError, match="is no address range"):
        parse_host_tables("NETWORKING=yes\nHOSTNAME=nsd1\n", "network")


@pytest.mark.parametrize(("source", "is_fault"), [("172.16.5.1", True), ("10.160.0.1", False), ("_dhcp4", False)])
@pytest.mark.parametrize(("file_format", "name"), [
    ("networkd", "routes-4.conf"), ("networkmanager", "bond0.nmconnection"),
])  # fmt: skip
def test_source_address_of_routes_in_a_file_is_compared(
    tmp_path: Path, file_format: str, name: str, source: str, is_fault: bool
) -> None:
    files = list_files(file_format)
    destination, option = "Destination=10.150.0.0/16\n", f"PreferredSource={source}\n"
    if file_format == "networkmanager":
        destination, option = "_options=", f"src={source},"
    assert destination in files[name]
    files[name] = files[name].replace(destination, destination + option)
    faults = check_outputs(tmp_path, print_server_outputs() | files).faults
    assert {fault.kind for fault in faults} == ({"wrong source address"} if is_fault else set())
