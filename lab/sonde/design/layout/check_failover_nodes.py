# SPDX-License-Identifier: Apache-2.0
"""Checks the servers that may mount a target of Lustre: protection against two mounts, and the nodes in its label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem

_MIN_TARGETS = 3


def _list_nodes(target: ObservedFileSystem) -> list[str]:
    """The nodes in the label; tunefs.lustre divides nodes by colons or prints each by itself, and divides the NIDs of
    one node by commas."""
    return [node for node in re.split(r"[ :]", target.facts.get("failover", "")) if node]


def is_partner_form(target: ObservedFileSystem) -> bool:
    """Whether the label of a target names its failover partners only (mkfs.lustre --failnode): its server is the one
    that mounted it first. With --servicenode the label names all servers and has the flag no_primnode."""
    return "no_primnode" not in target.facts.get("flags", "").split() and bool(target.facts.get("flags"))


def check_mount_protection(
    target: ObservedFileSystem, ldiskfs: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    """Where several servers may mount the target, mmp keeps two of them from it at once."""
    features, nodes = ldiskfs.facts.get("features", "").split(), _list_nodes(target)
    names_partners_only = is_partner_form(target)
    if not features or len(nodes) < (1 if names_partners_only else 2):
        return
    yield CheckedItem("protection against two mounts", target.location)
    if "mmp" not in features:
        servers = " and ".join([*["its server"] * names_partners_only, *nodes])
        yield LayoutFault(
            "no protection against two mounts", target.location,
            f"its file system lacks mmp, and {servers} may mount it", "two servers that mount it at once destroy it",
            "tune2fs -O mmp on its device, while no server has it mounted", ("features",),
        )  # fmt: skip


def compare_failover_nodes(targets: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Labels that name other addresses than most labels of targets of the same servers."""
    for group in _group_by_servers(targets):
        addresses = [list_addresses(target) for target in group]
        (usual, count), *_ = Counter(addresses).most_common(1)
        if len(group) < _MIN_TARGETS or 2 * count <= len(group):
            continue
        yield CheckedItem("the failover servers of targets", ", ".join(target.location for target in group))
        for target, labeled in zip(group, addresses, strict=True):
            if labeled != usual:
                yield _report_other_servers(target, labeled, usual, f"{count} of {len(group)} targets of these servers")


def list_addresses(target: ObservedFileSystem) -> frozenset[str]:
    """The addresses of all nodes in the label of a target."""
    return frozenset(address for node in _list_nodes(target) for address in node.split(",") if address)


def _group_by_servers(targets: Sequence[ObservedFileSystem]) -> list[list[ObservedFileSystem]]:
    """Targets whose labels share addresses, directly or by those of other targets."""
    groups: list[tuple[set[str], list[ObservedFileSystem]]] = []
    for target in targets:
        addresses = set(list_addresses(target))
        joined = [group for group in groups if group[0] & addresses]
        if addresses:
            groups = [group for group in groups if group not in joined]
            groups.append((addresses.union(*(group[0] for group in joined)),
                           [*(each for group in joined for each in group[1]), target]))  # fmt: skip
    return [group for _, group in groups]


def _report_other_servers(
    target: ObservedFileSystem, labeled: frozenset[str], usual: frozenset[str], peers_text: str
) -> LayoutFault:
    extra = {address.partition("@")[0]: address for address in sorted(labeled - usual)}
    missing = {address.partition("@")[0]: address for address in sorted(usual - labeled)}
    texts = [f"{extra[host]} is in another network than {address}" if host in extra else f"{address} is missing"
             for host, address in missing.items()]  # fmt: skip
    texts += [f"no other label of these servers has {address}" for host, address in extra.items()
              if host not in missing]  # fmt: skip
    return LayoutFault(
        "failover servers differ", target.location,
        f"its label names {', '.join(sorted(labeled))}; {peers_text} have {', '.join(sorted(usual))}:"
        f" {'; '.join(texts)}",
        "after a failover clients do not find it: its data is out of reach until it is back on its server",
        "unmount it, then tunefs.lustre --erase-params with --mgsnode and --servicenode of all servers, and lctl"
        " replace_nids on the management server (or --writeconf of all targets)", ("failover",),
    )  # fmt: skip
