# SPDX-License-Identifier: Apache-2.0
"""The formats of other tools that can be read: one list, and how a file is told to be one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sonde.model.errors import UserError
from sonde.model.imported import ImportedRun
from sonde.sources import elbencho, fio, io500, ior, iozone, mdtest
from sonde.sources.about import About
from sonde.sources.commands import clock_time

_LARGEST = 256 << 20


@dataclass(frozen=True)
class Format:
    """A format: whether the beginning of a file (64 KiB) looks like it, and the runs in its text.

    `read` raises ValueError with a part of a sentence when the text is not what it seemed.
    """

    name: str
    matches: Callable[[str], bool]
    read: Callable[[str, About], Sequence[ImportedRun]]


FORMATS: tuple[Format, ...] = (
    Format("IOR JSON", ior.is_json, ior.read_json),
    Format("IO500 summary", io500.is_summary, io500.read_summary),
    Format("IO500 result", io500.is_result, io500.read_result),
    Format("fio JSON", fio.matches, fio.read),
    Format("elbencho JSON", elbencho.is_json, elbencho.read_json),
    Format("elbencho CSV", elbencho.is_csv, elbencho.read_csv),
    Format("IOzone", iozone.matches, iozone.read),
    Format("mdtest", mdtest.matches, mdtest.read),
    Format("IOR", ior.is_text, ior.read_text),
)


def read_results(path: Path, about: About) -> Sequence[ImportedRun]:
    """The runs in a result file of another tool. Raises UserError when it is none, or damaged."""
    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path} is larger than {_LARGEST >> 20} MiB; that is no result of a tool that is known.")
        text = path.read_text(encoding="utf-8", errors="replace")
        # IO500 names the folder of a run by its time.
        when = clock_time(path.absolute().parent.name) or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as reason:
        raise UserError(f"{path} cannot be read: {reason.strerror}.") from None
    chosen = next((one for one in FORMATS if one.matches(text[: 1 << 16])), None)
    if chosen is None:
        known = ", ".join(one.name for one in FORMATS)
        raise UserError(f"{path} is not a result that can be read; known are {known}, and CSV files with --map.")
    try:
        return chosen.read(text, replace(about, file_time=when))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as reason:
        what = str(reason) if isinstance(reason, ValueError) else f"it lacks {reason}"
        raise UserError(f"{path} looks like {chosen.name}, but {what}.") from None
