# SPDX-License-Identifier: Apache-2.0
"""The archive without Sonde: its files are read by another engine as they lie, and both say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import run_builders

from sonde.store.catalog import Catalog

polars = pytest.importorskip("polars", reason="polars is not installed (pip install '.[test]')")


@pytest.fixture
def root(sonde: Any, fake_engine: Any, target: Path, archive: Path) -> Path:
    for rate in (1e9, 2e9, 4e9):
        fake_engine(rate=rate)
        assert sonde("run", "quick", "--on", target, "--no-report", "-q").code == 0
    return archive


def test_polars_reads_the_tables_of_all_runs(sonde: Any, root: Path) -> None:
    """The example of the documentation, on this archive."""
    phases = polars.scan_parquet(root / "20*/*/phases.parquet")
    rows_by_polars = phases.group_by("op").agg(polars.col("total_bytes_per_s").median()).collect()
    ours = sonde("query", "SELECT op, median(total_bytes_per_s) AS m FROM phases_full GROUP BY op", "--json").json
    assert {row["op"]: row["total_bytes_per_s"] for row in rows_by_polars.to_dicts()} == {
        row["op"]: row["m"] for row in ours
    }
    assert all(row["m"] > 0 for row in ours)


def test_polars_reads_the_index(sonde: Any, root: Path) -> None:
    run_builders.add_run(root, "20200101T000000Z-old-0001", [run_builders.build_phase(rate=5.0)])
    Catalog(root)
    values = polars.scan_parquet(root / ".index/*/*.phases.parquet").filter(polars.col("history").is_not_null())
    rows_by_polars = values.select("run", "phase", "value", "key").collect().to_dicts()
    ours = sonde("query", "SELECT run, phase, value FROM phases WHERE history IS NOT NULL", "--json").json
    assert {(row["run"], row["phase"], row["value"]) for row in rows_by_polars} == {tuple(row.values()) for row in ours}
    assert {json.loads(row["key"])["definition"] for row in rows_by_polars} == {"sonde total"}
