# SPDX-License-Identifier: Apache-2.0
"""Checks IPsec policies: no policy may encrypt or drop packets between the two networks, or within one of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.routes.fabric import Fabric, FabricSide, covers_range, is_address_in_ranges, overlaps_range
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.security_policies import SecurityPolicy


def find_policy_faults_of_host(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Policies on packets between this host and both networks."""
    if host_tables.security_policies is None:
        return
    own_addresses = [text.partition("/")[0] for text in host_tables.addresses or ()]
    own_addresses = [text for text in own_addresses if is_address_in_ranges(host_view.own_side.ranges, text)]
    own_ranges = [str(ipaddress.ip_network(text)) for text in own_addresses or host_view.addresses]
    yield CheckedItem("the IPsec policies", host_view.own_side.network)
    policies, networks = list[SecurityPolicy](), list[str]()
    for side in (host_view.other_side, host_view.own_side):
        outgoing = _list_effective_policies(host_tables.security_policies, "out", own_ranges, side.ranges)
        incoming = _list_effective_policies(host_tables.security_policies, "in", side.ranges, own_ranges)
        policies += [*outgoing, *incoming]
        networks += [side.network] if outgoing or incoming else []
    yield from _describe_policies(policies, f"between this host and {' and '.join(networks)}")


def find_policy_faults_of_router(fabric: Fabric, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Policies on packets that a router forwards between both networks."""
    if host_tables.security_policies is None:
        return
    yield CheckedItem("the IPsec policies", fabric.name)
    policies = [
        policy
        for source, target in ((fabric.near, fabric.far), (fabric.far, fabric.near))
        for direction in ("fwd", "out")
        for policy in _list_policies_of_sides(host_tables.security_policies, direction, source, target)
    ]
    yield from _describe_policies(policies, f"between {fabric.near.network} and {fabric.far.network}")


def _list_policies_of_sides(
    policies: Sequence[SecurityPolicy], direction: str, source_side: FabricSide, target_side: FabricSide
) -> list[SecurityPolicy]:
    return _list_effective_policies(policies, direction, source_side.ranges, target_side.ranges)


def _list_effective_policies(
    policies: Sequence[SecurityPolicy], direction: str, sources: Sequence[str], targets: Sequence[str]
) -> list[SecurityPolicy]:
    """The policies that drop or transform packets between some ranges, up to the first that lets all of them pass."""
    effective: dict[SecurityPolicy, None] = {}
    ordered = sorted((policy for policy in policies if policy.direction == direction), key=lambda item: item.priority)
    for source in sources:
        for target in targets:
            for policy in ordered:
                if not (overlaps_range(policy.source, source) and overlaps_range(policy.destination, target)):
                    continue
                if policy.is_blocking or policy.transformation:
                    effective[policy] = None
                covers_all = covers_range(policy.source, source) and covers_range(policy.destination, target)
                if covers_all and not policy.selectors:
                    break
    return list(effective)


def _describe_policies(policies: Sequence[SecurityPolicy], packets: str) -> Iterator[RouteFault]:
    """One fault for all policies that drop packets, and one for those that transform them: both directions of a tunnel
    have one cause."""
    blocking = [policy for policy in dict.fromkeys(policies) if policy.is_blocking]
    transforming = [policy for policy in dict.fromkeys(policies) if not policy.is_blocking]
    if blocking:
        yield RouteFault(
            "traffic discarded", blocking[0].origin,
            f"an IPsec policy drops packets {packets} ({_list_selections(blocking)}; action block)",
            "remove the policy (ip xfrm policy delete), and what adds it",
        )  # fmt: skip
    if transforming:
        yield RouteFault(
            "traffic encrypted", transforming[0].origin,
            f"IPsec policies lead packets {packets} through {transforming[0].transformation}"
            f" ({_list_selections(transforming)}): each packet costs processor time, and machines without the same"
            " policies drop it",
            "remove the policies (ip xfrm policy delete) and what adds them, or let storage traffic pass by a policy of"
            " a smaller priority",
        )  # fmt: skip


def _list_selections(policies: Sequence[SecurityPolicy]) -> str:
    texts = [f"{policy.direction} from {policy.source} to {policy.destination}"
             f"{f' with {policy.selectors}' if policy.selectors else ''}" for policy in policies]  # fmt: skip
    return join_first_names(texts, 3)
