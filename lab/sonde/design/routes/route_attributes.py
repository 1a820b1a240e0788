# SPDX-License-Identifier: Apache-2.0
"""Attributes of routes that the plan does not set: which limit connections, which change them, which are only listed.

Source: ip-route(8), and Linux net/ipv4/tcp_metrics.c and net/ipv4/tcp_input.c for what each metric does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import ObservedRoute
from sonde.design.routes.router_advertisements import is_advertised_route

_MIB = 1 << 20
# What the kernel begins with: packets under way (RFC 6928), seconds until a packet is sent again.
_FIRST_WINDOW = 10
_MIN_TIMEOUT_S = 0.2
_MIN_REORDERING = 3
_FEW_HOPS = 8
_SOUND_CONTROLS = ("cubic", "bbr", "reno", "dctcp", "htcp")
_LARGEST_PACKET = 65535

_DescribeLimit = Callable[[str, str, int], str]


def _describe_window(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    size = _parse_number(attribute_value)
    return f"a window of {size} B" if size is not None and size < _MIB else ""


def _describe_first_window(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    count = _parse_number(attribute_value)
    is_small = count is not None and count < _FIRST_WINDOW
    return f"{attribute_name} of {count} packets (the kernel begins with {_FIRST_WINDOW})" if is_small else ""


def _describe_packets(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    count = _parse_number(attribute_value)
    if count is None or count * packet_bytes >= _MIB:
        return ""
    effect = "at most so many are under way" if attribute_name == "cwnd" else "from there on they speed up slowly"
    return f"{attribute_name} of {count} packets ({effect})"


def _describe_timeout(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    seconds = _parse_seconds(attribute_value)
    if seconds is None or seconds <= _MIN_TIMEOUT_S:
        return ""
    return f"a {'least' if attribute_name == 'rto_min' else 'first'} timeout of {seconds:g} s ({attribute_name})"


def _describe_reordering(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    count = _parse_number(attribute_value)
    is_small = count is not None and count < _MIN_REORDERING
    return f"{attribute_name} of {count}, so that packets in another order count as lost" if is_small else ""


def _describe_control(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    return "" if attribute_value in _SOUND_CONTROLS else f"the congestion control {attribute_value} (congctl)"


def _describe_hops(attribute_name: str, attribute_value: str, packet_bytes: int) -> str:
    hops = _parse_number(attribute_value)
    return f"a limit of {hops} hops (hoplimit)" if hops is not None and 0 < hops < _FEW_HOPS else ""


# What limits every connection over a route: the text of the limit, or "" for a sound value.
_LIMITS: dict[str, _DescribeLimit] = {
    "window": _describe_window,
    "initcwnd": _describe_first_window,
    "initrwnd": _describe_first_window,
    "cwnd": _describe_packets,
    "ssthresh": _describe_packets,
    "rto_min": _describe_timeout,
    "rtt": _describe_timeout,
    "rttvar": _describe_timeout,
    "reordering": _describe_reordering,
    "congctl": _describe_control,
    "hoplimit": _describe_hops,
}
# What changes connections or packets over a route, with the effect.
_EFFECT_BY_ATTRIBUTE = {
    "mtu": "the kernel learns no smaller MTU of the path",
    "quickack": "every segment is acknowledged at once, which nearly doubles the acknowledgments",
    "features": "connections agree on features that other routes do not have",
    "fastopen_no_cookie": "connections send data before the other side has answered",
    "encap": "packets are encapsulated, and routers of the plan do not unwrap them",
}


def find_attribute_faults(route: ObservedRoute, network_mtu: int | None) -> Iterator[RouteFault]:
    """Attributes of a route that limit or change every connection over it, and that the plan does not set."""
    packet_bytes = route.mtu or network_mtu or _LARGEST_PACKET
    texts = []
    for name, value in route.attributes:
        bare_value = value.removeprefix("lock ")
        if name == "expires" and is_advertised_route(route):
            continue  # reported as a network on the link, with the remedy
        if name == "expires":
            yield RouteFault(
                "route expires", route.origin,
                f"the route to {route.destination} expires ({value}): it is gone after that time",
                "add it without expires, and look for what adds it (router advertisements)",
            )  # fmt: skip
        elif name in _LIMITS and (text := _LIMITS[name](name, bare_value, packet_bytes)):
            texts.append(text)
        elif name == "mtu" and route.mtu is not None and route.mtu < (network_mtu or 0):
            continue  # a small MTU is reported as such
        elif name in _EFFECT_BY_ATTRIBUTE and bare_value != "0":
            yield RouteFault(
                "attribute not planned", route.origin,
                f"the route to {route.destination} has {name} {value}, which the plan does not set:"
                f" {_EFFECT_BY_ATTRIBUTE[name]}",
                f"remove {name} from the route",
            )  # fmt: skip
    if texts:
        yield RouteFault(
            "connections limited", route.origin,
            f"the route to {route.destination} gives connections {' and '.join(texts)}",
            "remove these attributes from the route",
        )  # fmt: skip


def list_harmless_attributes(routes: Sequence[ObservedRoute], network_mtu: int | None) -> list[str]:
    """Attributes that the plan does not set and that `find_attribute_faults` does not report, with their route."""
    texts = []
    for route in routes:
        reported = " ".join(fault.problem for fault in find_attribute_faults(route, network_mtu))
        texts += [f"{name} {value} of the route to {route.destination} in table {route.table}"
                  for name, value in route.attributes if name not in reported]  # fmt: skip
    return list(dict.fromkeys(texts))


def _parse_number(number_text: str) -> int | None:
    match = re.match(r"\d+", number_text)
    return int(match[0]) if match else None


def _parse_seconds(time_text: str) -> float | None:
    """A time as ip prints it: 200ms, 5s; a number alone counts milliseconds."""
    match = re.fullmatch(r"([\d.]+)(ms|s|)", time_text)
    return None if match is None else float(match[1]) * (1.0 if match[2] == "s" else 1e-3)
