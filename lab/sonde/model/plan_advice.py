# SPDX-License-Identifier: Apache-2.0
"""Advice on a plan by the principles of fast I/O: alignment, large calls, several in flight, buffered or direct, and
preallocation.

Source of the principles and of the limit of 1 MB: Cray X1 System Performance, Cray User Group 2004, "General
principles" and "Direct I/O summary". The size from which direct I/O is faster is half of this node's memory instead of
the talk's "few GB".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.model.backends import BACKENDS_WITHOUT_STORAGE
from sonde.model.operations import TRANSFER_OPS, WRITE_OPS
from sonde.model.plan import Plan
from sonde.model.units import format_bytes
from sonde.model.volume import PhaseVolume

_LARGE_TRANSFER_BYTES = 1_000_000  # bytes
_PAGE_BYTES = 4096  # bytes
# Beyond this fraction of memory, buffered files displace each other in the page cache.
_CACHEABLE_FRACTION = 0.5
_PREALLOCATED_FILE_BYTES = 1 << 30  # bytes of one file


@dataclass(frozen=True)
class _DataPhase:
    """A phase that transfers bytes of files, with its resolved data members."""

    volume: PhaseVolume
    data: Mapping[str, Any]
    memory: int | None  # bytes of the node

    @property
    def is_direct(self) -> bool:
        return bool(self.data["io"]["direct"])

    @property
    def is_sequential(self) -> bool:
        return str(self.data["access"]["order"]) == "sequential"

    @property
    def file_bytes(self) -> int:
        return self.volume.bytes // max(1, self.volume.files)

    @property
    def fits_in_memory(self) -> bool | None:
        """Whether the page cache can hold the volume; None if the memory is unknown."""
        return None if not self.memory else self.volume.bytes <= _CACHEABLE_FRACTION * self.memory


def find_plan_advice(plan: Plan, volumes: Sequence[PhaseVolume], memory: int | None) -> list[str]:
    """Returns one sentence for each principle that phases do not follow. `memory`: bytes of the node."""
    phases = [
        _DataPhase(volume, plan.resolve_data(phase), memory)
        for phase, volume in zip(plan.phases, volumes, strict=True)
        if volume.op in TRANSFER_OPS
        and not plan.is_tree_phase(phase)
        and volume.backend not in BACKENDS_WITHOUT_STORAGE
    ]
    return [sentence for principle in _ADVICE_RULES for sentence in principle(phases)]


def _join_phase_names(phases: Iterable[_DataPhase]) -> str:
    return ", ".join(phase.volume.id for phase in phases)


def _advise_alignment(phases: Sequence[_DataPhase]) -> Iterator[str]:
    unaligned = [
        phase
        for phase in phases
        if phase.volume.transfer_bytes % _PAGE_BYTES and phase.volume.transfer_bytes > _PAGE_BYTES
    ]
    if unaligned:
        size = format_bytes(unaligned[0].volume.transfer_bytes)
        yield (
            f"{_join_phase_names(unaligned)}: calls of {size} begin between pages; multiples of 4 KiB avoid partial "
            "pages."
        )


def _advise_large_calls(phases: Sequence[_DataPhase]) -> Iterator[str]:
    small = [phase for phase in phases if phase.is_sequential and phase.volume.transfer_bytes < _LARGE_TRANSFER_BYTES]
    if small:
        size = format_bytes(min(phase.volume.transfer_bytes for phase in small))
        yield (
            f"{_join_phase_names(small)}: calls of {size} pay the cost of a call often; use 1 MiB or more, or "
            "gather them"
            " (sonde iobuf)."
        )


def _advise_direct(phases: Sequence[_DataPhase]) -> Iterator[str]:
    large = [phase for phase in phases if not phase.is_direct and phase.fits_in_memory is False]
    if large:
        yield (
            f"{_join_phase_names(large)}: the volume exceeds half of the memory "
            f"({format_bytes(large[0].memory or 0)}), so"
            " the page cache costs copies and gains little; io.direct = true avoids it."
        )
    small = [
        phase for phase in phases if phase.is_direct and phase.fits_in_memory and phase.volume.transfer_bytes < 65536
    ]
    if small:
        yield (
            f"{_join_phase_names(small)}: small direct calls of a volume that fits into memory get no write-behind "
            "and no"
            " read-ahead; buffered calls (io.direct = false) do."
        )


def _advise_parallel_calls(phases: Sequence[_DataPhase]) -> Iterator[str]:
    lonely = [phase for phase in phases if phase.is_direct and int(phase.data["io"]["queue_depth"]) == 1]
    if lonely:
        yield (
            f"{_join_phase_names(lonely)}: each task waits for each direct call; several in flight (io.queue_depth with"
            " backend io_uring) keep devices busy."
        )
    single = [phase for phase in phases if phase.volume.tasks == 1]
    if single:
        yield (
            f"{_join_phase_names(single)}: one stream uses one path; more tasks on several files, or a file striped "
            "over"
            " targets of different controllers, distribute the load over the hardware."
        )


def _advise_preallocation(phases: Sequence[_DataPhase]) -> Iterator[str]:
    growing = [
        phase
        for phase in phases
        if phase.is_direct
        and phase.volume.op in WRITE_OPS
        and phase.data["io"]["preallocate"] == "none"
        and phase.file_bytes >= _PREALLOCATED_FILE_BYTES
    ]
    if growing:
        yield (
            f"{_join_phase_names(growing)}: direct writes allocate blocks call by call; io.preallocate allocates "
            "the file at"
            " once."
        )


_ADVICE_RULES: tuple[Callable[[Sequence[_DataPhase]], Iterator[str]], ...] = (
    _advise_alignment,
    _advise_large_calls,
    _advise_direct,
    _advise_parallel_calls,
    _advise_preallocation,
)
