# SPDX-License-Identifier: Apache-2.0
"""A fabric as one host sees it: its class, its own side and the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide, HostClass, map_gateways_to_router_index
from sonde.model.errors import UserError, suggest_close_name

ROUTERS = "routers"


@dataclass(frozen=True)
class HostView:
    """One fabric from the side of a class of hosts. `hosts` are the addresses of the hosts that are meant."""

    fabric: Fabric
    host_class: HostClass
    own_side: FabricSide
    other_side: FabricSide
    addresses: tuple[str, ...]

    @cached_property
    def routers_by_gateway(self) -> Mapping[str, FabricRouter]:
        """The routers by their address on this side."""
        return self._map_routers(self.own_side)

    @cached_property
    def routers_by_far_address(self) -> Mapping[str, FabricRouter]:
        """The routers by their address on the other side."""
        return self._map_routers(self.other_side)

    @property
    def rule_command(self) -> str:
        """The command for rules, which has to name IPv6."""
        return "ip -6 rule" if self.fabric.version == 6 else "ip rule"

    def _map_routers(self, side: FabricSide) -> dict[str, FabricRouter]:
        indices = map_gateways_to_router_index(self.fabric, side)
        return {address: self.fabric.routers[index] for address, index in indices.items()}


def find_host_views(fabrics: Sequence[Fabric], host_or_class: str) -> list[HostView]:
    """Every fabric that a class of hosts or a host is part of; none for routers. Raises UserError for other names."""
    views = []
    for fabric in fabrics:
        for own_side, other_side in ((fabric.near, fabric.far), (fabric.far, fabric.near)):
            for host_class in own_side.classes:
                if host_or_class == host_class.name:
                    views.append(HostView(fabric, host_class, own_side, other_side, host_class.addresses))
                elif host_or_class in host_class.hosts:
                    address = host_class.addresses[host_class.hosts.index(host_or_class)]
                    views.append(HostView(fabric, host_class, own_side, other_side, (address,)))
    routers = {router.name for fabric in fabrics for router in fabric.routers}
    if not views and host_or_class not in (ROUTERS, *routers):
        sides = [side for fabric in fabrics for side in (fabric.near, fabric.far)]
        names = list(dict.fromkeys([*(host_class.name for side in sides for host_class in side.classes), ROUTERS]))
        raise UserError(
            f'There is no class of hosts "{host_or_class}"; there are '
            f"{', '.join(names)}.{suggest_close_name(host_or_class, names)}"
        )
    return views
