# SPDX-License-Identifier: Apache-2.0
"""A Darshan log as `JobIo`, in one pass over its records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonde.advise.darshan_library import (
    DAMAGED_LOG_ERRORS,
    CounterRecord,
    DarshanLog,
    make_damaged_log_error,
    open_darshan_log,
)
from sonde.advise.darshan_segments import UnknownRecordFormError
from sonde.advise.job_io import MAX_UNFOLDED_FILES, DirectionIo, FileIo, FileListLimiter, JobIo, MpiIo
from sonde.advise.timeline import TimelineBuilder

_MAX_RANKS = 1 << 24
_SIZE_CLASS_NAMES = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)
_LONG_METADATA_THRESHOLD_S = 30.0
# Files are folded when there are this many times the number that is stored.
_FOLD_THRESHOLD_FACTOR = 3
_CALLS_IN_SAMPLE, _CALLS_OF_A_RECORD = 20_000, 500


def read_darshan_job(log_path: Path) -> JobIo:
    """Reads a log. Raises UserError when it cannot be read, MachineError when the library is missing."""
    try:
        with open_darshan_log(log_path) as log:
            return _JobReader(log_path, log).read_all_modules()
    except DAMAGED_LOG_ERRORS as reason:
        raise make_damaged_log_error(log_path, reason) from None


class _JobReader:
    def __init__(self, log_path: Path, log: DarshanLog) -> None:
        self._log = log
        processes = int(log.job.get("nprocs", 0))
        if not 0 < processes <= _MAX_RANKS:
            raise UnknownRecordFormError(f"its header says that the job had {processes} processes")
        seconds = float(log.job.get("run_time", 0.0))
        metadata = {str(name): str(value) for name, value in log.job.get("metadata", {}).items()}
        self._job = JobIo(
            source=str(log_path),
            format=f"Darshan {log.job.get('log_ver', '?')}",
            program=log.command_line,
            job_id=str(log.job.get("jobid", "")),
            user=str(log.job.get("uid", "")),
            started_unix_s=float(log.job.get("start_time_sec", 0)),
            seconds=seconds if math.isfinite(seconds) and seconds > 0 else 0.0,
            processes=processes,
            modules=tuple(log.modules),
            hints=_parse_mpi_io_hints(metadata.get("h", "")),
        )
        self._files: dict[int, FileIo] = {}
        self._streams: dict[int, FileIo] = {}
        self._names: Mapping[int, str] = log.paths_by_file_id()
        self._folder = FileListLimiter()
        self._rank_seconds: NDArray[np.float64] = np.zeros(processes)
        self._shared_seconds = 0.0  # of each rank

    def read_all_modules(self) -> JobIo:
        """Reads all modules. The order matters: MPI-IO, HDF5 and Lustre add to files of POSIX."""
        job = self._job
        for module in ("POSIX", "DFS"):
            for record in self._log.iterate_counter_records(module):
                self._add_file_record(module, record)
        mpi_files = set()
        for record in self._log.iterate_counter_records("MPI-IO"):
            job.mpi.add(_convert_counters_to_mpi_io(record.values))
            mpi_files.add(record.file)
            if record.file in self._files:
                self._files[record.file].is_mpi_io = True
        job.mpi_files = len(mpi_files)
        for record in self._log.iterate_counter_records("H5F"):
            if record.file in self._files:
                self._files[record.file].is_hdf5 = True
        for record in self._log.iterate_counter_records("STDIO"):
            self._add_stream_record(record)
        for stripes in self._log.iterate_stripe_records():
            if stripes.file in self._files:
                self._files[stripes.file].stripe_bytes = stripes.stripe_bytes
                self._files[stripes.file].targets = stripes.targets
        for names_of in (self._files, self._streams):
            for number, file in names_of.items():
                file.path = self._names.get(number, f"unnamed file {number}")
                file.file_system = file.file_system or _find_file_system_type(file.path, self._log.mounts_by_length)
        job.files = self._folder.sort_files_by_time(self._files)
        job.folded_files = self._folder.count
        job.streams = FileListLimiter().sort_files_by_time(self._streams)
        job.rank_seconds = self._rank_seconds + self._shared_seconds
        self._read_times()
        job.missing.extend(_describe_missing(self._log, job))
        return job

    def _add_file_record(self, module_name: str, file_record: CounterRecord) -> None:
        job, values = self._job, file_record.values
        file = self._files.setdefault(file_record.file, FileIo("", "daos" if module_name == "DFS" else ""))
        read, write = (_convert_counters_to_direction_io(module_name, values, name) for name in ("READ", "WRITE"))
        meta_s = max(0.0, values.get(f"{module_name}_F_META_TIME", 0.0))
        self._add_rank_times(module_name, file, file_record, read.seconds + write.seconds + meta_s)
        file.opens += _get_counter(values, f"{module_name}_OPENS")
        file.meta_s += meta_s
        file.unaligned += _get_counter(values, "POSIX_FILE_NOT_ALIGNED")
        file.read.add(read)
        file.write.add(write)
        job.read.add(read)
        job.write.add(write)
        job.unaligned += _get_counter(values, "POSIX_FILE_NOT_ALIGNED")
        job.memory_unaligned += _get_counter(values, "POSIX_MEM_NOT_ALIGNED")
        job.long_metadata_records += meta_s > _LONG_METADATA_THRESHOLD_S
        if file_record.rank >= 0:
            file.read_ranks.add_rank(read.bytes)
            file.write_ranks.add_rank(write.bytes)
        if len(self._files) > _FOLD_THRESHOLD_FACTOR * MAX_UNFOLDED_FILES:
            self._folder.fold_cheapest_files(self._files)

    def _add_rank_times(self, module_name: str, file: FileIo, file_record: CounterRecord, io_seconds: float) -> None:
        """Adds the time of a record to its rank. A shared record holds the sum over ranks, and the fastest and slowest
        rank."""
        ranks = self._rank_seconds.size
        if 0 <= file_record.rank < ranks:
            self._rank_seconds[file_record.rank] += io_seconds
        elif file_record.rank < 0:
            values = file_record.values
            file.is_shared = True
            file.fastest_bytes = _get_counter(values, f"{module_name}_FASTEST_RANK_BYTES")
            file.slowest_bytes = _get_counter(values, f"{module_name}_SLOWEST_RANK_BYTES")
            file.fastest_s = values.get(f"{module_name}_F_FASTEST_RANK_TIME", 0.0)
            file.slowest_s = values.get(f"{module_name}_F_SLOWEST_RANK_TIME", 0.0)
            self._shared_seconds += io_seconds / ranks
            slowest = _get_counter(values, f"{module_name}_SLOWEST_RANK")
            if 0 <= slowest < ranks and file.slowest_s > io_seconds / ranks:
                self._rank_seconds[slowest] += file.slowest_s - io_seconds / ranks

    def _add_stream_record(self, stdio_record: CounterRecord) -> None:
        values = stdio_record.values
        file = self._streams.setdefault(stdio_record.file, FileIo(""))
        read, write = (_convert_counters_to_direction_io("STDIO", values, name) for name in ("READ", "WRITE"))
        meta_s = max(0.0, values.get("STDIO_F_META_TIME", 0.0))
        self._add_rank_times("STDIO", file, stdio_record, read.seconds + write.seconds + meta_s)
        file.opens += _get_counter(values, "STDIO_OPENS")
        file.meta_s += meta_s
        file.read.add(read)
        file.write.add(write)

    def _read_times(self) -> None:
        """Reads when each rank transferred how much: from the heat map, else from single calls."""
        job = self._job
        bins = TimelineBuilder(job.processes, job.seconds, "heat map")
        for record in self._log.iterate_time_bin_records():
            if self._names.get(record.layer, "") in ("heatmap:POSIX", "heatmap:STDIO"):
                bins.add_bins(record.rank, record.bin_s, record.read, False)
                bins.add_bins(record.rank, record.bin_s, record.write, True)
        timeline = bins.build_timeline()
        single = TimelineBuilder(job.processes, job.seconds, "single calls")
        hosts = set()
        for calls in self._log.iterate_call_records("DXT_POSIX"):
            hosts.add(calls.host)
            for sample, items, is_write in ((job.calls.read, calls.read, False), (job.calls.write, calls.write, True)):
                if not timeline.has_values:
                    single.add_calls(calls.rank, items, is_write)
                if len(sample) < _CALLS_IN_SAMPLE:
                    some = items[:: max(1, items.size // _CALLS_OF_A_RECORD)]
                    sample.extend(zip(some["length"].tolist(), (some["end"] - some["start"]).tolist(), strict=True))
        job.hosts = tuple(sorted(host for host in hosts if host))
        timeline = timeline if timeline.has_values else single.build_timeline()
        job.timeline = timeline if timeline.has_values else None


def _get_counter(counters: Mapping[str, float], counter_name: str) -> int:
    """A counter; 0 where the log does not have it (Darshan writes -1)."""
    return max(0, int(counters.get(counter_name, 0)))


def _convert_counters_to_direction_io(
    module_name: str, counters: Mapping[str, float], direction_name: str
) -> DirectionIo:
    past, end = ("WRITTEN", "BYTE_WRITTEN") if direction_name == "WRITE" else ("READ", "BYTE_READ")
    seconds = counters.get(f"{module_name}_F_{direction_name}_TIME", 0.0)
    return DirectionIo(
        calls=_get_counter(counters, f"{module_name}_{direction_name}S")
        + _get_counter(counters, f"{module_name}_{direction_name}XS"),
        bytes=_get_counter(counters, f"{module_name}_BYTES_{past}"),
        consecutive=_get_counter(counters, f"{module_name}_CONSEC_{direction_name}S"),
        sequential=_get_counter(counters, f"{module_name}_SEQ_{direction_name}S"),
        end_offset=_get_counter(counters, f"{module_name}_MAX_{end}"),
        seconds=max(0.0, seconds),
        sizes=[_get_counter(counters, f"{module_name}_SIZE_{direction_name}_{size}") for size in _SIZE_CLASS_NAMES],
    )


def _convert_counters_to_mpi_io(counters: Mapping[str, float]) -> MpiIo:
    names = ("INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "NB_READS", "NB_WRITES")
    return MpiIo(*(_get_counter(counters, f"MPIIO_{name}") for name in (*names, "BYTES_READ", "BYTES_WRITTEN")))


def _parse_mpi_io_hints(hints_text: str) -> dict[str, str]:
    """MPI-IO hints as Darshan stores them: NAME=VALUE;NAME=VALUE."""
    pairs = (item.split("=", 1) for item in hints_text.split(";") if "=" in item)
    return {name.strip(): value.strip() for name, value in pairs}


def _find_file_system_type(file_path: str, mount_points_with_type: list[tuple[str, str]]) -> str:
    """Type of the mount that holds `file_path`; empty where the log does not say."""
    for mount, kind in mount_points_with_type:
        if file_path == mount or file_path.startswith(mount.rstrip("/") + "/"):
            return kind
    return ""


def _describe_missing(log: DarshanLog, job: JobIo) -> Iterator[str]:
    """Sentences on what the log does not hold."""
    partial = sorted(name for name, module in log.modules.items() if module.get("partial_flag"))
    if partial:
        yield (
            f"The records of {', '.join(partial)} are incomplete: Darshan's memory for them was full, so counts and"
            " times are lower bounds."
        )
    if not log.modules:
        yield "The log holds no records at all: the program made no I/O calls that Darshan sees."
        return
    if "POSIX" not in log.modules and "DFS" not in log.modules:
        yield "The log has no records of POSIX calls: number, size and order of the calls are not known."
    if job.timeline is None and job.has_io:
        yield "The log has neither a heat map nor single calls (DXT): when each rank transferred data is not known."
    unread = [reason for module in ("DXT_POSIX", "DXT_MPIIO") if (reason := log.describe_unread_calls(module))]
    yield from unread
    if not job.calls.read and not job.calls.write and not unread:
        yield "The log has no single calls (DXT): the time of small and large calls is not known separately."
    if "LUSTRE" not in log.modules and any(file.file_system == "lustre" for file in job.files):
        yield "The log has no stripes of the files on Lustre."
    unnamed = sum(file.path.startswith("unnamed file ") for file in (*job.files, *job.streams))
    if unnamed:
        yield f"{unnamed} files have no name in the log."
    if job.folded_files:
        yield f"{job.folded_files} files with the least time are counted together."
