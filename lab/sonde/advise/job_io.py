# SPDX-License-Identifier: Apache-2.0
"""The I/O of one job, in one form for every tool that can log it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from sonde.model.trace import SIZE_CLASSES

_SMALL_SIZE_CLASS_COUNT = 5  # the classes below 1 MiB
# More files than this are folded: those with the least time are counted together.
MAX_UNFOLDED_FILES = 20_000
MAX_TIMELINE_ROWS, TIMELINE_BINS = 256, 200


@dataclass
class DirectionIo:
    """Reads or writes of a file or job, summed over ranks."""

    calls: int = 0
    bytes: int = 0
    consecutive: int = 0  # begins where the previous one ended
    sequential: int = 0  # begins after the previous one; includes `consecutive`
    end_offset: int = 0  # highest byte
    seconds: float = 0.0  # time inside the calls
    sizes: list[int] = field(default_factory=lambda: [0] * len(SIZE_CLASSES))

    @property
    def small_calls(self) -> int:
        """Calls that transfer less than 1 MiB."""
        return sum(self.sizes[:_SMALL_SIZE_CLASS_COUNT])

    @property
    def random_calls(self) -> int:
        """Calls that begin before the end of the previous one."""
        return self.calls - self.sequential

    def add(self, other_io: DirectionIo) -> None:
        """Adds another file or rank."""
        self.calls += other_io.calls
        self.bytes += other_io.bytes
        self.consecutive += other_io.consecutive
        self.sequential += other_io.sequential
        self.end_offset = max(self.end_offset, other_io.end_offset)
        self.seconds += other_io.seconds
        self.sizes = [own_count + added for own_count, added in zip(self.sizes, other_io.sizes, strict=True)]


@dataclass
class RankRange:
    """Smallest and largest number of bytes of the ranks that have a record of their own of one file."""

    least: int = 0
    most: int = 0
    ranks: int = 0

    def add_rank(self, rank_bytes: int) -> None:
        """Adds one rank."""
        self.least = rank_bytes if not self.ranks else min(self.least, rank_bytes)
        self.most = max(self.most, rank_bytes)
        self.ranks += 1


@dataclass
class FileIo:
    """One file, summed over ranks. `is_shared`: the log has one record for all ranks."""

    path: str
    file_system: str = ""  # type of the mount, for example lustre
    is_shared: bool = False
    opens: int = 0
    meta_s: float = 0.0
    read: DirectionIo = field(default_factory=DirectionIo)
    write: DirectionIo = field(default_factory=DirectionIo)
    unaligned: int = 0  # calls whose offset is no multiple of the file system's block
    read_ranks: RankRange = field(default_factory=RankRange)
    write_ranks: RankRange = field(default_factory=RankRange)
    # Of shared records: the ranks with the shortest and the longest time.
    fastest_bytes: int = 0
    slowest_bytes: int = 0
    fastest_s: float = 0.0
    slowest_s: float = 0.0
    stripe_bytes: int = 0
    targets: tuple[int, ...] = ()  # storage targets (OSTs) in the order of stripes
    is_mpi_io: bool = False
    is_hdf5: bool = False

    @property
    def call_seconds(self) -> float:
        """Time in all calls, summed over ranks."""
        return self.meta_s + self.read.seconds + self.write.seconds

    @property
    def has_several_ranks(self) -> bool:
        """Whether more than one rank used the file."""
        return self.is_shared or max(self.read_ranks.ranks, self.write_ranks.ranks) > 1

    @property
    def transferred_bytes(self) -> int:
        """Bytes read and written."""
        return self.read.bytes + self.write.bytes

    def add(self, other_file: FileIo) -> None:
        """Adds records of another rank, or of another file when files are folded."""
        self.opens += other_file.opens
        self.meta_s += other_file.meta_s
        self.unaligned += other_file.unaligned
        self.read.add(other_file.read)
        self.write.add(other_file.write)


@dataclass
class MpiIo:
    """Calls through MPI-IO, summed over files and ranks."""

    independent_reads: int = 0
    independent_writes: int = 0
    collective_reads: int = 0
    collective_writes: int = 0
    nonblocking_reads: int = 0
    nonblocking_writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    def add(self, other_io: MpiIo) -> None:
        """Adds another file or rank."""
        for member in fields(self):
            setattr(self, member.name, getattr(self, member.name) + getattr(other_io, member.name))


@dataclass
class IoTimeline:
    """Bytes by rank and time. A row has `ranks_per_row` ranks, a column `bin_s` seconds."""

    bin_s: float
    ranks_per_row: int
    read: NDArray[np.float64]
    write: NDArray[np.float64]
    source: str  # where it comes from: heat map or single calls

    @property
    def has_values(self) -> bool:
        """Whether any bytes were transferred."""
        return bool(self.read.any() or self.write.any())


@dataclass
class CallSample:
    """Sampled calls, for reads and for writes: bytes and seconds of each."""

    read: list[tuple[int, float]] = field(default_factory=list)
    write: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class JobIo:
    """The I/O of one job. `missing` says in sentences what the log does not hold."""

    source: str  # path of the log
    format: str  # for example "Darshan 3.41"
    program: str
    job_id: str
    user: str
    started_unix_s: float
    seconds: float  # run time of the job
    processes: int
    modules: tuple[str, ...] = ()
    missing: list[str] = field(default_factory=list)
    hints: dict[str, str] = field(default_factory=dict)  # MPI-IO hints
    hosts: tuple[str, ...] = ()  # nodes, where the log names them
    files: list[FileIo] = field(default_factory=list)  # through POSIX; the most expensive one first
    folded_files: int = 0  # files that the last entry of `files` counts together
    streams: list[FileIo] = field(default_factory=list)  # through streams of the C library
    mpi_files: int = 0
    mpi: MpiIo = field(default_factory=MpiIo)
    read: DirectionIo = field(default_factory=DirectionIo)  # through POSIX, all files
    write: DirectionIo = field(default_factory=DirectionIo)
    memory_unaligned: int = 0
    unaligned: int = 0
    long_metadata_records: int = 0  # records of a rank and file with more than 30 s of metadata calls
    rank_seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # in POSIX and stream calls, by rank
    timeline: IoTimeline | None = None
    calls: CallSample = field(default_factory=CallSample)

    @property
    def file_count(self) -> int:
        """Files through POSIX, with those that the last entry of `files` counts together."""
        return len(self.files) + max(0, self.folded_files - 1)

    @property
    def has_io(self) -> bool:
        """Whether the job transferred any bytes or made any metadata calls that the log counted."""
        return any(file.transferred_bytes or file.opens for file in (*self.files, *self.streams))

    @property
    def io_seconds(self) -> float:
        """Seconds that the slowest rank spent in I/O calls."""
        return float(self.rank_seconds.max()) if self.rank_seconds.size else 0.0

    @property
    def mean_io_seconds(self) -> float:
        """Seconds that a rank spent in I/O calls, on average."""
        return float(self.rank_seconds.mean()) if self.rank_seconds.size else 0.0

    @property
    def node_hours(self) -> float:
        """Node-hours of the job; process-hours where the log does not name nodes."""
        return self.seconds * (len(self.hosts) or self.processes) / 3600


class FileListLimiter:
    """Counts the files with the least time together, so that memory stays bounded."""

    def __init__(self, max_files: int = MAX_UNFOLDED_FILES) -> None:
        self._most = max_files
        self._others = FileIo("")
        self.count = 0

    def fold_cheapest_files(self, files: dict[int, FileIo]) -> None:
        """Removes all but the files with the longest time."""
        for number in sorted(files, key=lambda key: -files[key].call_seconds)[self._most :]:
            self._others.add(files.pop(number))
            self.count += 1

    def sort_files_by_time(self, files: dict[int, FileIo]) -> list[FileIo]:
        """Folds files beyond the limit and returns the files with the longest time first; the last entry is the sum of
        the folded files."""
        self.fold_cheapest_files(files)
        ordered = sorted(files.values(), key=lambda file: (-file.call_seconds, -file.transferred_bytes))
        if not self.count:
            return ordered
        self._others.path = f"{self.count} other files"
        return [*ordered, self._others]
