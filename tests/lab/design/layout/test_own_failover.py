# SPDX-License-Identifier: Apache-2.0
"""Labels of targets of Lustre whose failover node is their own server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lustre_hosts import NIDS, find_faults, print_server

ADDRESSES = {host: {"lctl list_nids": nid} for host, nid in NIDS.items()}


@pytest.mark.parametrize("extra", [{}, ADDRESSES])
def test_server_as_its_failover_node_is_reported(tmp_path: Path, extra: dict[str, dict[str, str]]) -> None:
    (fault,) = find_faults(tmp_path, failover={1: NIDS["oss1"]}, extra=extra)
    assert (fault.kind, fault.location) == ("failover node is its server", "fs-OST0001")
    assert "names 10.0.0.11@o2ib as failover node, which is oss1 itself" in fault.problem


def test_labels_with_their_server_alone_are_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, failover={0: NIDS["oss1"], 1: NIDS["oss1"]}, extra=ADDRESSES)
    assert (fault.kind, fault.location) == ("failover node is its server", "fs-OST0000, fs-OST0001")


def test_labels_with_the_partner_are_fine(tmp_path: Path) -> None:
    assert find_faults(tmp_path, extra=ADDRESSES) == ()


def test_different_partners_of_one_server_are_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, failover={1: "10.0.0.19@o2ib"})
    assert (fault.kind, fault.location) == ("failover servers differ", "fs-OST0000, fs-OST0001")
    assert "10.0.0.12@o2ib of fs-OST0000, 10.0.0.19@o2ib of fs-OST0001" in fault.problem


def test_target_on_its_failover_server_is_reported(tmp_path: Path) -> None:
    """Its label names the server that runs it, which serves more targets than the other one."""
    (fault,) = find_faults(tmp_path, indexes={"oss1": (0, 1, 2), "oss2": (3,)}, failover={2: NIDS["oss1"]})
    assert (fault.kind, fault.location) == ("target on its failover server", "fs-OST0002")
    assert fault.problem.startswith("oss1 has it mounted, which its label names as its failover node")


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("LABEL=fs-OST0001 /mnt/ost1 lustre defaults,noauto 0 0\n", "", "its fstab has no line of LABEL=fs-OST0001"),
    ("/mnt/ost1 lustre", "/mnt/ost9 lustre", "mounts LABEL=fs-OST0001 at /mnt/ost1, that of oss2 at /mnt/ost9"),
    ("/mnt/ost1 lustre defaults", "/mnt/ost1 lustre errors=panic", "in fstab are none on oss1, errors=panic on oss2"),
    ("defaults,noauto", "defaults", "none of its 4 lines of targets has noauto; those of oss1 have it"),
])  # fmt: skip
def test_lines_of_partners_that_differ_are_one_fault(tmp_path: Path, old: str, new: str, problem: str) -> None:
    lines = print_server("oss2", {2: False, 3: False}, {}, "defaults,noauto")["cat /etc/fstab"]
    (fault,) = find_faults(tmp_path, extra={"oss2": {"cat /etc/fstab": lines.replace(old, new)}})
    assert problem in fault.problem


@pytest.mark.parametrize(("old", "new", "kind"), [
    ("/mnt/ost2 lustre", "/mnt/ost2 ext4", "another kind of file system"),
    ("LABEL=fs-OST0002", "LABEL=fs-OST0007", "fstab names another device"),
])  # fmt: skip
def test_line_of_another_target_is_reported(tmp_path: Path, old: str, new: str, kind: str) -> None:
    lines = print_server("oss2", {2: False, 3: False}, {}, "defaults,noauto")["cat /etc/fstab"].replace(old, new)
    extra = {host: {"cat /etc/fstab": "\n".join(each for each in lines.splitlines() if re.search(pattern, each))}
             for host, pattern in (("oss1", "ost[01] "), ("oss2", "ost[23] "))}  # fmt: skip
    (fault,) = find_faults(tmp_path, extra=extra)
    assert (fault.kind, fault.location) == (kind, "oss2: /mnt/ost2")
