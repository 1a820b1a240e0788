# SPDX-License-Identifier: Apache-2.0
"""Reads the text of `ip addr`: links with their MTU, their state and what carries them, and their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import (
    AddressDetails,
    LinkDetails,
    describe_link_state,
    make_adapter_path,
    map_address_devices,
)

# The first line of a link: its name, the device below it, its flags and what follows them.
_FIRST_LINE_PATTERN = re.compile(r"^\d+: ([^:@\s]+)(?:@([^:\s]+))?: <([A-Z,_\d-]*)>(.*)$", re.MULTILINE)
# The line above counters: the direction and the columns.
_COUNTER_HEAD_PATTERN = re.compile(r"\s+([RT]X(?: errors)?):\s+(.*)")
_PLAIN_COUNTERS = ("bytes", "packets", "errors", "dropped", "mcast", "collsns")
_COUNTER_NAMES = {"overrun": "over"}


def parse_address_output(output_text: str) -> HostTables:
    """The tables in the text of `ip addr` or `ip -d addr`."""
    heads = _FIRST_LINE_PATTERN.findall(output_text)
    details = {name: _parse_first_line(flags.split(","), parent, more) for name, parent, flags, more in heads}
    addresses, address_devices, address_details = [], list[tuple[str, str]](), dict[str, AddressDetails]()
    transport_modes: dict[str, str] = {}
    host = ""
    counter_names: list[str] = []
    for device, line in _iterate_lines_of_links(output_text):
        if counter_head := _COUNTER_HEAD_PATTERN.match(line):  # printed by `ip -s addr`
            counter_names = _list_counter_names(counter_head[1], counter_head[2])
        elif counter_names and device in details:
            counts = dict(
                zip(counter_names, (int(number) for number in line.split() if number.isdigit()), strict=False)
            )
            details[device] = replace(details[device], counters={**details[device].counters, **counts})
            counter_names = []
        if mode := re.match(r"\s+ipoib\b.*\bmode (\w+)", line):  # printed by `ip -d addr`
            transport_modes[device] = mode[1]
        if address := re.match(r"\s+inet6? (\S+)(.*)", line):
            host = address[1].partition("/")[0]
            addresses.append(address[1])
            address_devices.append((host, device))
            address_details[host] = _parse_address_details(address[2])
        elif lifetime := re.match(r"\s+valid_lft (\d+)sec", line):
            address_details[host] = replace(address_details[host], remaining_s=int(lifetime[1]))
        elif device in details:
            details[device] = _add_link_line(details[device], line)
    return HostTables(
        addresses=tuple(addresses),
        mtus={name: int(match[1]) for name, _, _, more in heads if (match := re.search(r"\bmtu (\d+)", more))},
        links={
            name: describe_link_state(flags.split(","), _find_following_word(more, "state"))
            for name, _, flags, more in heads
        },
        transport_modes=transport_modes,
        address_devices=map_address_devices(address_devices),
        address_details=address_details,
        link_details=details,
    )


def _list_counter_names(direction: str, columns: str) -> list[str]:
    """The kernel's names of the counters below a line such as "RX:  bytes packets errors dropped  missed   mcast"."""
    is_error_line = direction.endswith("errors")
    names = [name if name in _PLAIN_COUNTERS and not is_error_line else f"{_COUNTER_NAMES.get(name, name)}_errors"
             for name in columns.split()]  # fmt: skip
    return [f"{direction[:2].lower()}_{name}" for name in names]


def _iterate_lines_of_links(output_text: str) -> Iterator[tuple[str, str]]:
    """The lines after the first one of each link, with the name of the link."""
    device = ""
    for line in output_text.splitlines():
        if head := re.match(r"\d+: ([^:@\s]+)", line):
            device = head[1]
        else:
            yield device, line


def _parse_first_line(link_flags: list[str], parent_name: str, line_end: str) -> LinkDetails:
    return LinkDetails(
        _find_following_word(line_end, "master"),
        _find_following_word(line_end, "qdisc"),
        uses_arp="NOARP" not in link_flags,
        queue_length=int(length) if (length := _find_following_word(line_end, "qlen")).isdigit() else None,
        is_switched_off=_find_following_word(line_end, "protodown") == "on",
        is_bond_port="SLAVE" in link_flags,
        has_multicast="MULTICAST" in link_flags,
        parent=parent_name,
        lacks_carrier={"UP", "NO-CARRIER"} <= {*link_flags},
    )


def _add_link_line(link_details: LinkDetails, link_line: str) -> LinkDetails:
    """The details of a link with those of one more line of it; `ip -d addr` prints the later ones."""
    if link := re.match(r"\s+link/\w+ (\S+)", link_line):
        permanent_address = _find_following_word(link_line, "permaddr") or ""
        link_details = replace(link_details, link_address=link[1], permanent_address=permanent_address)
    elif vlan := re.match(r"\s+vlan protocol (\S+) id (\d+)", link_line):
        link_details = replace(link_details, vlan=int(vlan[2]), vlan_protocol=vlan[1])
    elif key := re.match(r"\s+ipoib pkey\s+(0x[0-9a-f]+)", link_line):
        link_details = replace(link_details, kind="ipoib", partition_key=int(key[1], 16))
    elif re.match(r"\s+dummy\b", link_line):
        link_details = replace(link_details, kind="dummy")
    elif re.match(r"\s+bond(_slave)? ", link_line):
        number = _find_following_word(link_line, "ad_aggregator(?:_id)?")
        failures = _find_following_word(link_line, "link_failure_count")
        state = _find_following_word(link_line, "ad_actor_oper_port_state")
        link_details = replace(
            link_details,
            aggregator=int(number) if number.isdigit() else None,
            lacp_partner=_find_following_word(link_line, "ad_partner_mac"),
            has_port_failed=_find_following_word(link_line, "mii_status") == "DOWN",
            link_failures=int(failures) if failures.isdigit() else None,
            permanent_address=link_details.permanent_address or _find_following_word(link_line, "perm_hwaddr"),
            lacp_state=int(state) if state.isdigit() else None,
        )
        if mode := re.match(r"\s+bond mode (\S+) miimon (\d+)", link_line):
            is_watching = mode[2] != "0" or _find_following_word(link_line, "arp_interval") not in ("", "0")
            options = dict(re.findall(r"\b([a-z_]+) (\S+)", link_line.partition(" mode ")[2].partition(" ")[2]))
            link_details = replace(
                link_details, kind="bond", bond_mode=mode[1], watches_ports=is_watching, bond_options=options
            )
    if sizes := re.search(r"\bgso_max_size (\d+) gso_max_segs (\d+)", link_line):
        link_details = replace(link_details, gso_bytes=int(sizes[1]), gso_segments=int(sizes[2]))
    if program := re.match(r"\s+prog/xdp\w* id (\d+)(?: name (\S+))?", link_line):
        link_details = replace(link_details, packet_program=program[2] or program[1])
    if parent := re.search(r"\bparentbus (\S+) parentdev (\S+)", link_line):
        link_details = replace(link_details, path=make_adapter_path(parent[1], parent[2]))
    return link_details


def _parse_address_details(line_end: str) -> AddressDetails:
    flags = line_end.split()
    return AddressDetails(
        is_duplicate="dadfailed" in flags,
        is_tentative="tentative" in flags,
        is_deprecated="deprecated" in flags,
        is_leased="dynamic" in flags,
        is_temporary="temporary" in flags,
        scope=_find_following_word(line_end, "scope"),
        broadcast=_find_following_word(line_end, "brd"),
    )


def _find_following_word(line_text: str, preceding_word: str) -> str:
    """The word that follows a name or pattern, or nothing."""
    match = re.search(rf"\b{preceding_word} (\S+)", line_text)
    return match[1] if match else ""
