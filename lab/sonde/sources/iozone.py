# SPDX-License-Identifier: Apache-2.0
"""Results of IOzone: the table of the single-file modes, a run a row, and the throughput mode.

IOzone counts in kBytes of 1024. In throughput mode "children" is the sum of the rates of the processes, each over its
own time; "parent" is all bytes over the time of all, start and end of the processes included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import clock_time, option_of, work_of

_KB = 1024
_PLACES = ("-f", "-b", "-F")
# The columns of the table in their order: what the header calls them, and what they are.
_TABLE = (
    ("write", "write", "write"),
    ("rewrite", "rewrite", "rewrite"),
    ("read", "read", "read"),
    ("reread", "reread", "reread"),
    ("read", "random_read", "read"),
    ("write", "random_write", "rewrite"),
    ("read", "backward_read", "read"),
    ("rewrite", "record_rewrite", "rewrite"),
    ("read", "stride_read", "read"),
    ("fwrite", "fwrite", "write"),
    ("frewrite", "frewrite", "rewrite"),
    ("fread", "fread", "read"),
    ("freread", "freread", "reread"),
)
_CHILDREN = re.compile(
    r"^\s*(Children see|Parent sees) throughput for\s+(\d+) (.+?)\s*=\s*([\d.]+) k?K?B(?:ytes)?/sec", re.M
)
_OPS = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random writers": "rewrite",
    "fwriters": "write",
    "freaders": "read",
}


def matches(head: str) -> bool:
    """Whether it is what IOzone prints."""
    return "Iozone: Performance Test of File I/O" in head


def read(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in what IOzone printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=\s*Iozone: Performance Test of File I/O)", text)
    runs = [run for piece in pieces if matches(piece) for run in _of(piece, about)]
    if not runs:
        raise ValueError("it has no results")
    return runs


def _of(text: str, about: About) -> Iterator[ImportedRun]:
    version = re.search(r"Version \$Revision: ([\d.]+) \$", text)
    began = re.search(r"Run began: (.*)", text)
    command = re.search(r"Command line used: (.*)", text)
    said = command[1].strip() if command else ""
    tool = f"IOzone {version[1]}" if version else "IOzone"
    shared: dict[str, Any] = {
        "tool": tool,
        "started": about.moment(clock_time(began[1]) if began else None),
        "target": option_of(said, "-f").rpartition("/")[0],
        "command": said,
    }
    work = {"arguments": _without_files(work_of(said, _PLACES))}
    if phases := list(_throughput(text, tool)):
        count = next((int(one[2]) for one in _CHILDREN.finditer(text)), None)
        yield ImportedRun(**shared, name="iozone-throughput", experiment=work, phases=phases, tasks=count)
    rows = list(_table(text))
    for size, record, values in rows:
        yield ImportedRun(
            **shared,
            name=f"iozone-{size}k-{record}k",
            title=f"IOzone: {size} KiB in records of {record} KiB",
            experiment={**work, "file_KiB": size, "record_KiB": record},
            phases=[
                ImportedPhase(phase, op, f"{tool} rate", bytes_per_s=rate * _KB, bytes=size * _KB)
                for (phase, op), rate in values.items()
            ],
            tasks=1,
            group=f"iozone {began[1].strip()}" if began and len(rows) > 1 else None,
        )


def _without_files(arguments: str) -> str:
    """File names after -F have no option of their own."""
    return " ".join(word for word in arguments.split() if "/" not in word and not word.endswith(".xls"))


def _throughput(text: str, tool: str) -> Iterator[ImportedPhase]:
    for who, _, what, rate in _CHILDREN.findall(text):
        name = what.strip().replace(" ", "_").replace("-", "_")
        op = _OPS.get(what.strip(), "write" if "writ" in what else "read")
        whose = "children" if who.startswith("Children") else "parent"
        yield ImportedPhase(name, op, f"{tool} {whose}", bytes_per_s=float(rate) * _KB)


def _table(text: str) -> Iterator[tuple[int, int, Mapping[tuple[str, str], float]]]:
    """(file size, record size, rates) of each row; a column is known by where it ends."""
    ends: list[int] = []
    for line in (one.expandtabs() for one in text.splitlines()):
        words = [(found[0], found.end()) for found in re.finditer(r"\S+", line)]
        names = [word for word, _ in words]
        if names[:2] in (["kB", "reclen"], ["KB", "reclen"]):
            known = [name for name, _, _ in _TABLE[: len(names) - 2]]
            if names[2:] != known:
                raise ValueError(f"its table has columns that are not known ({' '.join(names[2:])})")
            ends = [end for _, end in words[2:]]
        elif ends and len(names) > 2 and all(name.isdigit() for name in names):
            rates = {}
            for word, end in words[2:]:
                column = min(range(len(ends)), key=lambda one: abs(ends[one] - end))
                rates[_TABLE[column][1:]] = float(word)
            yield int(names[0]), int(names[1]), rates
        elif ends and names:
            ends = []
