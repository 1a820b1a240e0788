# SPDX-License-Identifier: Apache-2.0
"""Results of mdtest. Its table has the largest, smallest and mean rate over its iterations; the mean is taken.

Its rates are items over the time between two barriers around all tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import find_option, parse_clock_time, select_work_arguments, to_minor_version
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.tool_messages import find_messages

_LOCATION_OPTIONS = ("-d", "-i", "-o")
_ROW = re.compile(
    r"^[ \t]*(Directory|File|Tree)\s+(creation|stat|rename|removal|read)\s*:?"
    r"\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)[ \t]*$"
)
_OPS = {"creation": "create", "removal": "remove"}


def is_mdtest_output(head: str) -> bool:
    """Whether it is what mdtest prints."""
    return re.search(r"^mdtest-\S+ was launched with \d+ total task", head, re.MULTILINE) is not None


def read_mdtest_output(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what mdtest printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=-- started at |mdtest-\S+ was launched)", text)
    joined: list[str] = []
    for piece in pieces:  # the time stands on a line before the name
        if joined and joined[-1].startswith("-- started") and "was launched" not in joined[-1]:
            joined[-1] += piece
        else:
            joined.append(piece)
    runs = [run for piece in joined if is_mdtest_output(piece) for run in _read_output(piece, about)]
    if not runs:
        raise ValueError("it has no table of rates")
    return runs


def _read_output(text: str, about: ImportDefaults) -> Iterator[ImportedRun]:
    head = re.search(r"^mdtest-(\S+) was launched with (\d+) total task\(?s?\)? on (\d+) node", text, re.MULTILINE)
    command = re.search(r"^Command line used: (.*)$", text, re.MULTILINE)
    started = re.search(r"^-- started at (.*?) --", text, re.MULTILINE)
    iterations = re.search(r"\(of (\d+) iterations?\)", text)
    rows = [match for line in text.splitlines() if (match := _ROW.match(line))]
    phases = [_build_phase(row, to_minor_version(head[1])) for row in rows] if head else []
    if head is None or not phases:
        return
    command_line = command[1] if command else ""
    count = int(iterations[1]) if iterations else 1
    yield ImportedRun(
        tool=f"mdtest {head[1]}",
        name="mdtest",
        title=f"mdtest {select_work_arguments(command_line, _LOCATION_OPTIONS)}",
        started=about.to_utc(parse_clock_time(started[1]) if started else None),
        experiment={"arguments": select_work_arguments(command_line, _LOCATION_OPTIONS)},
        phases=phases,
        target=find_option(command_line, "-d"),
        tasks=int(head[2]),
        nodes=int(head[3]),
        command=command_line,
        context={"iterations": count},
        findings=[
            *find_messages(text),
            *(
                [
                    {
                        "id": "mean_of_iterations",
                        "severity": "info",
                        "text": f"Each rate is a mean of {count} iterations.",
                    }
                ]
                * (count > 1)
            ),
        ],
    )


def _build_phase(row: re.Match[str], version: str) -> ImportedPhase:
    object_kind, operation, largest, smallest, mean, deviation = row.groups()
    return ImportedPhase(
        phase=f"{object_kind}_{operation}".lower(),
        op=_OPS.get(operation, operation),
        definition=f"mdtest {version} mean",
        ops_per_s=float(mean),
        also={"max": float(largest), "min": float(smallest), "std_dev": float(deviation)},
    )
