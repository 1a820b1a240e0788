# SPDX-License-Identifier: Apache-2.0
"""Results of elbencho as it prints them (also ``--resfile``), versions 1.6 to 3.1: a table a phase.

A file of results has the time and the command before each table; what stands on a terminal has the table only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from sonde.model.imported_runs import ImportedRun
from sonde.sources.commands import find_option_value, split_arguments
from sonde.sources.elbencho import group_phases_into_runs
from sonde.sources.import_defaults import ImportDefaults

_MIB = 1 << 20
_TABLE_HEADING_PATTERN = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE\s*$", re.MULTILINE)
_RESULT_ROW_PATTERN = re.compile(
    r"^(?P<phase>[A-Z][A-Z0-9]*(?: [A-Z0-9]+)?)?\s+(?P<name>[A-Z][\w/ ]*?)\s*: +(?P<values>[^\[\s].*)$"
)
_TIME_LINE_PATTERN = re.compile(r"^ISO DATE(?: start)?\s*: (\S+)", re.MULTILINE)
_COMMAND_LINE_PATTERN = re.compile(r"^COMMAND LINE\s*: (.*)$", re.MULTILINE)
_DURATION_TEXT_PATTERN = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?(?:([\d.]+)us)?")
# What the table calls a number, what the JSON calls it, and the factor to its unit.
_METRICS_BY_ROW_NAME: Mapping[str, tuple[str, int]] = {
    "IOPS": ("iops", 1),
    "Throughput MiB/s": ("bytes/s", _MIB),
    "Total MiB": ("bytes", _MIB),
    "Files/s": ("entries/s", 1),
    "Dirs/s": ("entries/s", 1),
    "Objects/s": ("entries/s", 1),
    "Files total": ("entries", 1),
    "Dirs total": ("entries", 1),
    "Objects total": ("entries", 1),
}


def is_elbencho_text(file_head: str) -> bool:
    """Whether it is what elbencho prints."""
    return _TABLE_HEADING_PATTERN.search(file_head) is not None


def read_elbencho_text(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what elbencho printed."""
    return list(group_phases_into_runs(list(_read_phases(result_text, import_defaults)), import_defaults))


def _read_phases(result_text: str, import_defaults: ImportDefaults) -> Iterator[dict[str, Any]]:
    config: dict[str, str] = {}
    started = import_defaults.convert_to_utc(None).isoformat()
    previous_end = 0
    headings = list(_TABLE_HEADING_PATTERN.finditer(result_text))
    ends = [*(heading.start() for heading in headings[1:]), len(result_text)]
    for heading, end in zip(headings, ends, strict=False):
        before = result_text[previous_end : heading.start()]
        for time in _TIME_LINE_PATTERN.findall(before)[-1:]:
            started = _normalize_time_zone(time)
        for command in _COMMAND_LINE_PATTERN.findall(before)[-1:]:
            config = _parse_command(command)
        previous_end = heading.end()
        for phase in _read_phase_table(result_text[heading.end() : end]):
            yield {**phase, "iso_start_date": started, "config": config}


def _read_phase_table(table_text: str) -> Iterator[dict[str, Any]]:
    """Reads the phases below one heading; rows without a phase name belong to the previous phase."""
    phase: dict[str, Any] | None = None
    for line in table_text.splitlines():
        if line.startswith(("ISO DATE", "COMMAND LINE")):
            break
        match = _RESULT_ROW_PATTERN.match(line)
        if match is None:
            if phase is not None and (line.startswith("---") or not line.strip()):
                yield phase
                phase = None
            continue
        if match["phase"]:
            if phase is not None:
                yield phase
            phase = {"phase_type": match["phase"], "first_done": {}, "last_done": {}}
        values = match["values"].split()
        if phase is None or not values:
            continue
        # With one value the table has the result of the last thread only.
        for variant, value in zip(("last_done", "first_done"), reversed(values[:2]), strict=False):
            if match["name"] == "Elapsed time":
                phase[variant]["elapsed_time_ms"] = _parse_duration(value) * 1000
            elif match["name"] in _METRICS_BY_ROW_NAME:
                name, factor = _METRICS_BY_ROW_NAME[match["name"]]
                phase[variant][name] = float(value) * factor
    if phase is not None:
        yield phase


def _parse_duration(duration_text: str) -> float:
    """Seconds of ``2m3.241s``, ``586ms`` or ``1h0m2s``. Raises ValueError."""
    match = _DURATION_TEXT_PATTERN.fullmatch(duration_text)
    if match is None or not duration_text:
        raise ValueError(f'"{duration_text}" is not an elapsed time of elbencho')
    hours, minutes, seconds, milliseconds, microseconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1e3 + microseconds / 1e6


def _normalize_time_zone(time_text: str) -> str:
    """The time with a colon in its zone, as datetime of Python 3.10 wants it."""
    normalized = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", time_text)
    datetime.fromisoformat(normalized)
    return normalized


def _parse_command(command_line: str) -> dict[str, str]:
    """Members of the JSON's configuration, parsed from the options of the command."""
    arguments = split_arguments(command_line)
    config = {"command": command_line}
    options = {"threads": ("-t", "--threads"), "block_size": ("-b", "--block"), "file_size": ("-s", "--size")}
    for name, (short, long) in options.items():
        following = [value for option, value in pairwise(arguments) if option == long]
        attached = [argument.split("=", 1)[1] for argument in arguments if argument.startswith(f"{long}=")]
        if value := next(iter([*following, *attached]), "") or find_option_value(command_line, short):
            config[name] = value
    hosts = [value for option, value in pairwise(arguments) if option == "--hosts"]
    return config | ({"hosts": str(_count_hosts(hosts[0]))} if hosts else {})


def _count_hosts(hosts_text: str) -> int:
    """The number of hosts in ``node[1-4,7],login1``: lists and ranges in brackets multiply."""
    total = 0
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", hosts_text):
        count = 1
        for ranges in re.findall(r"\[([^\]]*)\]", host):
            numbers = [part.split("-") for part in ranges.split(",")]
            count *= sum(int(part[-1]) - int(part[0]) + 1 for part in numbers)
        total += count
    return total
