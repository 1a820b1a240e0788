# SPDX-License-Identifier: Apache-2.0
"""Results of IOzone: the table of the single-file modes, a run a row, and the throughput mode.

IOzone counts in kBytes of 1024, with `-O` in operations a second, with `-N` in microseconds an operation; a line of its
heading says which. In throughput mode "children" is the sum of the rates of the processes, each over its
own time; "parent" is all bytes over the time of all, start and end of the processes included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import find_option_value, parse_clock_time, select_work_arguments
from sonde.sources.import_defaults import ImportDefaults

_BYTES_PER_KB = 1024
_LOCATION_OPTIONS = ("-f", "-b", "-F")
# The columns of the table in their order: what the header calls them, and what they are.
_TABLE_COLUMNS = (
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
_THROUGHPUT_LINE_PATTERN = re.compile(
    r"^[ \t]*(Children see|Parent sees) throughput for\s+(\d+) (.+?)\s*=\s*([\d.]+) \w+/\w+", re.M
)
_OUTPUT_UNIT_LINE_PATTERN = re.compile(r"^[ \t]*(?:[\w/]+ Mode\. )?Output is in (op|microsec)", re.M)
_OPERATIONS_BY_THROUGHPUT_LINE = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random writers": "rewrite",
    "fwriters": "write",
    "freaders": "read",
}


def is_iozone_output(file_head: str) -> bool:
    """Whether it is what IOzone prints."""
    return "Iozone: Performance Test of File I/O" in file_head


def read_iozone_output(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what IOzone printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=[ \t]*Iozone: Performance Test of File I/O)", result_text)
    runs = [
        run for piece in pieces if is_iozone_output(piece) for run in _read_output_of_command(piece, import_defaults)
    ]
    if not runs:
        raise ValueError("it has no results")
    return runs


def _read_output_of_command(output_text: str, import_defaults: ImportDefaults) -> Iterator[ImportedRun]:
    version = re.search(r"Version \$Revision: ([\d.]+) \$", output_text)
    started = re.search(r"Run began: (.*)", output_text)
    command = re.search(r"Command line used: (.*)", output_text)
    command_line = command[1].strip() if command else ""
    tool = f"IOzone {version[1]}" if version else "IOzone"
    shared: dict[str, Any] = {
        "tool": tool,
        "started": import_defaults.convert_to_utc(parse_clock_time(started[1]) if started else None),
        "target": find_option_value(command_line, "-f").rpartition("/")[0],
        "command": command_line,
    }
    work = {"arguments": _remove_file_names(select_work_arguments(command_line, _LOCATION_OPTIONS))}
    unit_line = _OUTPUT_UNIT_LINE_PATTERN.search(output_text)
    unit = {"op": "operations", "microsec": "microseconds"}[unit_line[1]] if unit_line else "kBytes"
    if phases := list(_build_throughput_phases(output_text, tool, unit)):
        count = next((int(match[2]) for match in _THROUGHPUT_LINE_PATTERN.finditer(output_text)), None)
        yield ImportedRun(**shared, name="iozone-throughput", experiment=work, phases=phases, tasks=count)
    rows = list(_parse_rate_table(output_text))
    for size, record, values in rows:
        yield ImportedRun(
            **shared,
            name=f"iozone-{size}k-{record}k",
            title=f"IOzone: {size} KiB in records of {record} KiB",
            experiment={**work, "file_KiB": size, "record_KiB": record},
            phases=[
                _build_phase(phase, op, f"{tool} rate", value, unit, size * _BYTES_PER_KB)
                for (phase, op), value in values.items()
                if value or unit != "microseconds"
            ],
            tasks=1,
            group=f"iozone {started[1].strip()}" if started and len(rows) > 1 else None,
        )


def _remove_file_names(command_arguments: str) -> str:
    """File names after -F have no option of their own."""
    return " ".join(word for word in command_arguments.split() if "/" not in word and not word.endswith(".xls"))


def _build_phase(
    phase_name: str,
    phase_op: str,
    definition: str,
    stated_number: float,
    number_unit: str,
    file_bytes: int | None = None,
) -> ImportedPhase:
    """A phase from a number in the unit of the output: kBytes a second, operations a second, or microseconds each."""
    if number_unit == "operations":
        return ImportedPhase(phase_name, phase_op, definition, ops_per_s=stated_number, bytes=file_bytes)
    if number_unit == "microseconds":
        return ImportedPhase(
            phase_name,
            phase_op,
            definition,
            ops_per_s=1e6 / stated_number,
            bytes=file_bytes,
            also={"us_per_op": stated_number},
        )
    return ImportedPhase(phase_name, phase_op, definition, bytes_per_s=stated_number * _BYTES_PER_KB, bytes=file_bytes)


def _build_throughput_phases(output_text: str, tool_version: str, number_unit: str) -> Iterator[ImportedPhase]:
    if number_unit == "microseconds" and _THROUGHPUT_LINE_PATTERN.search(output_text):
        raise ValueError("its processes report microseconds each (-N), whose sum is no rate; run it without -N")
    for observer, _, operation, rate in _THROUGHPUT_LINE_PATTERN.findall(output_text):
        name = operation.strip().replace(" ", "_").replace("-", "_")
        op = _OPERATIONS_BY_THROUGHPUT_LINE.get(operation.strip(), "write" if "writ" in operation else "read")
        definition = "children" if observer.startswith("Children") else "parent"
        yield _build_phase(name, op, f"{tool_version} {definition}", float(rate), number_unit)


def _parse_rate_table(output_text: str) -> Iterator[tuple[int, int, Mapping[tuple[str, str], float]]]:
    """(file size, record size, rates) of each row; a column is known by where it ends."""
    ends: list[int] = []
    for line in (text_line.expandtabs() for text_line in output_text.splitlines()):
        fields = [(match[0], match.end()) for match in re.finditer(r"\S+", line)]
        names = [word for word, _ in fields]
        if names[:2] in (["kB", "reclen"], ["KB", "reclen"]):
            expected = [name for name, _, _ in _TABLE_COLUMNS[: len(names) - 2]]
            if names[2:] != expected:
                raise ValueError(f"its table has columns that are not known ({' '.join(names[2:])})")
            ends = [end for _, end in fields[2:]]
        elif ends and len(names) > 2 and all(name.isdigit() for name in names):
            rates = {}
            for word, end in fields[2:]:
                column = min(range(len(ends)), key=lambda text_line: abs(ends[text_line] - end))
                rates[_TABLE_COLUMNS[column][1:]] = float(word)
            yield int(names[0]), int(names[1]), rates
        elif ends and names:
            ends = []
