# SPDX-License-Identifier: Apache-2.0
"""The type of a rule about one attribute of storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class AttributeRule:
    """One attribute of a part (the kind of a file system, or of a disk) and the values that are a fault, as a regular
    expression for all of the value. `problem` may name it: {value}. `needs` are values of other attributes without
    which the rule does not apply."""

    part: str
    attribute: str
    faulty: str
    kind: str
    problem: str
    cost: str
    remedy: str
    needs: Mapping[str, str] | None = None
