# SPDX-License-Identifier: Apache-2.0
"""Results of IOR as CSV (``-O summaryFormat=CSV``, IOR 3.3 and later): a row for each access of each repetition.

The file has neither version, command nor time; the time of the file counts. Times are seconds, sizes KiB.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.import_defaults import ImportDefaults

_CSV_HEADER = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter"
_MIB = 1 << 20
_OTHER_METRICS = {
    "Latency": "latency",
    "block(KiB)": "blockKiB",
    "xfer(KiB)": "xferKiB",
    "open(s)": "openTime",
    "wr/rd(s)": "wrRdTime",
    "close(s)": "closeTime",
}


def is_ior_csv(file_head: str) -> bool:
    """Whether it is IOR's CSV."""
    return file_head.startswith(_CSV_HEADER)


def read_ior_csv(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in IOR's CSV, one for each repetition of a test; the header is repeated before each test."""
    runs: list[ImportedRun] = []
    for test, table in enumerate(part for part in result_text.split(_CSV_HEADER) if part.strip()):
        rows: dict[str, list[Mapping[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(_CSV_HEADER + "\n" + table.lstrip("\r\n"))):
            if None in row or None in row.values():
                raise ValueError(f"a line of it has not the {len(_CSV_HEADER.split(','))} values of its header")
            rows.setdefault(row["iter"], []).append(row)
        runs += [
            _build_run(rows[number], int(number), test, len(rows), import_defaults) for number in sorted(rows, key=int)
        ]
    if not runs:
        raise ValueError("it has no line of results")
    return runs


def _build_run(
    csv_rows: Sequence[Mapping[str, str]],
    repetition_number: int,
    test_number: int,
    repetition_count: int,
    import_defaults: ImportDefaults,
) -> ImportedRun:
    block, transfer = csv_rows[0]["block(KiB)"], csv_rows[0]["xfer(KiB)"]
    return ImportedRun(
        tool="IOR",
        name="ior-csv",
        title=f"IOR: blocks of {float(block):g} KiB, transfers of {float(transfer):g} KiB",
        started=import_defaults.convert_to_utc(None),
        experiment={"block_KiB": float(block), "xfer_KiB": float(transfer)},
        phases=[_build_phase(row) for row in csv_rows],
        tasks=int(csv_rows[0]["numTasks"]),
        seconds=sum(float(row["total(s)"]) for row in csv_rows),
        group=f"ior {import_defaults.convert_to_utc(None)} test {test_number}" if repetition_count > 1 else None,
        context={"repetition": repetition_number, "test": test_number},
    )


def _build_phase(csv_row: Mapping[str, str]) -> ImportedPhase:
    return ImportedPhase(
        phase=csv_row["access"],
        op=csv_row["access"],
        definition="IOR bw",
        bytes_per_s=float(csv_row["bw(MiB/s)"]) * _MIB,
        ops_per_s=float(csv_row["IOPS"]),
        seconds=float(csv_row["total(s)"]),
        also={name: float(csv_row[column]) for column, name in _OTHER_METRICS.items()},
    )
