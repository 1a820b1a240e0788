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

_HEADER = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter"
_MIB = 1 << 20
_OTHER_METRICS = {
    "Latency": "latency",
    "block(KiB)": "blockKiB",
    "xfer(KiB)": "xferKiB",
    "open(s)": "openTime",
    "wr/rd(s)": "wrRdTime",
    "close(s)": "closeTime",
}


def is_csv(head: str) -> bool:
    """Whether it is IOR's CSV."""
    return head.startswith(_HEADER)


def read_csv(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in IOR's CSV, one for each repetition of a test; the header comes again before each test."""
    runs: list[ImportedRun] = []
    for test, table in enumerate(part for part in text.split(_HEADER) if part.strip()):
        rows: dict[str, list[Mapping[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(_HEADER + "\n" + table.lstrip("\r\n"))):
            if None in row or None in row.values():
                raise ValueError(f"a line of it has not the {len(_HEADER.split(','))} values of its header")
            rows.setdefault(row["iter"], []).append(row)
        runs += [_build_run(rows[number], int(number), test, len(rows), about) for number in sorted(rows, key=int)]
    if not runs:
        raise ValueError("it has no line of results")
    return runs


def _build_run(
    rows: Sequence[Mapping[str, str]], repetition: int, test: int, repetitions: int, about: ImportDefaults
) -> ImportedRun:
    block, transfer = rows[0]["block(KiB)"], rows[0]["xfer(KiB)"]
    return ImportedRun(
        tool="IOR",
        name="ior-csv",
        title=f"IOR: blocks of {float(block):g} KiB, transfers of {float(transfer):g} KiB",
        started=about.to_utc(None),
        experiment={"block_KiB": float(block), "xfer_KiB": float(transfer)},
        phases=[_build_phase(row) for row in rows],
        tasks=int(rows[0]["numTasks"]),
        seconds=sum(float(row["total(s)"]) for row in rows),
        group=f"ior {about.to_utc(None)} test {test}" if repetitions > 1 else None,
        context={"repetition": repetition, "test": test},
    )


def _build_phase(row: Mapping[str, str]) -> ImportedPhase:
    return ImportedPhase(
        phase=row["access"],
        op=row["access"],
        definition="IOR bw",
        bytes_per_s=float(row["bw(MiB/s)"]) * _MIB,
        ops_per_s=float(row["IOPS"]),
        seconds=float(row["total(s)"]),
        also={name: float(row[column]) for column, name in _OTHER_METRICS.items()},
    )
