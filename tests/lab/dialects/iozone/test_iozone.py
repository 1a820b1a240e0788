# SPDX-License-Identifier: Apache-2.0
"""IOzone's words, the plans they come to, and its tables from records: what is known beforehand comes out."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sonde.dialects.iozone import tables as iozone_tables
from sonde.dialects.iozone.arguments import IozoneSettings, list_grid_cells, parse_arguments
from sonde.dialects.iozone.plans import IozoneCell, build_cell_plan
from sonde.model.errors import UserError
from sonde.model.line_members import IntervalSeconds
from sonde.model.lines import PhaseBeginLine, PhaseEndLine, TableLine
from sonde.model.record import PhaseRecord
from sonde.sources import iozone as importer
from sonde.sources.import_defaults import ImportDefaults

COLUMNS = ("task", "bytes", "ops", "transfer_s", "fsync_s", "close_s")


def parse_text(text: str) -> IozoneSettings:
    return parse_arguments(shlex.split(text))


def test_the_printed_command_line_of_a_study_is_understood() -> None:
    # Its text broke "${N}g"; the number of children was given as $N too.
    settings = parse_text("-i 0 -i 1 -r 1M -s 16g -+u -c -C -+m file -t 16")
    assert settings.tests == (0, 1)
    assert settings.records == (1024,)
    assert settings.files == (16 << 20,)
    assert settings.children == (16,)
    assert settings.cpu
    assert settings.close
    assert settings.child_volumes
    assert "--launcher" in settings.notes[0]


def test_values_may_be_attached_and_flags_may_stand_together() -> None:
    settings = parse_text("-ceIw -r4k -s 1m -i0 -i 1 -F one two -t 2")
    assert (settings.close, settings.flush, settings.direct, settings.keep) == (True, True, True, True)
    assert settings.records == (4,)
    assert settings.paths == ("one", "two")


def test_children_range_expands_to_every_number() -> None:
    assert parse_text("-l 2 -u 5 -F a b c d e").children == (2, 3, 4, 5)


def test_automatic_sizes_equal_iozone_sizes() -> None:
    cells = list_grid_cells(parse_text("-a"))
    assert cells[0] == (64, 4)
    assert cells[-1] == (512 << 10, 16 << 10)
    assert sorted({size for size, _ in cells}) == [64 << n for n in range(14)]
    assert [record for size, record in cells if size == 64] == [4, 8, 16, 32, 64]
    # Small records would take too long in large files, unless asked for.
    assert min(record for size, record in cells if size == 32 << 10) == 64
    assert min(record for size, record in list_grid_cells(parse_text("-az")) if size == 32 << 10) == 4
    assert list_grid_cells(parse_text("-a -n 128 -g 256 -y 64 -q 128")) == [
        (128, 64),
        (128, 128),
        (256, 64),
        (256, 128),
    ]
    assert list_grid_cells(parse_text("-s 1m -s 2m -r 4 -r 64k")) == [(1024, 4), (1024, 64), (2048, 4), (2048, 64)]


WRONG_ARGUMENTS = {
    "-i 6": "none of the tests",
    "-i 4": "-i 0",
    "-i 99": "no test",
    "-i 1": "-i 0",
    "-r 0": "above zero",
    "-r 4x": "KiB",
    "-r 8k -s 4k": "smaller than a record",
    "-t 0": "from 1 on",
    "-t": "needs a value",
    "-t 3 -F a b": "2 files for 3 children",
    "-F": "needs the names",
    "-a -t 2": "leave it out",
    "-B -I": "-B does not go with",
    "-X file": "replays",
    "-l 4 -u 2": "more than",
    "-~": "not known",
    "file": "stands where an option",
    "-+z": "not known",
    "--no-report": "lists those of Sonde",
}


def test_file_has_complete_records_as_in_iozone() -> None:
    settings = parse_text("-i 0 -s 1001k -r 4k -r 7k")
    assert list_grid_cells(settings) == [(1000, 4), (1001, 7)]
    assert [note for note in settings.notes if "KiB" in note] == [
        "-s 1001 KiB: the file has 1000 KiB, whole records of 4 KiB, as in IOzone."
    ]


@pytest.mark.parametrize("command_line", WRONG_ARGUMENTS)
def test_invalid_arguments_get_one_sentence(command_line: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_text(command_line)
    assert WRONG_ARGUMENTS[command_line] in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_cell_is_a_plan_with_its_phases_in_order(tmp_path: Path) -> None:
    settings = parse_text(f"-i 0 -i 1 -i 2 -i 3 -i 5 -e -I -o -f {tmp_path}/f")
    plan = build_cell_plan(settings, IozoneCell(1024, 64)).document
    ids = "write rewrite read reread random_read random_write backward_read stride_read"
    assert [phase["id"] for phase in plan["phases"]] == ids.split()
    assert plan["target"]["path"] == str(tmp_path)
    assert plan["data"]["access"] == {"transfer": 65536, "block": 1 << 20}
    assert plan["data"]["io"] == {"direct": True, "sync": "sync", "fsync": "end_timed_separately"}
    assert plan["phases"][6]["access"]["order"] == "reverse"
    assert plan["phases"][7]["access"]["stride"] == 17 * 65536
    assert [p["id"] for p in build_cell_plan(parse_text("-+n -i 0 -i 1"), IozoneCell(64, 4)).document["phases"]] == [
        "write",
        "read",
    ]


def test_record_rewrite_repeats_the_first_record() -> None:
    (_, _, rewrite) = build_cell_plan(parse_text("-i 0 -i 4"), IozoneCell(1024, 64)).document["phases"]
    assert (rewrite["id"], rewrite["op"]) == ("record_rewrite", "rewrite")
    assert rewrite["access"] == {"order": "random_replace", "within": 65536}
    assert "record_rewrite" in [
        phase["id"] for phase in build_cell_plan(parse_text("-a"), IozoneCell(64, 4)).document["phases"]
    ]


def test_tests_without_a_backend_are_omitted_with_a_note() -> None:
    settings = parse_text("-i 0 -i 6 -i 12 -d 5")
    assert [phase["id"] for phase in build_cell_plan(settings, IozoneCell(64, 4)).document["phases"]] == [
        "write",
        "rewrite",
    ]
    assert settings.notes == (
        "-i 6 is not run, its columns are empty: no backend of Sonde calls fwrite of the C library.",
        "-i 12 is not run, its columns are empty: no backend of Sonde calls preadv.",
        "-d: no child is delayed, all begin together.",
    )


def test_table_has_the_thirteen_columns_of_iozone() -> None:
    names = iozone_tables.make_table_heading().splitlines()[1].split()
    assert names[-4:] == ["fwrite", "frewrite", "fread", "freread"]
    assert len(iozone_tables.TABLE_COLUMNS) == 13
    assert parse_text("-v").version


def test_first_finished_child_stops_all_by_default() -> None:
    stops = [
        phase.get("stop") for phase in build_cell_plan(parse_text("-t 2 -i 0"), IozoneCell(64, 4, 2)).document["phases"]
    ]
    assert stops == [{"first_done": True}] * 2
    assert all(
        "stop" not in phase
        for phase in build_cell_plan(parse_text("-t 2 -x -i 0"), IozoneCell(64, 4, 2)).document["phases"]
    )


def make_phase(phase_id: str, *rows: tuple[int, float, float, float], elapsed_s: float = 2.0) -> PhaseRecord:
    """A finished phase; rows are (bytes, transfer, fsync, close)."""
    end = PhaseEndLine(phase=phase_id, seconds=IntervalSeconds(elapsed=elapsed_s))
    table = TableLine(
        phase=phase_id,
        columns=COLUMNS,
        rows=tuple((n, row[0], 1, *row[1:]) for n, row in enumerate(rows)),
    )
    return PhaseRecord(PhaseBeginLine(phase=phase_id), end, tasks=[table])


class FakeRecord:
    def __init__(self, *phases: PhaseRecord) -> None:
        self.phases = {phase.id: phase for phase in phases}


@pytest.mark.parametrize(("flags", "seconds"), [("", 1.0), ("-e", 1.5), ("-c", 1.25), ("-ce", 1.75)])
def test_flush_and_close_count_in_the_time_on_request(flags: str, seconds: float) -> None:
    record = FakeRecord(make_phase("write", (1 << 20, 1.0, 0.5, 0.25)))
    rates = iozone_tables.compute_rates_of_tests(record, parse_text(flags))  # type: ignore[arg-type]
    assert rates["write"] == pytest.approx((1 << 20) / seconds)


def test_table_is_parsed_by_iozone_readers() -> None:
    settings = parse_text("-i 0 -i 2 -f /scratch/f")
    rates = {
        "write": 1000.0 * 1024,
        "rewrite": 2000.0 * 1024,
        "random_read": 123456.0 * 1024,
        "random_write": 7.0 * 1024,
    }
    text = (
        iozone_tables.make_heading(settings, ["-i", "0"], "0", "Sat Nov 21 20:45:01 2026")
        + iozone_tables.make_table_heading()
    )
    text += iozone_tables.make_table_row(IozoneCell(16384, 4), rates, settings)
    (run,) = importer.read_iozone_output(text, ImportDefaults())
    assert {phase.phase: phase.bytes_per_s for phase in run.phases} == rates


def test_throughput_sums_children_parent_waits_for_last() -> None:
    record = FakeRecord(make_phase("write", (1024 << 10, 1.0, 0, 0), (512 << 10, 2.0, 0, 0), elapsed_s=2.0))
    settings = parse_text("-t 2 -i 0 -C")
    text = iozone_tables.format_throughput_blocks(IozoneCell(1024, 4, 2), record, settings)  # type: ignore[arg-type]
    assert "Children see throughput for  2 initial writers \t=    1280.00 kB/sec" in text
    assert "Parent sees throughput for  2 initial writers \t=     768.00 kB/sec" in text
    assert "Min throughput per process \t\t\t=     256.00 kB/sec" in text
    assert "Max throughput per process \t\t\t=    1024.00 kB/sec" in text
    assert "Avg throughput per process \t\t\t=     640.00 kB/sec" in text
    assert "Min xfer \t\t\t\t\t=     512.00 kB" in text
    assert "Child[1] xfer count =     512.00 kB" in text


@pytest.mark.parametrize(("flag", "expected"), [("", "4096"), ("-O", "1024"), ("-N", "977")])
def test_rates_come_in_three_units(flag: str, expected: str) -> None:
    assert iozone_tables.format_rate(4096 * 1024, IozoneCell(1024, 4), parse_text(flag)) == expected
