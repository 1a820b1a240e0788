# SPDX-License-Identifier: Apache-2.0
"""Triggers: the same ones fire as in Drishti, at the same thresholds."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import darshan
import pytest
from darshan_builder import DarshanBuilder

from sonde.advise.darshan_log import read_darshan_job
from sonde.advise.triggers import TRIGGERS, find_patterns

SAMPLES = Path(darshan.__file__).parent
GRAPH, EXAMPLES, INPUT = (
    SAMPLES / folder for folder in ("examples/darshan-graph", "examples/example_logs", "tests/input")
)
# What Drishti 0.8 reports for the sample logs of the wheel (darshan 3.5.0), run with --csv.
DRISHTI = {
    GRAPH / "pq_app_readAB_writeC_id71326_7-31-5658-2037904274838284930_55623.darshan": (
        "M05 M06 M07 P02 P04 P07 P08 P12 P14 P18 P19"
    ),
    GRAPH / "pq_app_read_id71317_7-31-5657-2037904274838284930_55623.darshan": "M01 P02 P04 P08 P12",
    GRAPH / "pq_app_read_id71344_7-31-5658-2037904274838284930_55623.darshan": "M01 P02 P04 P08 P12 S01",
    GRAPH / "pq_app_write_id71296_7-31-5657-2037904274838284930_55623.darshan": "M01 P01 P03 P08 P14",
    EXAMPLES / "dxt.darshan": "M01 P02 P04 P05 P06 P08 P09 P11 P14 P17",
    EXAMPLES / "example.darshan": "M05 M06 M07 P01 P03 P08 P10 P14",
    EXAMPLES / "ior_hdf5_example.darshan": "M06 M07 P02 P08 P10 P12 P14 P19",
    EXAMPLES / "noposix.darshan": "M01 S01",
    EXAMPLES / "shane_macsio_id29959_5-22-32552-7035573431850780836_1590156158.darshan": (
        "M05 M06 M07 P01 P03 P06 P08 P12 P14 P16 P18 P19"
    ),
    INPUT / "noposixopens.darshan": "M01 S01",
    INPUT / "sample-badost.darshan": "M01 P01 P03 P14",
    INPUT / "sample-dxt-simple.darshan": "M06 M07 P01 P03 P14 P21",
    INPUT / "sample-goodost.darshan": "M01 P01 P03 P14",
}
# Drishti asks Slurm for the number of nodes (M08 to M10), and compares the wrong way around for redundant bytes.
NOT_COMPARED = {"M08", "M09", "M10", "P09", "P10"}


def find_codes(log: Path) -> set[str]:
    return {pattern.code for pattern in find_patterns(read_darshan_job(log))}


@pytest.mark.parametrize("log", DRISHTI, ids=lambda log: log.stem[:24])
def test_same_triggers_fire_as_in_drishti(log: Path) -> None:
    assert find_codes(log) - NOT_COMPARED == set(DRISHTI[log].split()) - NOT_COMPARED


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("drishti") is None, reason="Drishti (drishti-io) is not on PATH")
def test_installed_drishti_fires_the_same_triggers(tmp_path: Path) -> None:
    """Drishti itself, in an environment of its own: it ends with an error on some logs, and then writes no table."""
    compared = 0
    for number, log in enumerate(DRISHTI):
        folder = tmp_path / str(number)
        folder.mkdir()
        subprocess.run(["drishti", "--csv", log], cwd=folder, capture_output=True, timeout=300, check=False)
        for table in folder.glob("*.csv"):
            (row,) = csv.DictReader(table.read_text().splitlines())
            codes = {code for code, fires in row.items() if fires == "True"}
            assert find_codes(log) - NOT_COMPARED == codes - NOT_COMPARED, log.name
            compared += 1
    assert compared >= 10


def test_every_code_of_drishti_has_a_trigger() -> None:
    numbers = [number for number in range(1, 23) if number != 20]  # Drishti has no P20
    codes = {"S01", *(f"P{number:02}" for number in numbers), *(f"M{number:02}" for number in range(1, 11))}
    assert {trigger.code for trigger in TRIGGERS} == codes
    assert len(TRIGGERS) == len(codes)


SMALL_READ_COUNTERS = {
    "READS": 2002,
    "BYTES_READ": 2002,
    "SIZE_READ_0_100": 1001,
    "SEQ_READS": 2002,
    "MAX_BYTE_READ": 2001,
}
# Code, module, rank, counters that fire the trigger, and changes after which it does not fire.
CASES: list[tuple[str, str, int, Mapping[str, float], Mapping[str, float]]] = [
    ("S01", "STDIO", 0, {"READS": 1, "BYTES_READ": 11}, {"BYTES_READ": 0}),
    ("P05", "POSIX", 0, SMALL_READ_COUNTERS, {"SIZE_READ_0_100": 1000}),
    ("P05", "POSIX", 0, SMALL_READ_COUNTERS, {"READS": 10010}),
    ("P06", "POSIX", 0, {"WRITES": 1001, "SIZE_WRITE_100K_1M": 1001}, {"SIZE_WRITE_100K_1M": 1000}),
    ("P07", "POSIX", 0, {"READS": 100, "MEM_NOT_ALIGNED": 11}, {"MEM_NOT_ALIGNED": 10}),
    ("P08", "POSIX", 0, {"READS": 100, "FILE_NOT_ALIGNED": 11}, {"FILE_NOT_ALIGNED": 10}),
    ("P09", "POSIX", 0, {"READS": 2, "BYTES_READ": 1000, "MAX_BYTE_READ": 898}, {"MAX_BYTE_READ": 899}),
    ("P10", "POSIX", 0, {"WRITES": 2, "BYTES_WRITTEN": 1000, "MAX_BYTE_WRITTEN": 898}, {"MAX_BYTE_WRITTEN": 899}),
    ("P11", "POSIX", 0, {"READS": 5000, "SEQ_READS": 3999}, {"SEQ_READS": 4000}),
    ("P12", "POSIX", 0, {"READS": 5000, "SEQ_READS": 4000}, {"SEQ_READS": 3999}),
    ("P13", "POSIX", 0, {"WRITES": 1001}, {"WRITES": 1000}),
    ("P14", "POSIX", 0, {"WRITES": 1000}, {"WRITES": 1001}),
    ("P15", "POSIX", -1, SMALL_READ_COUNTERS, {"SIZE_READ_0_100": 1000}),
    ("P16", "POSIX", -1, {"WRITES": 1001, "SIZE_WRITE_100K_1M": 1001}, {"SIZE_WRITE_100K_1M": 1000}),
    ("P17", "POSIX", 0, {"OPENS": 1, "F_META_TIME": 30.1}, {"F_META_TIME": 30.0}),
    ("P18", "POSIX", -1, {"BYTES_READ": 100, "SLOWEST_RANK_BYTES": 16}, {"SLOWEST_RANK_BYTES": 15}),
    ("P19", "POSIX", -1, {"F_READ_TIME": 100, "F_SLOWEST_RANK_TIME": 16}, {"F_SLOWEST_RANK_TIME": 15}),
    ("M02", "MPI-IO", -1, {"INDEP_READS": 1001}, {"INDEP_READS": 1000}),
    ("M02", "MPI-IO", -1, {"INDEP_READS": 1001}, {"COLL_READS": 1}),
    ("M03", "MPI-IO", -1, {"INDEP_WRITES": 1001}, {"INDEP_WRITES": 1000}),
    ("M04", "MPI-IO", -1, {"COLL_READS": 1}, {"COLL_READS": 0}),
    ("M05", "MPI-IO", -1, {"COLL_WRITES": 1}, {"COLL_WRITES": 0}),
    ("M06", "MPI-IO", -1, {"INDEP_READS": 1}, {"NB_READS": 1}),
    ("M07", "MPI-IO", -1, {"INDEP_WRITES": 1}, {"NB_WRITES": 1}),
    ("P01", "POSIX", 0, {"WRITES": 56, "READS": 45}, {"WRITES": 55}),
    ("P02", "POSIX", 0, {"READS": 56, "WRITES": 45}, {"READS": 55}),
    ("P03", "POSIX", 0, {"BYTES_WRITTEN": 56, "BYTES_READ": 45}, {"BYTES_WRITTEN": 55}),
    ("P04", "POSIX", 0, {"BYTES_READ": 56, "BYTES_WRITTEN": 45}, {"BYTES_READ": 55}),
]


@pytest.mark.parametrize(
    ("trigger_code", "module", "rank", "counters", "silencing_counters"),
    CASES,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)],
)
def test_trigger_fires_just_above_its_threshold(
    tmp_path: Path,
    trigger_code: str,
    module: str,
    rank: int,
    counters: Mapping[str, float],
    silencing_counters: Mapping[str, float],
) -> None:
    fires, silent = (
        DarshanBuilder().counters(module, "/lus/a", values, rank).write(tmp_path / f"{name}.darshan")
        for name, values in (("fires", counters), ("silent", {**counters, **silencing_counters}))
    )
    assert trigger_code in find_codes(fires)
    assert trigger_code not in find_codes(silent)


@pytest.mark.parametrize(("smallest_rank_bytes", "is_triggered"), [(69, True), (70, False)])
@pytest.mark.parametrize(("trigger_code", "counter"), [("P21", "BYTES_WRITTEN"), ("P22", "BYTES_READ")])
def test_uneven_ranks_of_one_file_are_noticed(
    tmp_path: Path, trigger_code: str, counter: str, smallest_rank_bytes: int, is_triggered: bool
) -> None:
    log = DarshanBuilder()
    for rank, amount in enumerate((100, smallest_rank_bytes)):
        log.counters("POSIX", "/lus/a", {counter: amount}, rank)
    assert (trigger_code in find_codes(log.write(tmp_path / "a.darshan"))) is is_triggered


@pytest.mark.parametrize(("aggregators", "expected_code"), [(1, "M08"), (3, "M09"), (2, "M10")])
def test_aggregators_are_compared_with_nodes(tmp_path: Path, aggregators: int, expected_code: str) -> None:
    log = DarshanBuilder(hints=f"cb_nodes={aggregators}").counters("MPI-IO", "/lus/a", {"COLL_WRITES": 1})
    for rank, host in enumerate(("n1", "n2")):
        log.calls("/lus/a", rank, writes=[(0, 1, 0.0, 1.0)], host=host)
    assert find_codes(log.write(tmp_path / "a.darshan")) & {"M08", "M09", "M10"} == {expected_code}


def test_missing_mpi_io_is_reported_for_darshan_logs_only(tmp_path: Path) -> None:
    log = DarshanBuilder().counters("POSIX", "/lus/a", {"READS": 1}, 0).write(tmp_path / "a.darshan")
    assert "M01" in find_codes(log)
