# SPDX-License-Identifier: Apache-2.0
"""The list of readable result formats, and the detection of a file's format."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sonde.model.errors import UserError
from sonde.model.file_text import MAX_OUTPUT_BYTES, read_limited_text
from sonde.model.imported_runs import ImportedRun
from sonde.sources import elbencho, fio, io500, ior, iozone, mdtest
from sonde.sources.commands import parse_clock_time
from sonde.sources.import_defaults import ImportDefaults


@dataclass(frozen=True)
class ResultFormat:
    """A format: whether the beginning of a file (64 KiB) looks like it, and the runs in its text.

    `read` raises ValueError with a part of a sentence when the text is not what it seemed.
    """

    name: str
    matches: Callable[[str], bool]
    read_runs: Callable[[str, ImportDefaults], Sequence[ImportedRun]]


FORMATS: tuple[ResultFormat, ...] = (
    ResultFormat("IOR JSON", ior.is_json, ior.read_json),
    ResultFormat("IO500 summary", io500.is_summary, io500.read_summary),
    ResultFormat("IO500 result", io500.is_result, io500.read_result),
    ResultFormat("fio JSON", fio.is_fio_json, fio.read_fio_json),
    ResultFormat("elbencho JSON", elbencho.is_json, elbencho.read_json),
    ResultFormat("elbencho CSV", elbencho.is_csv, elbencho.read_csv),
    ResultFormat("IOzone", iozone.is_iozone_output, iozone.read_iozone_output),
    ResultFormat("mdtest", mdtest.is_mdtest_output, mdtest.read_mdtest_output),
    ResultFormat("IOR", ior.is_text, ior.read_text),
)


def read_results(path: Path, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in a result file of another tool. Raises UserError when it is none, or damaged."""
    try:
        text = read_limited_text(path, MAX_OUTPUT_BYTES, errors="replace")
        # IO500 names the folder of a run by its time.
        file_time = parse_clock_time(path.absolute().parent.name) or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UserError(
                f"{path} is larger than {MAX_OUTPUT_BYTES >> 20} MiB; that is no result of a tool that is known."
            ) from None
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    result_format = next((candidate for candidate in FORMATS if candidate.matches(text[: 1 << 16])), None)
    if result_format is None:
        format_names = ", ".join(candidate.name for candidate in FORMATS)
        raise UserError(f"{path} is not a result that can be read; known are {format_names}, and CSV files with --map.")
    try:
        return result_format.read_runs(text, replace(about, file_time=file_time))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        problem = str(error) if isinstance(error, ValueError) else f"it lacks {error}"
        raise UserError(f"{path} looks like {result_format.name}, but {problem}.") from None
