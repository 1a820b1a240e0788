# SPDX-License-Identifier: Apache-2.0
"""Whether a launcher started this program itself, several times over."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.launch.launchers.list import LAUNCHERS


@dataclass(frozen=True)
class Started:
    """One of several."""

    launcher: str
    rank: int
    size: int


def started_by(environment: Mapping[str, str] = os.environ) -> Started | None:
    """How this process was started by a launcher of several; None when it stands alone."""
    for launcher in LAUNCHERS:
        for mark in launcher.marks:
            numbers = [environment.get(mark.rank, ""), environment.get(mark.size, "")]
            if all(number.isdecimal() for number in numbers) and (not mark.there or mark.there in environment):
                started = Started(launcher.name, int(numbers[0]), int(numbers[1]))
                return started if started.size > 1 else None
    return None
