# SPDX-License-Identifier: Apache-2.0
"""Configuration files that do not take effect at the start of the host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InactiveProfile:
    """A configuration file whose option keeps its manager from applying it at the start of the host. `devices` are
    those that it is for (empty: unknown)."""

    origin: str
    option: str
    effect: str
    remedy: str
    devices: tuple[str, ...] = ()
