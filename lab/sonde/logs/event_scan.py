# SPDX-License-Identifier: Apache-2.0
"""From log files to event documents: chooses the rules, scans, and lists what could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sonde.logs.rule_files import CompiledRule, compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults, make_event_document, scan_logs
from sonde.logs.sec_rules import SEC_SUFFIXES
from sonde.logs.sec_scan import scan_with_sec_rules
from sonde.model.errors import UserError, suggest_close_name


def choose_rule_files(user_files: Sequence[Path], rule_file_names: str) -> list[Path]:
    """Returns the rule files of the user, or those shipped files that `rule_file_names` (names separated by commas)
    selects."""
    if user_files and rule_file_names:
        raise UserError("--only selects shipped rules; leave it out with --rules.")
    if user_files:
        return list(user_files)
    shipped = list_shipped_rule_files()
    names = [name.strip() for name in rule_file_names.split(",") if name.strip()] or list(shipped)
    for name in names:
        if name not in shipped:
            raise UserError(
                f'There are no shipped rules "{name}"; there are '
                f"{', '.join(shipped)}.{suggest_close_name(name, shipped)}"
            )
    return [shipped[name] for name in names]


def scan_log_files(
    logs: Sequence[Path], rule_files: Sequence[Path], defaults: LogDefaults
) -> tuple[list[dict[str, Any]], list[str]]:
    """Events of the logs as documents of ``schema/event``, and one sentence for each problem of a file."""
    if not logs:
        raise UserError("Name at least one log file, like /var/log/messages.")
    sec_files = [path for path in rule_files if path.suffix in SEC_SUFFIXES]
    documents: list[dict[str, Any]] = []
    problems: list[str] = []
    if rules := compile_toml_rules(rule_files):
        events, reports = scan_logs(logs, rules, defaults)
        problems += [sentence for report in reports for sentence in report.describe_problems()]
        documents += [make_event_document(event) for event in events]
    if sec_files:
        sec_documents, sec_problems = scan_with_sec_rules(logs, sec_files, defaults)
        documents += sec_documents
        problems += sec_problems
    return documents, problems


def compile_toml_rules(rule_files: Sequence[Path]) -> list[CompiledRule]:
    """The rules of those files that are not of SEC."""
    return compile_rules(path for path in rule_files if path.suffix not in SEC_SUFFIXES)
