# SPDX-License-Identifier: Apache-2.0
"""Sonde's lab: plans, launches, keeps, compares, explains and presents measurements of storage.

This package knows what a measurement means. It moves no data itself: the engine, a separate program, does that, and the
two share nothing but the formats in ``schema/``. Knowledge flows in one direction only:
``cli -> (experiments, report) -> (launch, store, stats) -> model``; ``stats`` imports nothing of ours.
"""

from __future__ import annotations


def _version() -> str:
    """The installed version, or that of the source tree this package is imported from."""
    from importlib import metadata
    from pathlib import Path
    from re import search

    try:
        return metadata.version("sonde")
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parents[2] / "CMakeLists.txt"
        text = project.read_text(encoding="utf-8") if project.is_file() else ""
        found = search(r"project\(sonde VERSION ([0-9.]+)", text)
        return f"{found[1]}+source" if found else "0+unknown"


__version__ = _version()
