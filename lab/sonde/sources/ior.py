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
from sonde.sources.commands import parse_clock_time, select_work_arguments, shorten_to_minor_version
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.tool_messages import find_tool_messages

_MIB = 1 << 20
_LOCATION_OPTIONS = ("-o", "-i", "-O", "-d")
# Options that say where or how often, or that the key holds elsewhere.
_IGNORED_OPTIONS = ("test filename", "repetitions", "nodes", "tasks", "clients per node", "apiVersion", "Results")
_RESULT_ROW_PATTERN = re.compile(r"^(write|read|remove)\s+([\d.eE+-]+|NA|-)\s+(.*)$")
# Columns as IOR prints them (1 to 3 have no IOPS and latency) and as its JSON names them.
_METRICS_BY_COLUMN = {
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
_OPTION_LINE_PATTERN = re.compile(r"^[ \t]*([a-zA-Z]\w*(?: +\w+)*)[ \t]*[:=][ \t]*(.*)$", re.MULTILINE)
_HEAD_LINE_PATTERN = re.compile(r"^(Began|Command line|Machine)(?: used)?\s*: (.*)$", re.MULTILINE)
_TEST_LINE_PATTERN = re.compile(r"^(?:TestID\s*: (\d+)|Test (\d+) started: (.*))$", re.MULTILINE)


def is_ior_text(file_head: str) -> bool:
    """Whether it is what IOR prints for people."""
    return re.search(r"^IOR-\d[^\n]*MPI Coordinated Test of Parallel I/O", file_head, re.MULTILINE) is not None


def is_ior_json(file_head: str) -> bool:
    """Whether it is IOR's JSON."""
    return file_head.lstrip().startswith("{") and '"tests"' in file_head and '"Command line"' in file_head


def read_ior_text(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in what IOR printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=IOR-\d)", result_text)
    runs = [run for piece in pieces if is_ior_text(piece) for run in _read_output_of_command(piece, import_defaults)]
    if not runs:
        raise ValueError("it has no line of results")
    return runs


def _read_output_of_command(output_text: str, import_defaults: ImportDefaults) -> Iterator[ImportedRun]:
    version = re.search(r"^IOR-(\S+?):", output_text, re.MULTILINE)
    head = dict(_HEAD_LINE_PATTERN.findall(output_text))
    for start in _TEST_LINE_PATTERN.finditer(output_text):
        test = output_text[start.start() :].partition("Summary of all tests")[0]
        next_test = _TEST_LINE_PATTERN.search(test, start.end() - start.start())
        test = test[: next_test.start()] if next_test else test
        header = re.search(r"^access\s+bw", test, re.MULTILINE)
        description, table = (test[: header.start()], test[header.start() :]) if header else (test, "")
        options = dict(_OPTION_LINE_PATTERN.findall(re.split(r"(?m)^(?:Options:|Summary:)[ \t]*$", description)[-1]))
        if "clients" in options:  # 1 to 3: 4 (2 per node)
            options |= _parse_clients(options.pop("clients"))
        facts_of_test = dict(re.findall(r"^(StartTime|Path)\s*: (.*)$", description, re.MULTILINE))
        facts_of_test |= {"TestID": start[1] or start[2], "StartTime": facts_of_test.get("StartTime") or start[3] or ""}
        facts = {
            **head,
            **facts_of_test,
            "version": version[1] if version else "",
            "options": options,
            "text": output_text,
        }
        yield from _build_runs(facts, _parse_result_rows(table), import_defaults)


def _parse_clients(clients_text: str) -> dict[str, str]:
    match = re.fullmatch(r"(\d+) \((\d+) per node\)", clients_text.strip())
    if match is None:
        return {}
    return {"tasks": match[1], "clients per node": match[2]}


def _parse_result_rows(table_text: str) -> dict[int, list[Mapping[str, Any]]]:
    """Repetition -> the lines of results."""
    rows: dict[int, list[Mapping[str, Any]]] = {}
    header: list[str] = []
    for line in table_text.splitlines():
        fields = line.split()
        if fields[:1] == ["access"]:
            header = [_METRICS_BY_COLUMN.get(field, field) for field in fields[1:]]
        elif header and _RESULT_ROW_PATTERN.match(line.strip()):
            row = {"access": fields[0], **dict(zip(header, map(_convert_to_number, fields[1:]), strict=False))}
            rows.setdefault(int(row.get("iter") or 0), []).append(row)
    return rows


def read_ior_json(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in IOR's JSON."""
    document = parse_json(result_text)
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
        runs += _build_runs({**facts, "version": version, "options": options, "text": ""}, rows, import_defaults)
    if not runs:
        raise ValueError("it has no results")
    return runs


def _build_runs(
    head_facts: Mapping[str, Any],
    rows_by_repetition: Mapping[int, Sequence[Mapping[str, Any]]],
    import_defaults: ImportDefaults,
) -> Iterator[ImportedRun]:
    options: Mapping[str, str] = head_facts["options"]
    command = str(head_facts.get("Command line", ""))
    tasks, nodes, per_node = (_convert_to_count(options.get(name)) for name in ("tasks", "nodes", "clients per node"))
    if nodes is None and tasks and per_node:  # 3 does not say how many
        nodes = -(-tasks // per_node)
    experiment = {name: " ".join(value.split()) for name, value in options.items() if name not in _IGNORED_OPTIONS}
    experiment["arguments"] = select_work_arguments(command, _LOCATION_OPTIONS)
    started = parse_clock_time(str(head_facts.get("StartTime") or head_facts.get("Began")))
    group = (
        f"ior {head_facts.get('Began', '')} test {head_facts.get('TestID', '0')}"
        if len(rows_by_repetition) > 1
        else None
    )
    for repetition, results in sorted(rows_by_repetition.items()):
        yield ImportedRun(
            tool=f"IOR {head_facts['version']}".strip(),
            name=f"ior-{options.get('api', '')}-{options.get('access', '')}".lower(),
            title=f"IOR: {options.get('api', '?')}, {options.get('access', '?')}, {options.get('xfersize', '?')}",
            started=import_defaults.convert_to_utc(started),
            experiment=experiment,
            phases=[
                _build_phase(row, shorten_to_minor_version(str(head_facts["version"])), options)
                for row in results
                if _convert_to_number(row.get("bwMiB"))
            ],
            host=str(head_facts.get("Machine", "")).split(" ")[-1],
            target=options.get("test filename", "").rpartition("/")[0],
            tasks=tasks,
            nodes=nodes,
            seconds=sum(float(row.get("totalTime") or 0.0) for row in results) or None,
            group=group,
            command=command,
            context={"repetition": repetition},
            findings=find_tool_messages(str(head_facts["text"])),
        )


def _build_phase(result_row: Mapping[str, Any], ior_version: str, ior_options: Mapping[str, str]) -> ImportedPhase:
    access = str(result_row["access"])
    rate, ops = _convert_to_number(result_row.get("bwMiB")), _convert_to_number(result_row.get("iops"))
    return ImportedPhase(
        phase=access,
        op=access,
        definition=f"IOR {ior_version} bw",
        bytes_per_s=None if rate is None else rate * _MIB,
        ops_per_s=ops,
        seconds=_convert_to_number(result_row.get("totalTime")),
        backend=ior_options.get("api", "").lower(),
        also={
            name: value for name in _OTHER_METRICS if (value := _convert_to_number(result_row.get(name))) is not None
        },
    )


def _convert_to_number(json_value: Any) -> float | None:
    try:
        number = float(json_value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _convert_to_count(json_value: Any) -> int | None:
    return int(json_value) if isinstance(json_value, str) and json_value.isdigit() else None
