# SPDX-License-Identifier: Apache-2.0
"""Records that a release wrote stay readable, with the same numbers. Files never change; releases add theirs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from sonde.model.record import read_record

ROOT = Path(__file__).resolve().parents[3]
RECORDS = sorted((ROOT / "tests" / "data" / "records").glob("*.ndjson"))
# Four tasks write 2 GB each: 1 GB/s in the first second, 500 MB/s afterwards (experiments/known-answer.toml).
WRITTEN, ELAPSED = 8_000_000_000, 3.0


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_old_record_keeps_its_numbers(path: Path) -> None:
    record = read_record(path)
    assert (record.status, record.problems, record.errors) == ("done", [], [])
    phase = record.phases["write"]
    assert phase.end is not None
    assert phase.end.seconds.elapsed == ELAPSED
    assert phase.end.bytes.transferred == WRITTEN
    (series,) = [line for line in phase.series if line.scope == "all"]
    in_first_second = sum(series.bytes[: round(1 / series.slice_s)])
    assert (sum(series.bytes), in_first_second) == (WRITTEN, 4_000_000_000)
    (latencies,) = [line for line in phase.histograms if line.kind == "write"]
    assert [count for _, _, count in latencies.buckets] == [4000, 4000]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_old_record_fits_the_schema_of_today(path: Path) -> None:
    schema = json.loads((ROOT / "schema" / "record" / "record.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 8
    assert [error.message for line in lines for error in validator.iter_errors(json.loads(line))] == []


def test_there_is_a_record_of_the_first_version() -> None:
    assert "sonde-0.1.0" in [path.stem for path in RECORDS]
