# SPDX-License-Identifier: Apache-2.0
"""Results of mdtest. Its table has the largest, smallest and mean rate over the iterations; the mean is imported.

Its rates are items over the time between two barriers around all tasks. With `-P` a second table has the times of the
same phases, with `-Z` it stands alone. Its values are seconds, whatever its heading says (mdtest 3.3 to 4.1 print
"time:", "time (in ops/sec):" or "time (in ms/op):" above the same numbers). Rows of zeros are phases that did not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import find_option_value, parse_clock_time, select_work_arguments, shorten_to_minor_version
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.tool_messages import find_tool_messages

_LOCATION_OPTIONS = ("-d", "-i", "-o")
_RESULT_ROW_PATTERN = re.compile(
    r"^[ \t]*(Directory|File|Tree)\s+(creation|stat|rename|removal|read)\s*:?"
    r"\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)[ \t]*$"
)
_OPERATIONS_BY_ROW = {"creation": "create", "removal": "remove"}
_SUMMARY_TABLE_PATTERN = re.compile(r"^[ \t]*SUMMARY(?: (rate|time))?[^:\n]*:", re.MULTILINE)
RowsByOperation = Mapping[
    tuple[str, str], tuple[float, ...]
]  # (object, operation) -> max, min, mean, standard deviation


def is_mdtest_output(file_head: str) -> bool:
    """Whether it is what mdtest prints."""
    return re.search(r"^mdtest-\S+ was launched with \d+ total task", file_head, re.MULTILINE) is not None


def read_mdtest_output(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what mdtest printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=-- started at |mdtest-\S+ was launched)", result_text)
    joined: list[str] = []
    for piece in pieces:  # the time stands on a line before the name
        if joined and joined[-1].startswith("-- started") and "was launched" not in joined[-1]:
            joined[-1] += piece
        else:
            joined.append(piece)
    runs = [
        run for piece in joined if is_mdtest_output(piece) for run in _read_output_of_command(piece, import_defaults)
    ]
    if not runs:
        raise ValueError("it has no table of rates")
    return runs


def _read_output_of_command(output_text: str, import_defaults: ImportDefaults) -> Iterator[ImportedRun]:
    head = re.search(
        r"^mdtest-(\S+) was launched with (\d+) total task\(?s?\)? on (\d+) node", output_text, re.MULTILINE
    )
    command = re.search(r"^Command line used: (.*)$", output_text, re.MULTILINE)
    started = re.search(r"^-- started at (.*?) --", output_text, re.MULTILINE)
    iterations = re.search(r"\(of (\d+) iterations?\)", output_text)
    rates, times = _read_rate_and_time_tables(output_text)
    if head is None or not (rates or times):
        return
    version = shorten_to_minor_version(head[1])
    phases = [_build_phase(name, version, rates.get(name), times.get(name)) for name in rates or times]
    command_line = command[1] if command else ""
    count = int(iterations[1]) if iterations else 1
    yield ImportedRun(
        tool=f"mdtest {head[1]}",
        name="mdtest",
        title=f"mdtest {select_work_arguments(command_line, _LOCATION_OPTIONS)}",
        started=import_defaults.convert_to_utc(parse_clock_time(started[1]) if started else None),
        experiment={"arguments": select_work_arguments(command_line, _LOCATION_OPTIONS)},
        phases=phases,
        target=find_option_value(command_line, "-d"),
        tasks=int(head[2]),
        nodes=int(head[3]),
        command=command_line,
        context={"iterations": count},
        findings=[*find_tool_messages(output_text), *_describe_table(count, bool(rates))],
    )


def _describe_table(iteration_count: int, has_rates: bool) -> Iterator[Mapping[str, str]]:
    if iteration_count > 1:
        text = f"Each rate is a mean of {iteration_count} iterations."
        yield {"id": "mean_of_iterations", "severity": "info", "text": text}
    if not has_rates:
        text = "mdtest printed times only (option -Z): the phases have a duration and no rate."
        yield {"id": "times_only", "severity": "info", "text": text}


def _read_rate_and_time_tables(output_text: str) -> tuple[RowsByOperation, RowsByOperation]:
    """The table of rates and that of times, without phases that did not run."""
    tables: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {"rate": {}, "time": {}}
    headings = list(_SUMMARY_TABLE_PATTERN.finditer(output_text))
    ends = [*(heading.start() for heading in headings[1:]), len(output_text)]
    for heading, end in zip(headings, ends, strict=False):
        table = tables[heading[1] or "rate"]
        for line in output_text[heading.end() : end].splitlines():
            if match := _RESULT_ROW_PATTERN.match(line):
                values = tuple(map(float, match.groups()[2:]))
                if values[0] > 0:
                    table[match[1], match[2]] = values
    return tables["rate"], tables["time"]


def _build_phase(
    phase_name: tuple[str, str],
    mdtest_version: str,
    rate_columns: tuple[float, ...] | None,
    time_columns: tuple[float, ...] | None,
) -> ImportedPhase:
    object_kind, operation = phase_name
    return ImportedPhase(
        phase=f"{object_kind}_{operation}".lower(),
        op=_OPERATIONS_BY_ROW.get(operation, operation),
        definition=f"mdtest {mdtest_version} mean",
        ops_per_s=rate_columns[2] if rate_columns else None,
        seconds=time_columns[2] if time_columns else None,
        also={"max": rate_columns[0], "min": rate_columns[1], "std_dev": rate_columns[3]} if rate_columns else {},
    )
