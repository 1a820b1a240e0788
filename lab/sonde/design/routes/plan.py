# SPDX-License-Identifier: Apache-2.0
"""The plan: which rules, tables and routes every class of hosts gets, and which settings the routers get.

A multipath route in the main table of each host spreads the traffic between the two networks over the routers, in both
directions. Each router also has a table of its own, whose routes lead through that router alone. A rule leads marked
packets into that table, so that a health check or a measurement can choose one router. A rule on the *source* address
of a router, which some published set-ups contain, can never match on a host: packets that a router forwards carry the
address of the sender, not that of the router.

Both ends put the same flow on the same router when both hash addresses and ports (policy 1), have the same seed and
name the routers in the same order: the kernel sorts addresses and ports before it hashes them. The seed can be set
since Linux 6.11. On older kernels a reply may come back through another router, which disturbs only strict reverse-path
filtering on a third network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonde.design.routes.fabric import Fabric, FabricRouter, FabricSide, HostClass
from sonde.design.routes.kernel_lookup import DEFAULT_METRICS
from sonde.design.routes.kernel_settings import (
    RELEASE_SETTING,
    REQUIRED_OPTIONS,
    add_kernel_release,
    audit_settings,
    list_missing_kernel_options,
    select_valid_settings,
)
from sonde.model.errors import UserError

# Any value is good as long as both sides have the same.
HASH_SEED = 20240601
# Distance between the metric of the standby routers and that of the active ones.
_STANDBY_DISTANCE = 100


@dataclass(frozen=True)
class Hop:
    """One next hop of a route."""

    via: str
    device: str
    weight: int = 1


@dataclass(frozen=True)
class PlannedIpRoute:
    """A route of one table ("main" or a number): to a range through `hops`, or on the link of `device` when there are
    none."""

    destination: str  # a range, or "default"
    table: str
    device: str = ""  # for a route without next hops
    hops: tuple[Hop, ...] = ()
    metric: int | None = None


@dataclass(frozen=True)
class Rule:
    """Packets with this firewall mark are routed by that table."""

    preference: int
    mark: int
    table: str


@dataclass(frozen=True)
class HostPlan:
    """Routes, rules and settings for each host of a class. `network` is that of the class. `qualifier` distinguishes
    the files of a class that belongs to several fabrics."""

    name: str
    network: str
    host_class: HostClass
    version: int
    rules: tuple[Rule, ...]
    routes: tuple[PlannedIpRoute, ...]
    settings: Mapping[str, str]
    mtu: int | None
    qualifier: str = ""

    @property
    def active_routes(self) -> list[PlannedIpRoute]:
        """The routes of the main table that name the active routers."""
        main = [route for route in self.routes if route.table == "main"]
        lowest = min((route.metric or 0 for route in main), default=0)
        return [route for route in main if (route.metric or 0) == lowest]


@dataclass(frozen=True)
class RouterPlan:
    """Settings of each router: both networks are on its links, so it needs no routes, but it must forward."""

    routers: tuple[str, ...]
    settings: Mapping[str, str]
    qualifier: str = ""


@dataclass(frozen=True)
class RoutePlan:
    """The plan of one fabric."""

    fabric: Fabric
    host_plans: tuple[HostPlan, ...]
    router_plan: RouterPlan
    notes: tuple[str, ...] = field(default=())

    def find_host_plan(self, class_name: str) -> HostPlan:
        """The plan of a class of hosts. Raises UserError when there is no class of that name."""
        for host_plan in self.host_plans:
            if host_plan.name == class_name:
                return host_plan
        names = ", ".join(host_plan.name for host_plan in self.host_plans)
        raise UserError(f'There is no class of hosts "{class_name}"; there are {names}.')


def plan_all_routes(fabrics: Sequence[Fabric], seed: int = HASH_SEED) -> list[RoutePlan]:
    """The plans of all fabrics of a system, with files of different names. Raises UserError."""
    sides = [(fabric, side) for fabric in fabrics for side in (fabric.near, fabric.far)]
    uses = Counter((fabric.version, host_class.name) for fabric, side in sides for host_class in side.classes)
    pairs = {(fabric.near.network, fabric.far.network) for fabric in fabrics}
    plans = []
    for fabric in fabrics:
        plan = plan_routes(fabric, seed)
        hosts = tuple(
            replace(host, qualifier=_make_qualifier(fabric, host) if uses[fabric.version, host.name] > 1 else "")
            for host in plan.host_plans
        )
        qualifier = f"-{fabric.near.network}-{fabric.far.network}" if len(pairs) > 1 else ""
        plans.append(replace(plan, host_plans=hosts, router_plan=replace(plan.router_plan, qualifier=qualifier)))
    return plans


def _make_qualifier(fabric: Fabric, host: HostPlan) -> str:
    other = fabric.far if host.network == fabric.near.network else fabric.near
    near_side = fabric.near if other is fabric.far else fabric.far
    has_several_devices = sum(host_class.name == host.name for host_class in near_side.classes) > 1
    return f"-to-{other.network}" + (f"-by-{host.host_class.device}" if has_several_devices else "")


def plan_routes(fabric: Fabric, seed: int = HASH_SEED) -> RoutePlan:
    """The plan of one fabric."""
    host_plans = [
        _plan_host_class(fabric, host_class, own_side, other_side, seed)
        for own_side, other_side in ((fabric.near, fabric.far), (fabric.far, fabric.near))
        for host_class in own_side.classes
    ]
    router_plan = RouterPlan(tuple(router.name for router in fabric.routers), _make_router_settings(fabric))
    return RoutePlan(fabric, tuple(host_plans), router_plan, (*_make_notes(fabric), *_make_setting_notes(fabric)))


def _plan_host_class(
    fabric: Fabric, host_class: HostClass, own_side: FabricSide, other_side: FabricSide, seed: int
) -> HostPlan:
    is_near = own_side is fabric.near

    def get_gateway_address(router: FabricRouter) -> str:
        return router.near_address if is_near else router.far_address

    rules, routes = [], []
    for router in fabric.routers:
        table = str(router.table)
        rules.append(Rule(router.preference, router.mark, table))
        routes += [PlannedIpRoute(address_range, table, host_class.device) for address_range in own_side.ranges]
        routes += [
            PlannedIpRoute(address_range, table, hops=(Hop(get_gateway_address(router), host_class.device),))
            for address_range in other_side.ranges
        ]
    lowest_priority = min(router.priority for router in fabric.routers)
    base_metric = DEFAULT_METRICS[fabric.version]
    for priority in sorted({router.priority for router in fabric.routers}):
        # The kernel uses the standby routers when no next hop of the route with the lower metric works. An IPv6 route
        # without a metric gets 1024: both are stated there.
        hops = tuple(
            Hop(get_gateway_address(router), host_class.device, router.weight)
            for router in fabric.routers
            if router.priority == priority
        )
        distance = 0 if priority == lowest_priority else _STANDBY_DISTANCE + priority
        metric = base_metric + distance or None
        routes += [
            PlannedIpRoute(address_range, "main", hops=hops, metric=metric) for address_range in other_side.ranges
        ]
    return HostPlan(
        name=host_class.name,
        network=own_side.network,
        host_class=host_class,
        version=fabric.version,
        rules=tuple(rules),
        routes=tuple(routes),
        settings=_make_host_settings(fabric, host_class, seed),
        mtu=find_smallest_mtu(fabric),
    )


def find_smallest_mtu(fabric: Fabric) -> int | None:
    """The largest packet that both networks can carry, in bytes; None when one MTU is not described."""
    mtus = [side.mtu for side in (fabric.near, fabric.far)]
    return min(mtu for mtu in mtus if mtu is not None) if None not in mtus else None


def _make_host_settings(fabric: Fabric, host_class: HostClass, seed: int) -> dict[str, str]:
    family = "ipv4" if fabric.version == 4 else "ipv6"
    # sysctls of the site, without those that the notes refuse, and those that multipath routing needs
    settings = select_valid_settings(add_kernel_release(host_class.settings, host_class.operating_system)) | {
        f"net.{family}.fib_multipath_hash_policy": "1",
        "net.ipv4.fib_multipath_hash_seed": str(seed),  # IPv6 uses this seed too
    }
    device = format_device_for_sysctl(host_class.device)
    # a redirect would replace the multipath route to a host by one router
    redirects = (device,) if fabric.version == 6 else ("all", device)
    settings |= {f"net.{family}.conf.{name}.accept_redirects": "0" for name in redirects}
    if fabric.version == 4:
        settings |= {
            "net.ipv4.fib_multipath_use_neigh": "1",
            # loose: a reply may come through another router than its request
            f"net.ipv4.conf.{device}.rp_filter": "2",
            "net.ipv4.conf.all.rp_filter": "2",
        }
    return {name: value for name, value in settings.items() if name != RELEASE_SETTING}


def format_device_for_sysctl(device_name: str) -> str:
    """A device in the name of a sysctl, where a dot separates parts: eth0.7 is eth0/7 (sysctl(8))."""
    return device_name.replace(".", "/")


def _make_router_settings(fabric: Fabric) -> dict[str, str]:
    devices = sorted(
        {
            format_device_for_sysctl(device)
            for router in fabric.routers
            for device in (router.near_device, router.far_device)
            if device
        }
    )
    if fabric.version == 6:
        return {"net.ipv6.conf.all.forwarding": "1"}
    settings = {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "2"}
    settings |= {f"net.ipv4.conf.{device}.rp_filter": "2" for device in devices}
    # both networks are on links of the router: it must never redirect a host past itself
    return settings | {f"net.ipv4.conf.{device}.send_redirects": "0" for device in ["all", *devices]}


def _make_setting_notes(fabric: Fabric) -> Iterator[str]:
    """Settings of the site that are left out or risky, and kernel options that a class lacks by the system file."""
    for side in (fabric.near, fabric.far):
        for host_class in side.classes:
            for finding in audit_settings(add_kernel_release(host_class.settings, host_class.operating_system)):
                outcome = "kept, but" if finding.state == "risky" else "left out:"
                yield (
                    f"{host_class.name}: {finding.name} = {finding.value} is {outcome}"
                    f" {finding.reason}; {finding.remedy}."
                )
            for name, feature in list_missing_kernel_options(host_class.options) if host_class.options else ():
                if host_class.options.get(name) == "n":
                    yield f"{host_class.name}: the kernel lacks {name}: {feature} will not work."
    needed = ", ".join(REQUIRED_OPTIONS)
    yield f"Kernels of all hosts need {needed}."


def _make_notes(fabric: Fabric) -> Sequence[str]:
    """Remarks for the user about the routers and networks of the plan."""
    notes = []
    weights = {router.weight for router in fabric.active_routers}
    if len(fabric.routers) == 1:
        notes.append(
            f"There is one router ({fabric.routers[0].name}): when it fails, nothing reaches the other network."
        )
    if len(weights) > 1:
        notes.append("Routers have different weights: the shares hold for many flows, not for few.")
    if find_smallest_mtu(fabric) is None:
        notes.append(
            "The MTU of one of the networks is not described: whether routers must fragment packets is unknown."
        )
    elif fabric.near.mtu != fabric.far.mtu:
        notes.append(
            f"The networks have different MTUs ({fabric.near.mtu} and {fabric.far.mtu} B): the routes say"
            f" {find_smallest_mtu(fabric)} B, so that no router must fragment or refuse a packet."
        )
    if any(router.rate is None for router in fabric.routers):
        notes.append("The rate of a router or of a network is not described: the predicted rates leave it out.")
    return notes
