# SPDX-License-Identifier: Apache-2.0
"""Reads the option routes of the module lnet in modprobe.d.

Source: Lustre Operations Manual, "Setting the LNet Module routes Parameter": routes of several networks are separated
by semicolons; a gateway may have a priority (NID:1), and ranges in brackets ([1-8], [1-8/2], [1,3]).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.routes.lnet_records import LnetRoute

_BRACKET_PATTERN = re.compile(r"\[([^\]]*)\]")
_MAX_GATEWAYS = 65536


def parse_module_routes(option_value: str, origin: str) -> Iterator[LnetRoute]:
    """The routes of the option; raises ValueError for a range that cannot be read."""
    for text in option_value.split(";"):
        tokens = text.split()
        networks = [token for token in tokens if "@" not in token and not token.isdigit()]
        hops = next((int(token) for token in tokens if token.isdigit()), None)
        for token in (token for token in tokens if "@" in token):
            nid, _, priority = token.partition(":") if token.count(":") == 1 else (token, "", "")
            for gateway in _expand_ranges(nid):
                for network in (name for item in networks for name in _expand_ranges(item)):
                    yield LnetRoute(
                        network, gateway, hops, int(priority) if priority else None, None, f"{origin}, routes"
                    )  # fmt: skip


def _expand_ranges(nid_pattern: str) -> list[str]:
    """The NIDs of a pattern, as 10.1.0.[1-8]@tcp."""
    pending, expanded = [nid_pattern], list[str]()
    while pending:
        text = pending.pop(0)
        match = _BRACKET_PATTERN.search(text)
        if match is None:
            expanded.append(text)
            continue
        for item in match[1].split(","):
            bounds, _, step = item.partition("/")
            first, _, last = bounds.partition("-")
            numbers = range(int(first), int(last or first) + 1, int(step or 1))
            pending += [f"{text[: match.start()]}{number}{text[match.end() :]}" for number in numbers]
            if len(pending) > _MAX_GATEWAYS:
                raise ValueError(f"{nid_pattern} stands for more than {_MAX_GATEWAYS} NIDs")
    return expanded
