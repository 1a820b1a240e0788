# SPDX-License-Identifier: Apache-2.0
"""The message of an error that a call raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sonde.model.errors import SondeError


def get_error_text(parse: Callable[[Any], object], value: Any) -> str:
    """The message of the error for a value; empty when the value is accepted."""
    try:
        parse(value)
    except SondeError as reason:
        return str(reason)
    return ""
