# SPDX-License-Identifier: Apache-2.0
"""Records of a Darshan log, one by one, through the C library in the `darshan` wheel.

PyDarshan's own reports hold all records of a log in memory. Here a record is released before the next one is read.
The library trusts the log: call it in a process that may die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.advise.darshan_segments import (
    CallRecord,
    UnknownRecordFormError,
    check_record_owner,
    describe_unread_module,
    find_log_byte_order,
    has_readable_calls,
    make_byte_reader,
    parse_call_records,
    read_newer_module,
)
from sonde.model.errors import MachineError, UserError

COUNTER_MODULES = ("POSIX", "MPI-IO", "STDIO", "H5F", "PNETCDF_FILE", "DFS")
_RECORD_TYPES = {
    "POSIX": "struct darshan_posix_file *",
    "MPI-IO": "struct darshan_mpiio_file *",
    "STDIO": "struct darshan_stdio_file *",
    "H5F": "struct darshan_hdf5_file *",
    "PNETCDF_FILE": "struct darshan_pnetcdf_file *",
    "DFS": "struct darshan_dfs_file *",
}
# The newest versions that every supported wheel reads.
_NEWEST_LIBRARY_VERSIONS = {"DXT_POSIX": 1, "DXT_MPIIO": 2}
# What the library and the parsers raise of damaged logs.
DAMAGED_LOG_ERRORS = (RuntimeError, ValueError, OverflowError, MemoryError)
# So many records are read to see whether they have Darshan's form; records of another form differ from the second on.
_PROBED_RECORDS = 8
# More bins, components or targets than this in one record: the record is damaged.
_MAX_BINS, _MAX_PARTS = 1 << 20, 1 << 16


@dataclass(frozen=True)
class CounterRecord:
    """Counters of one file on one rank, or on all ranks (`rank` -1)."""

    file: int
    rank: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class TimeBinRecord:
    """Bytes of one rank in equal intervals of time (HEATMAP)."""

    layer: int  # id of the name "heatmap:POSIX" or of another layer
    rank: int
    bin_s: float
    read: NDArray[np.int64]
    write: NDArray[np.int64]


@dataclass(frozen=True)
class StripeRecord:
    """Stripe size and storage targets of one file on Lustre."""

    file: int
    stripe_bytes: int
    targets: tuple[int, ...]


def load_backend() -> Any:
    """Returns PyDarshan's low-level module. Raises MachineError when it is not installed."""
    try:
        from darshan.backend import cffi_backend
    except Exception as reason:  # its import fails in several ways without its C library
        raise MachineError(f"Darshan logs need the package darshan ({reason}): pip install darshan.") from None
    return cffi_backend


class DarshanLog:
    """An open log. Use `open_darshan_log`."""

    def __init__(self, darshan_backend: Any, log_handle: Any, log_path: Path) -> None:
        self._backend, self._log, self._path = darshan_backend, log_handle, log_path
        self._reasons_for_unread_calls: dict[str, str] = {}
        self.job: dict[str, Any] = darshan_backend.log_get_job(log_handle)
        self.modules: dict[str, dict[str, Any]] = darshan_backend.log_get_modules(log_handle)

    @property
    def command_line(self) -> str:
        """Command line of the program."""
        return str(self._backend.log_get_exe(self._log))

    @property
    def mounts_by_length(self) -> list[tuple[str, str]]:
        """Path and type of the mounts, the longest path first."""
        return sorted(self._backend.log_get_mounts(self._log), key=lambda mount: -len(mount[0]))

    def paths_by_file_id(self) -> dict[int, str]:
        """Returns the path of each file in the log, by the id that counter records have."""
        return dict(self._backend.log_get_name_records(self._log))

    def iterate_counter_records(self, module_name: str) -> Iterator[CounterRecord]:
        """Records of one of COUNTER_MODULES. Raises UnknownRecordFormError."""
        counters, times = _read_counter_names(module_name)
        for buffer in self._iterate_records(module_name):
            record = self._backend.ffi.cast(_RECORD_TYPES[module_name], buffer)
            file, rank = int(record.base_rec.id), int(record.base_rec.rank)
            check_record_owner(module_name, file, rank, int(self.job["nprocs"]))
            integers = np.frombuffer(self._backend.ffi.buffer(record.counters), dtype=np.int64)
            floats = np.frombuffer(self._backend.ffi.buffer(record.fcounters), dtype=np.float64)
            values: dict[str, float] = dict(zip(counters, integers.tolist(), strict=False))
            values.update(zip(times, np.nan_to_num(floats, posinf=0.0, neginf=0.0).tolist(), strict=False))
            yield CounterRecord(file, rank, values)

    def iterate_call_records(self, module_name: str) -> Iterator[CallRecord]:
        """Records of DXT_POSIX or DXT_MPIIO; none where `describe_unread_calls` has a reason. They can be read once."""
        if module_name in self.modules and not self.describe_unread_calls(module_name):
            yield from self._iterate_module_calls(module_name)

    def describe_unread_calls(self, module_name: str) -> str:
        """A sentence when the log has DXT_POSIX or DXT_MPIIO in a version or form that is not known, else ""."""
        if module_name not in self._reasons_for_unread_calls:
            self._reasons_for_unread_calls[module_name] = self._find_reason_for_unread_calls(module_name)
        return self._reasons_for_unread_calls[module_name]

    def _find_reason_for_unread_calls(self, module_name: str) -> str:
        if module_name not in self.modules:
            return ""
        version = int(self.modules[module_name]["ver"])
        if not has_readable_calls(module_name, version):
            return describe_unread_module(module_name, version)
        try:
            with open_darshan_log(self._path) as log:  # the library gives the bytes of a module once
                for _ in islice(log._iterate_module_calls(module_name), _PROBED_RECORDS):
                    pass
        except UnknownRecordFormError as reason:
            return f"The single calls of the log are not in Darshan's own form ({reason}), so they are left out."
        return ""

    def _iterate_module_calls(self, module_name: str) -> Iterator[CallRecord]:
        index, version = (int(self.modules[module_name][name]) for name in ("idx", "ver"))
        if version > _NEWEST_LIBRARY_VERSIONS[module_name]:
            read_bytes = make_byte_reader(read_newer_module(self._path, index))
        else:
            read_bytes = self._make_module_reader(index)
        order = find_log_byte_order(self._path)
        yield from parse_call_records(read_bytes, module_name, version, order, int(self.job["nprocs"]))

    def _make_module_reader(self, module_index: int) -> Callable[[int], bytes]:
        ffi, read, handle = self._backend.ffi, _load_module_reader(), self._log["handle"]
        is_at_end = False

        def read_bytes(byte_count: int) -> bytes:
            nonlocal is_at_end
            if is_at_end:  # the library begins again
                return b""
            buffer = ffi.new("char[]", byte_count)
            received = max(0, int(read(handle, module_index, buffer, byte_count)))
            is_at_end = received < byte_count
            return bytes(ffi.buffer(buffer, received))

        return read_bytes

    def iterate_time_bin_records(self) -> Iterator[TimeBinRecord]:
        """Records of the HEATMAP module."""
        ffi = self._backend.ffi
        for buffer in self._iterate_records("HEATMAP"):
            record = ffi.cast("struct darshan_heatmap_record *", buffer)
            bins = int(record.nbins)
            if not 0 < bins <= _MAX_BINS or not record.bin_width_seconds > 0:
                continue
            read, write = (
                np.frombuffer(ffi.buffer(pointer, 8 * bins), dtype=np.int64).copy()
                for pointer in (record.read_bins, record.write_bins)
            )
            yield TimeBinRecord(
                int(record.base_rec.id), int(record.base_rec.rank), float(record.bin_width_seconds), read, write
            )

    def iterate_stripe_records(self) -> Iterator[StripeRecord]:
        """Records of the LUSTRE module. The targets of all components of a layout are joined."""
        names, _ = _read_counter_names("LUSTRE_COMP")
        size_index = names.index("LUSTRE_COMP_STRIPE_SIZE")
        for buffer in self._iterate_records("LUSTRE"):
            record = self._backend.ffi.cast("struct darshan_lustre_record *", buffer)
            components, stripes = int(record.num_comps), int(record.num_stripes)
            if not 0 < components <= _MAX_PARTS or not 0 <= stripes <= _MAX_PARTS:
                continue
            targets = self._backend.ffi.unpack(record.ost_ids, stripes) if stripes else []
            stripe_bytes = int(record.comps[0].counters[size_index])
            yield StripeRecord(
                int(record.base_rec.id), stripe_bytes, tuple(target for target in targets if target >= 0)
            )

    def _iterate_records(self, module_name: str) -> Iterator[Any]:
        if module_name not in self.modules:
            return
        ffi, library = self._backend.ffi, self._backend.libdutil
        index = self.modules[module_name]["idx"]
        while True:
            pointer = ffi.new("void **")
            if library.darshan_log_get_record(self._log["handle"], index, pointer) < 1:
                return
            try:
                yield pointer[0]
            finally:
                library.darshan_free(pointer[0])


@contextmanager
def open_darshan_log(log_path: Path) -> Iterator[DarshanLog]:
    """Opens a log. Raises UserError when it is none, MachineError when the library is missing."""
    backend = load_backend()
    log = backend.log_open(str(log_path))
    if log["handle"] == backend.ffi.NULL:
        raise UserError(f"{log_path} is no Darshan log that this version of the library reads (3.0 and later).")
    try:
        yield DarshanLog(backend, log, log_path)
    finally:
        backend.log_close(log)


def make_damaged_log_error(log_path: Path, reason: Exception) -> UserError:
    """The error for one of DAMAGED_LOG_ERRORS that reading a log raised."""
    if isinstance(reason, UnknownRecordFormError):
        return UserError(f"{log_path} is damaged, or a modified Darshan wrote it, whose form is not known: {reason}.")
    return UserError(f"{log_path} is damaged: {str(reason) or type(reason).__name__}.")


@lru_cache
def _load_module_reader() -> Any:
    """The function of the library that reads the bytes of a module. PyDarshan does not declare it."""
    backend = load_backend()
    backend.ffi.cdef("int darshan_log_get_mod(void *, int, void *, int);")
    return backend.libdutil.darshan_log_get_mod


@lru_cache
def _read_counter_names(module_name: str) -> tuple[list[str], list[str]]:
    backend = load_backend()
    return backend.counter_names(module_name) or [], backend.fcounter_names(module_name) or []
