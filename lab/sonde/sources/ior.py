# SPDX-License-Identifier: Apache-2.0
"""Results of IOR, as it prints them for people and as JSON. Each repetition is a run of its own.

Its bandwidth is bytes over the time from the first open to the last close of all tasks, in MiB/s (2^20).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import clock_time, minor, work_of
from sonde.sources.messages import findings_of

_MIB = 1 << 20
_PLACES = ("-o", "-i", "-O", "-d")
# Options that say where or how often, or that the key holds elsewhere.
_NOT_WORK = ("test filename", "repetitions", "nodes", "tasks", "clients per node", "apiVersion", "Results")
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
_ALSO = ("latency", "blockKiB", "xferKiB", "openTime", "wrRdTime", "closeTime")
_OPTION = re.compile(r"^[ \t]*([a-zA-Z][\w ]*?)[ \t]*[:=][ \t]*(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^(Began|Command line|Machine)(?: used)?\s*: (.*)$", re.MULTILINE)
_TEST = re.compile(r"^(?:TestID\s*: (\d+)|Test (\d+) started: (.*))$", re.MULTILINE)


def is_text(head: str) -> bool:
    """Whether it is what IOR prints for people."""
    return re.search(r"^IOR-\d[^\n]*MPI Coordinated Test of Parallel I/O", head, re.MULTILINE) is not None


def is_json(head: str) -> bool:
    """Whether it is IOR's JSON."""
    return head.lstrip().startswith("{") and '"tests"' in head and '"Command line"' in head


def read_text(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in what IOR printed; several after each other in one file are several."""
    pieces = re.split(r"(?m)^(?=IOR-\d)", text)
    runs = [run for piece in pieces if is_text(piece) for run in _of_text(piece, about)]
    if not runs:
        raise ValueError("it has no line of results")
    return runs


def _of_text(text: str, about: About) -> Iterator[ImportedRun]:
    version = re.search(r"^IOR-(\S+?):", text, re.MULTILINE)
    head = dict(_HEAD.findall(text))
    for start in _TEST.finditer(text):
        test = text[start.start() :].partition("Summary of all tests")[0]
        following = _TEST.search(test, start.end() - start.start())
        test = test[: following.start()] if following else test
        header = re.search(r"^access\s+bw", test, re.MULTILINE)
        described, table = (test[: header.start()], test[header.start() :]) if header else (test, "")
        options = dict(_OPTION.findall(re.split(r"(?m)^(?:Options:|Summary:)\s*$", described)[-1]))
        if "clients" in options:  # 1 to 3: 4 (2 per node)
            options |= _counts(options.pop("clients"))
        said = dict(re.findall(r"^(StartTime|Path)\s*: (.*)$", described, re.MULTILINE))
        said |= {"TestID": start[1] or start[2], "StartTime": said.get("StartTime") or start[3] or ""}
        facts = {**head, **said, "version": version[1] if version else "", "options": options, "text": text}
        yield from _repetitions(facts, _rows(table), about)


def _counts(clients: str) -> dict[str, str]:
    found = re.fullmatch(r"(\d+) \((\d+) per node\)", clients.strip())
    if found is None:
        return {}
    return {"tasks": found[1], "clients per node": found[2]}


def _rows(table: str) -> dict[int, list[Mapping[str, Any]]]:
    """Repetition -> the lines of results."""
    rows: dict[int, list[Mapping[str, Any]]] = {}
    header: list[str] = []
    for line in table.splitlines():
        words = line.split()
        if words[:1] == ["access"]:
            header = [_COLUMNS.get(word, word) for word in words[1:]]
        elif header and _ROW.match(line.strip()):
            row = {"access": words[0], **dict(zip(header, map(_number, words[1:]), strict=False))}
            rows.setdefault(int(row.get("iter") or 0), []).append(row)
    return rows


def read_json(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in IOR's JSON."""
    document = json.loads(text)
    runs: list[ImportedRun] = []
    for test in document["tests"]:
        rows: dict[int, list[Mapping[str, Any]]] = {}
        seen: dict[str, int] = {}
        for result in test.get("Results", ()):
            # The JSON has no number of the repetition: the n-th write is of the n-th.
            access = str(result["access"])
            rows.setdefault(seen.setdefault(access, 0), []).append(result)
            seen[access] += 1
        facts = {name: str(document.get(name, "")) for name in ("Began", "Command line", "Machine")}
        facts |= {name: str(test.get(name, "")) for name in ("StartTime", "Path", "TestID")}
        options = {str(name): str(value) for name, value in test.get("Options", {}).items()}
        version = str(document.get("Version", ""))
        runs += _repetitions({**facts, "version": version, "options": options, "text": ""}, rows, about)
    if not runs:
        raise ValueError("it has no results")
    return runs


def _repetitions(
    facts: Mapping[str, Any], rows: Mapping[int, Sequence[Mapping[str, Any]]], about: About
) -> Iterator[ImportedRun]:
    options: Mapping[str, str] = facts["options"]
    command = str(facts.get("Command line", ""))
    tasks, nodes, per_node = (_whole(options.get(name)) for name in ("tasks", "nodes", "clients per node"))
    if nodes is None and tasks and per_node:  # 3 does not say how many
        nodes = -(-tasks // per_node)
    experiment = {name: " ".join(value.split()) for name, value in options.items() if name not in _NOT_WORK}
    experiment["arguments"] = work_of(command, _PLACES)
    began = clock_time(str(facts.get("StartTime") or facts.get("Began")))
    group = f"ior {facts.get('Began', '')} test {facts.get('TestID', '0')}" if len(rows) > 1 else None
    for repetition, results in sorted(rows.items()):
        yield ImportedRun(
            tool=f"IOR {facts['version']}".strip(),
            name=f"ior-{options.get('api', '')}-{options.get('access', '')}".lower(),
            title=f"IOR: {options.get('api', '?')}, {options.get('access', '?')}, {options.get('xfersize', '?')}",
            started=about.moment(began),
            experiment=experiment,
            phases=[_phase(one, minor(str(facts["version"])), options) for one in results if _number(one.get("bwMiB"))],
            host=str(facts.get("Machine", "")).split(" ")[-1],
            target=options.get("test filename", "").rpartition("/")[0],
            tasks=tasks,
            nodes=nodes,
            seconds=sum(float(one.get("totalTime") or 0.0) for one in results) or None,
            group=group,
            command=command,
            context={"repetition": repetition},
            findings=findings_of(str(facts["text"])),
        )


def _phase(row: Mapping[str, Any], version: str, options: Mapping[str, str]) -> ImportedPhase:
    access = str(row["access"])
    rate, ops = _number(row.get("bwMiB")), _number(row.get("iops"))
    return ImportedPhase(
        phase=access,
        op=access,
        definition=f"IOR {version} bw",
        bytes_per_s=None if rate is None else rate * _MIB,
        ops_per_s=ops,
        seconds=_number(row.get("totalTime")),
        backend=options.get("api", "").lower(),
        also={name: value for name in _ALSO if (value := _number(row.get(name))) is not None},
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isdigit() else None
