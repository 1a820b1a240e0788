# SPDX-License-Identifier: Apache-2.0
"""Results of mdtest. Its table has the largest, smallest and mean rate over its iterations; the mean is taken.

Its rates are items over the time between two barriers around all tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import clock_time, minor, option_of, work_of
from sonde.sources.messages import findings_of

_PLACES = ("-d", "-i", "-o")
_ROW = re.compile(
    r"^\s*(Directory|File|Tree)\s+(creation|stat|rename|removal|read)\s*:?\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$"
)
_OPS = {"creation": "create", "removal": "remove"}


def matches(head: str) -> bool:
    """Whether it is what mdtest prints."""
    return re.search(r"^mdtest-\S+ was launched with \d+ total task", head, re.MULTILINE) is not None


def read(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in what mdtest printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=-- started at |mdtest-\S+ was launched)", text)
    joined: list[str] = []
    for piece in pieces:  # the time stands on a line before the name
        if joined and joined[-1].startswith("-- started") and "was launched" not in joined[-1]:
            joined[-1] += piece
        else:
            joined.append(piece)
    runs = [run for piece in joined if matches(piece) for run in _of(piece, about)]
    if not runs:
        raise ValueError("it has no table of rates")
    return runs


def _of(text: str, about: About) -> Iterator[ImportedRun]:
    head = re.search(r"^mdtest-(\S+) was launched with (\d+) total task\(?s?\)? on (\d+) node", text, re.MULTILINE)
    command = re.search(r"^Command line used: (.*)$", text, re.MULTILINE)
    began = re.search(r"^-- started at (.*?) --", text, re.MULTILINE)
    iterations = re.search(r"\(of (\d+) iterations?\)", text)
    rows = [found for line in text.splitlines() if (found := _ROW.match(line))]
    phases = [_phase(row, minor(head[1])) for row in rows] if head else []
    if head is None or not phases:
        return
    said = command[1] if command else ""
    count = int(iterations[1]) if iterations else 1
    yield ImportedRun(
        tool=f"mdtest {head[1]}",
        name="mdtest",
        title=f"mdtest {work_of(said, _PLACES)}",
        started=about.moment(clock_time(began[1]) if began else None),
        experiment={"arguments": work_of(said, _PLACES)},
        phases=phases,
        target=option_of(said, "-d"),
        tasks=int(head[2]),
        nodes=int(head[3]),
        command=said,
        context={"iterations": count},
        findings=[
            *findings_of(text),
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


def _phase(row: re.Match[str], version: str) -> ImportedPhase:
    kind, what, largest, smallest, mean, deviation = row.groups()
    return ImportedPhase(
        phase=f"{kind}_{what}".lower(),
        op=_OPS.get(what, what),
        definition=f"mdtest {version} mean",
        ops_per_s=float(mean),
        also={"max": float(largest), "min": float(smallest), "std_dev": float(deviation)},
    )
