# SPDX-License-Identifier: Apache-2.0
"""Which address, prefix and LNet id each host has, in a system that names every way to say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.model.errors import SystemFileError
from sonde.model.system import System, read_system
from sonde.model.system.addressing import InterfaceAddress

TEXT = """schema = "sonde-system/2"
[[networks]]
id = "ib"
kind = "infiniband"
addresses = "10.0.0.0/24"
lnet = "o2ib"
[[networks]]
id = "eth"
kind = "ethernet"
addresses = ["10.1.0.0/16", "fd00::/64"]
[[networks]]
id = "gni"
kind = "gemini"
[[nodes]]
id = "n[1-3]"
[[nodes.interfaces]]
network = "ib"
device = "ib0"
addresses = ["10.0.0.[1-2]", "10.0.0.9"]
[[nodes.interfaces]]
network = "eth"
addresses = "fd00::[1-3]"
[[nodes.interfaces]]
network = "gni"
nids = ["[7-8]@gni", "70@gni"]
[[nodes.interfaces]]
network = "eth"
prefix = 24
addresses = "10.1.3.[1-3]"
[[servers]]
id = "quiet"
[[servers.interfaces]]
network = "ib"
"""


@pytest.fixture
def system(tmp_path: Path) -> System:
    file = tmp_path / "site.toml"
    file.write_text(TEXT, encoding="utf-8")
    return read_system(file)


def test_host_gets_the_address_at_its_position_on_each_network(system: System) -> None:
    assert list(system.find_addresses("n3")) == [
        InterfaceAddress("n3", "ib", "ib0", "10.0.0.9", 24, "10.0.0.9@o2ib"),
        InterfaceAddress("n3", "eth", "", "fd00::3", 64, None),
        InterfaceAddress("n3", "gni", "", None, None, "70@gni"),
        InterfaceAddress("n3", "eth", "", "10.1.3.3", 24, None),
    ]
    assert [address.nid for address in system.find_addresses("n2")] == ["10.0.0.2@o2ib", None, "8@gni", None]


def test_interface_without_address_has_no_address(system: System) -> None:
    assert list(system.find_addresses("quiet")) == [InterfaceAddress("quiet", "ib", "", None, None, None)]


def test_addresses_of_a_network_are_rejected_with_the_valid_kinds(system: System) -> None:
    with pytest.raises(SystemFileError, match='"ib" is one of networks; only nodes, routers and servers have addr'):
        list(system.find_addresses("ib"))


def test_addresses_can_be_limited_to_a_network(system: System) -> None:
    assert [address.address for address in system.find_addresses("n1", "eth")] == ["fd00::1", "10.1.3.1"]
