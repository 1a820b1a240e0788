# SPDX-License-Identifier: Apache-2.0
"""Keeps Arrow from importing pandas in processes of the command.

At its first conversion of Python values, Arrow imports pandas if it is installed, to recognize its series: 300 modules,
a third of a second of processor time. The command converts lists only. A program that imports `sonde` may have series,
so its processes stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

_command_process = {"declared": False, "prepared": False}


class _PandasBlocker(MetaPathFinder):
    """Reports that pandas is not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not imported", name=name)


def declare_command_process() -> None:
    """Declares that this process runs the command alone: no other code in it uses Arrow."""
    _command_process["declared"] = True


def prevent_pandas_import(arrow: Any) -> None:
    """Lets Arrow search for pandas while it cannot be found, once and only in a process of the command. Arrow still
    imports pandas for an explicit conversion to pandas. `arrow`: the module `pyarrow`."""
    if not _command_process["declared"] or _command_process["prepared"] or "pandas" in sys.modules:
        return
    _command_process["prepared"] = True
    blocker = _PandasBlocker()
    sys.meta_path.insert(0, blocker)
    try:
        arrow.array([])
    finally:
        sys.meta_path.remove(blocker)
