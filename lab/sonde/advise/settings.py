# SPDX-License-Identifier: Apache-2.0
"""Makes settings that remove a pattern: environment variables, commands, or calls in the program."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.advise.buffers import escape_path_as_pattern
from sonde.advise.job_io import FileIo, JobIo
from sonde.advise.triggers import CostKind, IoPattern
from sonde.model.shell import quote_word

_MIN_STRIPED_FILE_BYTES = 1 << 30  # files below this size gain little from several stripes
_STRIPE_BYTES, _LARGEST_STRIPE = 1 << 20, 16 << 20
_MAX_FILES_OF_SETTING = 5
_IOBUF_PAGE_COUNT = 8


@dataclass(frozen=True)
class ReadySetting:
    """`kind` names the mechanism, `text` can be copied unchanged, and `purpose` describes the effect."""

    kind: str
    text: str
    purpose: str


def make_ready_settings(job: JobIo, patterns: Sequence[IoPattern]) -> list[ReadySetting]:
    """Settings with the same effect, the one that needs the smallest change first."""
    effect = patterns[0].effect
    files = list({id(file): file for pattern in patterns for file in pattern.files}.values())[:_MAX_FILES_OF_SETTING]
    if effect in (CostKind.READS, CostKind.WRITES):
        return [
            *_advise_buffering(files, effect),
            *_advise_collective_calls(job, files, effect),
            *_advise_hdf5_settings(job, files),
            *_advise_stripes(job, files),
        ]
    if effect is CostKind.ALIGNMENT:
        return [*_advise_hdf5_settings(job, files), *_advise_buffering(files, effect)]
    if effect is CostKind.METADATA:
        return _advise_fewer_metadata_calls(job, files)
    if effect is CostKind.BALANCE:
        return [
            *_advise_collective_calls(job, [file for file in files if file.is_mpi_io], CostKind.WRITES),
            *_advise_stripes(job, files),
        ]
    if effect is CostKind.REDUNDANT_READS:
        return (
            [
                *_advise_buffering([file for file in files if not file.has_several_ranks], effect),
                ReadySetting("program", "MPI_Bcast after one rank has read", "one rank reads what all ranks need"),
            ]
            if job.processes > 1
            else _advise_buffering(files, effect)
        )
    if effect is CostKind.OVERLAP:
        calls = "MPI_File_iread_at, MPI_File_iwrite_at, MPI_Wait before the buffer is used again"
        return [ReadySetting("program", calls, "the program computes while data moves")]
    return []


def _advise_buffering(files: Sequence[FileIo], cost_kind: CostKind) -> list[ReadySetting]:
    """Files of one rank each: only these may be buffered without knowing what other ranks do."""
    single_rank_files = [file for file in files if not file.has_several_ranks and re.match("/[^/]", file.path)]
    if not single_rank_files:
        return []
    prefetch = ":prefetch=2" if cost_kind is not CostKind.WRITES else ""
    entries = [
        f"{escape_path_as_pattern(file.path)}:size={_choose_page_bytes(file)}:count={_IOBUF_PAGE_COUNT}{prefetch}"
        for file in single_rank_files
    ]
    return [
        ReadySetting(
            "environment",
            f"IOBUF_PARAMS={quote_word(','.join(entries))}",
            "small calls become large ones; see sonde iobuf",
        )
    ]


def _choose_page_bytes(file: FileIo) -> int:
    """A power of two between 1 and 16 MiB with room for 64 calls."""
    calls = file.read.calls + file.write.calls
    required = 64 * file.transferred_bytes / calls if calls else 0
    page = _STRIPE_BYTES
    while page < required and page < _LARGEST_STRIPE:
        page *= 2
    return page


def _advise_collective_calls(job: JobIo, files: Sequence[FileIo], cost_kind: CostKind) -> list[ReadySetting]:
    shared = [file for file in files if file.has_several_ranks or file.is_mpi_io]
    if not shared or "MPI-IO" not in job.modules:
        return []
    direction = "read" if cost_kind is CostKind.READS else "write"
    nodes = len(job.hosts)
    stripe = max((file.stripe_bytes for file in shared), default=0) or 4 * _STRIPE_BYTES
    lines = [f"romio_cb_{direction} enable", f"cb_buffer_size {max(stripe, 4 * _STRIPE_BYTES)}"]
    if nodes:
        lines.append(f"cb_nodes {nodes}")
    settings = [
        ReadySetting(
            "environment",
            "ROMIO_HINTS=FILE, with these lines in FILE: " + "; ".join(lines),
            "a few ranks of each node collect the data; works for collective calls",
        )
    ]
    mpi = job.mpi
    collective = mpi.collective_reads if cost_kind is CostKind.READS else mpi.collective_writes
    if not collective:
        call = f"MPI_File_{direction}_at_all"
        settings.append(
            ReadySetting("program", f"{call} in place of MPI_File_{direction}_at", "makes calls collective")
        )
    return settings


def _advise_hdf5_settings(job: JobIo, files: Sequence[FileIo]) -> list[ReadySetting]:
    if not any(file.is_hdf5 or file.path.endswith((".h5", ".hdf5", ".nc4")) for file in files):
        return []
    block = max((file.stripe_bytes for file in files), default=0) or _STRIPE_BYTES
    settings = [
        ReadySetting(
            "program",
            f"H5Pset_alignment(fapl, {block // 2}, {block})",
            "large objects begin at a stripe or block",
        ),
        ReadySetting(
            "program",
            f"H5Pset_meta_block_size(fapl, {_STRIPE_BYTES}); H5Pset_chunk with chunks of {block} bytes and more",
            "metadata is written in blocks, data in chunks of a stripe",
        ),
    ]
    if job.processes > 1 and any(file.has_several_ranks for file in files):
        settings.append(
            ReadySetting(
                "program",
                "H5Pset_all_coll_metadata_ops(fapl, 1); H5Pset_coll_metadata_write(fapl, 1)",
                "one rank reads and writes the metadata of all",
            )
        )
    return settings


def _advise_stripes(job: JobIo, files: Sequence[FileIo]) -> list[ReadySetting]:
    """Stripes for large shared files on Lustre; the targets are those that any file of the job uses."""
    settings = []
    available = 1 + max((target for file in job.files for target in file.targets), default=-1)
    for file in files:
        count = min(available, job.processes)
        if (
            file.file_system == "lustre"
            and file.has_several_ranks
            and file.transferred_bytes > _MIN_STRIPED_FILE_BYTES
            and 0 < len(file.targets) < count
        ):
            mean = file.transferred_bytes / max(1, file.read.calls + file.write.calls)
            size = _STRIPE_BYTES
            while size < mean and size < _LARGEST_STRIPE:
                size *= 2
            folder = quote_word(posixpath.dirname(file.path) or "/")
            settings.append(
                ReadySetting(
                    "command",
                    f"lfs setstripe -c {count} -S {size >> 20}M {folder}",
                    f"new files use {count} storage targets; this one uses {len(file.targets)}",
                )
            )
            break
    return settings


def _advise_fewer_metadata_calls(job: JobIo, files: Sequence[FileIo]) -> list[ReadySetting]:
    single_rank_files = sum(not file.has_several_ranks for file in job.files)
    settings = []
    if job.processes > 1 and single_rank_files >= job.processes:
        text = "one file for all ranks, or for the ranks of a node, in place of a file per process"
        settings.append(ReadySetting("program", text, f"the job uses {single_rank_files} files of one rank each"))
    if any(file.file_system == "lustre" for file in files):
        settings.append(
            ReadySetting("command", "lfs setdirstripe -c -1 -D DIRECTORY", "new directories use all metadata servers")
        )
    settings.append(ReadySetting("program", "open each file once and keep it open", "fewer opens, stats and closes"))
    return settings
