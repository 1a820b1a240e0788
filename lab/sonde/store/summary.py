# SPDX-License-Identifier: Apache-2.0
"""run.json: what the list of runs needs, so that it never has to read a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sonde.findings.caveats import determine_phase_validity
from sonde.findings.classification import Classification, classify_in_model, classify_number
from sonde.findings.read_source import find_all_cache_and_device_contradictions
from sonde.findings.target_operations import read_target_operations
from sonde.model.confined_files import open_file
from sonde.model.documents import parse_json
from sonde.model.errors import RecordError, format_as_sentence
from sonde.model.history_key import compute_run_key
from sonde.model.line_members import Rate
from sonde.model.parents import TargetParents
from sonde.model.plan_hash import HASH_VERSION
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.model.simulation import is_simulated_document

RUN_FORMAT = "sonde-run/2"
SUMMARY_FILE = "run.json"
PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class Summary:
    """One run in the list."""

    folder: Path
    id: str
    status: str
    started: str
    seconds: float | None
    plan: str
    title: str
    target: str
    file_system: str
    tasks: int | None
    nodes: int | None
    role: str
    group: str | None
    phases: tuple[Mapping[str, Any], ...]
    document: Mapping[str, Any] = field(repr=False)


def build_summary_document(
    reader: RecordReader,
    run_facts: Mapping[str, Any],
    exit_code: int | None,
    stderr_text: str,
    run_folder: Path | None = None,
) -> dict[str, Any]:
    """The document run.json. `run_facts` are what the lab knows next to the record; they come first. `run_folder` has
    the telemetry of the run."""
    run, end, recorded_run = reader.run, reader.end, make_recorded_run(reader, run_folder, run_facts)
    host = reader.nodes[0].host if reader.nodes else ""
    kind = reader.nodes[0].file_system.type if reader.nodes else ""
    status = {0: "done", 4: "mismatch", 5: "interrupted"}.get(exit_code, "failed") if exit_code is not None else "lost"
    document: dict[str, Any] = {
        "schema": RUN_FORMAT,
        **{name: value for name, value in run_facts.items() if name != "parents"},
        "status": end.status if end and end.status and exit_code in (None, end.exit_code) else status,
        "exit_code": exit_code,
        "text": stderr_text,
        "seconds": end.seconds if end and end.seconds is not None else _find_last_time(reader),
        "host": host,
        "file_system": kind,
        "phases": [
            {**_convert_phase_to_json(phase), **classify_for_tables(recorded_run, phase)}
            for phase in recorded_run.phases
        ],
        "findings": [
            {"id": finding.id, "phase": finding.phase, "severity": finding.severity, "text": finding.text}
            for finding in (*recorded_run.all_findings, *find_all_cache_and_device_contradictions(recorded_run))
        ],
        "errors": [error.text for error in reader.errors[:5]],
        "problems": reader.problems[:20],
    }
    if parents := _select_used_parents(recorded_run):
        document["parents"] = parents.to_json()
    if run is not None:
        document |= {
            "started": run.started or run_facts.get("started", ""),
            "engine": run.engine,
            "launch": run.launch,
            "tasks": run.tasks,
            "processes": run.processes,
            "threads": run.threads,
            "nodes": run.nodes,
            "history": {"version": HASH_VERSION}
            | asdict(
                compute_run_key(run, reader.nodes, str(run_facts.get("target", "")), _get_table(run_facts, "site"))
            ),
        }
    return document


def classify_for_tables(run: RecordedRun, phase: PhaseRecord) -> dict[str, str]:
    """Classification (name and sentence) and validity of a phase's number, as every table stores them."""
    classification, because = classify_number(run, phase)
    is_simulated = classification is Classification.SIMULATED
    return {
        "classification": classification.value,
        **({"modeled_classification": classify_in_model(run, phase)[0].value} if is_simulated else {}),
        "classification_text": replace_no_break_spaces(format_as_sentence(because)),
        "validity": determine_phase_validity(run, phase),
    }


def _select_used_parents(run: RecordedRun) -> TargetParents:
    """Servers and units of the targets that the record names."""
    lines = [phase.targets for phase in run.phases if phase.targets]
    return run.parents.restrict_to_targets(
        {operation.target for line in lines for operation in read_target_operations(line)}
    )


def _find_last_time(reader: RecordReader) -> float | None:
    times = [phase.end.t for phase in reader.phases.values() if phase.end]
    times += [phase.progress.t for phase in reader.phases.values() if phase.progress]
    return max(times, default=None)


def _convert_phase_to_json(phase: PhaseRecord) -> dict[str, Any]:
    begin, end = phase.begin, phase.end
    row: dict[str, Any] = {
        "phase": begin.phase,
        "op": begin.op,
        "backend": begin.backend,
        "direct": begin.direct,
        "cache": begin.cache,
        "measured": begin.measured,
        "done": end is not None,
        "findings": [finding.id for finding in phase.findings],
    }
    if end is not None:
        rates_by_name = {name: rate for name in ("total", "transfer") if (rate := getattr(end.rates, name)) is not None}
        name, rate = next(iter(rates_by_name.items()), ("", Rate()))
        row |= {
            "bytes": end.bytes.transferred,
            "ops": end.ops.done,
            "failed": end.ops.failed,
            "seconds": end.seconds.elapsed,
            "bytes_per_s": rate.bytes_per_s,
            "ops_per_s": rate.ops_per_s,
            "stopped_by": end.stopped_by,
            "definition": f"sonde {name}" if name else "",
        }
        if end.training is not None:
            row |= {"accelerators": end.training.accelerators, "utilization": end.training.utilization}
    return row


def read_summary(run_folder: Path) -> Summary:
    """Reads run.json. Raises RecordError with a sentence part when the folder is not a run of ours."""
    try:
        with open_file(run_folder / SUMMARY_FILE) as file:
            document = parse_json(file.read().decode("utf-8"))
    except FileNotFoundError:
        raise RecordError(f"has no {SUMMARY_FILE}") from None
    except (OSError, ValueError) as reason:
        raise RecordError(f"has a {SUMMARY_FILE} that cannot be read ({reason})") from None
    if not isinstance(document, dict) or document.get("schema") != RUN_FORMAT:
        schema = document.get("schema") if isinstance(document, dict) else None
        raise RecordError(f"has a {SUMMARY_FILE} of another kind ({schema or 'no schema'})")
    document["phases"] = _reclassify_simulated_phases(document)
    plan = document.get("plan")
    plan = plan if isinstance(plan, dict) else {}
    return Summary(
        folder=run_folder,
        id=_get_text(document, "id") or run_folder.name,
        status=_get_text(document, "status") or "lost",
        started=_get_text(document, "started"),
        seconds=_get_number(document, "seconds"),
        plan=_get_text(plan, "id"),
        title=_get_text(plan, "title"),
        target=_get_text(document, "target"),
        file_system=_get_text(document, "file_system"),
        tasks=_get_whole_number(document, "tasks"),
        nodes=_get_whole_number(document, "nodes"),
        role=_get_text(document, "role") or "run",
        group=_get_text(document, "group") or None,
        phases=tuple(document["phases"]),
        document=document,
    )


def _reclassify_simulated_phases(summary_document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The phases of a run.json. Earlier versions classified simulated numbers as if they were measured: that
    classification becomes the one within the model."""
    phases = summary_document.get("phases")
    rows = [row for row in phases if isinstance(row, dict)] if isinstance(phases, list) else []
    if not is_simulated_document(summary_document):
        return rows
    unchanged = (None, Classification.SIMULATED.value, Classification.FAILED.value, Classification.INVALID.value)
    return [
        row
        if row.get("classification") in unchanged
        else {
            **row,
            "classification": Classification.SIMULATED.value,
            "modeled_classification": row["classification"],
            "classification_text": f"Simulated, not measured. In the model: {row.get('classification_text') or '-'}",
        }
        for row in rows
    ]


def _get_table(run_document: Mapping[str, Any], member_name: str) -> Mapping[str, Any]:
    value = run_document.get(member_name)
    return value if isinstance(value, Mapping) else {}


def _get_text(run_document: Mapping[str, Any], member_name: str) -> str:
    value = run_document.get(member_name)
    return value if isinstance(value, str) else ""


def _get_number(run_document: Mapping[str, Any], member_name: str) -> float | None:
    value = run_document.get(member_name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _get_whole_number(run_document: Mapping[str, Any], member_name: str) -> int | None:
    value = run_document.get(member_name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
