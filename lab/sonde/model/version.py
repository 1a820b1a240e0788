# SPDX-License-Identifier: Apache-2.0
"""The version of the lab."""

from __future__ import annotations

import re
from pathlib import Path


def _find_version() -> str:
    """The version that the build wrote into the package, or that of the source tree from which it is imported."""
    try:
        from sonde.model.built_version import VERSION
    except ImportError:
        project = Path(__file__).resolve().parents[3] / "CMakeLists.txt"
        text = project.read_text(encoding="utf-8") if project.is_file() else ""
        version = re.search(r"project\(sonde VERSION ([0-9.]+)", text)
        return f"{version[1]}+source" if version else "0+unknown"
    return str(VERSION)


__version__ = _find_version()
