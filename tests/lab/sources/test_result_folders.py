# SPDX-License-Identifier: Apache-2.0
"""Folders of results, files among them that cannot be read, and the units and kinds of what is in the tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.sources.formats import read_result_file
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.result_folders import find_result_files

DATA = Path(__file__).resolve().parents[2] / "data" / "results"


@pytest.fixture
def io500_folder(tmp_path: Path) -> Path:
    """A folder as IO500 of 2020 and later writes it, with the same numbers twice, and files that are no results."""
    folder = tmp_path / "results" / "2026.11.20-10.23.49"
    folder.mkdir(parents=True)
    shutil.copy(DATA / "io500-result.txt", folder / "result.txt")
    shutil.copy(DATA / "io500-summary.txt", folder / "result_summary.txt")
    shutil.copy(DATA / "mdtest-4.1-times.txt", folder / "mdtest-easy-write.txt")
    (folder / "config.ini").write_text("[global]\ndatadir = ./out\n")
    (folder / ".result.txt").write_text((DATA / "io500-result.txt").read_text())
    return folder


def test_folder_of_io500_is_imported_once(sonde: Any, archive: Path, io500_folder: Path) -> None:
    answer = sonde("import", io500_folder.parent)
    assert answer.code == 0, answer.err
    assert "2 runs came into the archive" in answer.out
    assert "2 files in folders held no result" in answer.out, "the summary and the configuration"
    assert {run["source"]["format"] for run in sonde("list", "--json").json} == {"IO500 result", "mdtest"}
    assert "2 were there already" in sonde("import", io500_folder).out


def test_result_summary_is_read_if_result_txt_is_missing(io500_folder: Path) -> None:
    (io500_folder / "result.txt").unlink()
    assert [path.name for path in find_result_files(io500_folder).files] == [
        "mdtest-easy-write.txt",
        "result_summary.txt",
    ]


def test_import_continues_after_unreadable_files(sonde: Any, archive: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.txt"
    damaged.write_text((DATA / "mdtest-4.1.txt").read_text().partition("SUMMARY")[0])
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("hello\n")
    answer = sonde("import", damaged, DATA / "ior-4.1.txt", unknown, DATA / "mdtest-4.1.txt")
    assert answer.code == 1
    assert "3 runs came into the archive" in answer.out
    assert "2 files could not be read" in answer.out
    assert f"{damaged} looks like mdtest, but it has no table of rates." in answer.err
    assert f"{unknown} is not a result" in answer.err


def test_several_unreadable_files_import_nothing(sonde: Any, archive: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("hello\n")
    answer = sonde("import", tmp_path / "a.txt", tmp_path / "b.txt")
    assert answer.code == 2
    assert "Nothing was imported" in answer.err


@pytest.mark.parametrize("name", ["mdtest-4.1.txt", "ior-4.1.txt", "io500-summary.txt", "iozone-table.txt"])
def test_result_after_a_long_log_is_identified(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("NOTE: a library was loaded (mknod create: on)\n" * 4000 + (DATA / name).read_text())
    assert log.stat().st_size > 128 << 10
    runs = read_result_file(log, ImportDefaults())
    alone = read_result_file(DATA / name, ImportDefaults())
    assert [run.phases for run in runs] == [run.phases for run in alone]


def test_times_of_mdtest_are_durations_and_no_rates() -> None:
    (run,) = read_result_file(DATA / "mdtest-4.1-times.txt", ImportDefaults())
    assert [(phase.phase, phase.ops_per_s, phase.seconds) for phase in run.phases] == [
        ("file_creation", 32000, 2.0),
        ("file_removal", 16000, 4.0),
        ("tree_removal", 4, 0.25),
    ]


@pytest.mark.parametrize("heading", ["SUMMARY time: ", "SUMMARY time (in ms/op): ", "SUMMARY time (in ops/sec): "])
def test_mdtest_output_of_times_only_has_no_rate(heading: str, tmp_path: Path) -> None:
    text = (DATA / "mdtest-4.1-times.txt").read_text().replace("'-P'", "'-Z'")
    before, _, tables = text.partition("SUMMARY rate")
    times = tables.partition("SUMMARY time (in ms/op): ")[2]
    (tmp_path / "x.txt").write_text(f"{before}{heading}{times}")
    (run,) = read_result_file(tmp_path / "x.txt", ImportDefaults())
    assert {phase.ops_per_s for phase in run.phases} == {None}
    assert [phase.seconds for phase in run.phases] == [2.0, 4.0, 0.25]
    assert [finding["id"] for finding in run.findings] == ["times_only"]


def test_iozone_numbers_have_the_unit_of_their_option() -> None:
    (operations,) = read_result_file(DATA / "iozone-operations.txt", ImportDefaults())
    assert {phase.bytes_per_s for phase in operations.phases} == {None}
    first = read_result_file(DATA / "iozone-microseconds.txt", ImportDefaults())[0].phases[0]
    assert (first.bytes_per_s, first.ops_per_s, first.also) == (None, 20000, {"us_per_op": 50.0})


def test_iozone_sum_of_latencies_is_refused(tmp_path: Path) -> None:
    text = (DATA / "iozone-operations.txt").read_text()
    text = text.replace("OPS Mode. Output is in operations", "Microseconds/op Mode. Output is in microseconds")
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(UserError, match="whose sum is no rate"):
        read_result_file(tmp_path / "x.txt", ImportDefaults())


def test_time_of_an_old_io500_run_is_in_a_file_name(tmp_path: Path) -> None:
    shutil.copy(DATA / "io500-2019-summary.txt", tmp_path / "result_summary.txt")
    (tmp_path / "io-500-summary.2019.05.17-20.39.18.txt").write_text("System: a\n")
    (run,) = read_result_file(tmp_path / "result_summary.txt", ImportDefaults())
    assert f"{run.started:%Y-%m-%dT%H:%M:%S}" == "2019-05-17T20:39:18"
    assert (run.context["score"], len(run.phases), run.findings) == (5.318, 12, [])


def test_elbencho_text_has_a_run_for_each_command() -> None:
    write, stat = read_result_file(DATA / "elbencho-3.1.txt", ImportDefaults())
    assert (write.seconds, write.phases[0].bytes, write.target) == (64.0, 16384 << 20, "/scratch/probe")
    assert (stat.phases[0].op, stat.phases[0].ops_per_s, stat.seconds) == ("stat", 16978, 0.588)


def test_elbencho_hosts_multiply_the_threads(tmp_path: Path) -> None:
    text = (DATA / "elbencho-3.1.txt").read_text().replace('"-w"', '"--hosts" "node[1-3,5],login1" "-w"')
    (tmp_path / "x.txt").write_text(text)
    assert read_result_file(tmp_path / "x.txt", ImportDefaults())[0].tasks == 5 * 8
