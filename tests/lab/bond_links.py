# SPDX-License-Identifier: Apache-2.0
"""The links of a server with a bond, as `ip -d -j addr` prints them."""

from __future__ import annotations

from typing import Any

from dual_stack_host import ADDRESSES

from sonde.design.routes.table_reader import parse_host_tables

OPTIONS = {"mode": "802.3ad", "miimon": 100, "updelay": 0, "downdelay": 0, "arp_interval": 0,
           "xmit_hash_policy": "layer3+4", "num_peer_notif": 1, "all_slaves_active": 0, "min_links": 1,
           "ad_info": {"aggregator": 1, "num_ports": 2, "partner_mac": "00:23:04:ee:be:0a"}}  # fmt: skip
PORT_STATE = {"mii_status": "UP", "link_failure_count": 0, "ad_aggregator_id": 1, "ad_actor_oper_port_state": 63}


def print_links() -> list[dict[str, Any]]:
    """`ip -d -j addr` of the server."""
    tables = parse_host_tables(ADDRESSES, "addr")
    rows: list[dict[str, Any]] = []
    for device, details in tables.link_details.items():
        addresses = [text for text in tables.addresses or ()
                     if device in tables.address_devices[text.partition("/")[0]]]  # fmt: skip
        row: dict[str, Any] = {
            "ifname": device, "flags": ["UP", "LOWER_UP", "MULTICAST", *["SLAVE"] * details.is_bond_port],
            "mtu": tables.mtus[device], "operstate": "UP", "txqlen": 1000, "qdisc": details.queue,
            "address": details.link_address,
            "addr_info": [{"local": text.partition("/")[0], "prefixlen": int(text.partition("/")[2]),
                           "scope": "link" if text.startswith("fe80") else "global"} for text in addresses],
        }  # fmt: skip
        if details.is_bond_port:
            row |= {"master": "bond0",
                    "linkinfo": {"info_slave_kind": "bond", "info_slave_data": dict(PORT_STATE)}}  # fmt: skip
        elif device == "bond0":
            row |= {"linkinfo": {"info_kind": "bond", "info_data": dict(OPTIONS)}}
        rows.append(row)
    return rows
