# SPDX-License-Identifier: Apache-2.0
"""Results of IOR, as it prints them for people and as JSON. Each repetition is a run of its own.

Its bandwidth is bytes over the time from the first open to the last close of all tasks, in MiB/s (2^20).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.model.documents import parse_json
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import parse_clock_time, select_work_arguments, to_minor_version
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.tool_messages import find_messages

_MIB = 1 << 20
_LOCATION_OPTIONS = ("-o", "-i", "-O", "-d")
# Options that say where or how often, or that the key holds elsewhere.
_IGNORED_OPTIONS = ("test filename", "repetitions", "nodes", "tasks", "clients per node", "apiVersion", "Results")
_ROW = re.compile(r"^(write|read|remove)\s+([\d.eE+-]+|NA|-)\s+(.*)$")
# Columns as IOR prints them (1 to 3 have no IOPS and latency) and as its JSON names them.
_COLUMNS = {
    "bw(MiB/s)": "bwMiB",
    "IOPS": "iops",
    "Latency(s)": "latency",
    "block(KiB)": "blockKiB",
    "xfer(KiB)": "xferKiB",
    "open(s)": "openTime",
    "wr/rd(s)": "wrRdTime",
    "close(s)": "closeTime",
    "total(s)": "totalTime",
    "iter": "iter",
}
_OTHER_METRICS = ("latency", "blockKiB", "xferKiB", "openTime", "wrRdTime", "closeTime")
_OPTION = re.compile(r"^[ \t]*([a-zA-Z]\w*(?: +\w+)*)[ \t]*[:=][ \t]*(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^(Began|Command line|Machine)(?: used)?\s*: (.*)$", re.MULTILINE)
_TEST = re.compile(r"^(?:TestID\s*: (\d+)|Test (\d+) started: (.*))$", re.MULTILINE)


def is_text(head: str) -> bool:
    """Whether it is what IOR prints for people."""
    return re.search(r"^IOR-\d[^\n]*MPI Coordinated Test of Parallel I/O", head, re.MULTILINE) is not None


def is_json(head: str) -> bool:
    """Whether it is IOR's JSON."""
    return head.lstrip().startswith("{") and '"tests"' in head and '"Command line"' in head


def read_text(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what IOR printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=IOR-\d)", text)
    runs = [run for piece in pieces if is_text(piece) for run in _read_output(piece, about)]
    if not runs:
        raise ValueError("it has no line of results")
    return runs


def _read_output(text: str, about: ImportDefaults) -> Iterator[ImportedRun]:
    version = re.search(r"^IOR-(\S+?):", text, re.MULTILINE)
    head = dict(_HEAD.findall(text))
    for start in _TEST.finditer(text):
        test = text[start.start() :].partition("Summary of all tests")[0]
        next_test = _TEST.search(test, start.end() - start.start())
        test = test[: next_test.start()] if next_test else test
        header = re.search(r"^access\s+bw", test, re.MULTILINE)
        description, table = (test[: header.start()], test[header.start() :]) if header else (test, "")
        options = dict(_OPTION.findall(re.split(r"(?m)^(?:Options:|Summary:)[ \t]*$", description)[-1]))
        if "clients" in options:  # 1 to 3: 4 (2 per node)
            options |= _parse_clients(options.pop("clients"))
        facts_of_test = dict(re.findall(r"^(StartTime|Path)\s*: (.*)$", description, re.MULTILINE))
        facts_of_test |= {"TestID": start[1] or start[2], "StartTime": facts_of_test.get("StartTime") or start[3] or ""}
        facts = {**head, **facts_of_test, "version": version[1] if version else "", "options": options, "text": text}
        yield from _build_runs(facts, _parse_rows(table), about)


def _parse_clients(clients: str) -> dict[str, str]:
    match = re.fullmatch(r"(\d+) \((\d+) per node\)", clients.strip())
    if match is None:
        return {}
    return {"tasks": match[1], "clients per node": match[2]}


def _parse_rows(table: str) -> dict[int, list[Mapping[str, Any]]]:
    """Repetition -> the lines of results."""
    rows: dict[int, list[Mapping[str, Any]]] = {}
    header: list[str] = []
    for line in table.splitlines():
        fields = line.split()
        if fields[:1] == ["access"]:
            header = [_COLUMNS.get(field, field) for field in fields[1:]]
        elif header and _ROW.match(line.strip()):
            row = {"access": fields[0], **dict(zip(header, map(_to_number, fields[1:]), strict=False))}
            rows.setdefault(int(row.get("iter") or 0), []).append(row)
    return rows


def read_json(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in IOR's JSON."""
    document = parse_json(text)
    runs: list[ImportedRun] = []
    for test in document["tests"]:
        rows: dict[int, list[Mapping[str, Any]]] = {}
        count_by_access: dict[str, int] = {}
        for result in test.get("Results", ()):
            # The JSON has no number of the repetition: the n-th write is of the n-th.
            access = str(result["access"])
            rows.setdefault(count_by_access.setdefault(access, 0), []).append(result)
            count_by_access[access] += 1
        facts = {name: str(document.get(name, "")) for name in ("Began", "Command line", "Machine")}
        facts |= {name: str(test.get(name, "")) for name in ("StartTime", "Path", "TestID")}
        options = {str(name): str(value) for name, value in test.get("Options", {}).items()}
        version = str(document.get("Version", ""))
        runs += _build_runs({**facts, "version": version, "options": options, "text": ""}, rows, about)
    if not runs:
        raise ValueError("it has no results")
    return runs


def _build_runs(
    facts: Mapping[str, Any], rows: Mapping[int, Sequence[Mapping[str, Any]]], about: ImportDefaults
) -> Iterator[ImportedRun]:
    options: Mapping[str, str] = facts["options"]
    command = str(facts.get("Command line", ""))
    tasks, nodes, per_node = (_to_count(options.get(name)) for name in ("tasks", "nodes", "clients per node"))
    if nodes is None and tasks and per_node:  # 3 does not say how many
        nodes = -(-tasks // per_node)
    experiment = {name: " ".join(value.split()) for name, value in options.items() if name not in _IGNORED_OPTIONS}
    experiment["arguments"] = select_work_arguments(command, _LOCATION_OPTIONS)
    started = parse_clock_time(str(facts.get("StartTime") or facts.get("Began")))
    group = f"ior {facts.get('Began', '')} test {facts.get('TestID', '0')}" if len(rows) > 1 else None
    for repetition, results in sorted(rows.items()):
        yield ImportedRun(
            tool=f"IOR {facts['version']}".strip(),
            name=f"ior-{options.get('api', '')}-{options.get('access', '')}".lower(),
            title=f"IOR: {options.get('api', '?')}, {options.get('access', '?')}, {options.get('xfersize', '?')}",
            started=about.to_utc(started),
            experiment=experiment,
            phases=[
                _build_phase(row, to_minor_version(str(facts["version"])), options)
                for row in results
                if _to_number(row.get("bwMiB"))
            ],
            host=str(facts.get("Machine", "")).split(" ")[-1],
            target=options.get("test filename", "").rpartition("/")[0],
            tasks=tasks,
            nodes=nodes,
            seconds=sum(float(row.get("totalTime") or 0.0) for row in results) or None,
            group=group,
            command=command,
            context={"repetition": repetition},
            findings=find_messages(str(facts["text"])),
        )


def _build_phase(row: Mapping[str, Any], version: str, options: Mapping[str, str]) -> ImportedPhase:
    access = str(row["access"])
    rate, ops = _to_number(row.get("bwMiB")), _to_number(row.get("iops"))
    return ImportedPhase(
        phase=access,
        op=access,
        definition=f"IOR {version} bw",
        bytes_per_s=None if rate is None else rate * _MIB,
        ops_per_s=ops,
        seconds=_to_number(row.get("totalTime")),
        backend=options.get("api", "").lower(),
        also={name: value for name in _OTHER_METRICS if (value := _to_number(row.get(name))) is not None},
    )


def _to_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _to_count(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isdigit() else None
