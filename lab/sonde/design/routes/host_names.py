# SPDX-License-Identifier: Apache-2.0
"""Reads files as /etc/hosts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from sonde.design.routes.host_tables import HostName

_LOCALHOST_PATTERN = re.compile(r"^[ \t]*(?:127\.0\.0\.1|::1)\s+(?:.*\s)?\S*localhost", re.MULTILINE)


def is_hosts_file(file_text: str) -> bool:
    """Whether a text is a file as /etc/hosts, which names localhost."""
    return _LOCALHOST_PATTERN.search(file_text) is not None


def parse_hosts_file(file_text: str, file_name: str) -> Iterator[HostName]:
    """The names in a file with their addresses; lines without an address are left out, as the resolver does."""
    for number, line in enumerate(file_text.splitlines(), start=1):
        tokens = line.partition("#")[0].split()
        try:
            address = str(ipaddress.ip_address(tokens[0].partition("%")[0])) if tokens else ""
        except ValueError:
            continue
        for name in tokens[1:]:
            yield HostName(name, address, f"{file_name}, line {number}")
