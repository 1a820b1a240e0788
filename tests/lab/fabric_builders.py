# SPDX-License-Identifier: Apache-2.0
"""Fabrics of any size, for tests."""

from __future__ import annotations

from sonde.design.checked_items import split_faults_and_comparisons
from sonde.design.routes.check_directions import check_both_directions
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.model.system import make_system


def build_fabric(routers: int, clients: int = 3, servers: int = 2, weights: str = "1", ip_version: int = 4) -> Fabric:
    """A fabric with so many routers, clients and servers. Addresses of routers count up from 10.1.0.1 (fd01::1) and
    10.2.0.1 (fd02::1), those of clients and servers from .100."""
    near, far = ("10.1.0.", "10.2.0.") if ip_version == 4 else ("fd01::", "fd02::")
    ranges = ("10.1.0.0/16", "10.2.0.0/16") if ip_version == 4 else ("fd01::/64", "fd02::/64")

    def format_address_range(prefix: str, first_number: int, address_count: int) -> str:
        if ip_version == 4:
            return (
                f"{prefix}[{first_number}-{first_number + address_count - 1}]"
                if address_count > 1
                else f"{prefix}{first_number}"
            )
        return f"{prefix}{first_number:x} .. {prefix}{first_number + address_count - 1:x}"

    def format_id_range(name: str, count: int) -> str:
        return f"{name}[1-{count}]" if count > 1 else f"{name}1"

    document = {
        "schema": "sonde-system/2",
        "id": "built",
        "networks": [
            {"id": "near", "kind": "ethernet", "addresses": [ranges[0]], "mtu": "9000 B", "rate": "1 GB/s"},
            {"id": "far", "kind": "ethernet", "addresses": [ranges[1]], "mtu": "9000 B", "rate": "2 GB/s"},
        ],
        "nodes": [
            {
                "id": format_id_range("client", clients),
                "group": "clients",
                "interfaces": [
                    {"network": "near", "device": "eth0", "addresses": format_address_range(near, 100, clients)}
                ],
            }
        ],
        "servers": [
            {
                "id": format_id_range("server", servers),
                "group": "stores",
                "interfaces": [
                    {"network": "far", "device": "eth1", "addresses": format_address_range(far, 100, servers)}
                ],
            }
        ],
        "routers": [
            {
                "id": format_id_range("router", routers),
                "group": "gateways",
                "protocol": "ip",
                "between": ["near", "far"],
                "weight": int(weights),
                "interfaces": [
                    {"network": "near", "device": "eth0", "addresses": format_address_range(near, 1, routers)},
                    {"network": "far", "device": "eth1", "addresses": format_address_range(far, 1, routers)},
                ],
            }
        ],
    }
    (fabric,) = find_fabrics(make_system(document, "built.toml"))
    return fabric


def find_direction_faults(fabric: Fabric, near: HostTables, far: HostTables) -> list[RouteFault]:
    """The faults of both directions together, without the comparisons."""
    return list(split_faults_and_comparisons(check_both_directions(fabric, near, far))[0])
