# SPDX-License-Identifier: Apache-2.0
"""Applies log rules to lines in order of time: single, threshold, pair, suppress, repeat, and contexts.

The rules of each file see a line in their order. A rule whose type is suppress ends the processing of its file; all
other rules pass the line on. Time is the time of the lines, not of the clock.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sonde.logs.line_formats import LogLine
from sonde.logs.rule_files import CompiledRule, fill_template

# Threshold and single rules without a window join nothing; pairs without one wait for ever.
_UNLIMITED_WINDOW = timedelta(days=36500)


@dataclass(frozen=True)
class LogEvent:
    """The event that a rule derived from one or more lines."""

    rule: str
    kind: str
    severity: str
    title: str
    parts: tuple[str, ...]
    first: datetime
    last: datetime
    count: int  # matching lines, with repetitions that the log only counts
    line: str  # message of the first line
    is_open: bool = False  # a pair whose end was not in the log
    source: str = ""


@dataclass(frozen=True)
class OperationState:
    """An operation as it is stored; times are ISO 8601."""

    rule: str
    title: str
    parts: tuple[str, ...]
    first: str
    last: str
    count: int
    line: str
    source: str
    ends: str
    times: tuple[str, ...]
    is_reported: bool
    end_pattern: str
    host: str  # whose last matching line it had


@dataclass(frozen=True)
class EngineState:
    """State of a `RuleEngine` between lines: its operations, and the ends of its contexts."""

    operations: tuple[OperationState, ...] = ()
    contexts: dict[str, str] = field(default_factory=dict)


@dataclass
class _RuleOperation:
    """A rule at work for one title: its event so far."""

    rule: CompiledRule
    event: LogEvent
    ends: datetime
    times: deque[datetime] = field(default_factory=deque)
    is_reported: bool = True  # False: a threshold that was not reached yet
    end_pattern: re.Pattern[str] | None = None


class RuleEngine:
    """Feeds lines to rules. `process_line` takes lines in order of time; finished events are taken with
    `drain_finished_events`."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self._rules = list(rules)
        self._always = [index for index, compiled in enumerate(self._rules) if not compiled.literals]
        by_literal: dict[str, list[int]] = {}
        for index, compiled in enumerate(self._rules):
            for literal in compiled.literals:
                by_literal.setdefault(literal, []).append(index)
        self._by_literal = list(by_literal.items())
        self._operations: dict[tuple[str, str], _RuleOperation] = {}
        self._contexts: dict[str, datetime] = {}
        self._finished: list[LogEvent] = []
        self._latest: dict[str, _RuleOperation] = {}  # host -> operation of its last matching line
        self._source = ""
        self._next_expiry: datetime | None = None  # no operation or context ends before

    def drain_finished_events(self) -> list[LogEvent]:
        """Returns the finished events and forgets them."""
        events, self._finished = self._finished, []
        return events

    def finish_all_operations(self) -> list[LogEvent]:
        """Ends all operations and returns the finished events."""
        self.end_operations()
        return self.drain_finished_events()

    def end_operations(self) -> None:
        """Ends all operations and contexts: at the end of a log, and where its clock goes back."""
        for key in list(self._operations):
            self._close_operation(key)
        self._contexts.clear()
        self._next_expiry = None

    def list_open_events(self) -> list[LogEvent]:
        """The events of operations that later lines may add to; they stay open."""
        return [self._make_event(operation) for operation in self._operations.values() if operation.is_reported]

    def get_state(self) -> EngineState:
        """The state to store. Finished events are not part of it."""
        hosts = {id(operation): host for host, operation in self._latest.items()}
        operations = tuple(
            OperationState(
                operation.event.rule,
                operation.event.title,
                operation.event.parts,
                operation.event.first.isoformat(),
                operation.event.last.isoformat(),
                operation.event.count,
                operation.event.line,
                operation.event.source,
                operation.ends.isoformat(),
                tuple(time.isoformat() for time in operation.times),
                operation.is_reported,
                operation.end_pattern.pattern if operation.end_pattern else "",
                hosts.get(id(operation), ""),
            )
            for operation in self._operations.values()
        )
        return EngineState(operations, {name: ends.isoformat() for name, ends in self._contexts.items()})

    def restore_state(self, engine_state: EngineState) -> None:
        """Continues from a stored state. Operations of rules that no longer exist are omitted.

        Raises ValueError for a time or pattern that cannot be read.
        """
        rules = {compiled.rule.id: compiled for compiled in self._rules}
        contexts = {name: parse_stored_time(ends) for name, ends in engine_state.contexts.items()}
        operations: dict[tuple[str, str], _RuleOperation] = {}
        for stored in engine_state.operations:
            if (compiled := rules.get(stored.rule)) is not None:
                operations[stored.rule, stored.title] = operation = _restore_operation(stored, compiled)
                if stored.host:
                    self._latest[stored.host] = operation
        self._operations, self._contexts = operations, contexts
        self._next_expiry = min(
            [*(operation.ends for operation in operations.values()), *contexts.values()], default=None
        )

    def process_line(self, log_line: LogLine, line_time: datetime, source_name: str = "") -> bool:
        """Applies the rules to one line. Returns whether a rule matched."""
        if self._next_expiry is not None and line_time > self._next_expiry:
            self._expire_operations(line_time)
        self._source = source_name
        matched = False
        suppressed_file = -1
        for index in self._list_candidate_rules(log_line.text):
            compiled = self._rules[index]
            if compiled.file == suppressed_file:
                continue
            if compiled.program is not None and not compiled.program.fullmatch(log_line.program):
                continue
            if compiled.rule.type == "pair" and self._end_pairs(compiled, log_line, line_time):
                matched = True
                continue
            match = compiled.pattern.search(log_line.text)
            if match is None:
                continue
            values = {**match.groupdict(), "host": log_line.host}
            if not self._do_contexts_match(compiled, values):
                continue
            matched = True
            if compiled.rule.type == "suppress":
                suppressed_file = compiled.file
            else:
                self._apply_rule(compiled, log_line, line_time, values)
        return matched

    def _list_candidate_rules(self, line_text: str) -> list[int]:
        """Positions of the rules that may match, in order."""
        candidates = set(self._always)
        for literal, indexes in self._by_literal:
            if literal in line_text:
                candidates.update(indexes)
        return sorted(candidates)

    def _do_contexts_match(self, compiled_rule: CompiledRule, match_values: dict[str, str]) -> bool:
        for template in compiled_rule.rule.context:
            name = fill_template(template, match_values)
            if (name.removeprefix("!") in self._contexts) == name.startswith("!"):
                return False
        return True

    def _apply_rule(
        self, compiled_rule: CompiledRule, log_line: LogLine, message_time: datetime, match_values: dict[str, str]
    ) -> None:
        rule = compiled_rule.rule
        if rule.type == "repeat":
            self._count_repeated_lines(log_line.host, message_time, int(match_values["count"] or 0))
            return
        lifetime = _UNLIMITED_WINDOW if rule.lifetime is None else timedelta(seconds=rule.lifetime)
        for template in rule.creates:
            self._contexts[fill_template(template, match_values)] = message_time + lifetime
            self._advance_next_expiry(message_time + lifetime)
        for template in rule.deletes:
            self._contexts.pop(fill_template(template, match_values), None)
        if not rule.title:
            return
        title = fill_template(rule.title, match_values)
        key = (rule.id, title)
        operation = self._operations.get(key)
        if operation is None:
            operation = self._open_operation(compiled_rule, log_line, message_time, match_values, title)
        elif rule.type != "pair":
            self._extend_operation(operation, message_time)
        self._latest[log_line.host] = operation
        if rule.type == "single" and rule.window is None:
            self._close_operation(key)

    def _open_operation(
        self,
        compiled_rule: CompiledRule,
        log_line: LogLine,
        message_time: datetime,
        match_values: dict[str, str],
        title: str,
    ) -> _RuleOperation:
        rule = compiled_rule.rule
        parts = tuple(
            part for part in (fill_template(text, match_values) for text in rule.parts or ("{host}",)) if part
        )
        event = LogEvent(
            rule.id,
            rule.kind,
            rule.severity,
            title,
            parts,
            message_time,
            message_time,
            1,
            log_line.text[:500],
            source=self._source,
        )
        window = _UNLIMITED_WINDOW if rule.window is None else timedelta(seconds=rule.window)
        operation = _RuleOperation(compiled_rule, event, message_time + window)
        if rule.type == "threshold":
            operation.times.append(message_time)
            operation.is_reported = rule.count == 1
        if rule.type == "pair":
            operation.end_pattern = compiled_rule.end_pattern or _compile_end_pattern(rule.end_pattern, match_values)
        self._operations[rule.id, title] = operation
        self._advance_next_expiry(operation.ends)
        return operation

    def _advance_next_expiry(self, expiry_time: datetime) -> None:
        if self._next_expiry is None or expiry_time < self._next_expiry:
            self._next_expiry = expiry_time

    def _extend_operation(self, operation: _RuleOperation, message_time: datetime, line_count: int = 1) -> None:
        """Adds lines to an event. Until a threshold is reached, its window slides over the latest lines."""
        event = operation.event
        operation.event = replace(event, count=event.count + line_count, last=max(event.last, message_time))
        if operation.is_reported:
            return
        rule = operation.rule.rule
        assert rule.count is not None
        assert rule.window is not None
        operation.times.extend([message_time] * line_count)
        if len(operation.times) >= rule.count:
            operation.is_reported = True
            operation.event = replace(operation.event, first=operation.times[0], count=len(operation.times))
            operation.ends = operation.times[0] + timedelta(seconds=rule.window)

    def _count_repeated_lines(self, host_name: str, message_time: datetime, line_count: int) -> None:
        operation = self._latest.get(host_name)
        if operation is None or not line_count:
            return
        if self._operations.get((operation.rule.rule.id, operation.event.title)) is operation:
            self._extend_operation(operation, message_time, min(line_count, 1_000_000))

    def _end_pairs(self, compiled_rule: CompiledRule, log_line: LogLine, message_time: datetime) -> bool:
        matched = False
        for key, operation in list(self._operations.items()):
            if (
                key[0] == compiled_rule.rule.id
                and operation.end_pattern
                and operation.end_pattern.search(log_line.text)
            ):
                operation.event = replace(operation.event, last=max(operation.event.last, message_time))
                self._finished.append(operation.event)
                del self._operations[key]
                matched = True
        return matched

    def _expire_operations(self, line_time: datetime) -> None:
        for key, operation in list(self._operations.items()):
            if operation.ends >= line_time:
                continue
            if operation.is_reported:
                self._close_operation(key)
            else:
                self._slide_threshold_window(key, operation, line_time)
        for name, ends in list(self._contexts.items()):
            if ends < line_time:
                del self._contexts[name]
        ends_of_all = [operation.ends for operation in self._operations.values()]
        self._next_expiry = min([*ends_of_all, *self._contexts.values()], default=None)

    def _slide_threshold_window(
        self, operation_key: tuple[str, str], operation: _RuleOperation, message_time: datetime
    ) -> None:
        """Removes the lines that left the window of a threshold; without lines the operation ends."""
        assert operation.rule.rule.window is not None
        window = timedelta(seconds=operation.rule.rule.window)
        while operation.times and operation.times[0] < message_time - window:
            operation.times.popleft()
        if operation.times:
            operation.ends = operation.times[0] + window
        else:
            del self._operations[operation_key]

    def _close_operation(self, operation_key: tuple[str, str]) -> None:
        operation = self._operations.pop(operation_key)
        if operation.is_reported:
            self._finished.append(self._make_event(operation))

    def _make_event(self, operation: _RuleOperation) -> LogEvent:
        """The event so far. The end of a pair that is still at work is not known."""
        return replace(operation.event, is_open=operation.rule.rule.type == "pair")


def _compile_end_pattern(pattern_template: str, match_values: dict[str, str]) -> re.Pattern[str]:
    return re.compile(
        fill_template(pattern_template, {name: re.escape(value or "") for name, value in match_values.items()})
    )


def parse_stored_time(time_text: str) -> datetime:
    """A time of a stored state. Raises ValueError when it is none or has no zone."""
    time = datetime.fromisoformat(time_text)
    if time.tzinfo is None:
        raise ValueError(f"the time {time_text} has no zone")
    return time


def _restore_operation(operation_state: OperationState, compiled_rule: CompiledRule) -> _RuleOperation:
    rule = compiled_rule.rule
    first, last, ends = (
        parse_stored_time(text) for text in (operation_state.first, operation_state.last, operation_state.ends)
    )
    event = LogEvent(
        rule.id,
        rule.kind,
        rule.severity,
        operation_state.title,
        operation_state.parts,
        first,
        last,
        operation_state.count,
        operation_state.line,
        source=operation_state.source,
    )
    try:
        end_pattern = re.compile(operation_state.end_pattern) if operation_state.end_pattern else None
    except re.error as error:
        raise ValueError(f"a pattern is no regular expression: {error}") from None
    times = deque(parse_stored_time(text) for text in operation_state.times)
    return _RuleOperation(compiled_rule, event, ends, times, operation_state.is_reported, end_pattern)
