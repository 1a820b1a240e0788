# SPDX-License-Identifier: Apache-2.0
"""What a check of a layout says: faults with their cost and remedy, and what it could not look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: `kind` for programs, where, what, what it costs, and what to do."""

    kind: str
    where: str
    what: str
    cost: str
    remedy: str


@dataclass(frozen=True)
class Verdict:
    """What a check found, and what it could not look at."""

    faults: tuple[Fault, ...]
    unknown: tuple[str, ...]
