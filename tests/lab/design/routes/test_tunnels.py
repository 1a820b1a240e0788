# SPDX-License-Identifier: Apache-2.0
"""Routes of VPNs to the other side: one fault, with the reason that fits a device without ARP."""

from __future__ import annotations

from pathlib import Path

from dual_stack_host import check_outputs, print_server_outputs

TUNNEL = """8: tailscale0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1280 qdisc fq_codel state UNKNOWN qlen 500
    link/none
    inet 100.88.12.7/32 scope global tailscale0
"""


def test_rule_of_a_vpn_to_the_other_side_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] += TUNNEL
    outputs["rule"] = outputs["rule"].replace("32766:", "270:\tfrom all lookup 52\n32766:")
    outputs["route"] += "10.150.0.0/16 dev tailscale0 table 52\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "traffic diverted"
    assert "a rule leads packets to hsn into table 52, by the link of tailscale0 alone" in fault.problem


def test_route_by_a_tunnel_has_no_reason_of_arp(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] += TUNNEL
    outputs["route"] += "10.150.0.0/24 dev tailscale0 scope link\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "far network on link"
    assert fault.problem.endswith("tailscale0 uses no ARP (NOARP), as tunnels do, and takes the packets instead of the"
                                  " routers")  # fmt: skip


def test_table_of_a_vpn_without_a_rule_is_no_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] += TUNNEL
    outputs["route"] += "10.150.0.0/16 dev tailscale0 table 52\n"
    assert check_outputs(tmp_path, outputs).faults == ()
