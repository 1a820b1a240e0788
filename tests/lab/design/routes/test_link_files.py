# SPDX-License-Identifier: Apache-2.0
""".link files of systemd that select adapters by their path, driver, type or first name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables

DRIVER = "driver: mlx5_core\nversion: 6.12.0\nfirmware-version: 16.35.3006\nbus-info: 0000:81:00.1\n"
LINK = "[Match]\n{}\n\n[Link]\n{}\n"


def print_outputs_with_paths() -> dict[str, str]:
    """The outputs with the paths of both ports of the bond, as `ip -d addr` prints them."""
    outputs = print_server_outputs()
    for number, port in enumerate(("eth2", "eth3")):
        path = f" gso_max_size 65536 gso_max_segs 65535 parentbus pci parentdev 0000:81:00.{number}"
        outputs["addr"] = re.sub(rf"(: {port}: .*\n    link/ether .*)", rf"\1{path}", outputs["addr"])
    return outputs


def check_links(folder: Path, outputs: dict[str, str], *files: tuple[str, str]) -> list[str]:
    texts = {f"{number}0-port.link": LINK.format(*file) for number, file in enumerate(files, start=1)}
    faults = check_outputs(folder, outputs | texts).faults
    assert {fault.kind for fault in faults} <= {"interface renamed at the start"}
    return [f"{fault.location}: {fault.problem}" for fault in faults]


@pytest.mark.parametrize("match", [
    "Path=pci-0000:81:00.1", "Path=pci-0000:9?:* pci-0000:81:00.1", "OriginalName=eth3", "Driver=mlx5_core",
    "Path=!pci-0000:81:00.0\nType=ether", "Path=pci-*.1\nType=ether\nOriginalName=*",
])  # fmt: skip
def test_link_file_that_renames_a_port_is_reported(tmp_path: Path, match: str) -> None:
    outputs = print_outputs_with_paths() | {"ethtool-i-eth3": DRIVER}
    (text,) = check_links(tmp_path, outputs, (match, "Name=lan1"))
    assert text.startswith("10-port.link, lan1: the file gives the adapter with ")
    assert match.splitlines()[0] in text
    assert "which is eth3 now, the name lan1" in text


@pytest.mark.parametrize("files", [
    [("Path=pci-0000:81:00.1", "Name=eth3")],
    [("Path=pci-0000:9f:00.1", "Name=lan1")],
    [("Type=infiniband\nPath=pci-*", "Name=lan1")],
    [("OriginalName=*", "NamePolicy=keep kernel database onboard slot path\nName=lan1")],
    [("Path=pci-0000:81:00.1", "Name=eth3"), ("OriginalName=eth3", "Name=lan1")],
    [("Path=pci-0000:81:00.1\nProperty=ID_SITE=1", "Name=lan1")],
    [("OriginalName=eth4", "Name=eth3"), ("OriginalName=eth3", "Name=eth4")],
    [("", "Name=lan1")],
])  # fmt: skip
def test_link_file_for_other_adapters_is_accepted(tmp_path: Path, files: list[tuple[str, str]]) -> None:
    assert check_links(tmp_path, print_outputs_with_paths(), *files) == []


def test_link_file_that_renames_both_ports_is_one_fault(tmp_path: Path) -> None:
    (text,) = check_links(tmp_path, print_outputs_with_paths(), ("Type=ether", "Name=lan1"))
    assert "Type=ether, which is eth2 now" in text


def test_name_of_a_port_for_the_path_of_the_other_is_reported(tmp_path: Path) -> None:
    (text,) = check_links(tmp_path, print_outputs_with_paths(), ("Path=pci-0000:81:00.0", "Name=eth3"))
    assert "to the adapter with Path=pci-0000:81:00.0, that of eth2, which then becomes eth3" in text
    assert text.endswith("eth3 has Path=pci-0000:81:00.1")


@pytest.mark.parametrize(("bus", "path"), [("pci", "pci-0000:5e:00.0"), ("virtio", "")])
def test_path_of_an_adapter_is_read_from_json(bus: str, path: str) -> None:
    row = {"ifname": "ib0", "flags": ["UP"], "addr_info": [], "parentbus": bus, "parentdev": "0000:5e:00.0"}
    assert parse_host_tables(json.dumps([row]), "addr.json").link_details["ib0"].path == path


def test_driver_of_an_adapter_is_read() -> None:
    expected = {"eth3": {"driver": "mlx5_core", "bus-info": "0000:81:00.1"}}
    assert parse_host_tables(DRIVER, "ethtool-i-eth3.txt").adapters == expected
