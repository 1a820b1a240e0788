# SPDX-License-Identifier: Apache-2.0
"""A query reaches the tables of the archive and no other file, unless the user allows it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_builders import store_run
from record_scene import Scene

Sonde = Callable[..., Any]
RUN = "20260101T000000Z-asked-00000000"


@pytest.fixture
def archive_with_run(archive: Path) -> Path:
    """An archive with a run."""
    store_run(archive, RUN, Scene())
    return archive


@pytest.mark.parametrize("table", ["runs", "phases", "series", "tasks", "phases_full", "targets"])
def test_tables_of_the_archive_are_read(sonde: Sonde, archive_with_run: Path, table: str) -> None:
    for _ in range(2):  # rows in memory first, then in files of the index
        assert sonde("query", f"SELECT count(*) AS n FROM {table}", "--json").json[0]["n"] >= (table != "targets")


STATEMENTS = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY runs TO '{folder}/written.csv'",
    "COPY (SELECT 1) TO '{folder}/written.parquet' (USE_TMP_FILE false)",
    "COPY (SELECT 1) TO '{series}' (FORMAT parquet, USE_TMP_FILE false)",
    "PREPARE p AS COPY (SELECT 1) TO '{series}' (FORMAT parquet, USE_TMP_FILE false); EXECUTE p",
    "SELECT 1; COPY runs TO '{folder}/written.csv'",
    "ATTACH '{folder}/written.db'",
    "EXPORT DATABASE '{folder}/written'",
    "INSTALL httpfs",
    "LOAD '{folder}/written.so'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET allowed_paths = ['{secret}']",
    "SELECT count(*) FROM series; SELECT * FROM read_text('{secret}')",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_other_file_is_reached(sonde: Sonde, archive_with_run: Path, tmp_path: Path, statement: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    series = archive_with_run / "2026-01" / RUN / "series.parquet"
    before = series.read_bytes()
    names = sorted(os.listdir(tmp_path))
    result = sonde("query", statement.format(secret=secret, folder=tmp_path, series=series) + " -- FROM series")
    assert result.code == 2
    assert len(result.sentences) == 1
    assert "hunter2" not in result.out + result.err
    assert sorted(os.listdir(tmp_path)) == names
    assert series.read_bytes() == before


def test_rejected_copy_suggests_an_alternative(sonde: Sonde, archive_with_run: Path, tmp_path: Path) -> None:
    result = sonde("query", f"COPY runs TO '{tmp_path}/runs.csv'")
    assert "-o FILE" in result.err
    assert "--allow-files" in result.err
    assert "does not exist" not in result.err


def test_files_are_reached_where_the_user_allows_it(sonde: Sonde, archive_with_run: Path, tmp_path: Path) -> None:
    assert sonde("query", "--allow-files", f"COPY runs TO '{tmp_path}/runs.csv'").code == 0
    rows = sonde("query", "--allow-files", "--json", f"SELECT run FROM read_csv('{tmp_path}/runs.csv')").json
    assert rows == [{"run": RUN}]


def test_table_that_is_a_link_is_not_read(sonde: Sonde, archive_with_run: Path, tmp_path: Path) -> None:
    series = archive_with_run / "2026-01" / RUN / "series.parquet"
    series.rename(tmp_path / "secret.parquet")
    series.symlink_to(tmp_path / "secret.parquet")
    result = sonde("query", "SELECT * FROM series")
    assert result.code == 2
    assert "symbolic link" in result.err or "has a table series" in result.err
    assert result.out == ""


def test_answer_larger_than_memory_spills_into_its_directory(
    sonde: Sonde, archive_with_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.store.sql._format_memory_limit", lambda: "64MiB")
    sql = "SELECT count(*) AS n FROM (SELECT DISTINCT md5(i::VARCHAR) FROM range(3000000) t(i))"
    assert sonde("query", sql, "--json").json == [{"n": 3_000_000}]
