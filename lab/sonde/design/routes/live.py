# SPDX-License-Identifier: Apache-2.0
"""What this host has, asked of its kernel by netlink, /proc/sys and the configuration of the running kernel."""

from __future__ import annotations

import gzip
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sonde.design.routes.tables import HostTables, SeenHop, SeenRoute, SeenRule, read_text
from sonde.model.errors import MachineError

_NAMES = {254: "main", 255: "local", 253: "default"}
_LINK_SCOPE = 253
_DEAD = 0x1 | 0x10  # RTNH_F_DEAD, RTNH_F_LINKDOWN
_INET, _INET6 = 2, 10


def this_host(version: int, settings: Sequence[str] = ()) -> HostTables:
    """Rules, routes and addresses of one IP version, the sysctls `settings` and what `_SETTINGS` names, and kernel
    options where the kernel shows them. Raises MachineError when netlink does not answer."""
    # pyroute2 takes longer to import than most commands take to run
    from pyroute2 import IPRoute, NetlinkError

    family = _INET6 if version == 6 else _INET
    try:
        with IPRoute() as netlink:
            links = {one["index"]: one for one in netlink.get_links()}
            names = {index: str(one.get_attr("IFLA_IFNAME")) for index, one in links.items()}
            mtus = {names[index]: int(one.get_attr("IFLA_MTU") or 0) for index, one in links.items()}
            addresses = [f"{one.get_attr('IFA_ADDRESS')}/{one['prefixlen']}" for one in netlink.get_addr(family=family)]
            routes = [_route(one, names, version) for one in netlink.get_routes(family=family)]
            rules = [_rule(one) for one in netlink.get_rules(family=family)]
    except (OSError, NetlinkError) as reason:
        raise MachineError(f"The kernel does not answer questions about routes: {reason}.") from None
    return HostTables(
        rules=tuple(rules),
        routes=tuple(one for one in routes if one is not None and one.table not in ("local", "default")),
        addresses=tuple(addresses),
        settings=_settings([*_SETTINGS, *settings]),
        options=_options(),
        mtus=mtus,
    )


_SETTINGS = (
    "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.fib_multipath_hash_policy",
    "net.ipv6.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed", "net.ipv4.fib_multipath_use_neigh",
    "net.ipv4.conf.all.rp_filter", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_mem",
    "net.core.optmem_max",
)  # fmt: skip


def _route(one: Any, names: dict[int, str], version: int) -> SeenRoute | None:
    if one["type"] != 1:  # unicast
        return None
    any_to = "0.0.0.0" if version == 4 else "::"  # a range, not a place to listen
    table = int(one.get_attr("RTA_TABLE") or one["table"])
    length = int(one["dst_len"])
    destination = one.get_attr("RTA_DST") or any_to
    device = names.get(one.get_attr("RTA_OIF") or 0, "")
    hops = [
        SeenHop(
            str(hop.get_attr("RTA_GATEWAY") or ""),
            names.get(hop["oif"], ""),
            int(hop["hops"]) + 1,
            bool(hop["flags"] & _DEAD),
        )
        for hop in one.get_attr("RTA_MULTIPATH") or ()
    ]
    if gateway := one.get_attr("RTA_GATEWAY"):
        hops = [SeenHop(str(gateway), device, 1, bool(one["flags"] & _DEAD))]
    metrics = one.get_attr("RTA_METRICS")
    mtu = metrics.get_attr("RTAX_MTU") if metrics is not None else None
    return SeenRoute(
        to="default" if length == 0 else f"{destination}/{length}",
        table=_NAMES.get(table, str(table)),
        device=device,
        hops=tuple(hops),
        on_link=not hops,
        mtu=int(mtu) if mtu else None,
        origin=f"kernel, table {_NAMES.get(table, table)}",
    )


def _rule(one: Any) -> SeenRule:
    table = int(one.get_attr("FRA_TABLE") or one["table"])
    source = one.get_attr("FRA_SRC")
    mark = one.get_attr("FRA_FWMARK")
    preference = int(one.get_attr("FRA_PRIORITY") or 0)
    return SeenRule(
        preference=preference,
        source=f"{source}/{one['src_len']}" if source else "all",
        mark=int(mark) if mark else None,
        table=_NAMES.get(table, str(table)),
        origin=f"rule {preference}",
    )


def _settings(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        path = Path("/proc/sys") / name.replace(".", "/")
        try:
            found[name] = " ".join(path.read_text(encoding="ascii").split())
        except (OSError, UnicodeDecodeError):
            continue  # this kernel does not have it
    return found


def _options() -> dict[str, str] | None:
    """Options of the running kernel; None where it does not show them."""
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    except OSError:
        try:
            text = Path(f"/boot/config-{platform.release()}").read_text(encoding="utf-8")
        except OSError:
            return None
    options = read_text(text, "kernel configuration").options
    return dict(options) if options is not None else None
