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
from sonde.sources.commands import find_option, split_arguments
from sonde.sources.elbencho import group_runs
from sonde.sources.import_defaults import ImportDefaults

_MIB = 1 << 20
_HEADING = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE\s*$", re.MULTILINE)
_ROW = re.compile(r"^(?P<phase>[A-Z][A-Z0-9]*(?: [A-Z0-9]+)?)?\s+(?P<name>[A-Z][\w/ ]*?)\s*: +(?P<values>[^\[\s].*)$")
_TIME = re.compile(r"^ISO DATE(?: start)?\s*: (\S+)", re.MULTILINE)
_COMMAND = re.compile(r"^COMMAND LINE\s*: (.*)$", re.MULTILINE)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?(?:([\d.]+)us)?")
# What the table calls a number, what the JSON calls it, and the factor to its unit.
_NUMBERS: Mapping[str, tuple[str, int]] = {
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


def is_text(head: str) -> bool:
    """Whether it is what elbencho prints."""
    return _HEADING.search(head) is not None


def read_text(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what elbencho printed."""
    return list(group_runs(list(_read_phases(text, about)), about))


def _read_phases(text: str, about: ImportDefaults) -> Iterator[dict[str, Any]]:
    config: dict[str, str] = {}
    started = about.to_utc(None).isoformat()
    previous_end = 0
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=False):
        before = text[previous_end : heading.start()]
        for time in _TIME.findall(before)[-1:]:
            started = _normalize_time(time)
        for command in _COMMAND.findall(before)[-1:]:
            config = _parse_command(command)
        previous_end = heading.end()
        for phase in _read_table(text[heading.end() : end]):
            yield {**phase, "iso_start_date": started, "config": config}


def _read_table(table: str) -> Iterator[dict[str, Any]]:
    """The phases below one heading; rows without a name of a phase belong to the one before."""
    phase: dict[str, Any] | None = None
    for line in table.splitlines():
        if line.startswith(("ISO DATE", "COMMAND LINE")):
            break
        match = _ROW.match(line)
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
            elif match["name"] in _NUMBERS:
                name, factor = _NUMBERS[match["name"]]
                phase[variant][name] = float(value) * factor
    if phase is not None:
        yield phase


def _parse_duration(text: str) -> float:
    """Seconds of ``2m3.241s``, ``586ms`` or ``1h0m2s``. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError(f'"{text}" is not an elapsed time of elbencho')
    hours, minutes, seconds, milliseconds, microseconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1e3 + microseconds / 1e6


def _normalize_time(text: str) -> str:
    """The time with a colon in its zone, as datetime of Python 3.10 wants it."""
    normalized = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text)
    datetime.fromisoformat(normalized)
    return normalized


def _parse_command(command: str) -> dict[str, str]:
    """What the JSON says in its configuration, from the options of the command."""
    arguments = split_arguments(command)
    config = {"command": command}
    options = {"threads": ("-t", "--threads"), "block_size": ("-b", "--block"), "file_size": ("-s", "--size")}
    for name, (short, long) in options.items():
        following = [value for option, value in pairwise(arguments) if option == long]
        attached = [argument.split("=", 1)[1] for argument in arguments if argument.startswith(f"{long}=")]
        if value := next(iter([*following, *attached]), "") or find_option(command, short):
            config[name] = value
    hosts = [value for option, value in pairwise(arguments) if option == "--hosts"]
    return config | ({"hosts": str(_count_hosts(hosts[0]))} if hosts else {})


def _count_hosts(text: str) -> int:
    """The number of hosts in ``node[1-4,7],login1``: lists and ranges in brackets multiply."""
    total = 0
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        count = 1
        for ranges in re.findall(r"\[([^\]]*)\]", host):
            numbers = [part.split("-") for part in ranges.split(",")]
            count *= sum(int(part[-1]) - int(part[0]) + 1 for part in numbers)
        total += count
    return total
