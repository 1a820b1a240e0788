# SPDX-License-Identifier: Apache-2.0
"""The rows of the index: one a run and one a phase, with what lists, filters and histories need.

A folder that is not a run of Sonde has a row as well, with a sentence about the problem, so that it is read only once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from sonde.findings.best_numbers import STORAGE_CLASSIFICATIONS
from sonde.findings.caveats import determine_validity, get_stored_classification, select_caveats
from sonde.findings.classification import Classification
from sonde.model.errors import RecordError
from sonde.model.history_key import BYTES_PER_S, OPS_PER_S, HistoryKey, RunKey, classify_cache
from sonde.model.operations import READ_ONLY_OPS, TRANSFER_OPS, WRITE_ONLY_OPS
from sonde.model.plan_hash import HASH_VERSION
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import read_tags

Row = dict[str, Any]

_STORAGE_CLASSIFICATIONS = frozenset(classification.value for classification in STORAGE_CLASSIFICATIONS)
_HISTORY_KEY_COLUMNS = ("system", "storage", "plan_hash", "node_class", "epoch")
RUN_COLUMNS: Mapping[str, str] = {
    "run": "text",
    "folder": "text",  # below the archive
    "changed_ns": "int",  # of the folder, when it was read; 0 when it was too fresh to trust
    "problem": "text",  # null for a run; else why the folder is none
    "started_s": "float",  # seconds since 1970, UTC
    "started": "text",
    "status": "text",
    "role": "text",
    "group": "text",
    "plan": "text",
    "title": "text",
    "target": "text",
    "file_system": "text",
    "host": "text",
    "tasks": "int",
    "nodes": "int",
    "processes": "int",
    "threads": "int",
    "seconds": "float",
    "source": "text",  # null for our own measurements; else the tool whose result was imported
    "validity": "text",  # good, doubtful, invalid; null: no phase ended
    "findings": "texts",
    "caveats": "texts",  # ids of the findings that are caveats of a number
    "tags": "texts",
    **dict.fromkeys(_HISTORY_KEY_COLUMNS, "text"),
    **{f"{direction}_{unit}": "float" for direction in ("write", "read") for unit in (BYTES_PER_S, OPS_PER_S)},
    "read_classification": "text",  # of the fastest read; null when nobody judged it, or nothing was read
    "write_classification": "text",
}
PHASE_COLUMNS: Mapping[str, str] = {
    "run": "text",
    "started_s": "float",
    "plan": "text",
    "group": "text",
    "position": "int",  # in the run, from 0
    "phase": "text",
    "op": "text",
    "backend": "text",
    "cache": "text",
    "measured": "bool",
    "done": "bool",
    "stopped_by": "text",
    "definition": "text",  # whose number it is
    "bytes": "int",
    "ops": "int",
    "failed": "int",
    "seconds": "float",
    BYTES_PER_S: "float",
    OPS_PER_S: "float",
    "classification": "text",  # what the number is about: storage, burst, short, cache, …; null when nobody judged it
    "validity": "text",  # good, doubtful, invalid
    "findings": "texts",
    "history": "text",  # id of the history that the value belongs to; null when it belongs to none
    "value": "float",  # in the unit of its history
    "key": "text",  # the key of the history as JSON
}
_PHASE_TEXTS = ("phase", "op", "backend", "stopped_by", "definition", "classification", "validity")
_INCOMPLETE_STOP_REASONS = ("error", "interrupt", "time_limit")
# Operations on data, whose number is bytes per second; a file that is created with some bytes in it is one operation.
_DATA_OPS = TRANSFER_OPS | {"trim"}  # which another tool does


def read_folder_rows(run_folder: Path, folder_name: str, changed_ns: int) -> tuple[Row, list[Row]]:
    """The row of a folder of the archive and those of its phases. Never raises: what is wrong becomes `problem`."""
    try:
        run = read_summary(run_folder)
        return _make_run_row(run, folder_name, changed_ns, read_tags(run_folder)), _make_phase_rows(run)
    except (RecordError, OSError) as reason:
        problem = str(reason)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as reason:
        problem = f"has a run.json that makes no sense ({type(reason).__name__}: {reason})"
    return {"run": run_folder.name, "folder": folder_name, "changed_ns": changed_ns, "problem": problem}, []


def _make_run_row(run_summary: Summary, folder_name: str, changed_ns: int, tags: Sequence[str]) -> Row:
    document = run_summary.document
    findings = [finding for finding in document.get("findings") or () if isinstance(finding, Mapping)]
    caveats = _select_run_caveats(run_summary, findings)
    key = make_history_key(run_summary)
    row: Row = {
        "run": run_summary.id,
        "folder": folder_name,
        "changed_ns": changed_ns,
        "started_s": parse_epoch_seconds(run_summary.started),
        "validity": _determine_run_validity(run_summary, caveats),
        "findings": _list_finding_ids(findings),
        "caveats": _list_finding_ids(caveats),
        "tags": sorted(tags),
        "source": _read_source_tool(document),
        "host": str(document.get("host") or ""),
        **{name: _convert_to_whole_number(document.get(name)) for name in ("processes", "threads")},
        **dict(
            zip(_HISTORY_KEY_COLUMNS, asdict(key).values() if key else [None] * len(_HISTORY_KEY_COLUMNS), strict=True)
        ),
    }
    members = (
        "started",
        "status",
        "role",
        "group",
        "plan",
        "title",
        "target",
        "file_system",
        "tasks",
        "nodes",
        "seconds",
    )
    row |= {name: getattr(run_summary, name) for name in members}
    for direction, ops in (("write", WRITE_ONLY_OPS), ("read", READ_ONLY_OPS)):
        row |= _find_fastest_phase(run_summary.phases, direction, ops)
    return row


def _select_run_caveats(run_summary: Summary, findings: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the findings that are caveats: a number that counts as cached is not also possibly cached."""
    classifications = {str(phase.get("phase")): get_stored_classification(phase) for phase in run_summary.phases}
    return [
        finding
        for finding in findings
        if select_caveats([finding], classifications.get(str(finding.get("phase") or ""), ""))
    ]


def _determine_run_validity(run_summary: Summary, caveats: Iterable[Mapping[str, Any]]) -> str | None:
    """None without a number: the run failed and no phase ended by itself."""
    finished = any(
        phase.get("done") and phase.get("stopped_by") not in ("error", "interrupt") for phase in run_summary.phases
    )
    if run_summary.status in ("failed", "lost") and not finished:
        return None
    return determine_validity(str(finding.get("severity")) for finding in caveats)


def _list_finding_ids(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted({str(finding.get("id")) for finding in findings if finding.get("id")})


def _find_fastest_phase(phase_members: Iterable[Mapping[str, Any]], direction_name: str, ops: Collection[str]) -> Row:
    """The best phase of that direction: the fastest storage number, as in every headline (`findings.best_numbers`);
    without one the fastest that has no classification, else the classification of the fastest without its number."""
    there = [
        phase
        for phase in phase_members
        if phase.get("measured", True) and phase.get("op") in ops and _is_positive_number(phase.get(BYTES_PER_S))
    ]
    honest = [phase for phase in there if read_classification(phase) in _STORAGE_CLASSIFICATIONS] or [
        phase for phase in there if not read_classification(phase)
    ]
    best = max(honest or there, key=lambda phase: float(phase[BYTES_PER_S]), default=None)
    if best is None:
        return {}
    row: Row = {f"{direction_name}_classification": read_classification(best)}
    if honest:
        row |= {
            f"{direction_name}_{BYTES_PER_S}": float(best[BYTES_PER_S]),
            f"{direction_name}_{OPS_PER_S}": _convert_to_number_or_none(best.get(OPS_PER_S)),
        }
    return row


def read_classification(phase_member: Mapping[str, Any]) -> str | None:
    """The stored classification of a phase of a run.json. Of imported numbers only `cache` is known, from the plan;
    otherwise None."""
    classification = phase_member.get("classification")
    if isinstance(classification, str):
        return classification
    return Classification.CACHE.value if _classify_phase_cache(phase_member) == "cached" else None


def _make_phase_rows(run_summary: Summary) -> list[Row]:
    key = make_history_key(run_summary)
    rows = []
    started_s = parse_epoch_seconds(run_summary.started)
    for position, phase in enumerate(run_summary.phases):
        row: Row = {
            "run": run_summary.id,
            "started_s": started_s,
            "plan": run_summary.plan,
            "group": run_summary.group,
            "position": position,
        }
        row |= {name: _convert_to_text_or_none(phase.get(name)) for name in _PHASE_TEXTS}
        row |= {"measured": phase.get("measured", True) is not False, "done": phase.get("done") is True}
        row |= {name: _convert_to_whole_number(phase.get(name)) for name in ("bytes", "ops", "failed")}
        row |= {name: _convert_to_number_or_none(phase.get(name)) for name in ("seconds", BYTES_PER_S, OPS_PER_S)}
        row |= {
            "cache": _classify_phase_cache(phase),
            "findings": [str(finding) for finding in phase.get("findings") or ()],
        }
        counted = make_history_key_and_value(key, phase) if key and is_counted_in_histories(run_summary) else None
        if counted is not None:
            history, value = counted
            row |= {"value": value, **_make_key_columns(history)}
        rows.append(row)
    return rows


@lru_cache(maxsize=4096)
def _make_key_columns(history_key: HistoryKey) -> Mapping[str, str]:
    """Id and text of a history key; cached, because most rows have the same few keys."""
    return {"history": history_key.id, "key": json.dumps(asdict(history_key), ensure_ascii=False)}


def is_counted_in_histories(run_summary: Summary) -> bool:
    """Whether the numbers of a run are part of any history."""
    return run_summary.role != "calibration" and run_summary.status != "mismatch"


def make_history_key(run_summary: Summary) -> RunKey | None:
    """The run's part of the key of its histories; None when it has none, or its plan was hashed by another rule."""
    shared = run_summary.document.get("history")
    if not isinstance(shared, Mapping) or str(shared.get("version", HASH_VERSION)) != str(HASH_VERSION):
        return None
    try:
        return RunKey(**{str(name): str(value) for name, value in shared.items() if name != "version"})
    except TypeError:
        return None


def make_history_key_and_value(run_key: RunKey, phase_row: Mapping[str, Any]) -> tuple[HistoryKey, float] | None:
    """History key and value of a phase; None when it was not finished, not measured or cut short."""
    if (
        not phase_row.get("done")
        or not phase_row.get("measured", True)
        or phase_row.get("stopped_by") in _INCOMPLETE_STOP_REASONS
    ):
        return None
    unit = BYTES_PER_S if phase_row.get(BYTES_PER_S) and phase_row.get("op") in _DATA_OPS else OPS_PER_S
    value = phase_row.get(unit)
    if not _is_positive_number(value):
        return None
    members = {name: str(phase_row.get(name) or "") for name in ("phase", "op", "definition")}
    shared = (run_key.system, run_key.file_system, run_key.plan_hash, run_key.node_class, run_key.epoch)
    return HistoryKey(*shared, cache=_classify_phase_cache(phase_row), unit=unit, **members), float(str(value))


def parse_epoch_seconds(start_time_text: str) -> float:
    """Seconds since 1970 of an ISO time; a time without zone is UTC, and 0 stands for no time at all."""
    try:
        moment = datetime.fromisoformat(start_time_text)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _classify_phase_cache(phase_member: Mapping[str, Any]) -> str:
    return classify_cache(str(phase_member.get("cache") or ""), phase_member.get("findings") or ())


def _read_source_tool(run_document: Mapping[str, Any]) -> str | None:
    source = run_document.get("source")
    return str(source.get("tool") or "unknown") if isinstance(source, Mapping) else None


def _is_positive_number(json_value: Any) -> bool:
    return isinstance(json_value, int | float) and not isinstance(json_value, bool) and 0 < json_value < float("inf")


def _convert_to_text_or_none(json_value: Any) -> str | None:
    return json_value if isinstance(json_value, str) else None


def _convert_to_number_or_none(json_value: Any) -> float | None:
    return float(json_value) if isinstance(json_value, int | float) and not isinstance(json_value, bool) else None


def _convert_to_whole_number(json_value: Any) -> int | None:
    return (
        json_value
        if isinstance(json_value, int) and not isinstance(json_value, bool) and abs(json_value) < 2**63
        else None
    )
