# SPDX-License-Identifier: Apache-2.0
"""Result files of other tools. Those of IOR 4.1, mdtest, fio and elbencho were written by the tool itself; the others
follow its form.

Every expected figure was read off the file by eye.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sonde.model.errors import UserError
from sonde.model.imported_runs import ImportedRun
from sonde.sources.commands import select_work_arguments
from sonde.sources.formats import RESULT_FORMATS, read_result_file
from sonde.sources.import_defaults import ImportDefaults
from sonde.store.archive import Archive
from sonde.store.history import list_histories

DATA = Path(__file__).resolve().parents[2] / "data" / "results"
MIB, GIB = 1 << 20, 1 << 30
# file -> what the first run says: tool, start, tasks, and phase -> (definition, rate in its unit)
EXPECTED: dict[str, tuple[str, str, int | None, dict[tuple[str, str], float]]] = {
    "ior-4.1.txt": (
        "IOR 4.1.0+dev",
        "2026-11-22T00:50:49",
        1,
        {("write", "IOR 4.1 bw"): 522.39 * MIB, ("read", "IOR 4.1 bw"): 28173 * MIB},
    ),
    "ior-4.1.json": (
        "IOR 4.1.0+dev",
        "2026-11-22T00:50:50",
        1,
        {("write", "IOR 4.1 bw"): 1757.8810 * MIB, ("read", "IOR 4.1 bw"): 27594.1053 * MIB},
    ),
    "ior-3.0.txt": (
        "IOR 3.0.1",
        "2017-02-14T18:22:40",
        8,
        {("write", "IOR 3.0 bw"): 512 * MIB, ("read", "IOR 3.0 bw"): 1024 * MIB},
    ),
    "mdtest-4.1.txt": (
        "mdtest 4.1.0+dev",
        "2026-11-22T00:50:52",
        1,
        {
            ("directory_creation", "mdtest 4.1 mean"): 28543.026,
            ("file_stat", "mdtest 4.1 mean"): 2325159.312,
            ("tree_removal", "mdtest 4.1 mean"): 300.488,
        },
    ),
    "fio-3.33.json": (
        "fio 3.33",
        "2026-11-22T00:50:54",
        2,
        {("read", "fio 3.33 bw"): 773948952, ("write", "fio 3.33 bw"): 823881142},
    ),
    "fio-3.33-two-jobs.json": (
        "fio 3.33",
        "2026-11-22T00:50:55",
        2,
        {("a.write", "fio 3.33 bw"): 8388608000, ("b.read", "fio 3.33 bw"): 1525201454},
    ),
    "elbencho-3.1.json": (
        "elbencho 3.1-10",
        "2026-11-22T00:50:55",
        2,
        {
            ("write", "elbencho 3.1 last done"): 3501088480,
            ("read", "elbencho 3.1 last done"): 12300011730,
            ("read", "elbencho 3.1 first done"): 11915636363,
        },
    ),
    "elbencho-3.1.csv": (
        "elbencho 3.1-10",
        "2026-11-22T00:50:55",
        2,
        {("write", "elbencho 3.1 last done"): 3338 * MIB, ("read", "elbencho 3.1 last done"): 11730 * MIB},
    ),
    "elbencho-3.1-directories.json": (
        "elbencho 3.1-10",
        "2026-11-22T00:50:55",
        2,
        {("mkdirs", "elbencho 3.1 last done"): 13333, ("rmfiles", "elbencho 3.1 first done"): 38095},
    ),
    "iozone-table.txt": (
        "IOzone 3.489",
        "2026-11-21T20:45:01",
        1,
        {
            ("write", "IOzone 3.489 rate"): 55907 * 1024,
            ("random_read", "IOzone 3.489 rate"): 34044 * 1024,
            ("random_write", "IOzone 3.489 rate"): 64746 * 1024,
        },
    ),
    "iozone-throughput.txt": (
        "IOzone 3.489",
        "2026-11-21T20:47:41",
        2,
        {
            ("initial_writers", "IOzone 3.489 children"): 301113.50 * 1024,
            ("initial_writers", "IOzone 3.489 parent"): 4523.09 * 1024,
            ("re_readers", "IOzone 3.489 children"): 1179321.50 * 1024,
        },
    ),
    "io500-summary.txt": (
        "IO500 io500-isc24_v3",
        "2026-11-20T10:23:49",
        None,
        {
            ("ior-easy-write", "IO500 io500-isc24_v3 GiB/s"): 2 * GIB,
            ("mdtest-easy-stat", "IO500 io500-isc24_v3 kIOPS"): 48373.593,
            ("find", "IO500 io500-isc24_v3 kIOPS"): 22930.156,
        },
    ),
    "io500-result.txt": (
        "IO500 io500-isc24_v3",
        "2026-11-20T10:23:49",
        None,
        {
            ("ior-hard-write", "IO500 io500-isc24_v3 GiB/s"): 0.5 * GIB,
            ("mdtest-easy-write", "IO500 io500-isc24_v3 kIOPS"): 9456.456,
        },
    ),
    "io500-isc26-result.txt": (
        "IO500 io500-isc26_v2-26-g02091cf254d8",
        "2026-11-22T03:30:06",
        2,
        {
            ("ior-easy-write", "IO500 io500-isc26_v2-26-g02091cf254d8 GiB/s"): 3.316903 * GIB,
            ("find", "IO500 io500-isc26_v2-26-g02091cf254d8 kIOPS"): 702523.687,
        },
    ),
    "mdtest-4.1-times.txt": (
        "mdtest 4.1.0+dev",
        "2024-05-03T09:58:45",
        64,
        {("file_creation", "mdtest 4.1 mean"): 32000.0, ("tree_removal", "mdtest 4.1 mean"): 4.0},
    ),
    "fio-3.33-numjobs.json": (
        "fio 3.33",
        "2026-11-23T23:30:12",
        4,
        # 4 times 8 MiB, the slowest of the four took 32 ms
        {("write", "fio 3.33 bw"): 4 * 8388608 / 0.032},
    ),
    "ior-3.3.csv": (
        "IOR",
        "2026-11-20T10:23:49",
        48,
        {("write", "IOR bw"): 512 * MIB, ("read", "IOR bw"): 2048 * MIB},
    ),
    "elbencho-3.1.txt": (
        "elbencho",
        "2026-08-12T18:21:31",
        8,
        {("write", "elbencho last done"): 256 * MIB, ("write", "elbencho first done"): 500 * MIB},
    ),
    "iozone-operations.txt": (
        "IOzone 3.507",
        "2026-11-21T20:49:41",
        1,
        {("readers", "IOzone 3.507 children"): 1994.33, ("readers", "IOzone 3.507 parent"): 1994.31},
    ),
    "iozone-microseconds.txt": (
        "IOzone 3.489",
        "2026-11-21T20:46:01",
        1,
        {("write", "IOzone 3.489 rate"): 20000, ("random_write", "IOzone 3.489 rate"): 10000},
    ),
    "io500-2019-summary.txt": (
        "IO500",
        "2026-11-20T10:23:49",
        None,
        {
            ("ior-easy-write", "IO500 GiB/s"): 2 * GIB,
            ("mdtest-hard-delete", "IO500 kIOPS"): 5000,
            ("find", "IO500 kIOPS"): 100_000,
        },
    ),
}


def read(name: str, tmp_path: Path) -> Sequence[ImportedRun]:
    """The runs in one of the files, which lies in a folder as IO500 names them."""
    folder = tmp_path / "2026.11.20-10.23.49"
    folder.mkdir(exist_ok=True)
    return read_result_file(Path(shutil.copy(DATA / name, folder)), ImportDefaults())


@pytest.mark.parametrize("name", EXPECTED)
def test_imported_numbers_equal_the_file(name: str, tmp_path: Path) -> None:
    tool, started, tasks, numbers = EXPECTED[name]
    run = read(name, tmp_path)[0]
    assert run.tool == tool
    assert f"{run.started:%Y-%m-%dT%H:%M:%S}" == started
    assert run.started.tzinfo is not None
    assert run.tasks == tasks
    rates = {(phase.phase, phase.definition): phase.bytes_per_s or phase.ops_per_s for phase in run.phases}
    for number, rate in numbers.items():
        assert rates[number] == pytest.approx(rate, rel=1e-6), number


def test_every_file_and_every_format_is_tried() -> None:
    assert {path.name for path in DATA.iterdir()} == set(EXPECTED)
    matching_formats = {
        name: [format_.name for format_ in RESULT_FORMATS if format_.matches((DATA / name).read_text())]
        for name in EXPECTED
    }
    assert all(len(names) == 1 for names in matching_formats.values()), matching_formats
    assert {names[0] for names in matching_formats.values()} == {format_.name for format_ in RESULT_FORMATS}


def test_repetitions_are_runs_of_one_group(tmp_path: Path) -> None:
    for name in ("ior-4.1.txt", "ior-4.1.json", "ior-3.0.txt"):
        first, second = read(name, tmp_path)
        assert first.group == second.group is not None
        assert first.make_run_id() != second.make_run_id()
        assert first.make_history_key_of_all_phases() == second.make_history_key_of_all_phases()
    rates = [run.phases[0].bytes_per_s for run in read("ior-3.0.txt", tmp_path)]
    assert rates == [512 * MIB, 256 * MIB]
    assert [(run.nodes, run.target) for run in read("ior-3.0.txt", tmp_path)] == [(2, "/scratch/probe")] * 2


def test_records_of_different_size_are_different_experiments(tmp_path: Path) -> None:
    small, large = read("iozone-table.txt", tmp_path)
    assert small.make_history_key_of_all_phases()["plan_hash"] != large.make_history_key_of_all_phases()["plan_hash"]
    assert [phase.phase for phase in large.phases] == ["write", "rewrite", "random_read", "random_write"]


def test_io500_result_marked_invalid_stays_invalid(tmp_path: Path) -> None:
    for name in ("io500-summary.txt", "io500-result.txt"):
        (run,) = read(name, tmp_path)
        assert "invalid" in {finding["severity"] for finding in run.findings}
        assert [phase.phase for phase in run.phases if not phase.done] == ["mdtest-easy-write"]
        assert run.context["score"] == 3.634
    (run,) = read("io500-isc26-result.txt", tmp_path)
    assert [phase.phase for phase in run.phases if not phase.done] == [
        "ior-easy-write",
        "mdtest-easy-write",
        "ior-hard-write",
        "mdtest-hard-write",
    ]
    assert run.context["score"] == 26.384707


def test_one_result_in_two_formats_gives_one_number(tmp_path: Path) -> None:
    """The CSV has whole MiB/s, the JSON bytes."""
    (exact,), (rounded,) = read("elbencho-3.1.json", tmp_path), read("elbencho-3.1.csv", tmp_path)
    assert exact.make_history_key_of_all_phases() == rounded.make_history_key_of_all_phases()
    for phase, other in zip(exact.phases, rounded.phases, strict=True):
        assert (phase.phase, phase.definition) == (other.phase, other.definition)
        assert other.bytes_per_s == pytest.approx(phase.bytes_per_s, abs=MIB)


def test_histories_never_mix_tools(sonde: Any, archive: Path) -> None:
    answer = sonde("import", *sorted(DATA.iterdir()), "--system", "s", "--file-system", "f", "--json")
    assert answer.code == 0, answer.err
    assert len(answer.json["added"]) == 28
    series = list_histories(Archive(archive))
    by_plan_hash: dict[str, set[str]] = {}
    for history in series:
        by_plan_hash.setdefault(history.key.plan_hash, set()).add(history.key.definition.split(" ")[0])
        assert not history.key.definition.startswith("sonde")
        assert history.key.epoch == "imported/1"
    assert all(len(tools) == 1 for tools in by_plan_hash.values())
    assert sonde("import", *sorted(DATA.iterdir()), "--system", "s", "--file-system", "f", "--json").json["known"] == 28
    invalid = sonde("list", "--validity", "invalid", "--json").json
    assert {run["source"]["tool"] for run in invalid} == {
        "IO500 io500-isc24_v3",
        "IO500 io500-isc26_v2-26-g02091cf254d8",
    }


def test_the_original_stays_with_the_numbers(sonde: Any, archive: Path) -> None:
    sonde("import", DATA / "mdtest-4.1.txt")
    (folder,) = archive.glob("2026-11/*mdtest*")
    assert (folder / "original.txt").read_bytes() == (DATA / "mdtest-4.1.txt").read_bytes()
    document = json.loads((folder / "run.json").read_text())
    assert document["source"] | {"sha256": ""} == {
        "tool": "mdtest 4.1.0+dev",
        "file": "mdtest-4.1.txt",
        "sha256": "",
        "format": "mdtest",
    }
    output = sonde("show", folder.name).out
    assert "mdtest 4.1 mean" in output
    assert "mean of 2 iterations" in output


def test_times_without_a_zone_use_the_configured_zone(tmp_path: Path) -> None:
    about = ImportDefaults(zone=ZoneInfo("America/Los_Angeles"))
    run = read_result_file(DATA / "ior-3.0.txt", about)[0]
    assert run.started == datetime(2017, 2, 15, 2, 22, 40, tzinfo=UTC)
    assert read_result_file(DATA / "fio-3.33.json", about)[0].started.hour == 0, "fio says seconds since 1970"


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_truncated_result_is_rejected_or_gives_correct_numbers(name: str, share: float, tmp_path: Path) -> None:
    numbers = {
        (phase.phase, phase.definition, phase.bytes_per_s) for run in read(name, tmp_path) for phase in run.phases
    }
    text = (DATA / name).read_text()
    (tmp_path / name).write_text(text[: int(len(text) * share)].rpartition("\n")[0] + "\n")
    try:
        runs = read_result_file(tmp_path / name, ImportDefaults())
    except UserError as reason:
        message = str(reason)
    else:
        message = f"{tmp_path / name}."
        assert {(phase.phase, phase.definition, phase.bytes_per_s) for run in runs for phase in run.phases} <= numbers
    assert str(tmp_path / name) in message
    assert message.endswith(".")


@pytest.mark.parametrize(
    "text", ["", "\x00\x01", "{}", '{"fio version": 3}', "mdtest-1 was launched with 1 total task"]
)
def test_nonsense_is_a_sentence(sonde: Any, archive: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    answer = sonde("import", tmp_path / "x.txt")
    assert answer.code == 2
    assert len(answer.sentences) == 1
    assert str(tmp_path / "x.txt") in answer.err
    assert not list(archive.glob("2*"))


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("ior -w -t 1m -o /a/b -i 3", "-w -t 1m"),
        ("/usr/bin/ior -w -o/a/b -e", "-w -e"),
        ("mdtest '-n' '100' '-d' 'x y'", "-n 100"),
        ("x --out=f --size=3", "--size=3"),
        ("x 'unclosed -t", "'unclosed -t"),
    ],
)
def test_work_arguments_exclude_paths(command: str, work: str) -> None:
    assert select_work_arguments(command, ("-o", "-i", "-d", "--out")) == work
