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
from sonde.sources import elbencho, elbencho_text, fio, io500, ior, ior_csv, iozone, mdtest
from sonde.sources.commands import parse_clock_time
from sonde.sources.import_defaults import ImportDefaults

_DETECTION_CHARACTERS = 1 << 16


@dataclass(frozen=True)
class ResultFormat:
    """A format: whether a text looks like it (asked for the first 64 KiB, then for all), and the runs in its text.

    `read` raises ValueError with a part of a sentence when the text is not what it seemed.
    """

    name: str
    matches: Callable[[str], bool]
    read_runs: Callable[[str, ImportDefaults], Sequence[ImportedRun]]


RESULT_FORMATS: tuple[ResultFormat, ...] = (
    ResultFormat("IOR JSON", ior.is_ior_json, ior.read_ior_json),
    ResultFormat("IO500 summary", io500.is_io500_summary, io500.read_io500_summary),
    ResultFormat("IO500 result", io500.is_io500_result, io500.read_io500_result),
    ResultFormat("fio JSON", fio.is_fio_json, fio.read_fio_json),
    ResultFormat("elbencho JSON", elbencho.is_elbencho_json, elbencho.read_elbencho_json),
    ResultFormat("elbencho CSV", elbencho.is_elbencho_csv, elbencho.read_elbencho_csv),
    ResultFormat("elbencho", elbencho_text.is_elbencho_text, elbencho_text.read_elbencho_text),
    ResultFormat("IOR CSV", ior_csv.is_ior_csv, ior_csv.read_ior_csv),
    ResultFormat("IOzone", iozone.is_iozone_output, iozone.read_iozone_output),
    ResultFormat("mdtest", mdtest.is_mdtest_output, mdtest.read_mdtest_output),
    ResultFormat("IOR", ior.is_ior_text, ior.read_ior_text),
)


def identify_result_format(result_text: str) -> ResultFormat | None:
    """The format of a result. A log may have much text of other programs before it, so all of the text counts."""
    for part in (
        (result_text[:_DETECTION_CHARACTERS], result_text)
        if len(result_text) > _DETECTION_CHARACTERS
        else (result_text,)
    ):
        for candidate in RESULT_FORMATS:
            if candidate.matches(part):
                return candidate
    return None


def read_result_text(result_file: Path) -> str:
    """The text of a result file. Raises UserError when it is too large or cannot be read."""
    try:
        return read_limited_text(result_file, MAX_OUTPUT_BYTES, decode_errors="replace")
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UserError(
                f"{result_file} is larger than {MAX_OUTPUT_BYTES >> 20} MiB; that is no result of a tool that is known."
            ) from None
        raise UserError(f"{result_file} cannot be read: {error.strerror}.") from None


def read_result_file(result_file: Path, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in a result file of another tool. Raises UserError when it is none, or damaged."""
    text = read_result_text(result_file)
    result_format = identify_result_format(text)
    if result_format is None:
        format_names = ", ".join(candidate.name for candidate in RESULT_FORMATS)
        raise UserError(
            f"{result_file} is not a result that can be read; known are {format_names}, and CSV files with --map."
        )
    try:
        return result_format.read_runs(text, replace(import_defaults, file_time=_find_time_of_result(result_file)))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        problem = str(error) if isinstance(error, ValueError) else f"it lacks {error}"
        raise UserError(f"{result_file} looks like {result_format.name}, but {problem}.") from None
    except OSError as error:
        raise UserError(f"{result_file} cannot be read: {error.strerror}.") from None


def _find_time_of_result(result_file: Path) -> datetime:
    """The time of a result without one. IO500 names the folder of a run by it, the script of 2017 to 2019 a file in it:
    ``io-500-summary.2019.05.17-20.39.18.txt``. Otherwise the time of the last change of the file."""
    folder = result_file.absolute().parent
    stamps = [folder.name, *(entry.name for entry in sorted(folder.glob("io-500-summary.*.txt"))[:1])]
    for stamp in stamps:
        if time := parse_clock_time(stamp.removeprefix("io-500-summary.").removesuffix(".txt")):
            return time
    return datetime.fromtimestamp(result_file.stat().st_mtime, UTC)
