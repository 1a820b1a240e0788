# SPDX-License-Identifier: Apache-2.0
"""Servers that may mount a target of Lustre: protection against two mounts, and the addresses in the labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from md_pair import NODES, MdServer, check_md_pair, make_md_pair

from sonde.design.layout.live.saved_output import read_saved_output

MANAGEMENT_LABEL = """checking for existing Lustre data: found

   Read previous values:
Target:     MGS
Index:      unassigned
Lustre FS:  {}
Mount type: ldiskfs
Flags:      0x1004
              (MGS no_primnode )
Persistent mount opts: user_xattr,errors=remount-ro
Parameters: failover.node=10.0.0.1@o2ib failover.node=10.0.0.2@o2ib
"""


def find_single(servers: dict[str, MdServer], folder: Path, lnet: str = "o2ib") -> tuple[str, str, str, str]:
    (fault,) = [each for each in check_md_pair(servers, folder, lnet).faults if each.kind != "no spare"]
    return fault.kind, fault.location, fault.problem, " ".join(fault.consequences)


def test_target_without_mmp_is_reported(tmp_path: Path) -> None:
    servers = make_md_pair()
    servers["oss1"].features = {1: ""}
    kind, location, problem, _ = find_single(servers, tmp_path)
    assert (kind, location) == ("no protection against two mounts", "fs-OST0001")
    assert problem == f"its file system lacks mmp, and {NODES[0]} and {NODES[1]} may mount it"


@pytest.mark.parametrize("lnet", ["o2ib", ""])
@pytest.mark.parametrize(("nodes", "text"), [
    ((NODES[0], "10.0.0.12@tcp"), "10.0.0.12@tcp is in another network than 10.0.0.12@o2ib"),
    ((NODES[0],), "10.0.0.12@o2ib is missing"),
    ((*NODES, "10.0.0.99@o2ib"), "no other label of these servers has 10.0.0.99@o2ib")])  # fmt: skip
def test_label_with_other_failover_servers_is_one_fault(
    tmp_path: Path, nodes: tuple[str, ...], text: str, lnet: str
) -> None:
    """Also where the plan names no address, because it has no LNet network."""
    servers = make_md_pair()
    servers["oss1"].failover = {1: nodes}
    kind, location, problem, consequences = find_single(servers, tmp_path, lnet)
    assert (kind, location) == ("failover servers differ", "fs-OST0001")
    assert f"3 of 4 targets of these servers have {NODES[0]}, {NODES[1]}: {text}" in problem
    assert ("planned is" in problem + consequences) == bool(lnet)


def test_addresses_that_the_script_asks_for_have_a_true_reason(tmp_path: Path) -> None:
    (text,) = [each for each in check_md_pair(make_md_pair(), tmp_path, "").not_compared if "--servicenode" in each]
    assert "variable of the shell; give lnet of the network in the system file" in text


@pytest.mark.parametrize("file_system", ["", "fs"])
def test_label_of_a_management_target_is_read(file_system: str) -> None:
    storage = read_saved_output(MANAGEMENT_LABEL.format(file_system), "tunefs.lustre --dryrun /dev/md1")
    (target,) = storage.file_systems
    assert (target.location, target.facts["flags"]) == ("MGS", "MGS no_primnode")


def make_partner_label(servers: dict[str, MdServer], target: int) -> None:
    """The label of a target as mkfs.lustre --failnode makes it: with the partner of its server only."""
    servers["oss1"].failover = {target: (NODES[1],)}
    servers["oss1"].partner_forms = (target,)


def test_label_with_partner_only_is_as_planned(tmp_path: Path) -> None:
    servers = make_md_pair()
    for target in (0, 1):
        make_partner_label(servers, target)
    assert [fault for fault in check_md_pair(servers, tmp_path, "o2ib").faults if fault.kind == "not as planned"] == []


def test_partner_label_without_mmp_is_reported(tmp_path: Path) -> None:
    servers = make_md_pair()
    make_partner_label(servers, 1)
    servers["oss1"].features = {1: ""}
    faults = [each for each in check_md_pair(servers, tmp_path).faults if "mmp" in each.problem]
    assert [fault.problem for fault in faults] == [
        f"its file system lacks mmp, and its server and {NODES[1]} may mount it"
    ]
