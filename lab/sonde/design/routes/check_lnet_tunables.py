# SPDX-License-Identifier: Apache-2.0
"""Checks tunables of LNet: values that limit messages or notice failures late, and values in which NIs or peers of one
network differ.

Source: Lustre Operations Manual, chapters "LNet Software Multi-Rail", "LNet Health" and "Tuning LNet"; defaults of
lnet/klnds/socklnd/socklnd_modparams.c and lnet/klnds/o2iblnd/o2iblnd_modparams.c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_lnet_policies import find_policy_faults
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.lnet_records import LnetInterface, LnetPeer
from sonde.model.units import format_bytes

_BEST_HEALTH = 1000
# A few messages are dropped at each start of a peer.
_MIN_DROPPED_MESSAGES = 1000
_MAX_DROPPED_FRACTION = 1e-3
# A peer for which so many times its credits wait does not take messages; fewer wait in every burst.
_STUCK_QUEUE_RATIO = 4
# So many messages that waited for a buffer of a router, of each pool and as a fraction of its buffers: fewer wait in
# bursts.
_MIN_WAITING_MESSAGES, _MIN_WAITING_FRACTION = 64, 1 / 16


@dataclass(frozen=True)
class LnetRule:
    """One tunable with its sound values, and the effect of another one."""

    name: str
    effect: str
    least: int | None = None
    most: int | None = None
    default: int | None = None  # to set it to where the limit is no sound value
    is_zero_sound: bool = False  # 0 is without a limit


_INTERFACE_RULES = (
    LnetRule("peer_credits", "so few messages to one peer are under way", least=8),
    LnetRule("credits", "so few messages are under way in all", least=64),
    LnetRule("peer_timeout", "a dead peer counts as alive for so many seconds", most=600),
    LnetRule("concurrent_sends", "so few messages to one peer are sent at a time", least=4),
    LnetRule("ntx", "so few messages are sent at a time", least=256),
)
_LEAST_LND_TIMEOUT, _LEAST_TRANSACTION_TIMEOUT = 3, 10
_GLOBAL_RULES = (
    LnetRule("transaction_timeout", "a message is given up after so many seconds, before a router has failed over",
             least=_LEAST_TRANSACTION_TIMEOUT),
    LnetRule("transaction_timeout", "a lost message is noticed after so many seconds", most=600),
    LnetRule("lnd_timeout", "a slow connection is closed after so many seconds", least=_LEAST_LND_TIMEOUT),
    LnetRule("retry_count", "a message whose NI or gateway has failed is not sent again by another one", least=1,
             default=2),
    LnetRule("health_sensitivity", "NIs that fail are used as much as others (LNet Health is off)", least=1,
             default=100),
    LnetRule("router_sensitivity", "gateways are used on when their interfaces fail", least=1, default=100),
    LnetRule("recovery_interval", "an NI or gateway that failed is asked only after so many seconds whether it works",
             most=60, default=1),
    LnetRule("recovery_limit", "an NI or gateway that failed is asked for so many seconds only, and stays unused then",
             least=300, default=0, is_zero_sound=True),
    LnetRule("drop_asym_route", "messages that arrive by a gateway without a live route of this host are dropped",
             most=0),
)  # fmt: skip


_NO_HEALTH_CHECK_COST = "LNet does not ask gateways whether they are alive, and sends to dead ones"
# Options that state the networks, of which LNet accepts one (lnet/lnet/api-ni.c, lnet_get_networks).
_NETWORK_OPTIONS = ("networks", "ip2nets")
_MODULE_RULES = (
    LnetRule("live_router_check_interval", _NO_HEALTH_CHECK_COST, least=1, default=60),
    LnetRule(
        "dead_router_check_interval", "a gateway that was down is not asked whether it is back", least=1, default=60
    ),
    LnetRule("alive_router_check_interval", _NO_HEALTH_CHECK_COST, least=1, default=60),
    LnetRule("router_ping_timeout", "a dead gateway is used for so many seconds", most=600, default=50),
    LnetRule("auto_down", "a gateway that does not answer is not taken out of use", least=1, default=1),
    LnetRule("avoid_asym_router_failure", "a gateway that has lost its other network is used on", least=1, default=1),
)
# Tunables that must fit peer_credits: credits at least as many, the other one fewer.
_RELATIONS = {
    "credits": "fewer messages in all than to one peer",
    "peercredits_hiw": "credits are given back when none is left, so that both sides wait",
}


def find_tunable_faults(
    host_tables: HostTables,
    other_tables: HostTables | None,
    gateways: Collection[str],
    normalize: Callable[[str], str],
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the tunables of NIs, of LNet as a whole, of the buffers of a router and of the peers that are gateways.
    `normalize` gives NIDs one spelling."""
    interfaces = host_tables.lnet_interfaces or ()
    for interface in interfaces:
        yield from _check_interface_tunables(interface)
    others = (other_tables.lnet_interfaces or ()) if other_tables is not None else ()
    yield from _compare_interfaces(interfaces, others)
    values = dict(host_tables.lnet_globals or {})
    if values.get("health_sensitivity") == "0":
        values.pop("retry_count", None)  # LNet sets it to 0 too
    yield from _check_derived_timeout(values)
    yield from _check_tunable_rules("LNet", "global", values, _GLOBAL_RULES, "lnetctl set")
    yield from _check_module_options(host_tables.lnet_module_options)
    if host_tables.is_lnet_routing:
        yield from _check_buffers(host_tables.lnet_buffers or {})
    yield from _check_peers(host_tables.lnet_peers or (), gateways, normalize)
    yield from find_policy_faults(host_tables.lnet_policies, interfaces, gateways, normalize)


def list_unread_tunables(host_tables: HostTables) -> list[str]:
    """Tunables that no rule reads: they are only compared between NIs of one network."""
    names = {rule.name for rule in (*_INTERFACE_RULES, *_GLOBAL_RULES)} | {"peercredits_hiw"}
    pairs = [pair for interface in host_tables.lnet_interfaces or () for pair in interface.tunables]
    pairs += (host_tables.lnet_globals or {}).items()
    return list(dict.fromkeys(f"{name} {value}" for name, value in pairs if name not in names))


def list_unread_module_options(host_tables: HostTables) -> list[str]:
    """Options of modules that no rule reads, as ip2nets of lnet."""
    return [
        f"options {module} {name}={value} in {file}"
        for (file, module, name), value in host_tables.lnet_module_options.items()
        if (module, name) not in (("lnet", "routes"), ("lnet", "networks"))
        and all(rule.name != name for rule in (_MODULE_RULES if module == "lnet" else _INTERFACE_RULES))
    ]


def _check_interface_tunables(interface: LnetInterface) -> Iterator[RouteFault | CheckedItem]:
    values = dict(interface.tunables)
    yield from _check_tunable_rules(interface.nid, interface.origin, values, _INTERFACE_RULES, "lnetctl net set")
    peer_credits = _parse_number(values.get("peer_credits"))
    for name, effect in _RELATIONS.items():
        count = _parse_number(values.get(name))
        is_reported = any(rule.name == name and rule.least and (count or 0) < rule.least for rule in _INTERFACE_RULES)
        if count is None or peer_credits is None or count <= 0 or is_reported:
            continue
        if count < peer_credits if name == "credits" else count >= peer_credits:
            yield RouteFault(
                "LNet tunable", interface.origin,
                f"{interface.nid} has {name} {count} and peer_credits {peer_credits}: {effect}",
                f"set {name} to fit peer_credits in the options of its LND",
            )  # fmt: skip
    received, dropped = interface.received_messages, interface.dropped_messages
    if received is not None and dropped is not None:
        yield CheckedItem("the dropped messages of an NI", interface.nid)
        if dropped >= _MIN_DROPPED_MESSAGES and dropped > _MAX_DROPPED_FRACTION * received:
            yield RouteFault(
                "LNet messages dropped", interface.origin,
                f"{interface.nid} has dropped {dropped} messages and received {received}: this host knew no route for"
                " them, or had no buffer, and their senders wait until their time is over",
                "look for the reason in the kernel log of this host (dmesg, LNetError)",
            )  # fmt: skip
    if interface.health is not None:
        yield CheckedItem("the health of an NI", interface.nid)
        if interface.health < _BEST_HEALTH:
            yield RouteFault(
                "LNet NI unhealthy", interface.origin,
                f"{interface.nid} has a health of {interface.health} of {_BEST_HEALTH}: messages over it failed, and"
                " LNet prefers other NIs",
                f"look at the link of {', '.join(interface.devices) or 'its device'} and its errors",
            )  # fmt: skip


def _check_module_options(options: Mapping[tuple[str, str, str], str]) -> Iterator[RouteFault | CheckedItem]:
    """Options of the modules of LNet in modprobe.d, which take effect when these are loaded."""
    values: dict[tuple[str, str], dict[str, str]] = {}
    for (file, module, name), value in options.items():
        values.setdefault((file, module), {})[name] = value
    files = {name: file for (file, module, name) in options if module == "lnet" and name in _NETWORK_OPTIONS}
    if files:
        yield CheckedItem("the networks of LNet in options of its module", ", ".join(files.values()))
    if len(files) == len(_NETWORK_OPTIONS):
        yield RouteFault(
            "LNet does not start", ", ".join(dict.fromkeys(files.values())),
            "the options of lnet have both networks and ip2nets: LNet takes one of them and does not start with both"
            ' ("Please specify EITHER \'networks\' or \'ip2nets\' but not both at once")',
            "remove one of the two options",
        )  # fmt: skip
    for (file, module), value_by_name in values.items():
        rules = _MODULE_RULES if module == "lnet" else _INTERFACE_RULES
        yield from _check_tunable_rules(f"module {module}", file, value_by_name, rules, f"options {module} in {file}")


def _check_derived_timeout(values: dict[str, str]) -> Iterator[RouteFault]:
    """A timeout of the LNDs that retries make short: LNet derives it, (transaction_timeout - 1) / (retry_count + 1).
    Removes it from the values where it is reported."""
    names = ("transaction_timeout", "retry_count", "lnd_timeout")
    transaction, retries, timeout = (_parse_number(values.get(name)) for name in names)
    if transaction is None or retries is None or timeout is None or timeout >= _LEAST_LND_TIMEOUT:
        return
    if timeout == (transaction - 1) // (retries + 1) and transaction >= _LEAST_TRANSACTION_TIMEOUT:
        del values["lnd_timeout"]
        yield RouteFault(
            "LNet tunable", "global",
            f"LNet has retry_count {retries} and transaction_timeout {transaction}, so lnd_timeout is {timeout}: a slow"
            " connection is closed after so many seconds",
            "set retry_count to 2, its default, or raise transaction_timeout (lnetctl set)",
        )  # fmt: skip


def _check_tunable_rules(
    subject: str, output_origin: str, value_by_name: Mapping[str, str], rules: Sequence[LnetRule], remedy_text: str
) -> Iterator[RouteFault | CheckedItem]:
    for rule in rules:
        number = _parse_number(value_by_name.get(rule.name))
        if number is None or number < 0 or (number == 0 and rule.is_zero_sound):  # -1 is the default of the LND
            continue
        yield CheckedItem("a tunable of LNet", f"{subject} {rule.name}")
        limit = rule.least if rule.least is not None else rule.most
        if (rule.least is not None and number < rule.least) or (rule.most is not None and number > rule.most):
            yield RouteFault(
                "LNet tunable", output_origin, f"{subject} has {rule.name} {number}: {rule.effect}",
                f"set it to {rule.default}, its default ({remedy_text})" if rule.default is not None
                else f"set it to {limit}{' or more' if rule.least else ' or less' if limit else ''} ({remedy_text})",
            )  # fmt: skip


def _compare_interfaces(
    interfaces: Sequence[LnetInterface], other_interfaces: Sequence[LnetInterface]
) -> Iterator[RouteFault | CheckedItem]:
    """NIs of one network must have the same tunables: those of this host, and those of a host of the other side."""
    networks = dict.fromkeys(interface.nid.partition("@")[2] for interface in interfaces)
    for network in networks:
        members = [
            (interface.nid, dict(interface.tunables), interface.origin)
            for interface in (*interfaces, *other_interfaces)
            if interface.nid.partition("@")[2] == network
        ]
        yield from find_odd_values("LNet tunables differ", f"NIs of {network}", members)


def _check_buffers(buffers: Mapping[tuple[str, str], int]) -> Iterator[RouteFault | CheckedItem]:
    waiting: dict[str, list[tuple[str, int, int]]] = {}
    for (pool, member), count in buffers.items():
        if member != "nbuffers":
            continue
        yield CheckedItem("the buffers of an LNet router", pool)
        size, fewest = pool.rpartition(" ")[2], buffers.get((pool, "mincredits"), 0)
        if count == 0:
            yield RouteFault(
                "LNet router without buffers", f"routing, {pool}",
                f"the pool {pool} of this router has no buffer: it forwards no message of that size",
                f"lnetctl set {size}_buffers 0 gives the default; look at the memory of the router",
            )  # fmt: skip
        elif -fewest >= max(_MIN_WAITING_MESSAGES, _MIN_WAITING_FRACTION * count):
            waiting.setdefault(size, []).append((pool, count, -fewest))
    for size, pools in waiting.items():
        pool, count, most = max(pools, key=lambda item: item[2])
        yield RouteFault(
            "LNet router buffers used up", ", ".join(f"routing, {name}" for name, _, _ in pools),
            f"since LNet was started, up to {most} messages have waited for one of the {count} buffers of the pool"
            f" {pool} (mincredits {-most}): this router receives faster than it sends",
            f"look for a slow peer or link behind this router (lnetctl peer show -v); where there is none, lnetctl set"
            f" {size}_buffers to more; mincredits counts again after a restart of LNet",
        )  # fmt: skip


def _check_peers(
    peers: Sequence[LnetPeer], gateways: Collection[str], normalize: Callable[[str], str]
) -> Iterator[RouteFault | CheckedItem]:
    """The peers that are gateways: LNet must call them up, and they must agree."""
    routers = [peer for peer in peers if normalize(peer.nid) in gateways]
    for peer in routers:
        yield CheckedItem("the state of an LNet gateway", peer.nid)
        if peer.is_up is False:
            yield RouteFault(
                "LNet router down", peer.origin, f"LNet says that the gateway {peer.nid} is down",
                f"lnetctl ping {peer.nid}, and look at the router",
            )  # fmt: skip
        elif peer.health is not None and peer.health < _BEST_HEALTH:
            yield RouteFault(
                "LNet router unhealthy", peer.origin,
                f"the gateway {peer.nid} has a health of {peer.health} of {_BEST_HEALTH}: messages to it failed, and"
                " LNet prefers other gateways",
                f"lnetctl ping {peer.nid}, and look at the router and its links",
            )  # fmt: skip
    for peer in peers:
        yield from _check_queue(peer, "gateway" if peer in routers else "peer")
    members = [(peer.nid, dict(peer.values), peer.origin) for peer in routers]
    yield from find_odd_values("LNet peers differ", "gateways", members)


def _check_queue(peer: LnetPeer, role: str) -> Iterator[RouteFault | CheckedItem]:
    """Messages that wait for credits of a peer: it does not take them, or does not return the credits."""
    if peer.available_credits is None:
        return
    yield CheckedItem("the queue to an LNet peer", peer.nid)
    waiting, most = -peer.available_credits, _parse_number(dict(peer.values).get("max_ni_tx_credits"))
    if waiting > 0 and waiting >= _STUCK_QUEUE_RATIO * (most or 0):
        size = f" ({format_bytes(peer.queued_bytes)})" if peer.queued_bytes else ""
        yield RouteFault(
            "LNet peer stuck", peer.origin,
            f"{waiting} messages{size} wait for the {role} {peer.nid}, which has {most} credits: it returns them"
            " slowly, or not at all",
            f"lnetctl ping {peer.nid}, and lnetctl peer show -v again: where the queue stays, look at the load, the"
            " buffers and the links of that host",
        )  # fmt: skip


def find_odd_values(
    value_noun: str, group_name: str, values_with_origin: Sequence[tuple[str, Mapping[str, str], str]]
) -> Iterator[RouteFault | CheckedItem]:
    """Values in which some members of a group differ from the others; `values_with_origin` are names, values and
    origins. Of two members that differ both are named."""
    names = dict.fromkeys(name for _, values, _ in values_with_origin for name in values)
    for name in names:
        having = [(member, values[name], origin) for member, values, origin in values_with_origin if name in values]
        counts = Counter(value for _, value, _ in having)
        if len(having) < 2:
            continue
        yield CheckedItem("the same value for all", f"{name} of {group_name}")
        common, count = counts.most_common(1)[0]
        if len(counts) == 1:
            continue
        odd = [(member, value, origin) for member, value, origin in having if value != common]
        others = f"the other {group_name} have {common}" if count > 1 else f"{having[0][0]} has {having[0][1]}"
        yield RouteFault(
            value_noun, ", ".join(origin for _, _, origin in odd),
            f"{', '.join(f'{member} has {name} {value}' for member, value, _ in odd)}; {others}",
            "give all the same value",
        )  # fmt: skip


def _parse_number(number_text: str | None) -> int | None:
    try:
        return int(number_text or "")
    except ValueError:
        return None
