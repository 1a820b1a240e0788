# SPDX-License-Identifier: Apache-2.0
"""Rules, routes, addresses and settings of this host, from netlink, /proc/sys and the configuration of its kernel."""

from __future__ import annotations

import gzip
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socket import AF_INET6
from typing import Any

from sonde.design.routes.host_tables import HostTables, ObservedHop, ObservedNeighbor, ObservedRoute, ObservedRule
from sonde.design.routes.interface_details import (
    AddressDetails,
    LinkDetails,
    describe_link_state,
    make_adapter_path,
    map_address_devices,
)
from sonde.design.routes.kernel_settings import AVAILABLE_CONTROLS
from sonde.design.routes.port_ranges import PORT_SETTINGS
from sonde.design.routes.setting_names import find_setting_file
from sonde.design.routes.setting_rules import list_setting_names
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import MachineError

_TABLE_NAMES = {254: "main", 255: "local", 253: "default"}
_DEAD_HOP_FLAGS = 0x1 | 0x10  # RTNH_F_DEAD, RTNH_F_LINKDOWN
_LOWER_UP_FLAG = 1 << 16  # IFF_LOWER_UP
_BOND_PORT_FLAG = 1 << 11  # IFF_SLAVE, a port of a bond
_MULTICAST_FLAG = 1 << 12  # IFF_MULTICAST
_NO_ARP_FLAG = 1 << 7  # IFF_NOARP
_VLAN_PROTOCOLS = {0x8100: "802.1Q", 0x88A8: "802.1ad"}
_BOND_LINK_DOWN = 2
_PERMANENT = 0x80  # IFA_F_PERMANENT
_FOREVER = 0xFFFFFFFF  # seconds
_TEMPORARY = 0x01  # IFA_F_TEMPORARY; of IPv4 IFA_F_SECONDARY
_NEXT_HOP_ID = 30  # RTA_NH_ID
_DUPLICATE, _DEPRECATED, _TENTATIVE = 0x08, 0x20, 0x40  # IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE
_INVERTED = 0x2  # FIB_RULE_INVERT
_ROUTER_FLAG = 0x80  # NTF_ROUTER of rtnetlink
_NEIGHBOR_STATES = {0x01: "incomplete", 0x02: "reachable", 0x04: "stale", 0x08: "delay", 0x10: "probe", 0x20: "failed",
                    0x40: "noarp", 0x80: "permanent"}  # fmt: skip
_ROUTE_KINDS = {1: "unicast", 2: "local", 6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw"}
_RULE_ACTIONS = {1: "lookup", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
# Metrics of routes by their names in `ip route`, in the order of the kernel's numbers, which begin at 1 (RTAX_LOCK).
_METRIC_NAMES = ("lock", "mtu", "window", "rtt", "rttvar", "ssthresh", "cwnd", "advmss", "reordering", "hoplimit",
            "initcwnd", "features", "rto_min", "initrwnd", "quickack", "congctl", "fastopen_no_cookie")  # fmt: skip
# How many units of the kernel are a millisecond.
_UNITS_PER_MS = {"rtt": 8, "rttvar": 4, "rto_min": 1}
_SCOPE_NAMES = {0: "global", 253: "link", 254: "host"}
_DETACHED = 0x8 | 0x10  # FIB_RULE_IIF_DETACHED, FIB_RULE_OIF_DETACHED
_SELECTOR_ATTRIBUTES = {"tun_id": "FRA_TUN_ID", "oif": "FRA_OIFNAME", "ipproto": "FRA_IP_PROTO",
"sport": "FRA_SPORT_RANGE",
              "dport": "FRA_DPORT_RANGE", "uidrange": "FRA_UID_RANGE"}  # fmt: skip
_INET, _INET6 = 2, 10


def read_this_host(version: int, setting_names: Sequence[str] = ()) -> HostTables:
    """Rules, routes and addresses of one IP version, the sysctls in `setting_names` and `_READ_SETTINGS`, and kernel
    options where the kernel shows them. Raises MachineError when netlink does not answer."""
    # pyroute2 takes longer to import than most commands take to run
    from pyroute2 import IPRoute, NetlinkError

    family = _INET6 if version == 6 else _INET
    try:
        with IPRoute() as netlink:
            links = {message["index"]: message for message in netlink.get_links()}
            names = {index: str(message.get_attr("IFLA_IFNAME")) for index, message in links.items()}
            mtus = {names[index]: int(message.get_attr("IFLA_MTU") or 0) for index, message in links.items()}
            address_messages = list(netlink.get_addr(family=family))
            addresses = [f"{message.get_attr('IFA_ADDRESS')}/{message['prefixlen']}" for message in address_messages]
            routes = [_make_observed_route(message, names, version) for message in netlink.get_routes(family=family)]
            rules = [_make_observed_rule(message, version) for message in netlink.get_rules(family=family)]
            neighbors = [
                ObservedNeighbor(
                    str(message.get_attr("NDA_DST")),
                    names.get(message["ifindex"], ""),
                    str(message.get_attr("NDA_LLADDR") or ""),
                    _NEIGHBOR_STATES.get(message["state"], "none"),
                    bool(message["flags"] & _ROUTER_FLAG),
                )
                for message in netlink.get_neighbours(family=family)
            ]
    except (OSError, NetlinkError) as reason:
        raise MachineError(f"The kernel does not answer questions about routes: {reason}.") from None
    return HostTables(
        rules=tuple(rules),
        routes=tuple(message for message in routes if message is not None and message.table != "default"),
        addresses=tuple(addresses),
        settings=_read_sysctl_settings(
            [*_READ_SETTINGS, *list_setting_names(tuple(names.values())), *setting_names], tuple(names.values())
        )
        | _read_device_settings(("all", *names.values())),
        options=_read_kernel_options(),
        mtus=mtus,
        links={
            names[index]: describe_link_state(
                ("LOWER_UP",) if message["flags"] & _LOWER_UP_FLAG else (),
                str(message.get_attr("IFLA_OPERSTATE") or ""),
            )
            for index, message in links.items()
        },
        transport_modes={name: mode for name in names.values() if (mode := _read_transport_mode(name))},
        address_devices=map_address_devices(
            (str(message.get_attr("IFA_ADDRESS")), names.get(message["index"], "")) for message in address_messages
        ),
        address_details={
            str(message.get_attr("IFA_ADDRESS")): _make_address_details(message) for message in address_messages
        },
        link_details={names[index]: make_link_details(message, names) for index, message in links.items()},
        neighbors=tuple(neighbors),
    )


def make_link_details(netlink_message: Any, device_names: dict[int, str]) -> LinkDetails:
    """The details of one device from its netlink message; `device_names` are those of all devices by index."""
    details = LinkDetails(
        device_names.get(netlink_message.get_attr("IFLA_MASTER") or 0, ""),
        str(netlink_message.get_attr("IFLA_QDISC") or ""),
        str(netlink_message.get_attr("IFLA_ADDRESS") or ""),
        not netlink_message["flags"] & _NO_ARP_FLAG,
        netlink_message.get_attr("IFLA_TXQLEN"),
        bool(netlink_message.get_attr("IFLA_PROTO_DOWN")),
        bool(netlink_message["flags"] & _BOND_PORT_FLAG),
        bool(netlink_message["flags"] & _MULTICAST_FLAG),
        netlink_message.get_attr("IFLA_GSO_MAX_SIZE"),
        netlink_message.get_attr("IFLA_GSO_MAX_SEGS"),
        "" if netlink_message.get_attr("IFLA_LINK_NETNSID") is not None
        else device_names.get(netlink_message.get_attr("IFLA_LINK") or 0, ""),
        *_read_vlan_number_and_protocol(netlink_message),
        counters=_read_counters(netlink_message),
        permanent_address=str(netlink_message.get_attr("IFLA_PERM_ADDRESS") or ""),
        packet_program=_find_packet_program(netlink_message),
        path=make_adapter_path(
            str(netlink_message.get_attr("IFLA_PARENT_DEV_BUS_NAME") or ""),
            str(netlink_message.get_attr("IFLA_PARENT_DEV_NAME") or ""),
        ),
    )  # fmt: skip
    return _add_bond_state(details, netlink_message)


def _read_counters(netlink_message: Any) -> dict[str, int]:
    counters = netlink_message.get_attr("IFLA_STATS64") or {}
    return {name: value for name, value in dict(counters).items() if isinstance(value, int)}


def _find_packet_program(netlink_message: Any) -> str:
    """The number of the XDP program of an interface."""
    state = netlink_message.get_attr("IFLA_XDP")
    return str((state.get_attr("IFLA_XDP_PROG_ID") if state is not None else None) or "")


def _read_vlan_number_and_protocol(netlink_message: Any) -> tuple[int | None, str]:
    """The number of a VLAN and the protocol of its tag; None and "" for other devices."""
    link = netlink_message.get_attr("IFLA_LINKINFO")
    if link is None or link.get_attr("IFLA_INFO_KIND") != "vlan":
        return None, ""
    data = link.get_attr("IFLA_INFO_DATA")
    number, protocol = data.get_attr("IFLA_VLAN_ID"), data.get_attr("IFLA_VLAN_PROTOCOL")
    return None if number is None else int(number), _VLAN_PROTOCOLS.get(protocol, "")


def _add_bond_state(link_details: LinkDetails, netlink_message: Any) -> LinkDetails:
    """The details of a bond with its aggregator and partner, or those of a port with its aggregator and state."""
    link = netlink_message.get_attr("IFLA_LINKINFO")
    if link is None:
        return link_details
    if link.get_attr("IFLA_INFO_KIND") == "bond":
        data = link.get_attr("IFLA_INFO_DATA")
        state = data.get_attr("IFLA_BOND_AD_INFO") if data is not None else None
        return link_details if state is None else replace(
            link_details,
            aggregator=state.get_attr("IFLA_BOND_AD_INFO_AGGREGATOR"),
            lacp_partner=str(state.get_attr("IFLA_BOND_AD_INFO_PARTNER_MAC") or ""),
        )  # fmt: skip
    port = link.get_attr("IFLA_INFO_SLAVE_DATA") if link.get_attr("IFLA_INFO_SLAVE_KIND") == "bond" else None
    return link_details if port is None else replace(
        link_details,
        aggregator=port.get_attr("IFLA_BOND_SLAVE_AD_AGGREGATOR_ID"),
        has_port_failed=port.get_attr("IFLA_BOND_SLAVE_MII_STATUS") == _BOND_LINK_DOWN,
        link_failures=port.get_attr("IFLA_BOND_SLAVE_LINK_FAILURE_COUNT"),
        permanent_address=str(port.get_attr("IFLA_BOND_SLAVE_PERM_HWADDR") or link_details.permanent_address),
    )  # fmt: skip


def _make_address_details(netlink_message: Any) -> AddressDetails:
    flags = netlink_message["flags"]
    return AddressDetails(
        is_duplicate=bool(flags & _DUPLICATE),
        is_tentative=bool(flags & _TENTATIVE),
        is_deprecated=bool(flags & _DEPRECATED),
        is_leased=not flags & _PERMANENT,
        remaining_s=_find_remaining_seconds(netlink_message),
        is_temporary=netlink_message["family"] == AF_INET6 and bool(flags & _TEMPORARY),
        scope=_SCOPE_NAMES.get(netlink_message["scope"], ""),
        broadcast=str(netlink_message.get_attr("IFA_BROADCAST") or ""),
    )


def _find_remaining_seconds(netlink_message: Any) -> int | None:
    """The seconds until an address ends; None for one that stays."""
    times = netlink_message.get_attr("IFA_CACHEINFO")
    return None if times is None or times["ifa_valid"] == _FOREVER else int(times["ifa_valid"])


def _read_transport_mode(device_name: str) -> str:
    """The mode of an IPoIB device ("connected" or "datagram"); empty for other devices."""
    try:
        return (Path("/sys/class/net") / device_name / "mode").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


_CONF_SETTINGS = ("rp_filter", "arp_ignore", "arp_filter", "send_redirects", "accept_redirects", "forwarding",
                  "proxy_arp", "disable_ipv6", "accept_ra_rt_info_max_plen", "hop_limit", "mtu")  # fmt: skip
_READ_SETTINGS = (
    "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.fib_multipath_hash_policy",
    "net.ipv6.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed", "net.ipv4.fib_multipath_use_neigh",
    "kernel.osrelease", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_congestion_control", AVAILABLE_CONTROLS,
    "net.ipv4.tcp_mem",
    "net.core.optmem_max", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem", "net.ipv4.tcp_retries2", "net.ipv4.tcp_moderate_rcvbuf", *PORT_SETTINGS,
    "net.ipv4.ip_default_ttl", "net.ipv4.fib_multipath_hash_fields", "net.ipv6.fib_multipath_hash_fields",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv6.neigh.default.gc_thresh3", "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_count",
)  # fmt: skip


def _make_observed_route(netlink_message: Any, device_names: dict[int, str], ip_version: int) -> ObservedRoute | None:
    """A route from its netlink message; None for the kernel's own types."""
    if netlink_message["type"] not in _ROUTE_KINDS:
        return None
    any_to = "0.0.0.0" if ip_version == 4 else "::"  # nosec B104 # an address range, no socket is bound to it
    table = int(netlink_message.get_attr("RTA_TABLE") or netlink_message["table"])
    length = int(netlink_message["dst_len"])
    destination = netlink_message.get_attr("RTA_DST") or any_to
    device = device_names.get(netlink_message.get_attr("RTA_OIF") or 0, "")
    hops = [
        ObservedHop(
            str(hop.get_attr("RTA_GATEWAY") or ""),
            device_names.get(hop["oif"], ""),
            int(hop["hops"]) + 1,
            bool(hop["flags"] & _DEAD_HOP_FLAGS),
        )
        for hop in netlink_message.get_attr("RTA_MULTIPATH") or ()
    ]
    if gateway := netlink_message.get_attr("RTA_GATEWAY"):
        hops = [ObservedHop(str(gateway), device, 1, bool(netlink_message["flags"] & _DEAD_HOP_FLAGS))]
    metrics = netlink_message.get_attr("RTA_METRICS")
    mtu = metrics.get_attr("RTAX_MTU") if metrics is not None else None
    return ObservedRoute(
        destination="default" if length == 0 else f"{destination}/{length}",
        table=_TABLE_NAMES.get(table, str(table)),
        device=device,
        hops=tuple(hops),
        on_link=not hops and netlink_message["type"] == 1,
        mtu=int(mtu) if mtu else None,
        origin=f"kernel, table {_TABLE_NAMES.get(table, table)}",
        kind=_ROUTE_KINDS[netlink_message["type"]],
        metric=int(netlink_message.get_attr("RTA_PRIORITY") or 0),
        version=ip_version,
        source=str(netlink_message.get_attr("RTA_PREFSRC") or ""),
        service=str(netlink_message["tos"] or ""),
        attributes=tuple(_list_attributes(netlink_message, metrics)),
        largest_segment=int(metrics.get_attr("RTAX_ADVMSS") or 0) or None if metrics is not None else None,
        next_hop_id="without its number" if _has_next_hop_object(netlink_message) else "",
    )


def _has_next_hop_object(netlink_message: Any) -> bool:
    """Whether a route is of a next-hop object, whose attribute pyroute2 does not decode."""
    return any(
        name == "UNKNOWN" and value["header"]["type"] == _NEXT_HOP_ID for name, value in netlink_message["attrs"]
    )


def _list_attributes(netlink_message: Any, metrics: Any) -> Iterator[tuple[str, str]]:
    """The attributes of a route that no other member holds, as `ip route` prints them."""
    values: dict[str, Any] = {}
    for name in _METRIC_NAMES if metrics is not None else ():
        attribute = "RTAX_CC_ALGO" if name == "congctl" else f"RTAX_{name.upper()}"
        if value := metrics.get_attr(attribute):
            values[name] = value
    locks = int(values.pop("lock", 0))
    for number, name in enumerate(_METRIC_NAMES, start=1):
        is_locked = bool(locks & 1 << number)
        if name not in values or name == "advmss" or (name == "mtu" and not is_locked):
            continue
        text = str(values[name])
        if name in _UNITS_PER_MS:
            text = f"{int(values[name]) // _UNITS_PER_MS[name]}ms"
        elif name == "features" and int(values[name]) == 1:
            text = "ecn"
        yield name, f"lock {text}" if is_locked else text
    for name, attribute in (("realm", "RTA_FLOW"), ("encap", "RTA_ENCAP_TYPE")):
        if value := netlink_message.get_attr(attribute):
            yield name, str(value)
    if cache := netlink_message.get_attr("RTA_CACHEINFO"):
        # the kernel counts in ticks of 10 ms (USER_HZ)
        yield from [("expires", f"{int(cache['rta_expires']) // 100}sec")] if cache["rta_expires"] else []


def _make_observed_rule(netlink_message: Any, ip_version: int) -> ObservedRule:
    table = int(netlink_message.get_attr("FRA_TABLE") or netlink_message["table"])
    source = netlink_message.get_attr("FRA_SRC")
    mark = netlink_message.get_attr("FRA_FWMARK")
    mask = netlink_message.get_attr("FRA_FWMASK")
    destination = netlink_message.get_attr("FRA_DST")
    suppressed = netlink_message.get_attr("FRA_SUPPRESS_PREFIXLEN")
    preference = int(netlink_message.get_attr("FRA_PRIORITY") or 0)
    return ObservedRule(
        preference=preference,
        source=f"{source}/{netlink_message['src_len']}" if source else "all",
        mark=int(mark) if mark else None,
        table=_TABLE_NAMES.get(table, str(table)),
        origin=f"rule {preference}",
        destination=f"{destination}/{netlink_message['dst_len']}" if destination else "all",
        action=_RULE_ACTIONS.get(netlink_message["action"], "lookup"),
        mask=int(mask) if mask is not None else 0xFFFFFFFF,
        interface=str(netlink_message.get_attr("FRA_IIFNAME") or ""),
        inverted=bool(netlink_message["flags"] & _INVERTED),
        jump=int(netlink_message.get_attr("FRA_GOTO") or 0) or None,
        version=ip_version,
        selectors=" ".join(
            [f"tos {netlink_message['tos']:#x}"] * bool(netlink_message["tos"])
            + [
                f"{name} {value}"
                for name, attribute in _SELECTOR_ATTRIBUTES.items()
                if (value := netlink_message.get_attr(attribute))
            ]
        ),
        is_detached=bool(netlink_message["flags"] & _DETACHED),
        suppressed_prefix=int(suppressed) if suppressed is not None and suppressed < 2**31 else None,
    )


def _read_device_settings(devices: Iterable[str]) -> dict[str, str]:
    """Settings of all devices and of each."""
    settings = {}
    for family in ("ipv4", "ipv6"):
        for device in devices:
            for name in _CONF_SETTINGS:
                with suppress(OSError):  # IPv6 has not all of them
                    text = (Path("/proc/sys/net") / family / "conf" / device / name).read_text(encoding="ascii")
                    settings[f"net.{family}.conf.{device}.{name}"] = text.strip()
    return settings


def _read_sysctl_settings(setting_names: Sequence[str], devices: Sequence[str]) -> dict[str, str]:
    settings = {}
    for name in setting_names:
        path = find_setting_file(name, devices)
        try:
            settings[name] = " ".join(path.read_text(encoding="ascii").split())
        except (OSError, UnicodeDecodeError):
            continue  # this kernel does not have it
    return settings


def _read_kernel_options() -> dict[str, str] | None:
    """Options of the running kernel; None where it does not show them."""
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    except OSError:
        try:
            text = Path(f"/boot/config-{platform.release()}").read_text(encoding="utf-8")
        except OSError:
            return None
    options = parse_host_tables(text, "kernel configuration").options
    return dict(options) if options is not None else None
