# SPDX-License-Identifier: Apache-2.0
"""Outputs of ibstat: ports of InfiniBand that are slower than their network in the system file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.routes.adapter_outputs import parse_ibstat_output
from sonde.design.routes.check_host import check_host
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails
from sonde.model.system import read_system

PORT = """CA 'mlx5_1'
	Port 1:
		State: Active
		Rate: 40
		SM lid: 1
		Port GUID: 0xec0d9a0300004404
		Link layer: InfiniBand
"""
OTHER_PORT = PORT.replace("mlx5_1", "mlx5_0").replace("4404", "5505")
CUMULUS = Path(__file__).parents[4] / "systems" / "cumulus.toml"


def list_slow_ports(directory: Path, stated_rate: str, ibstat_text: str) -> list[str]:
    text = CUMULUS.read_text()
    assert '"56 Gbit/s"' in text
    system_file = directory / "cumulus.toml"
    system_file.write_text(text.replace('"56 Gbit/s"', f'"{stated_rate}"'))
    link_address = f"00:00:10:49:fe:80:00:00:00:00:00:00:{'ec:0d:9a:03:00:00:44:04'}"
    tables = HostTables(
        infiniband_ports=tuple(parse_ibstat_output(ibstat_text)),
        link_details={"ib0": LinkDetails(link_address=link_address)},
    )
    faults = check_host(read_system(system_file), "router1", tables).faults
    return [fault.location for fault in faults if fault.kind == "slow link"]


@pytest.mark.parametrize(("stated_rate", "port_rate", "is_slow"), [
    ("56 Gbit/s", 40, True), ("54.5 Gbit/s", 40, True), ("40 Gbit/s", 40, False), ("32 Gbit/s", 40, False),
    ("54.5 Gbit/s", 56, False), ("56.25 Gbit/s", 56, False), ("212.5 Gbit/s", 200, False), ("97 Gbit/s", 56, True),
    ("25 GB/s", 100, True),
])  # fmt: skip
def test_port_is_compared_with_the_rate_of_its_network(
    tmp_path: Path, stated_rate: str, port_rate: int, is_slow: bool
) -> None:
    ibstat_text = PORT.replace("Rate: 40", f"Rate: {port_rate}")
    assert list_slow_ports(tmp_path, stated_rate, ibstat_text) == (["mlx5_1 port 1"] if is_slow else [])


def test_ports_that_may_share_a_network_are_not_slow(tmp_path: Path) -> None:
    assert list_slow_ports(tmp_path, "56 Gbit/s", PORT + OTHER_PORT) == []
    assert list_slow_ports(tmp_path, "56 Gbit/s", PORT + OTHER_PORT.replace("Active", "Down")) == ["mlx5_1 port 1"]


def test_port_of_another_interface_is_not_compared(tmp_path: Path) -> None:
    assert list_slow_ports(tmp_path, "56 Gbit/s", OTHER_PORT) == []
