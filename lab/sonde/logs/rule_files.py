# SPDX-License-Identifier: Apache-2.0
"""Reads files of log rules, compiles their patterns, and lists the rules that Sonde ships."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from sonde.logs.description import LogRule, LogRulesFile
from sonde.model.documents import parse_toml
from sonde.model.errors import EventError
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file
from sonde.model.tables.table_reader import ReadContext, read_table

_PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")
_HOST_GROUP_NAME = "host"


@dataclass(frozen=True)
class CompiledRule:
    """A rule with its patterns. `file` is its place in the order of files."""

    rule: LogRule
    file: int
    pattern: re.Pattern[str]
    program: re.Pattern[str] | None
    literals: tuple[str, ...]  # every line that the rule uses has one of these; empty: unknown
    end_pattern: re.Pattern[str] | None  # None also where it has placeholders and is compiled for each pair


def list_shipped_rule_files() -> dict[str, Path]:
    """Files of shipped rules by name."""
    folder = resources.files("sonde.logs").joinpath("rules")
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".toml"): Path(str(entry)) for entry in entries if entry.name.endswith(".toml")}


def read_rule_file(rule_file: Path) -> LogRulesFile:
    """Reads a file of rules. Raises EventError with file and member."""
    text = read_text_file(rule_file, "file of log rules", MAX_CONFIGURATION_BYTES, EventError)
    try:
        document = parse_toml(text)
    except ValueError as error:
        raise EventError(f"{rule_file} is not valid TOML: {error}.") from None
    return read_table(LogRulesFile, document, ReadContext(EventError, str(rule_file)))


def compile_rules(paths: Iterable[Path]) -> list[CompiledRule]:
    """Reads and compiles all rules of the files, in their order. Raises EventError."""
    rules: list[CompiledRule] = []
    ids: set[str] = set()
    for number, path in enumerate(paths):
        for rule in read_rule_file(path).rules:
            if rule.id in ids:
                raise EventError(f'{path}: two rules have the id "{rule.id}"; give one of them another.')
            ids.add(rule.id)
            rules.append(_compile_rule(rule, number, path))
    return rules


@cache
def compile_shipped_rules() -> tuple[CompiledRule, ...]:
    """All rules that Sonde ships, in the order of their files."""
    return tuple(compile_rules(list_shipped_rule_files().values()))


def fill_template(template: str, values_by_name: dict[str, str]) -> str:
    """Replaces {name} by the value of that name, or by nothing when the group did not take part in the match."""
    return _PLACEHOLDER_PATTERN.sub(lambda match: values_by_name.get(match[1]) or "", template)


def _compile_rule(rule: LogRule, rule_number: int, rule_file: Path) -> CompiledRule:
    def make_rule_error(problem_clause: str) -> EventError:
        return EventError(f"{rule_file}: rules.{rule.id}: {problem_clause}")

    bare_end = _PLACEHOLDER_PATTERN.sub("x", rule.end_pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of syntax that a later Python reads in another way
            pattern = re.compile(rule.pattern)
            program = re.compile(rule.program) if rule.program else None
            end_pattern = re.compile(bare_end)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise make_rule_error(f"a pattern is no regular expression: {error}.") from None
    names = {*pattern.groupindex, _HOST_GROUP_NAME}
    for template in (rule.title, rule.end_pattern, *rule.parts, *rule.context, *rule.creates, *rule.deletes):
        for name in _PLACEHOLDER_PATTERN.findall(template):
            if not name.isdigit() and name not in names:
                raise make_rule_error(f'"{{{name}}}" is no group of its pattern; it has {", ".join(sorted(names))}.')
    if rule.type in ("single", "threshold", "pair") and not (rule.title or rule.creates or rule.deletes):
        raise make_rule_error("it has no title and no context, so a match would do nothing; add a title.")
    if rule.type == "threshold" and (rule.window is None or rule.count is None):
        raise make_rule_error("a threshold needs count and window.")
    if rule.type == "pair" and not rule.end_pattern:
        raise make_rule_error("a pair needs end_pattern.")
    if rule.type == "repeat" and "count" not in pattern.groupindex:
        raise make_rule_error("a repeat needs a group (?P<count>…) in its pattern.")
    literals = rule.contains + rule.end_contains
    if not rule.contains or (rule.end_pattern and not rule.end_contains):
        literals = ()
    return CompiledRule(
        rule, rule_number, pattern, program, literals, None if bare_end != rule.end_pattern else end_pattern
    )
