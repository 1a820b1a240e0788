# SPDX-License-Identifier: Apache-2.0
"""Applies rules of SEC to lines as sec does (sec(1), "RULE DESCRIPTION"), at the times of the lines.

Nothing is executed or written: actions with an effect outside become `SecOutput`s.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

from sonde.logs.sec_matching import (
    MatchValues,
    match_pattern,
    substitute_in_actions,
    substitute_in_context,
    substitute_match_variables,
)
from sonde.logs.sec_rules import (
    COMMAND_ACTIONS,
    OUTPUT_ACTIONS,
    ContextExpression,
    ContextGroup,
    ContextName,
    SecAction,
    SecPattern,
    SecRule,
    SecRuleError,
    compile_perl_expression,
)

# A loop of rules that create events for each other ends here; sec would never end.
_MAX_EVENTS_PER_LINE = 1_000
_SEC_VARIABLE_PATTERN = re.compile(r"%(?:(\.?[A-Za-z]\w*|%)|\{(\.?[A-Za-z]\w*)\})", re.ASCII)


@dataclass(frozen=True)
class SecOutput:
    """An action with an effect outside: its name, destination (file, command; empty for logonly) and text."""

    time: int
    action: str
    destination: str
    text: str


@dataclass
class _SecContext:
    created: int
    lifetime: int  # seconds; 0: for ever
    actions: tuple[SecAction, ...]
    desc: str


@dataclass
class _SecRuleOperation:
    """A rule at work for one description."""

    rule: SecRule
    desc: str
    begin: int
    actions: tuple[SecAction, ...]
    actions2: tuple[SecAction, ...] = ()
    desc2: str = ""
    pattern2: SecPattern | None = None
    context2: ContextExpression | None = None
    times: deque[int] = field(default_factory=deque)
    is_suppressing: bool = False


class SecEngine:
    """Feeds lines to the rules of one or more files. Times are whole seconds since 1970 and do not decrease."""

    def __init__(self, rules_of_files: Iterable[Sequence[SecRule]], time_zone: tzinfo = UTC) -> None:
        self._files = [list(rules) for rules in rules_of_files]
        self._zone = time_zone
        self._now = 0
        self._contexts: dict[str, _SecContext] = {}
        self._operations: dict[tuple[int, str], _SecRuleOperation] = {}
        self._pending: list[tuple[int, str]] = []
        self._events: deque[str] = deque()
        self._outputs: list[SecOutput] = []
        self._variables: dict[str, str] = {}
        self.dropped_events = 0  # of rules that create events for each other without end

    def process_line(self, log_line: str, now_s: int) -> list[SecOutput]:
        """Processes a line at time `now_s` and the events that rules create; returns the outputs."""
        self.advance_clock(now_s)
        self._match_line(log_line)
        self._process_events()
        return self._drain_outputs()

    def finish_due_operations(self, now_s: int) -> list[SecOutput]:
        """Processes what is due at `now_s`, without a line."""
        self.advance_clock(now_s)
        return self._drain_outputs()

    def advance_clock(self, now_s: int) -> None:
        """Moves the clock; contexts, operations and delayed events that are due take effect."""
        if now_s > self._now:
            self._now = now_s
            self._process_due_lists()
        self._process_events()

    def _drain_outputs(self) -> list[SecOutput]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def _process_events(self) -> None:
        for _ in range(_MAX_EVENTS_PER_LINE):
            if not self._events:
                return
            self._match_line(self._events.popleft())
        self.dropped_events += len(self._events)
        self._events.clear()

    def _match_line(self, log_line: str) -> None:
        for rules in self._files:
            position = 0
            while position < len(rules):
                position = self._match_rule(rules[position], position, log_line)
                if position < 0:
                    return

    def _match_rule(self, rule: SecRule, rule_position: int, log_line: str) -> int:
        """Returns the position of the next rule, -1 for none."""
        if not (rule.is_context_first and not self._is_context_true(rule.context)):
            values = match_pattern(rule.pattern, log_line)
            if values is not None and (rule.is_context_first or self._is_context_true(rule.context, values)):
                self._start_operation(rule, values)
                return rule.next_rule
        if rule.pattern2 is not None and self._end_operations(rule, log_line):
            return rule.next_rule2
        return rule_position + 1

    def _start_operation(self, rule: SecRule, match_values: MatchValues) -> None:
        """Starts the operation of a rule whose first pattern matched."""
        if rule.type == "Suppress":
            return
        desc = substitute_match_variables(rule.desc, match_values, "$")
        actions = substitute_in_actions(rule.actions, match_values, "$")
        if rule.type == "Single":
            self._execute_actions(actions, desc)
            return
        key = (id(rule), desc)
        operation = self._operations.get(key)
        if operation is not None and rule.window and self._now - operation.begin > rule.window:
            self._expire_operation(key, operation)
            operation = self._operations.get(key)
        if rule.type == "SingleWithThreshold":
            self._count_match(key, rule, operation, desc, match_values)
            return
        if operation is not None:
            return
        operation = _SecRuleOperation(rule, desc, self._now, actions)
        if rule.pattern2 is not None and not self._prepare_second_pattern(operation, match_values):
            return
        self._operations[key] = operation
        if rule.type != "PairWithWindow":
            self._execute_actions(actions, desc)

    def _count_match(
        self,
        operation_key: tuple[int, str],
        rule: SecRule,
        operation: _SecRuleOperation | None,
        rule_description: str,
        match_values: MatchValues,
    ) -> None:
        if operation is None:
            operation = _SecRuleOperation(
                rule, rule_description, self._now, substitute_in_actions(rule.actions, match_values, "$")
            )
            operation.actions2 = substitute_in_actions(rule.actions2, match_values, "$")
            self._operations[operation_key] = operation
        if operation.is_suppressing:
            return
        operation.times.append(self._now)
        if len(operation.times) >= rule.threshold:
            operation.is_suppressing = True
            self._execute_actions(operation.actions, rule_description)

    def _prepare_second_pattern(self, operation: _SecRuleOperation, match_values: MatchValues) -> bool:
        """Fills values of the first match into the second part of a pair. Returns False when its pattern is invalid."""
        rule = operation.rule
        pattern = rule.pattern2
        assert pattern is not None
        operation.desc2, operation.actions2, operation.context2 = rule.desc2, rule.actions2, rule.context2
        operation.pattern2 = pattern
        if not match_values:
            return True
        sigil = "$"
        if pattern.kind == "regexp":
            if pattern.expression is None:
                quoted = {name: None if value is None else re.escape(value) for name, value in match_values.items()}
                try:
                    expression = compile_perl_expression(substitute_match_variables(pattern.text, quoted, "$"))
                except SecRuleError:
                    return False
                operation.pattern2 = replace(pattern, expression=expression)
            sigil = "%"
            match_values = {
                name: None if value is None else value.replace("$", "$$") for name, value in match_values.items()
            }
        elif pattern.kind == "substr":
            operation.pattern2 = replace(pattern, text=substitute_match_variables(pattern.text, match_values, "$"))
        operation.desc2 = substitute_match_variables(rule.desc2, match_values, sigil)
        operation.actions2 = substitute_in_actions(rule.actions2, match_values, sigil)
        operation.context2 = substitute_in_context(rule.context2, match_values, sigil)
        return True

    def _end_operations(self, rule: SecRule, log_line: str) -> bool:
        ended = False
        for key, operation in list(self._operations.items()):
            if operation.rule is not rule or key not in self._operations:
                continue
            if rule.is_context2_first and not self._is_context_true(operation.context2):
                continue
            assert operation.pattern2 is not None
            values = match_pattern(operation.pattern2, log_line)
            if values is None or not (rule.is_context2_first or self._is_context_true(operation.context2, values)):
                continue
            in_time = not rule.window or self._now - operation.begin <= rule.window
            if in_time or rule.type == "PairWithWindow":
                ended = True
                desc2 = substitute_match_variables(operation.desc2, values, "$")
                self._execute_actions(substitute_in_actions(operation.actions2, values, "$"), desc2)
            self._operations.pop(key, None)
        return ended

    def _process_due_lists(self) -> None:
        for name, context in list(self._contexts.items()):
            if context.lifetime and self._now - context.created > context.lifetime and name in self._contexts:
                self._execute_actions(context.actions, context.desc)
                if self._contexts.get(name) is context:
                    del self._contexts[name]
        due = [text for time, text in self._pending if self._now >= time]
        self._pending = [entry for entry in self._pending if self._now < entry[0]]
        self._events.extend(due)
        for key, operation in list(self._operations.items()):
            window = operation.rule.window
            if self._operations.get(key) is not operation or self._now - operation.begin <= window:
                continue
            if window:
                self._expire_operation(key, operation)

    def _expire_operation(self, operation_key: tuple[int, str], operation: _SecRuleOperation) -> None:
        rule = operation.rule
        if rule.type == "SingleWithThreshold" and not operation.is_suppressing:
            while operation.times and operation.times[0] < self._now - rule.window:
                operation.times.popleft()
            if operation.times:
                operation.begin = operation.times[0]
            else:
                del self._operations[operation_key]
            return
        if rule.type == "SingleWithThreshold":
            self._execute_actions(operation.actions2, operation.desc)
        elif rule.type == "PairWithWindow":
            self._execute_actions(operation.actions, operation.desc)
        self._operations.pop(operation_key, None)

    def _is_context_true(self, expression: ContextExpression | None, match_values: MatchValues | None = None) -> bool:
        if expression is None:
            return True
        return self._evaluate_context(expression, match_values or {})

    def _evaluate_context(self, expression: ContextExpression, match_values: MatchValues) -> bool:
        """Evaluates an expression as sec does: an operator combines the result so far with the first of all operands
        since then. ``A || B && C`` is therefore ``A && B`` in sec, and here."""
        result: bool | None = None
        later: list[ContextName | ContextGroup | str] = []
        for item in expression:
            if item in ("&&", "||"):
                following = self._evaluate_context(tuple(later), match_values)
                result = (result and following) if item == "&&" else (result or following)
                later = []
            elif later or (result is not None and item != "!"):
                later.append(item)
            elif item == "!":
                result = not result
            elif isinstance(item, ContextGroup):
                result = self._evaluate_context(item.expression, match_values)
            elif isinstance(item, ContextName):
                result = substitute_match_variables(item.name, match_values, "$") in self._contexts
        return bool(result)

    def _execute_actions(self, actions: Sequence[SecAction], rule_description: str) -> None:
        for action in actions:
            texts = [self._substitute_variables(text, rule_description) for text in action.texts]
            if action.name == "logonly" or action.name in COMMAND_ACTIONS:
                self._outputs.append(SecOutput(self._now, action.name, "", texts[0]))
            elif action.name in OUTPUT_ACTIONS:
                self._outputs.append(SecOutput(self._now, action.name, texts[0], texts[1]))
            elif action.name == "event" and action.delay:
                self._pending += [(self._now + action.delay, text) for text in _split_events(texts[0])]
            elif action.name == "event":
                self._events.extend(_split_events(texts[0]))
            elif action.name in ("delete", "obsolete"):
                context = self._contexts.pop(texts[0], None)
                if context is not None and action.name == "obsolete":
                    self._execute_actions(context.actions, context.desc)
            elif action.name == "assign":
                self._variables[action.texts[0]] = texts[1]
            elif action.name in ("create", "set"):
                self._set_context(action, texts, rule_description)

    def _set_context(self, action: SecAction, action_texts: Sequence[str], rule_description: str) -> None:
        name, lifetime = action_texts
        if not re.fullmatch(r"\s*[0-9]+\s*", lifetime, re.ASCII) or (
            action.name == "set" and name not in self._contexts
        ):
            return
        self._contexts[name] = _SecContext(self._now, int(lifetime), action.inner, rule_description)

    def _substitute_variables(self, text: str, rule_description: str) -> str:
        if "%" not in text:
            return text
        time = datetime.fromtimestamp(self._now, self._zone)
        variables = {
            **self._variables,
            "%": "%",
            "s": rule_description,
            "u": str(self._now),
            "t": f"{time:%a %b} {time.day:2} {time:%H:%M:%S %Y}",
            ".hour": f"{time:%H}", ".min": f"{time:%M}", ".sec": f"{time:%S}", ".year": f"{time.year}",
            ".mon": f"{time:%m}", ".mday": f"{time:%d}", ".hmsstr": f"{time:%H:%M:%S}", ".monstr": f"{time:%b}",
            ".wdaystr": f"{time:%a}", ".mdaystr": f"{time.day:2}",
        }  # fmt: skip
        return _SEC_VARIABLE_PATTERN.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def _split_events(events_text: str) -> list[str]:
    lines = events_text.split("\n")
    while lines and not lines[-1]:
        lines.pop()
    return lines
