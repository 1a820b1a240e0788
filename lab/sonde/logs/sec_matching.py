# SPDX-License-Identifier: Apache-2.0
"""Matches patterns of SEC and replaces match variables in templates, actions and contexts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sonde.logs.sec_rules import (
    ContextExpression,
    ContextGroup,
    ContextName,
    SecAction,
    SecPattern,
)

MatchValues = Mapping[str, str | None]
_MATCH_VARIABLES_BY_TOKEN = {
    token: re.compile(
        rf"{re.escape(token)}(?:{re.escape(token)}|([0-9]+)|\{{([0-9]+)\}}|\+\{{([A-Za-z_][\w!]*|[0-9]+)\}})", re.ASCII
    )
    for token in ("$", "%")
}


def match_pattern(pattern: SecPattern, log_line: str) -> MatchValues | None:
    """Values of the match variables: empty where the kind of pattern has none; None without a match."""
    if pattern.kind == "tvalue":
        return {} if pattern.text == "TRUE" else None
    if pattern.kind == "substr":
        return {} if (pattern.text in log_line) != pattern.is_negated else None
    assert pattern.expression is not None
    match = pattern.expression.search(log_line)
    if pattern.is_negated:
        return {"0": log_line} if match is None else None
    if match is None:
        return None
    values: dict[str, str | None] = dict(match.groupdict())
    values.update({str(number): text for number, text in enumerate(match.groups(), start=1)})
    if not match.groups():
        values["1"] = "1"  # a match without groups is the list (1) in Perl
    return {**values, "0": log_line}


def substitute_match_variables(template: str, match_values: MatchValues, variable_prefix: str) -> str:
    """Replaces match variables ($1, ${1}, $+{name}, $$); without values the text stays."""
    if not match_values or variable_prefix not in template:
        return template
    return _MATCH_VARIABLES_BY_TOKEN[variable_prefix].sub(
        lambda match: variable_prefix if match.lastindex is None else match_values.get(match[match.lastindex]) or "",
        template,
    )


def substitute_in_actions(
    actions: Sequence[SecAction], match_values: MatchValues, variable_prefix: str
) -> tuple[SecAction, ...]:
    """Replaces match variables in actions; % in values is masked, because actions have % variables too."""
    if not match_values:
        return tuple(actions)
    masked = {name: None if value is None else value.replace("%", "%%") for name, value in match_values.items()}
    return tuple(
        replace(
            action,
            texts=tuple(
                text
                if action.name == "assign" and not position
                else substitute_match_variables(text, masked, variable_prefix)
                for position, text in enumerate(action.texts)
            ),
            inner=substitute_in_actions(action.inner, match_values, variable_prefix),
        )
        for action in actions
    )


def substitute_in_context(
    expression: ContextExpression | None, match_values: MatchValues, variable_prefix: str
) -> ContextExpression | None:
    """Replaces match variables in the names of contexts."""
    if expression is None:
        return None
    return tuple(
        ContextName(substitute_match_variables(item.name, match_values, variable_prefix))
        if isinstance(item, ContextName)
        else ContextGroup(substitute_in_context(item.expression, match_values, variable_prefix) or ())
        if isinstance(item, ContextGroup)
        else item
        for item in expression
    )
