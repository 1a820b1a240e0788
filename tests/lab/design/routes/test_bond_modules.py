# SPDX-License-Identifier: Apache-2.0
"""Options of bonds in modprobe.d, and modes of bonds in files that differ from the running ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

BOND_LINE = "    bond mode 802.3ad miimon 100 xmit_hash_policy layer3+4 numtxqueues 16\n"
ADDRESS = "    inet 10.160.0.1/20"
NETDEV = "[NetDev]\nName=bond0\nKind=bond\n\n[Bond]\nMode={}\nMIIMonitorSec=100ms\n"


def check_file(folder: Path, files: dict[str, str]) -> list[str]:
    outputs = print_server_outputs()
    assert ADDRESS in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(ADDRESS, BOND_LINE + ADDRESS)
    faults = check_outputs(folder, outputs | files).faults
    return [f"{fault.kind}: {fault.problem} ({fault.remedy})" for fault in faults]


@pytest.mark.parametrize(("options", "kind", "expected_sentence"), [
    ("options bonding mode=1 miimon=100", "another mode in a file", "after the next start it has active-backup"),
    ("options bonding \\\n  mode=0 miimon=100", "bond mode", "bond0 has the mode balance-rr"),
    ("alias bond0 bonding\noptions bond0 mode=balance-rr", "bond mode", "bond0 has the mode balance-rr"),
    ("options bonding mode=4 xmit_hash_policy=0", "bond hash by address", "(xmit_hash_policy layer2)"),
    ("options bonding miimon=5000", "dead ports are noticed late", "up to 5000 ms"),
])  # fmt: skip
def test_module_option_of_a_bond_is_reported(tmp_path: Path, options: str, kind: str, expected_sentence: str) -> None:
    (text,) = check_file(tmp_path, {"bonding.conf": f"# site\n{options}\n"})
    assert text.startswith(f"{kind}: ")
    assert expected_sentence in text


@pytest.mark.parametrize("options", [
    "options bonding mode=802.3ad xmit_hash_policy=layer3+4 miimon=100 lacp_rate=fast", "options bonding max_bonds=0",
    "options bonding mode=4", "alias bond7 bonding\noptions bond7 mode=balance-rr",
])  # fmt: skip
def test_sound_module_option_of_a_bond_is_no_fault(tmp_path: Path, options: str) -> None:
    assert check_file(tmp_path, {"bonding.conf": f"{options}\n"}) == []


def test_file_of_a_bond_comes_before_module_options(tmp_path: Path) -> None:
    files = {"bonding.conf": "options bonding mode=balance-rr\n", "10-bond0.netdev": NETDEV.format("802.3ad")}
    assert check_file(tmp_path, files) == []


@pytest.mark.parametrize("name", ["10-bond0.netdev", "ifcfg-bond0"])
def test_other_mode_of_a_bond_in_its_file_is_reported(tmp_path: Path, name: str) -> None:
    script = 'DEVICE=bond0\nTYPE=Bond\nBONDING_OPTS="mode=active-backup miimon=100"\nONBOOT=yes\nMTU=9000\n'
    text = script if name == "ifcfg-bond0" else NETDEV.format("active-backup")
    (fault,) = check_file(tmp_path, {name: text})
    assert "bond0 has the mode 802.3ad; after the next start it has active-backup" in fault
