# SPDX-License-Identifier: Apache-2.0
"""A mistake at a random place of a drawn server, and ways to make one.

All mistakes were written down before the rules that name some of them. The last 25 are in attributes that were drawn by
chance from 364 that the tools document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from drawn_servers import DrawnServer

Plant = Callable[[DrawnServer, Random], str]


@dataclass(frozen=True)
class Mistake:
    """A mistake. `reason` must match the kind and the text of a fault that names the place which `plant` returns;
    `consequences` are kinds of faults that also follow from it."""

    name: str
    reason: str
    plant: Plant
    consequences: tuple[str, ...] = ()
    needs: str = ""  # "xfs", "ext4", "parity"
