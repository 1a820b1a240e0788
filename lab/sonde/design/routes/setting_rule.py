# SPDX-License-Identifier: Apache-2.0
"""A rule about a single setting of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
