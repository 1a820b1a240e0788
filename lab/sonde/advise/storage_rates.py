# SPDX-License-Identifier: Apache-2.0
"""Rates of large sequential transfers of one process on a storage: from `sonde check`, a system file, or the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonde.advise.job_io import DirectionIo, FileIo, JobIo
from sonde.model.documents import parse_json
from sonde.model.errors import UserError
from sonde.model.file_text import read_text_file
from sonde.model.json_access import get_finite_number, get_items, get_text
from sonde.model.system.service import FileSystem
from sonde.model.system.system import System
from sonde.model.system.system_reader import read_system

_CHECK_SCHEMA = "sonde-check/"
_MAX_CHECK_FILE_BYTES = 8 << 20
_LARGE_CALL_BYTES = 1 << 20
_MIN_LARGE_CALLS = 20
# Assumption for rated peaks: jobs reach half to all of them.
_SHARES_OF_PEAK = (0.5, 0.75, 1.0)


@dataclass(frozen=True)
class RateRange:
    """Bytes per second: an estimate and the lowest and highest value that the source allows."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class StorageRates:
    """Rates of large sequential transfers; None where the source does not say. `source` names it in words.

    A process transfers with `read` and `write`; all processes of one node together with at most `node_read` and
    `node_write`, and all of the job with at most `all_read` and `all_write`.
    """

    source: str
    read: RateRange | None = None
    write: RateRange | None = None
    node_read: float | None = None
    node_write: float | None = None
    all_read: RateRange | None = None
    all_write: RateRange | None = None
    files_per_s: float | None = None  # of one node: create or open, and close


def read_storage_rates(json_or_system_file: Path) -> StorageRates:
    """Reads the JSON output of `sonde check` or a system file. Raises UserError when it is neither."""
    if json_or_system_file.suffix == ".toml":
        return read_rates_from_system(read_system(json_or_system_file), json_or_system_file.name)
    text = read_text_file(json_or_system_file, "result of sonde check", _MAX_CHECK_FILE_BYTES, UserError)
    try:
        document = parse_json(text)
    except ValueError:
        document = None
    if not get_text(document, "schema").startswith(_CHECK_SCHEMA):
        raise UserError(
            f"{json_or_system_file} is neither the JSON output of `sonde check` (sonde check DIR --json > "
            "check.json) nor a system"
            " file (.toml)."
        )
    return read_rates_from_check(document, json_or_system_file)


def read_rates_from_check(check_document: object, check_file: Path) -> StorageRates:
    """Rates from the document of a check. Raises UserError when it has no rate at all."""
    values: dict[str, float] = {}
    for figure in get_items(check_document, "figures"):
        value = get_finite_number(figure, "value")
        if value is not None and value > 0:
            values[get_text(figure, "key")] = value
    rates = StorageRates(
        source=f"sonde check of {get_text(check_document, 'target') or check_file}",
        read=_find_rate_range(values, "read-storage-1", "read-1", other_tests=("read-direct-1",)),
        # A write call ends when the page cache has the data, or earlier ones make room: both limits count.
        write=_find_rate_range(values, "write-storage-1", "write-1", other_tests=("write-cached-1", "write-direct-1")),
        node_read=max(values.get(key, 0.0) for key in ("read-storage-all", "read-direct-all", "read-all")) or None,
        node_write=max(values.get(key, 0.0) for key in ("write-storage-all", "write-cached-all", "write-all")) or None,
        files_per_s=values.get("create") or values.get("open-read"),
    )
    if rates.read is None and rates.write is None:
        raise UserError(f"{check_file} holds no rate of large transfers: the check was interrupted; run it again.")
    return rates


def _find_rate_range(
    rates_by_test: dict[str, float], *preferred_tests: str, other_tests: Sequence[str]
) -> RateRange | None:
    value = next((rates_by_test[name] for name in preferred_tests if name in rates_by_test), None)
    if value is None:
        return None
    candidates = [value, *(rates_by_test[name] for name in other_tests if name in rates_by_test)]
    return RateRange(min(candidates), value, max(candidates))


def read_rates_from_system(system: System, system_name: str) -> StorageRates:
    """Rated peaks of the fastest file system of a system file. Raises UserError when no peak is stated."""
    peaks = [part.table.peak for part in system.list_parts("file_systems") if isinstance(part.table, FileSystem)]
    stated = [peak for peak in peaks if peak is not None and (peak.read or peak.write)]
    if not stated:
        raise UserError(f"{system_name} states no peak rate of a file system: add peak = {{ read = …, write = … }}.")
    peak = max(stated, key=lambda rated: float(rated.read or rated.write or 0))
    read, write = (
        RateRange(*(share * float(quantity) for share in _SHARES_OF_PEAK)) if quantity else None
        for quantity in (peak.read, peak.write)
    )
    return StorageRates(f"rated peak of {system_name}", all_read=read, all_write=write)


def estimate_rates_from_job(job: JobIo) -> StorageRates:
    """Rates of the job's own large calls; without such calls both are None."""
    return StorageRates(
        "large calls of the job itself",
        read=_measure_large_call_rates(job.calls.read, [(file, file.read) for file in job.files]),
        write=_measure_large_call_rates(job.calls.write, [(file, file.write) for file in job.files]),
    )


def _measure_large_call_rates(
    bytes_and_seconds_of_calls: Sequence[tuple[int, float]], files: Sequence[tuple[FileIo, DirectionIo]]
) -> RateRange | None:
    """Quartiles of the rate of calls of 1 MiB and more; without single calls, of files whose mean call is as large."""
    rates = [
        size / seconds for size, seconds in bytes_and_seconds_of_calls if size >= _LARGE_CALL_BYTES and seconds > 0
    ]
    if len(rates) < _MIN_LARGE_CALLS:
        rates = [
            move.bytes / move.seconds
            for _, move in files
            if move.calls >= _MIN_LARGE_CALLS and move.bytes >= _LARGE_CALL_BYTES * move.calls and move.seconds > 0
        ]
    if not rates:
        return None
    low, middle, high = np.quantile(np.asarray(rates), [0.25, 0.5, 0.75])
    return RateRange(float(low), float(middle), float(high))
