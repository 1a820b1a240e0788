# SPDX-License-Identifier: Apache-2.0
"""Rules about single settings of the kernel: the range in which each is sound, and what another value costs.

A further setting is a row of this table, or of that of connections: hosts and routers are checked for it, and a live
check reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.connection_rules import CONNECTION_RULES
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.setting_rule import SettingRule

RULES: Sequence[SettingRule] = (
    *CONNECTION_RULES,
    SettingRule(
        "net.FAMILY.neigh.DEVICE.mcast_solicit",
        "neighbors not asked for",
        "the kernel asks for no link address, so that new routers and hosts are not reached",
        "set it to 3",
        least=1,
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.unres_qlen_bytes",
        "packets dropped early",
        "packets are dropped while the link address of a router is asked for (unres_qlen)",
        "set it to 212992",
        least=2048,
    ),
    SettingRule(
        "net.ipv6.route.max_size",
        "table of routes too small",
        "the kernel refuses further routes (max_size)",
        "set it to 4096 or more",
        least=1024,
    ),
    SettingRule(
        "net.core.netdev_max_backlog",
        "short queue",
        "packets are dropped when more than so many wait for the kernel (backlog)",
        "set it to 1000 or more",
        least=300,
    ),
    SettingRule(
        "net.ipv4.icmp_echo_ignore_all",
        "health checks not answered",
        "it answers no echo request: sonde route watch on other hosts calls it dead",
        "set it to 0",
        most=0,
    ),
    SettingRule(
        "net.ipv4.ip_no_pmtu_disc",
        "path MTU not discovered",
        "connections do not learn the MTU of their path, or send packets of min_pmtu (552 B) after the first refusal",
        "set it to 0",
        most=0,
        roles=("host",),
    ),
    SettingRule(
        "net.core.netdev_budget",
        "packets dropped early",
        "the kernel takes so few packets from interfaces at a time",
        "set it to 300",
        least=64,
    ),
    SettingRule(
        "net.core.netdev_budget_usecs",
        "packets dropped early",
        "the kernel takes packets from interfaces for so short a time",
        "set it to 2000",
        least=500,
    ),
    SettingRule(
        "net.core.dev_weight",
        "packets dropped early",
        "the kernel takes so few packets from one interface at a time",
        "set it to 64",
        least=16,
    ),
    SettingRule(
        "net.ipv4.ipfrag_high_thresh",
        "fragments dropped",
        "the kernel keeps so few bytes of fragments and drops the others",
        "set it to 4194304",
        least=262144,
        roles=("host",),
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.retrans_time_ms",
        "neighbors asked rarely",
        "a lost request for a link address is sent again after so many milliseconds",
        "set it to 1000",
        most=5000,
    ),
    SettingRule(
        "net.netfilter.nf_conntrack_tcp_timeout_established",
        "idle connections forgotten",
        "conntrack forgets an idle connection after so many seconds: a firewall then drops its packets",
        "set it to 432000",
        least=600,
    ),
    SettingRule(
        "net.netfilter.nf_conntrack_tcp_loose",
        "moved connections invalid",
        "conntrack calls the packets of a connection invalid that another router carried before (fail-over, replies by"
        " another way): a firewall that drops invalid packets, or translates addresses, ends it",
        "set it to 1, or let storage traffic pass untracked (raw table, NOTRACK)",
        least=1,
        roles=("router",),
    ),
    SettingRule(
        "sunrpc.tcp_max_slot_table_entries",
        "connections limited",
        "an NFS mount has at most so many requests under way",
        "set it to 65536",
        least=16,
        roles=("host",),
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.base_reachable_time_ms",
        "dead routers are noticed late",
        "a router that answered once counts as reachable for about so many milliseconds, dead or not",
        "set it to 30000",
        most=300_000,
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.delay_first_probe_time",
        "dead routers are noticed late",
        "a router that was silent is asked after so many seconds",
        "set it to 5",
        most=60,
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.ucast_solicit",
        "dead routers are noticed late",
        "a dead router is asked so many times, once a second, before it is called dead",
        "set it to 3",
        most=30,
    ),
    SettingRule(
        "net.ipv6.conf.DEVICE.accept_ra",
        "routes of advertisements",
        "any machine on this network can add a default route by router advertisements, also where this host forwards",
        "set it to 0",
        most=1,
    ),
    SettingRule(
        "net.ipv4.icmp_ratelimit",
        "path MTU not discovered",
        "this router tells a host only once in so many milliseconds that its packets are too large or undeliverable",
        "set it to 1000",
        most=10_000,
        roles=("router",),
    ),
    SettingRule(
        "net.ipv4.icmp_msgs_per_sec",
        "path MTU not discovered",
        "this router tells only so many hosts a second that their packets are too large or undeliverable",
        "set it to 10000",
        least=100,
        roles=("router",),
    ),
    SettingRule(
        "net.ipv4.route.min_pmtu",
        "path MTU not discovered",
        "a path whose MTU is smaller is not learned: its packets are split, or lost",
        "set it to 552",
        most=1500,
    ),
    SettingRule(
        "net.ipv4.ipfrag_time",
        "fragments dropped",
        "the kernel waits so many seconds for the other fragments of a packet",
        "set it to 30",
        least=5,
        roles=("host",),
    ),
    SettingRule(
        "vm.min_free_kbytes",
        "packets dropped early",
        "interrupts find no free memory for arriving packets while the page cache fills memory (min_free_kbytes)",
        "set it to 65536 or more",
        least=1024,
    ),
    SettingRule(
        "net.ipv4.conf.DEVICE.drop_gratuitous_arp",
        "new link address not learned",
        "the kernel ignores the announcement with which a router or host takes over an address (gratuitous ARP)",
        "set it to 0",
        most=0,
    ),
)


def list_setting_names(devices: Sequence[str]) -> list[str]:
    """The settings that the rules read on a machine with these devices."""
    return list(
        dict.fromkeys(
            name
            for rule in RULES
            for version in (4, 6)
            for name in _expand_rule_to_setting_names(rule, version, devices)
        )
    )


def find_setting_rule_faults(
    settings: Mapping[str, str], role: str, ip_version: int, devices: Sequence[str]
) -> Iterator[RouteFault | CheckedItem]:
    """The settings of a host or a router (`role`) that are out of the range of their rule."""
    for rule in RULES:
        for name in _expand_rule_to_setting_names(rule, ip_version, devices) if role in rule.roles else ():
            value = settings.get(name, "")
            if not re.fullmatch(r"-?\d+", value):
                continue
            yield CheckedItem("a setting", name)
            is_low, is_high = (
                rule.least is not None and int(value) < rule.least,
                rule.most is not None and int(value) > rule.most,
            )
            if is_low or is_high:
                yield RouteFault(rule.kind, f"{name} = {value}", rule.reason, rule.remedy)


def _expand_rule_to_setting_names(setting_rule: SettingRule, version: int, devices: Sequence[str]) -> list[str]:
    if setting_rule.name.startswith("net.ipv6.") and version != 6:
        return []
    name = setting_rule.name.replace("FAMILY", f"ipv{version}")
    return [name.replace("DEVICE", device) for device in devices] if "DEVICE" in name else [name]
