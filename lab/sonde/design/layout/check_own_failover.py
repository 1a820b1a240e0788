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
    servers = [host for host, each in targets.items() if each]
    yield from _find_uneven_pairs(targets, storage_by_host)
    for host in servers:
        addresses = _read_addresses(storage_by_host[host])
        is_known = bool(addresses)
        for partner in (each for each in servers if each != host and not is_known):
            addresses |= _derive_addresses(targets[host], targets[partner])
        if len(servers) > 1 and not any(list_addresses(target) & addresses for target in targets[host]):
            yield from _compare_partners(targets[host], host)
        for target in targets[host] if addresses else ():
            yield CheckedItem("the server in the label of a target", target.location)
            labeled = list_addresses(target)
            if is_partner_form(target) and labeled & addresses and not (is_known and labeled - addresses):
                partner_host = _find_idle_server(targets, target, host)
                yield (_report_moved_target(target, host, partner_host) if partner_host
                       else _report_own_node(target, sorted(labeled & addresses), host))  # fmt: skip
            elif is_known and not is_partner_form(target) and labeled and not labeled & addresses:
                yield _report_lacking_server(target, sorted(labeled), sorted(addresses), host)


def _find_idle_server(
    targets: Mapping[str, Sequence[ObservedFileSystem]], target: ObservedFileSystem, host: str
) -> str:
    """The server with the fewest targets of the same role, if it has at least two fewer than the server of a target."""
    role = target.location.rpartition("-")[2][:3]
    counts = {each: sum(f"-{role}" in other.location for other in served) for each, served in targets.items()}
    fewest = min((each for each, count in counts.items() if count), key=lambda each: counts[each])
    return fewest if counts[fewest] + 1 < counts[host] else ""


def _list_labeled_targets(storage: ObservedStorage) -> list[ObservedFileSystem]:
    return [each for each in storage.file_systems if each.kind == "lustre" and each.facts.get("label_origin")]


def _read_addresses(storage: ObservedStorage) -> Set[str]:
    return {nid for each in storage.file_systems for nid in each.facts.get("nids", "").split()}


def _derive_addresses(targets: list[ObservedFileSystem], partner_targets: list[ObservedFileSystem]) -> Set[str]:
    """The addresses of a server: all labels of its partner have them, and some of its own labels do not."""
    if not all(is_partner_form(target) for target in (*targets, *partner_targets)):
        return frozenset()
    named_by_partner = [list_addresses(target) for target in partner_targets]
    addresses = frozenset.intersection(*named_by_partner)
    return addresses if any(not list_addresses(target) & addresses for target in targets) else frozenset()


def _compare_partners(targets: Sequence[ObservedFileSystem], host: str) -> Iterator[LayoutFault]:
    """Targets of one server whose labels name other partners: one alone that differs, or both of two."""
    addresses_by_target = {target.location: list_addresses(target) for target in targets if is_partner_form(target)}
    counts = Counter(addresses_by_target.values())
    odd = [name for name, addresses in addresses_by_target.items() if addresses and counts[addresses] == 1]
    if len(counts) != 2 or not (len(odd) == 1 or len(addresses_by_target) == len(odd) == 2) or frozenset() in counts:
        return
    texts = [f"{', '.join(sorted(addresses))} of {name}" for name, addresses in addresses_by_target.items()]
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


def _report_moved_target(target: ObservedFileSystem, host: str, partner: str) -> LayoutFault:
    return LayoutFault(
        "target on its failover server", target.location,
        f"{host} has it mounted, which its label names as its failover node; {partner} serves fewer targets",
        f"{host} serves more targets than planned while {partner} is partly idle",
        f"look why it moved, then unmount it on {host} and mount it on {partner} (fail back)",
    )  # fmt: skip


def _find_uneven_pairs(
    targets: Mapping[str, Sequence[ObservedFileSystem]], storage_by_host: Mapping[str, ObservedStorage]
) -> Iterator[LayoutFault | CheckedItem]:
    """Servers of which one has at least two targets more than the other, though all of their labels name both."""
    groups: dict[frozenset[str], list[str]] = {}
    for target in (target for each in targets.values() for target in each if not is_partner_form(target)):
        if len(addresses := list_addresses(target)) > 1:
            groups.setdefault(addresses, []).append(target.location)
    for addresses, labels in groups.items():
        counts = {host: sum(target.location in labels for target in targets[host])
                  for host, storage in storage_by_host.items()
                  if _is_server_of(storage, addresses, labels)}  # fmt: skip
        if len(counts) != 2:
            continue
        yield CheckedItem("the number of targets of both servers", ", ".join(counts))
        (first, least), (second, most) = sorted(counts.items(), key=lambda item: item[1])
        if most >= least + 2 and most + least == len(labels):
            yield LayoutFault(
                "target on its failover server", ", ".join(counts),
                f"{second} serves {most} of {len(labels)} targets, {first} {least or 'none'}; their labels name both",
                f"{second} serves more targets than its share while {first} is partly idle",
                f"look why they moved, then unmount some on {second} and mount them on {first} (fail back)",
            )  # fmt: skip


def _is_server_of(storage: ObservedStorage, addresses: Set[str], labels: Sequence[str]) -> bool:
    """Whether a host is one of the servers of targets: by its addresses, or because it sees all of their devices."""
    visible_labels = {disk.settings.get("fs_label", "") for disk in storage.disks.values()}
    return bool(_read_addresses(storage) & addresses) or set(labels) <= visible_labels


def _report_lacking_server(
    target: ObservedFileSystem, labeled: list[str], addresses: list[str], host: str
) -> LayoutFault:
    return LayoutFault(
        "failover servers differ", target.location,
        f"its label names {', '.join(labeled)}, but {host or 'the server that has it mounted'} has"
        f" {', '.join(addresses)}",
        "clients do not find it here: its data is out of reach",
        "unmount it, then tunefs.lustre --erase-params with --mgsnode and --servicenode of all servers, and lctl"
        " replace_nids on the management server (or --writeconf of all targets)", ("failover",),
    )  # fmt: skip
