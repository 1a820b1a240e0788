# SPDX-License-Identifier: Apache-2.0
"""Tables of logs and rankings with known answers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from darshan_builder import DarshanBuilder

from sonde.advise.fleet import FleetLosses, rank_fleet_losses
from sonde.advise.log_table import ExtractedLogCounts, FleetPart, extract_logs_to_table
from sonde.advise.storage_rates import RateRange, StorageRates
from sonde.cli.main import command
from sonde.model.errors import UserError

RATES = StorageRates("test", write=RateRange(50e6, 100e6, 200e6))
# 1 GB in calls of 100 kB took 50 s: at 50, 100 and 200 MB/s it takes 20, 10 and 5 s.
SMALL_WRITES = {
    **{"OPENS": 1, "WRITES": 10_000, "SEQ_WRITES": 10_000, "CONSEC_WRITES": 9_999, "BYTES_WRITTEN": 10**9},
    **{"MAX_BYTE_WRITTEN": 10**9, "SIZE_WRITE_10K_100K": 10_000, "F_WRITE_TIME": 50.0},
}
RANDOM_READS = {
    **{"OPENS": 1, "READS": 4_000, "SEQ_READS": 1_000, "BYTES_READ": 4_096_000, "MAX_BYTE_READ": 10**9},
    **{"SIZE_READ_1K_10K": 4_000, "F_READ_TIME": 10.0},
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs of `writer`, one of `reader` with two processes, and a damaged log."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "07").mkdir()
    for number in range(2):
        writer = DarshanBuilder(processes=1, program="/apps/bin/writer input")
        writer.counters("POSIX", "/lus/out", SMALL_WRITES, 0).write(folder / "07" / f"writer-{number}.darshan")
    reader = DarshanBuilder(processes=2, seconds=36.0, program="reader")
    for rank in range(2):
        reader.counters("POSIX", f"/lus/in.{rank}", RANDOM_READS, rank)
    content = reader.write(folder / "reader.darshan").read_bytes()
    (folder / "damaged.darshan").write_bytes(content[:1330])
    return folder


@pytest.fixture(scope="module")
def table(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of these logs."""
    folder = tmp_path_factory.mktemp("table") / "jobs"
    assert extract_logs_to_table(logs, folder, storage_rates=RATES) == ExtractedLogCounts(0, 3, 1)
    return folder


@pytest.fixture(scope="module")
def survey(table: Path) -> FleetLosses:
    """The rows of the table."""
    return rank_fleet_losses(table)


def test_applications_are_ranked_by_lost_hours(survey: FleetLosses) -> None:
    writer, reader = survey.applications
    assert (writer["name"], writer["jobs"], reader["name"], reader["jobs"]) == ("writer", 2, "reader", 1)
    assert writer["process_hours"] == pytest.approx(2 * 100 / 3600)
    assert writer["io_hours"] == pytest.approx(2 * 50 / 3600)
    lost = [writer[name] * 3600 for name in ("lost_low_hours", "lost_hours", "lost_high_hours")]
    assert lost == pytest.approx([60, 80, 90])
    assert reader["process_hours"] == pytest.approx(2 * 36 / 3600)


def test_changes_count_each_job_by_itself(survey: FleetLosses) -> None:
    (writes,) = (row for row in survey.changes if row["name"] == "writes")
    assert (writes["jobs"], writes["lost_hours"] * 3600) == (2, pytest.approx(80))


def test_mix_counts_calls_and_bytes(survey: FleetLosses) -> None:
    mix = survey.mix
    assert (mix["jobs"], mix["applications"], mix["calls"], mix["small_calls"]) == (3, 2, 28_000, 28_000)
    assert (mix["written_bytes"], mix["read_bytes"]) == (2e9, 2 * 4_096_000)
    assert mix["random_calls"] == 2 * 3_000


def test_accesses_name_the_test_with_the_same_pattern(survey: FleetLosses) -> None:
    write, read = survey.accesses
    assert (write["access_order"], write["size_class"], write["is_shared"]) == ("consecutive", "100 KiB", False)
    assert write["share_of_time"] == pytest.approx(100 / 120)
    assert write["test"] == "sonde ior -a POSIX -w -t 128k -b 128m -F"
    assert (read["access_order"], read["files"], read["bytes"]) == ("random", 2, 2 * 4_096_000)
    assert read["test"] == "sonde ior -a POSIX -w -r -t 1k -b 1m -z -F"


def test_library_helps_jobs_with_small_calls(survey: FleetLosses) -> None:
    assert {Path(row["log"]).name for row in survey.library} >= {"writer-0.darshan", "writer-1.darshan"}
    assert survey.library[0]["lost_hours"] * 3600 == pytest.approx(40)


def test_damaged_log_has_a_row_with_the_reason(survey: FleetLosses) -> None:
    (row,) = survey.refused
    assert "damaged" in row["refused"]


def test_logs_are_reread_only_after_a_change(logs: Path, table: Path, tmp_path: Path) -> None:
    copies = tmp_path / "logs"
    copies.mkdir()
    copy = copies / "a.darshan"
    copy.write_bytes((logs / "reader.darshan").read_bytes())
    second_table = tmp_path / "jobs"
    assert extract_logs_to_table(copies, second_table) == ExtractedLogCounts(0, 1, 0)
    assert extract_logs_to_table(copies, second_table) == ExtractedLogCounts(1, 0, 0)
    copy.write_bytes((logs / "07" / "writer-0.darshan").read_bytes())
    os.utime(copy, ns=(0, 2**62))
    assert extract_logs_to_table(copies, second_table) == ExtractedLogCounts(0, 1, 0)
    assert [row["name"] for row in rank_fleet_losses(second_table).applications] == ["writer"]


def test_parts_together_give_the_same_rows(logs: Path, table: Path, tmp_path: Path) -> None:
    parts = [extract_logs_to_table(logs, tmp_path / "jobs", FleetPart(number, 3), RATES) for number in (1, 2, 3)]
    assert sum(part.all_logs for part in parts) == 4

    def read(folder: Path) -> list[Any]:
        return list(duckdb.sql(f"select * from read_parquet('{folder}/*.parquet') order by log").fetchall())

    assert read(tmp_path / "jobs") == read(table)


def test_finished_rows_survive_an_interrupt(logs: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_logs_to_table(logs, tmp_path / "jobs", worker_count=1, on_progress=interrupt)
    assert extract_logs_to_table(logs, tmp_path / "jobs").unchanged == 2


def test_dask_workers_give_the_same_table(
    logs: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    from dask.distributed import Client, LocalCluster

    # As tests are no module for the workers, they get a function of the package.
    with (
        dask.config.set({"distributed.worker.daemon": False, "temporary-directory": str(tmp_path)}),
        LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        parts = [FleetPart(number, 2) for number in (1, 2)]
        futures = [client.submit(extract_logs_to_table, logs, tmp_path / "jobs", part, RATES) for part in parts]
        assert sum(count.all_logs for count in client.gather(futures)) == 4
    assert rank_fleet_losses(tmp_path / "jobs") == rank_fleet_losses(table)


@pytest.mark.parametrize(
    ("arguments", "expected_sentence"),
    [
        (["--fleet", "absent"], "--fleet absent is not a folder."),
        (["--fleet", "empty"], "There is no Darshan log (*.darshan) below empty."),
        (["--fleet", "empty", "--part", "0/3"], '--part is "0/3"'),
        (["--fleet", "empty", "--part", "x"], '--part is "x"'),
        (["--part", "1/3"], "--table and --part belong to --fleet"),
        (["--fleet", "empty", "a.darshan"], "leave out LOG"),
        (["--fleet", "full", "--table", "text"], "text is not a table of logs"),
    ],
)
def test_wrong_calls_get_one_sentence(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected_sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "text", "full"):
        Path(name).mkdir()
    Path("text/a.parquet").write_text("no table")
    Path("full/a.darshan").write_bytes((logs / "reader.darshan").read_bytes())
    result = CliRunner().invoke(command, ["advise", *arguments], standalone_mode=False)
    error = result.exception
    assert isinstance(error, UserError)
    assert expected_sentence in str(error)


def test_table_of_another_storage_is_refused(logs: Path, table: Path) -> None:
    with pytest.raises(UserError, match="refer to test, not to large calls"):
        extract_logs_to_table(logs, table)


def test_command_prints_rankings_and_json(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = CliRunner().invoke(command, ["advise", "--fleet", str(logs)]).output
    for part in ("writer", "reader", "cannot be read"):
        assert part in text
    result = CliRunner().invoke(command, ["advise", "--fleet", str(logs), "--json"])
    document = json.loads(result.stdout)
    assert document["schema"] == "sonde-fleet/1"
    assert document["mix"]["jobs"] == 3
