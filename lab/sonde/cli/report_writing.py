# SPDX-License-Identifier: Apache-2.0
"""Writes reports, with a status line meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.model.errors import MachineError, ReportError, UserError
from sonde.terminal.screen import get_messages_console

if TYPE_CHECKING:
    from sonde.charts.study import StudySection
    from sonde.model.system import System


def write_report_or_warn(
    run_folders: Sequence[Path], page_file: Path, title: str | None, quiet: bool, sections: Sequence[StudySection] = ()
) -> Path | None:
    """Writes the report of `run_folders` into `page_file`, after `sections`. Prints a warning on failure, since the
    runs are stored anyway."""
    try:
        return write_run_report(run_folders, page_file, title, quiet, sections)
    except UserError as reason:
        get_messages_console().print(f"sonde: no report was written: {reason}", soft_wrap=True)
        return None


def write_run_report(
    run_folders: Sequence[Path],
    page_file: Path,
    title: str | None,
    quiet: bool,
    sections: Sequence[StudySection] = (),
    system: System | None = None,
) -> Path:
    """Writes the report of `run_folders` into `page_file`, after `sections`. Raises UserError."""
    # The imports for charts take longer than most commands.
    from sonde.report import write_report

    return write_page_with_status(
        lambda: write_report(run_folders, page_file, title, sections, system), page_file, quiet
    )


def write_page_with_status(write_page: Callable[[], Path], page_file: Path, quiet: bool) -> Path:
    """Calls `write_page`, which writes the file `page_file`. Raises UserError on failure."""
    console = get_messages_console()
    try:
        page_file.parent.mkdir(parents=True, exist_ok=True)
        if quiet or not console.is_terminal:
            return write_page()
        with console.status("writing the report", spinner="dots"):
            return write_page()
    except ReportError as reason:
        raise UserError(str(reason)) from None
    except OSError as reason:
        raise MachineError(f"The report {page_file} cannot be written: {reason.strerror}.") from None
