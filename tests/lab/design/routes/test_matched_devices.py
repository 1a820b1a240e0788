# SPDX-License-Identifier: Apache-2.0
"""Configuration files that choose their adapter by its link address or its driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.design.routes.matched_devices import name_matched_devices
from sonde.design.routes.netplan_reader import parse_netplan_file

BOND, PORT, OLD = "52:54:00:a0:00:01", "52:54:00:a0:00:77", "0c:42:a1:5e:77:10"
NETPLAN = """network:
  version: 2
  ethernets:
    stor:
      match:
        {match}
      mtu: {mtu}
      addresses: [10.160.0.1/20]
"""


def check_file(folder: Path, name: str, text: str) -> RouteCheck:
    """Checks a healthy server, whose port eth2 has another permanent link address, with one more file."""
    outputs = print_server_outputs() | {"ethtool-P-eth2": f"Permanent address: {PORT}\n", name: text}
    return check_outputs(folder, outputs)


def list_faults(check: RouteCheck) -> list[tuple[str, str]]:
    return [(fault.kind, fault.location) for fault in check.faults]


@pytest.mark.parametrize(("match", "mtu", "faults"), [
    (f"macaddress: {BOND}", 9000, []),
    (f"macaddress: {BOND}", 1500, [("MTU mismatch", "bond0 in the configuration files")]),
    (f"macaddress: {OLD}", 9000, [("not applied at the start", "60-site.yaml, macaddress")]),
    (f"macaddress: {PORT}", 9000, [("not applied at the start", "60-site.yaml, macaddress")]),
])  # fmt: skip
def test_netplan_definition_is_for_the_matched_adapter(
    tmp_path: Path, match: str, mtu: int, faults: list[tuple[str, str]]
) -> None:
    check = check_file(tmp_path, "60-site.yaml", NETPLAN.format(match=match, mtu=mtu))
    assert list_faults(check) == faults
    if faults and mtu == 9000:
        assert check.faults[0].remedy == f"write macaddress: {BOND}"


def test_netplan_definition_for_another_driver_is_not_examined(tmp_path: Path) -> None:
    check = check_file(tmp_path, "60-site.yaml", NETPLAN.format(match="driver: mlx5_core", mtu=9000))
    assert check.faults == ()
    assert (
        "60-site.yaml (the outputs do not show exactly one interface that Driver=mlx5_core chooses)"
        in check.not_examined
    )


NETWORK = """[Match]
{match}

[Link]
MTUBytes={mtu}
{link}
[Network]
Address=10.160.0.1/20
Address=fd00:160::1/64
"""
REPLACED = ("not applied at the start", "50-site.network, MACAddress")
MTU_OF_BOND = ("MTU mismatch", "bond0 in the configuration files")


@pytest.mark.parametrize(("match", "mtu", "link", "faults"), [
    (f"MACAddress={BOND}", 9000, "", []),
    (f"MACAddress={BOND.upper()}", 1500, "", [MTU_OF_BOND]),
    (f"MACAddress={OLD}", 9000, "", [REPLACED]),
    (f"MACAddress={PORT}", 9000, "", [REPLACED]),
    (f"PermanentMACAddress={OLD}", 9000, "", [("not applied at the start", "50-site.network, PermanentMACAddress")]),
    (f"MACAddress={BOND}", 9000, "Unmanaged=yes\n",
     [("not applied at the start", "50-site.network, Unmanaged=yes in the configuration files")]),
])  # fmt: skip
def test_networkd_file_is_for_the_matched_adapter(
    tmp_path: Path, match: str, mtu: int, link: str, faults: list[tuple[str, str]]
) -> None:
    check = check_file(tmp_path, "50-site.network", NETWORK.format(match=match, mtu=mtu, link=link))
    assert list_faults(check) == faults
    if faults == [MTU_OF_BOND]:
        assert "correct 50-site.network, line 5 (MTUBytes=1500)" in check.faults[0].remedy


@pytest.mark.parametrize("match", ["Driver=mlx5_core", "Path=pci-0000:81:00.*", "Type=ether", "Name=bond0\nDriver=x"])
def test_networkd_file_for_unknown_adapters_is_not_examined(tmp_path: Path, match: str) -> None:
    check = check_file(tmp_path, "50-site.network", NETWORK.format(match=match, mtu=9000, link=""))
    assert check.faults == ()
    options = match.replace("\n", " ")
    assert (
        f"50-site.network (the outputs do not show exactly one interface that {options} chooses)" in check.not_examined
    )


DRIVERS = {"stor": "mlx5_core", "mgmt": "ice"}
DEFINITION = "    {name}:\n      match: {{driver: {driver}}}\n      addresses: [10.{number}.0.1/20]\n{routes}"
ROUTES = "      routes:\n        - {to: 10.150.0.0/16, via: 10.1.0.9}\n"
HOST = HostTables(
    link_details=dict.fromkeys(DRIVERS, LinkDetails()),
    adapters={device: {"driver": driver} for device, driver in DRIVERS.items()},
)


@pytest.mark.parametrize(("devices", "route_device"), [(("stor", "mgmt"), ""), (("stor",), "stor")])
def test_route_among_several_unnamed_definitions_keeps_its_name(devices: tuple[str, ...], route_device: str) -> None:
    definitions = [
        DEFINITION.format(
            name=f"any{number}", driver=DRIVERS[device], number=number, routes="" if number > 1 else ROUTES
        )
        for number, device in enumerate(devices, start=1)
    ]
    text = f"network:\n  version: 2\n  ethernets:\n{''.join(definitions)}"
    tables = name_matched_devices(parse_netplan_file(text, "60-site.yaml"), HOST)
    assert tuple(profile.device for profile in tables.interface_profiles) == devices
    assert [(route.device, route.hops[0].device) for route in tables.routes or ()] == [(route_device, route_device)]


@pytest.mark.parametrize(("details", "device"), [
    (LinkDetails(), ""), (LinkDetails(kind="ipoib"), ""), (LinkDetails(kind="dummy"), "stor"),
])  # fmt: skip
def test_driver_match_with_an_adapter_of_unknown_driver_is_unknown(details: LinkDetails, device: str) -> None:
    definition = DEFINITION.format(name="any", driver="mlx5_core", number=1, routes="")
    text = f"network:\n  version: 2\n  ethernets:\n{definition}"
    host_tables = replace(HOST, link_details={**HOST.link_details, "lo": LinkDetails(), "ib0": details})
    (profile,) = name_matched_devices(parse_netplan_file(text, "60-site.yaml"), host_tables).interface_profiles
    assert profile.device == device
