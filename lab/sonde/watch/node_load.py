# SPDX-License-Identifier: Apache-2.0
"""How long tasks of this node wait for I/O, from the kernel's pressure stall information."""

from __future__ import annotations

import re
from pathlib import Path


def read_io_stall(pressure_folder: Path = Path("/")) -> float | None:
    """The fraction of the last 10 seconds in which a task waited for I/O; None where the kernel does not report it."""
    try:
        text = (pressure_folder / "proc" / "pressure" / "io").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.search(r"^some avg10=(\d+\.\d+)", text, re.MULTILINE)
    return float(match[1]) / 100 if match else None
