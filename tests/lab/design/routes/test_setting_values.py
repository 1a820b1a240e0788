# SPDX-License-Identifier: Apache-2.0
"""Settings of NFS, of connection tracking and of the network that limit or break storage traffic, by their values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.host_tables import HostTables


def find_kinds(cumulus: Fabric, name: str, settings: Mapping[str, str]) -> set[str]:
    faults = check_host_routes([cumulus], name, HostTables(settings=settings)).faults
    return {fault.kind for fault in faults if not fault.location.endswith("= not set")}


@pytest.mark.parametrize(
    ("name", "setting", "sound", "wrong", "fault_kind"),
    [
        ("routers", "net.netfilter.nf_conntrack_tcp_loose", "1", "0", "moved connections invalid"),
        ("compute", "sunrpc.min_resvport", "665", "1020", "few local ports"),
        ("compute", "sunrpc.max_resvport", "1023", "700", "few local ports"),
        ("compute", "sunrpc.max_resvport", "1023", "4000", "ports refused"),
    ],
)
def test_setting_of_the_network_is_judged_by_its_value(
    cumulus: Fabric, name: str, setting: str, sound: str, wrong: str, fault_kind: str
) -> None:
    assert find_kinds(cumulus, name, {setting: sound}) == set()
    assert find_kinds(cumulus, name, {setting: wrong}) == {fault_kind}


def test_hosts_may_drop_connections_in_their_midst(cumulus: Fabric) -> None:
    assert find_kinds(cumulus, "compute", {"net.netfilter.nf_conntrack_tcp_loose": "0"}) == set()
