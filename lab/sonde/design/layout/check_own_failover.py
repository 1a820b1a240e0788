# SPDX-License-Identifier: Apache-2.0
"""Compares the nodes in the labels of targets of Lustre with the server that has them mounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_failover_nodes import is_partner_form, list_addresses
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage


def find_own_failover_nodes(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Targets whose label names the server that runs them as its partner, or lacks this server. The addresses of a
    server are those that lctl prints, else those that all targets of another server name."""
    targets = {host: _list_labeled_targets(storage) for host, storage in storage_by_host.items()}
    servers = [host for host, labeled in targets.items() if labeled]
    for host in servers:
        own = _read_addresses(storage_by_host[host])
        is_known = bool(own)
        for partner in (each for each in servers if each != host and not is_known):
            own |= _derive_addresses(targets[host], targets[partner])
        if len(servers) > 1 and not any(list_addresses(target) & own for target in targets[host]):
            yield from _compare_partners(targets[host], host)
        for target in targets[host] if own else ():
            yield CheckedItem("the server in the label of a target", target.location)
            named = list_addresses(target)
            if is_partner_form(target) and named & own and not (is_known and named - own):
                yield _report_own_node(target, sorted(named & own), host)
            elif is_known and not is_partner_form(target) and named and not named & own:
                yield _report_lacking_server(target, sorted(named), sorted(own), host)


def _list_labeled_targets(storage: ObservedStorage) -> list[ObservedFileSystem]:
    return [each for each in storage.file_systems if each.kind == "lustre" and each.facts.get("label_origin")]


def _read_addresses(storage: ObservedStorage) -> Set[str]:
    return {nid for each in storage.file_systems for nid in each.facts.get("nids", "").split()}


def _derive_addresses(targets: list[ObservedFileSystem], partner_targets: list[ObservedFileSystem]) -> Set[str]:
    """The addresses of a server: those that all targets of its partner name, if some of its own targets name others."""
    if not all(is_partner_form(target) for target in (*targets, *partner_targets)):
        return frozenset()
    named_by_partner = [list_addresses(target) for target in partner_targets]
    addresses = frozenset.intersection(*named_by_partner)
    return addresses if any(not list_addresses(target) & addresses for target in targets) else frozenset()


def _compare_partners(targets: Sequence[ObservedFileSystem], host: str) -> Iterator[LayoutFault]:
    """Targets of one server whose labels name other partners: one alone that differs, or both of two."""
    named = {target.location: list_addresses(target) for target in targets if is_partner_form(target)}
    counts = Counter(named.values())
    odd = [name for name, addresses in named.items() if addresses and counts[addresses] == 1]
    if len(counts) != 2 or not (len(odd) == 1 or len(named) == len(odd) == 2) or frozenset() in counts:
        return
    texts = [f"{', '.join(sorted(addresses))} of {name}" for name, addresses in named.items()]
    yield LayoutFault(
        "failover servers differ", ", ".join(odd),
        f"the labels of the targets of {host} name different partners: {join_first_names(texts)}",
        "after a failover clients do not find a target whose partner is wrong: its data is out of reach",
        "compare with lctl list_nids on the partner; unmount the wrong one, then tunefs.lustre --erase-params with"
        " --mgsnode and --servicenode of both servers, and lctl replace_nids on the management server", ("failover",),
    )  # fmt: skip


def _report_own_node(target: ObservedFileSystem, addresses: list[str], host: str) -> LayoutFault:
    server = host or "the server that has it mounted"
    return LayoutFault(
        "failover node is its server", target.location,
        f"its label names {', '.join(addresses)} as failover node, which is {server} itself: it has no other server",
        "after a failure of its server clients do not look for it on the partner: its data is out of reach",
        "unmount it, then tunefs.lustre --erase-params with --mgsnode and --servicenode of both servers, and lctl"
        " replace_nids on the management server (or --writeconf of all targets)", ("failover",),
    )  # fmt: skip


def _report_lacking_server(target: ObservedFileSystem, named: list[str], own: list[str], host: str) -> LayoutFault:
    return LayoutFault(
        "failover servers differ", target.location,
        f"its label names {', '.join(named)}, but {host or 'the server that has it mounted'} has {', '.join(own)}",
        "clients do not find it here: its data is out of reach",
        "unmount it, then tunefs.lustre --erase-params with --mgsnode and --servicenode of all servers, and lctl"
        " replace_nids on the management server (or --writeconf of all targets)", ("failover",),
    )  # fmt: skip
