# SPDX-License-Identifier: Apache-2.0
"""One archive for the vendor: diagnosis, page, system file and records, without names and addresses of hosts, and
without the path of a diagnosed directory."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sonde.charts.page_renderer import render_page_template
from sonde.diagnose.diagnosis_page import build_diagnosis_page
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.model.confined_files import format_json_file, open_atomic_replacement, open_file
from sonde.model.record import RECORD_FILE
from sonde.store.archive import Archive

# Members with addresses, or with text that a person wrote.
_OMITTED_MEMBERS = frozenset(
    ("nid", "nids", "address", "addresses", "mac", "title", "notes", "source", "status", "path")
)
_HOST_NOUNS = {"nodes": "node", "routers": "router", "servers": "server"}
# Lines of a record that say what was measured; others have commands, paths and environment.
_BUNDLED_LINE_TYPES = ("phase_begin", "phase_end", "series", "histogram", "nodes", "tasks", "targets", "finding", "end")


class Redaction:
    """Replaces names of hosts by kind and number, and the path of a diagnosed directory, in the same way everywhere."""

    def __init__(
        self, system_document: Mapping[str, Any], other_hosts: tuple[str, ...] = (), directory: str = ""
    ) -> None:
        names = {directory: "the directory"} if directory.strip("/") else {}
        for kind, word in _HOST_NOUNS.items():
            for number, part in enumerate(system_document.get(kind, ()), start=1):
                names[str(part["id"])] = f"{word}-{number}"
        for host in other_hosts:
            names.setdefault(host, f"host-{len(names) + 1}")
        self._names = names
        longest_first = sorted(names, key=len, reverse=True)
        alternatives = "|".join(re.escape(name) for name in longest_first) or r"(?!)"
        self._pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")

    def redact_text(self, report_text: str) -> str:
        """Returns the text without names of hosts."""
        return self._pattern.sub(lambda match: self._names[match[0]], report_text)

    def redact_document(self, json_value: Any) -> Any:
        """Returns the document without names and addresses of hosts."""
        if isinstance(json_value, Mapping):
            return {
                self.redact_text(str(key)): self.redact_document(item)
                for key, item in json_value.items()
                if key not in _OMITTED_MEMBERS
            }
        if isinstance(json_value, list | tuple):
            return [self.redact_document(item) for item in json_value]
        return self.redact_text(json_value) if isinstance(json_value, str) else json_value


def build_vendor_bundle(session: DiagnosisSession, archive: Archive, bundle_file: Path) -> list[str]:
    """Writes the archive and returns the names in it. Raises OSError."""
    records: dict[str, list[dict[str, Any]]] = {}
    for stored in session.state.results:
        if stored.origin not in ("model", "hand", "logs"):
            for folder in archive.find_run_folders(stored.origin):
                records[stored.origin] = _read_json_lines(folder / RECORD_FILE)
    hosts = tuple(
        str(line["host"])
        for lines in records.values()
        for line in lines
        if line.get("type") == "node" and "host" in line
    )
    redaction = Redaction(session.model.machine.document, hosts, session.state.directory)
    page = build_diagnosis_page(session)  # before the document: it decides whether the answer is final
    state = {key: value for key, value in session.state.to_json().items() if key != "system"}
    files = {
        "diagnosis.json": format_json_file(redaction.redact_document(session.to_json())),
        "results.json": format_json_file(redaction.redact_document(state)),
        "system.json": format_json_file(redaction.redact_document(session.model.machine.document)),
        "diagnosis.html": redaction.redact_text(render_page_template(page, "study.html.j2")),
    }
    for number, lines in enumerate(records.values(), start=1):
        chosen = [redaction.redact_document(line) for line in lines if line.get("type") in _BUNDLED_LINE_TYPES]
        files[f"record-{number}.ndjson"] = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in chosen)
    with open_atomic_replacement(bundle_file) as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
        for name, text in files.items():
            content = text.encode()
            member = tarfile.TarInfo(f"diagnosis/{name}")
            member.size = len(content)
            bundle.addfile(member, io.BytesIO(content))
    return list(files)


def _read_json_lines(ndjson_file: Path) -> list[dict[str, Any]]:
    lines = []
    with open_file(ndjson_file) as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except ValueError:
                continue
            if isinstance(line, dict):
                lines.append(line)
    return lines
