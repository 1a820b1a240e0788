# SPDX-License-Identifier: Apache-2.0
"""Labels of targets of Lustre whose failover node is their own server."""

from __future__ import annotations

from pathlib import Path

import pytest
from lustre_hosts import NIDS, find_faults

ADDRESSES = {host: {"lctl list_nids": nid} for host, nid in NIDS.items()}


@pytest.mark.parametrize("extra", [{}, ADDRESSES])
def test_own_server_as_failover_node_is_reported(tmp_path: Path, extra: dict[str, dict[str, str]]) -> None:
    (fault,) = find_faults(tmp_path, failover={1: NIDS["oss1"]}, extra=extra)
    assert (fault.kind, fault.location) == ("failover node is its server", "fs-OST0001")
    assert "names 10.0.0.11@o2ib as failover node, which is oss1 itself" in fault.problem


def test_all_labels_with_their_own_server_are_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, failover={0: NIDS["oss1"], 1: NIDS["oss1"]}, extra=ADDRESSES)
    assert (fault.kind, fault.location) == ("failover node is its server", "fs-OST0000, fs-OST0001")


def test_labels_with_the_partner_are_fine(tmp_path: Path) -> None:
    assert find_faults(tmp_path, extra=ADDRESSES) == ()


def test_different_partners_of_one_server_are_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, failover={1: "10.0.0.19@o2ib"})
    assert (fault.kind, fault.location) == ("failover servers differ", "fs-OST0000, fs-OST0001")
    assert "10.0.0.12@o2ib of fs-OST0000, 10.0.0.19@o2ib of fs-OST0001" in fault.problem
