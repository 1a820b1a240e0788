# SPDX-License-Identifier: Apache-2.0
"""Records of IOzone's cells in IOzone's tables. Pure: from records to text.

IOzone counts in KiB. Its rate is that of one process: bytes / time of the transfers, with flush (-e) and close (-c) in
the time when asked. In throughput mode "children" adds the rates of the processes up, each over its own time; "parent"
is all bytes over the time from the first start to the last end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sonde.dialects.iozone.arguments import KIB, IozoneSettings
from sonde.dialects.iozone.plans import IozoneCell
from sonde.model.record import PhaseRecord, RecordReader

# Column of the table -> phases that fill it. The order and the names are IOzone's.
TABLE_COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("write", ("write", "pwrite")),
    ("rewrite", ("rewrite", "repwrite")),
    ("read", ("read", "pread")),
    ("reread", ("reread", "repread")),
    ("random read", ("random_read",)),
    ("random write", ("random_write",)),
    ("bkwd read", ("backward_read",)),
    ("record rewrite", ("record_rewrite",)),
    ("stride read", ("stride_read",)),
    ("fwrite", ()),  # no backend has the streams of the C library
    ("frewrite", ()),
    ("fread", ()),
    ("freread", ()),
)
_CHILD_NAMES = {
    "write": "initial writers",
    "rewrite": "rewriters",
    "read": "readers",
    "reread": "re-readers",
    "random_read": "random readers",
    "random_write": "random writers",
    "backward_read": "reverse readers",
    "stride_read": "stride readers",
    "record_rewrite": "record rewriters",
    "mixed": "mixed workload",
    "pwrite": "pwrite writers",
    "repwrite": "pwrite rewriters",
    "pread": "pread readers",
    "repread": "pread re-readers",
}
_TABLE_HEADER = (
    "                                                              random    random     bkwd    record    stride\n"
    "              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read"
    "   fwrite frewrite    fread  freread\n"
)


@dataclass(frozen=True)
class IozoneChild:
    """One process in one phase. Bytes and seconds."""

    volume: float
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        return self.volume / self.seconds if self.seconds > 0 else 0.0


def list_children(phase: PhaseRecord, settings: IozoneSettings) -> list[IozoneChild]:
    """Volume and seconds of each process, by IOzone's definition of the interval."""
    children = []
    for table in phase.tasks:
        column_positions = {name: index for index, name in enumerate(table.columns)}
        for row in table.rows:

            def get_number(
                column_name: str,
                table_row: Sequence[object] = row,
                column_positions: Mapping[str, int] = column_positions,
            ) -> float:
                value = table_row[column_positions[column_name]]
                return float(value) if isinstance(value, int | float) else 0.0

            seconds = get_number("transfer_s")
            seconds += get_number("fsync_s") if settings.flush else 0.0
            seconds += get_number("close_s") if settings.close else 0.0
            children.append(IozoneChild(get_number("bytes"), seconds))
    return children


def compute_rates_of_tests(record: RecordReader, settings: IozoneSettings) -> dict[str, float]:
    """Bytes per second of each finished phase of the table, by its name."""
    rates = {}
    for phase in record.phases.values():
        children = list_children(phase, settings)
        if phase.end is not None and children:
            rates[phase.id] = sum(child.bytes_per_s for child in children)
    return rates


def make_version_lines(sonde_version: str) -> str:
    """Output of -v: the version of IOzone whose command line is accepted, and the version of Sonde."""
    return (
        "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.489 $\n"
        f"\t\tThe command line of IOzone, run by Sonde {sonde_version}"
    )


def make_heading(settings: IozoneSettings, arguments: Sequence[str], sonde_version: str, start_time_text: str) -> str:
    """Lines before the results."""
    lines = [
        make_version_lines(sonde_version),
        "",
        f"\tRun began: {start_time_text}",
        "",
    ]
    for is_set, text in (
        (settings.auto, "Auto Mode"),
        (settings.flush, "Include fsync in write timing"),
        (settings.close, "Include close in write timing"),
        (settings.direct, "O_DIRECT feature enabled"),
        (settings.synchronous, "SYNC Mode."),
        (settings.mapped, "Using mmap files"),
        (settings.cpu, "CPU utilization Resolution = 0.000001 seconds."),
    ):
        lines += [f"\t{text}"] if is_set else []
    lines += [f"\tFile size set to {size} kB" for size in settings.files]
    lines += [f"\tRecord Size {size} kB" for size in settings.records]
    unit = "ops/sec" if settings.operations else "microseconds/op" if settings.microseconds else "kBytes/sec"
    lines += [f"\tCommand line used: iozone {' '.join(arguments)}", f"\tOutput is in {unit}", ""]
    return "\n".join(lines)


def make_table_heading() -> str:
    """The names of the columns."""
    return _TABLE_HEADER


def format_rate(bytes_per_s: float, cell: IozoneCell, settings: IozoneSettings) -> str:
    """A rate in the unit of the output."""
    operations = bytes_per_s / (cell.record * KIB)
    if settings.operations:
        return f"{operations:.0f}"
    if settings.microseconds:
        return f"{1e6 / operations:.0f}" if operations > 0 else "0"
    return f"{bytes_per_s / KIB:.0f}"


def make_table_row(cell: IozoneCell, rates_by_test: Mapping[str, float], settings: IozoneSettings) -> str:
    """One row; a test that was not asked for leaves its column empty."""
    widths = (9, 9, 9, 9, 9, 9, 9, 10, 10, 9, 9, 9, 9)
    row = f"{cell.file:16d}{cell.record:8d}"
    for (_, phases), width in zip(TABLE_COLUMNS, widths, strict=True):
        value = next((rates_by_test[phase] for phase in phases if phase in rates_by_test), None)
        row += ("" if value is None else format_rate(value, cell, settings)).rjust(width)
    return row.rstrip() + "\n"


def format_throughput_blocks(cell: IozoneCell, record: RecordReader, settings: IozoneSettings) -> str:
    """The blocks of throughput mode."""
    lines = [
        f"\tThroughput test with {cell.children} process{'es' if cell.children > 1 else ''}",
        f"\tEach process writes a {cell.file} kByte file in {cell.record} kByte records",
        "",
    ]
    for phase in record.phases.values():
        if phase.end is not None and phase.id in _CHILD_NAMES:
            lines += _make_block(cell, phase, settings)
    return "\n".join(lines) + "\n"


def _make_block(cell: IozoneCell, phase: PhaseRecord, settings: IozoneSettings) -> Iterable[str]:
    children = list_children(phase, settings)
    end = phase.end
    if not children or end is None:
        return
    who = f"{cell.children:2d} {_CHILD_NAMES.get(phase.id, phase.id)}"
    elapsed = end.seconds.elapsed or 0.0
    volume = sum(child.volume for child in children)
    rates = [child.bytes_per_s / KIB for child in children]
    yield f"\tChildren see throughput for {who} \t= {sum(rates):10.2f} kB/sec"
    yield f"\tParent sees throughput for {who} \t= {volume / elapsed / KIB if elapsed else 0:10.2f} kB/sec"
    yield f"\tMin throughput per process \t\t\t= {min(rates):10.2f} kB/sec"
    yield f"\tMax throughput per process \t\t\t= {max(rates):10.2f} kB/sec"
    yield f"\tAvg throughput per process \t\t\t= {sum(rates) / len(rates):10.2f} kB/sec"
    yield f"\tMin xfer \t\t\t\t\t= {min(child.volume for child in children) / KIB:10.2f} kB"
    if settings.cpu:
        used = (end.cpu.user_s or 0.0) + (end.cpu.system_s or 0.0)
        share = 100 * used / elapsed if elapsed else 0.0
        yield f"\tCPU Utilization: Wall time {elapsed:8.3f}    CPU time {used:8.3f}    CPU utilization {share:6.2f} %"
    if settings.child_volumes:
        for number, child in enumerate(children):
            moved, rate = child.volume / KIB, child.bytes_per_s / KIB
            yield f"\tChild[{number}] xfer count = {moved:10.2f} kB, Throughput = {rate:10.2f} kB/sec"
    yield ""
