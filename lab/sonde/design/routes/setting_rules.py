# SPDX-License-Identifier: Apache-2.0
"""Rules about single settings of the kernel: the range in which each is sound, and what another value costs.

A further setting is a row of the table: hosts and routers are checked for it, and a live check reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault

_BOTH = ("host", "router")


@dataclass(frozen=True)
class SettingRule:
    """One setting and its sound values. DEVICE in its name stands for each planned device, FAMILY for ipv4 or ipv6."""

    name: str
    kind: str
    reason: str
    remedy: str
    least: int | None = None
    most: int | None = None
    roles: Sequence[str] = _BOTH


RULES: Sequence[SettingRule] = (
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
        "net.ipv4.tcp_rto_min_us",
        "connections limited",
        "a lost packet is sent again after a second at the earliest (rto_min)",
        "set it to 200000",
        most=999_999,
        roles=("host",),
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
        "net.core.rmem_max",
        "small TCP buffers",
        "programs cannot ask for a larger buffer (rmem_max)",
        "set it to 16 MiB or more",
        least=65536,
        roles=("host",),
    ),
    SettingRule(
        "net.core.wmem_max",
        "small TCP buffers",
        "programs cannot ask for a larger buffer (wmem_max)",
        "set it to 16 MiB or more",
        least=65536,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.icmp_echo_ignore_all",
        "health checks not answered",
        "it answers no echo request: sonde route watch on other hosts calls it dead",
        "set it to 0",
        most=0,
    ),
    SettingRule(
        "net.ipv4.tcp_syn_retries",
        "connections give up early",
        "a connection is given up before the failover of a router has ended",
        "set it to 6",
        least=2,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_mtu_probing",
        "small packets first",
        "every connection begins with segments of tcp_base_mss, 1024 B, also where large packets pass",
        "set it to 1",
        most=1,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_fin_timeout",
        "closed connections stay",
        "connections whose peer is gone keep their ports and memory for more than two minutes",
        "set it to 60",
        most=120,
        roles=("host",),
    ),
    SettingRule(
        # both values are sound: 1 forgets losses of the last connection, 0, the default, remembers them
        "net.ipv4.tcp_no_metrics_save",
        "unknown value",
        "the kernel knows 0 and 1",
        "set it to 0 or 1",
        least=0,
        most=1,
        roles=("host",),
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
        "net.ipv4.tcp_limit_output_bytes",
        "connections limited",
        "a connection hands so few bytes to the queue of the interface at a time",
        "set it to 1048576",
        least=65536,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_notsent_lowat",
        "connections limited",
        "a program may hand over more data only when so few bytes are unsent",
        "leave it at 4294967295",
        least=16384,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_app_win",
        "connections limited",
        "a large part of the receive window is set aside for programs, 1/2^n of it",
        "set it to 31",
        least=3,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_reordering",
        "connections limited",
        "packets in another order count as lost",
        "set it to 3",
        least=3,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_synack_retries",
        "connections give up early",
        "a lost answer to a new connection is not sent again",
        "set it to 5",
        least=2,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_max_syn_backlog",
        "new connections dropped",
        "new connections are dropped when more than so many wait",
        "set it to 1024 or more",
        least=64,
        roles=("host",),
    ),
    SettingRule(
        "net.core.somaxconn",
        "new connections dropped",
        "new connections are dropped when more than so many wait for a program",
        "set it to 4096",
        least=64,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_abort_on_overflow",
        "new connections dropped",
        "connections are reset when a program is busy for a moment",
        "set it to 0",
        most=0,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_max_tw_buckets",
        "closed connections lost",
        "ports of closed connections are used again while old packets are under way",
        "set it to 16384 or more",
        least=512,
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
        "net.ipv4.tcp_pacing_ca_ratio",
        "connections limited",
        "connections send at so many percent of the rate that their window allows",
        "set it to 120",
        least=100,
        roles=("host",),
    ),
    SettingRule(
        "net.ipv4.tcp_pacing_ss_ratio",
        "connections limited",
        "new connections send at so many percent of the rate that their window allows",
        "set it to 200",
        least=100,
        roles=("host",),
    ),
    SettingRule(
        "net.FAMILY.neigh.DEVICE.base_reachable_time_ms",
        "dead routers are noticed late",
        "a router that answered once is used without a question for about so many milliseconds",
        "set it to 30000",
        most=600_000,
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
        "net.ipv4.conf.DEVICE.drop_gratuitous_arp",
        "new link address not learned",
        "the kernel ignores the announcement with which a router or host takes over an address (gratuitous ARP)",
        "set it to 0",
        most=0,
    ),
    SettingRule(
        "net.ipv4.conf.DEVICE.arp_ignore",
        "ARP not answered",
        "this interface answers no ARP request (arp_ignore)",
        "set it to 0 or 1",
        most=2,
        roles=("router",),
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
