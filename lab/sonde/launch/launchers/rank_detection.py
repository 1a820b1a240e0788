# SPDX-License-Identifier: Apache-2.0
"""Detects whether a launcher started this process as one of several ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.launch.launchers.list import LAUNCHERS


@dataclass(frozen=True)
class LauncherRank:
    """The rank of this process among `size` processes, and the launcher that started them."""

    launcher: str
    rank: int
    size: int


def detect_launcher_rank(environment: Mapping[str, str] = os.environ) -> LauncherRank | None:
    """The rank of this process, from the variables that launchers set; None for a single process."""
    for launcher in LAUNCHERS:
        for names in launcher.rank_variables:
            numbers = [environment.get(names.rank, ""), environment.get(names.size, "")]
            if all(number.isdecimal() for number in numbers) and (not names.required or names.required in environment):
                rank = LauncherRank(launcher.name, int(numbers[0]), int(numbers[1]))
                return rank if rank.size > 1 else None
    return None
