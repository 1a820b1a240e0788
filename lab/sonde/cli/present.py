# SPDX-License-Identifier: Apache-2.0
"""Asking for a report, with a sign of life while it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.model.errors import MachineError, ReportError, UserError
from sonde.terminal.screen import messages

if TYPE_CHECKING:
    from sonde.charts.study import Section
    from sonde.model.system import System


def make_report(
    runs: Sequence[Path], out: Path, title: str | None, quiet: bool, before: Sequence[Section] = ()
) -> Path | None:
    """The report of `runs` in the file `out`, after the sections `before`. What stands in its way is said, not raised:
    the run itself is safe."""
    try:
        return write(runs, out, title, quiet, before)
    except UserError as reason:
        messages().print(f"sonde: no report was written: {reason}", soft_wrap=True)
        return None


def write(
    runs: Sequence[Path],
    out: Path,
    title: str | None,
    quiet: bool,
    before: Sequence[Section] = (),
    system: System | None = None,
) -> Path:
    """The same, raising UserError."""
    # The charts' libraries take longer to import than most commands take to run.
    from sonde.report import write_report

    return write_with(lambda: write_report(runs, out, title, before, system), out, quiet)


def write_with(writer: Callable[[], Path], out: Path, quiet: bool) -> Path:
    """Calls `writer`, which writes the file `out`. Raises UserError when that cannot be done."""
    console = messages()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if quiet or not console.is_terminal:
            return writer()
        with console.status("writing the report", spinner="dots"):
            return writer()
    except ReportError as reason:
        raise UserError(str(reason)) from None
    except OSError as reason:
        raise MachineError(f"The report {out} cannot be written: {reason.strerror}.") from None
