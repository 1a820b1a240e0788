# SPDX-License-Identifier: Apache-2.0
"""Condition of tests with planted mistakes: the check names the mistake with its reason, and no other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol


class NamedFault(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def problem(self) -> str: ...


def require_only(faults: Sequence[NamedFault], reason: str, location: str, consequences: Sequence[str] = ()) -> None:
    """One matches `reason` (a regular expression) and names `location`; others are of its kind or `consequences`."""
    matching = [
        fault
        for fault in faults
        if re.search(reason, f"{fault.kind} {fault.problem} {fault.location}", re.I)
        and location in f"{fault.location} {fault.problem}"
    ]
    assert matching, [f"{fault.location}: {fault.problem}" for fault in faults]
    assert {fault.kind for fault in faults} <= {fault.kind for fault in matching} | set(consequences)
