# SPDX-License-Identifier: Apache-2.0
"""Reads rule files of SEC, the Simple Event Correlator (R. Vaarandi, sec(1)), with the common rule types and actions.

A rule with a type, pattern type or action that is not supported is skipped with one sentence, as sec skips a rule with
an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sonde.model.errors import EventError
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file

SEC_SUFFIXES = (".sec", ".conf", ".rules")
SEC_RULE_TYPES = {
    "single": "Single",
    "singlewithsuppress": "SingleWithSuppress",
    "singlewiththreshold": "SingleWithThreshold",
    "pair": "Pair",
    "pairwithwindow": "PairWithWindow",
    "suppress": "Suppress",
}
_COMMON_KEYWORDS = {"ptype", "pattern"}
_SECOND_PATTERN_KEYWORDS = {"ptype2", "pattern2", "desc2", "action2"}
_OPTIONAL_PAIR_KEYWORDS = {"continue", "context", "continue2", "context2"}
# Rule type -> keywords that it must have, and keywords that it may have.
_KEYWORDS_BY_RULE_TYPE: dict[str, tuple[set[str], set[str]]] = {
    "Single": (_COMMON_KEYWORDS | {"desc", "action"}, {"continue", "context"}),
    "SingleWithSuppress": (_COMMON_KEYWORDS | {"desc", "action", "window"}, {"continue", "context"}),
    "SingleWithThreshold": (
        _COMMON_KEYWORDS | {"desc", "action", "window", "thresh"},
        {"continue", "context", "action2"},
    ),
    "Pair": (_COMMON_KEYWORDS | {"desc", "action"} | _SECOND_PATTERN_KEYWORDS, _OPTIONAL_PAIR_KEYWORDS | {"window"}),
    "PairWithWindow": (
        _COMMON_KEYWORDS | {"desc", "action", "window"} | _SECOND_PATTERN_KEYWORDS,
        _OPTIONAL_PAIR_KEYWORDS,
    ),
    "Suppress": (_COMMON_KEYWORDS, {"context", "desc"}),
}
# Actions that hand a text to something outside: they become events and are never executed.
OUTPUT_ACTIONS = ("write", "writen", "pipe", "udpsock", "tcpsock", "udgram", "ustream", "owritecl")
COMMAND_ACTIONS = ("shellcmd", "spawn", "cmdexec", "spawnexec")
_CONTEXT_ACTIONS = ("delete", "obsolete", "unalias")
_PATTERN_TYPE_KEYWORD_PATTERN = re.compile(r"(n?)(regexp|substr)(1?)|(tvalue)", re.IGNORECASE)
_KEYWORD_LINE_PATTERN = re.compile(r"\s*([A-Za-z0-9]+)\s*=\s*(.*\S)", re.DOTALL)
_MATCH_VARIABLE_PATTERN = re.compile(r"\$(?:\$|\d+|\{\d+\}|\+\{(?:[A-Za-z_][\w!]*|\d+)\})", re.ASCII)
_POSIX_CLASSES = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "xdigit": "0-9A-Fa-f", "word": r"\w", "punct": r"!-/:-@\[-`{-~", "blank": r" \t",
}  # fmt: skip


@dataclass(frozen=True)
class ContextName:
    """A context in an expression; its name may have match variables."""

    name: str


@dataclass(frozen=True)
class ContextGroup:
    """An expression in parentheses."""

    expression: ContextExpression


# Postfix: names and groups, each followed by the operators "!", "&&" and "||" that apply.
ContextExpression: TypeAlias = "tuple[ContextName | ContextGroup | str, ...]"


@dataclass(frozen=True)
class SecAction:
    """One action: its name in lower case, its texts, and the actions in parentheses of create and set."""

    name: str
    texts: tuple[str, ...] = ()
    delay: int = 0
    inner: tuple[SecAction, ...] = ()


@dataclass(frozen=True)
class SecPattern:
    """A pattern. `expression` is None for texts and truth values, and where match variables are filled in later."""

    kind: str  # regexp, substr, tvalue
    is_negated: bool
    text: str
    expression: re.Pattern[str] | None = None


@dataclass
class SecRule:
    """One rule. `next_rule` is the position of the rule with which matching continues, or -1 for none."""

    type: str
    line: int
    pattern: SecPattern
    context: ContextExpression | None
    is_context_first: bool
    desc: str = ""
    actions: tuple[SecAction, ...] = ()
    window: int = 0
    threshold: int = 0
    next_rule: int = 0
    pattern2: SecPattern | None = None
    context2: ContextExpression | None = None
    is_context2_first: bool = False
    desc2: str = ""
    actions2: tuple[SecAction, ...] = ()
    next_rule2: int = 0


@dataclass
class SecRuleFile:
    """The rules of a file in order, and one sentence for each skipped rule."""

    rules: list[SecRule] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class SecRuleError(ValueError):
    """A rule that cannot be used; the text is the end of a sentence."""


def read_sec_rule_file(rule_file: Path) -> SecRuleFile:
    """Reads a rule file. Raises EventError when it cannot be read or has no usable rule."""
    text = read_text_file(rule_file, "rule file of SEC", MAX_CONFIGURATION_BYTES, EventError)
    result = SecRuleFile()
    jumps: list[tuple[SecRule, str, str]] = []
    labels: dict[str, int] = {}
    positions: list[int] = []  # of each rule in the file among the rules that can be used
    for line, keywords in _split_rule_keywords(text, labels, result):
        positions.append(len(result.rules))
        try:
            rule = _parse_sec_rule(keywords, line)
        except SecRuleError as reason:
            result.problems.append(f"{rule_file}: the rule at line {line} is skipped: {reason}.")
            continue
        jumps.append((rule, keywords.get("continue", "dontcont"), keywords.get("continue2", "dontcont")))
        result.rules.append(rule)
    positions.append(len(result.rules))
    labels = {name: positions[number] for name, number in labels.items()}
    for position, (rule, first, second) in enumerate(jumps):
        rule.next_rule = _resolve_continue_target(first, position, len(jumps), labels)
        rule.next_rule2 = _resolve_continue_target(second, position, len(jumps), labels)
    if not result.rules:
        raise EventError(f"{rule_file} has no rule of SEC that can be used. {' '.join(result.problems[:1])}".strip())
    return result


def _split_rule_keywords(
    file_text: str, rule_number_by_label: dict[str, int], rule_file: SecRuleFile
) -> list[tuple[int, dict[str, str]]]:
    """Rules as keyword -> value with the line of their beginning. Labels get the number of the next rule."""
    rules: list[tuple[int, dict[str, str]]] = []
    keywords: dict[str, str] = {}
    begin, joined = 1, ""
    for number, raw in enumerate([*file_text.splitlines(), ""], start=1):
        line = (joined + raw).strip()
        if line.endswith("\\") and number <= file_text.count("\n") + 1:
            joined = line[:-1]
            continue
        joined = ""
        if not line or line.startswith("#"):
            if keywords:
                rules.append((begin, keywords))
            keywords, begin = {}, number + 1
            continue
        match = _KEYWORD_LINE_PATTERN.match(line)
        if match is None:
            rule_file.problems.append(f"Line {number} has no keyword=value and is ignored.")
        elif match[1] == "label":
            rule_number_by_label[match[2]] = len(rules)
        elif match[1] != "rem":
            keywords[match[1]] = match[2]
    return rules


def _resolve_continue_target(
    continue_value: str, rule_position: int, rule_count: int, rule_number_by_label: dict[str, int]
) -> int:
    lowered = continue_value.lower()
    if lowered.startswith("goto"):
        return max(rule_position + 1, rule_number_by_label.get(continue_value[4:].strip(), rule_count))
    return {"takenext": rule_position + 1, "endmatch": -1}.get(lowered, rule_count)


def _parse_sec_rule(value_by_keyword: dict[str, str], line_number: int) -> SecRule:
    name = value_by_keyword.get("type", "")
    kind = SEC_RULE_TYPES.get(name.lower())
    if kind is None:
        supported = ", ".join(SEC_RULE_TYPES.values())
        raise SecRuleError(f'its type "{name}" is not one of {supported}' if name else "it has no type")
    needed, allowed = _KEYWORDS_BY_RULE_TYPE[kind]
    if missing := sorted(needed - set(value_by_keyword)):
        raise SecRuleError(f"it lacks {', '.join(missing)}")
    if extra := sorted(set(value_by_keyword) - needed - allowed - {"type"}):
        raise SecRuleError(f"a {kind} rule has no {', '.join(extra)}")
    for word in ("continue", "continue2"):
        if not re.fullmatch(
            r"takenext|dontcont|endmatch|goto\s+\S.*", value_by_keyword.get(word, "dontcont"), re.IGNORECASE
        ):
            raise SecRuleError(f'{word} is "{value_by_keyword[word]}"')
    context, is_first = _parse_context_keyword(value_by_keyword.get("context"))
    context2, is_first2 = _parse_context_keyword(value_by_keyword.get("context2"))
    pattern = _parse_pattern(value_by_keyword["ptype"], value_by_keyword["pattern"], None)
    is_pair = kind.startswith("Pair")
    return SecRule(
        type=kind,
        line=line_number,
        pattern=pattern,
        context=context,
        is_context_first=is_first,
        desc=value_by_keyword.get("desc", ""),
        actions=parse_action_list(value_by_keyword["action"]) if kind != "Suppress" else (),
        window=_parse_number(value_by_keyword.get("window", "0"), "window", min_number=0 if kind == "Pair" else 1)
        if kind not in ("Single", "Suppress")
        else 0,
        threshold=_parse_number(value_by_keyword["thresh"], "thresh", min_number=1)
        if kind == "SingleWithThreshold"
        else 0,
        pattern2=_parse_pattern(value_by_keyword["ptype2"], value_by_keyword["pattern2"], pattern) if is_pair else None,
        context2=context2,
        is_context2_first=is_first2,
        desc2=value_by_keyword.get("desc2", ""),
        actions2=parse_action_list(value_by_keyword["action2"])
        if "action2" in value_by_keyword and (is_pair or kind == "SingleWithThreshold")
        else (),
    )


def _parse_number(number_text: str, keyword_name: str, min_number: int) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", number_text) or int(number_text) < min_number:
        raise SecRuleError(f'{keyword_name} is "{number_text}", not a whole number of at least {min_number}')
    return int(number_text)


def _parse_pattern(pattern_type: str, pattern_text: str, first_pattern: SecPattern | None) -> SecPattern:
    match = _PATTERN_TYPE_KEYWORD_PATTERN.fullmatch(pattern_type)
    if match is None:
        raise SecRuleError(
            f'its pattern type "{pattern_type}" is not RegExp, NRegExp, SubStr, NSubStr or TValue of one line'
        )
    if match[4]:
        if pattern_text.upper() not in ("TRUE", "FALSE"):
            raise SecRuleError(f'its truth value is "{pattern_text}", not TRUE or FALSE')
        return SecPattern("tvalue", False, pattern_text.upper())
    is_negated = bool(match[1])
    if match[2].lower() == "substr":
        return SecPattern("substr", is_negated, _replace_special_characters(pattern_text))
    if first_pattern is not None and first_pattern.kind == "regexp" and _MATCH_VARIABLE_PATTERN.search(pattern_text):
        return SecPattern("regexp", is_negated, pattern_text)
    return SecPattern("regexp", is_negated, pattern_text, compile_perl_expression(pattern_text))


def _replace_special_characters(action_text: str) -> str:
    characters = {"0": "", "n": "\n", "r": "\r", "s": " ", "t": "\t", "\\": "\\"}
    return re.sub(r"\\([0nrst\\])", lambda match: characters[match[1]], action_text)


def compile_perl_expression(perl_expression: str) -> re.Pattern[str]:
    """Compiles a regular expression of Perl. Raises SecRuleError for what Python does not have."""
    perl_expression = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", perl_expression)
    perl_expression = re.sub(r"\\k(?:<(\w+)>|\{(\w+)\})", lambda match: f"(?P={match[1] or match[2]})", perl_expression)
    perl_expression = re.sub(r"\[:(\w+):\]", lambda match: _POSIX_CLASSES.get(match[1], match[0]), perl_expression)
    perl_expression = re.sub(
        r"\\([zhR])", lambda match: {"z": r"\Z", "h": r"[ \t]", "R": r"(?:\r\n|\n)"}[match[1]], perl_expression
    )
    try:
        return re.compile(perl_expression, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise SecRuleError(f"its expression is not supported: {error}") from None


def split_outside_parentheses(text: str, separator: str) -> list[str]:
    """Splits at `separator` where no parenthesis is open. Raises SecRuleError for unbalanced parentheses."""
    parts, depth, begin, position = [], 0, 0, 0
    while position < len(text):
        character = text[position]
        if position and text[position - 1] == "\\":
            pass
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                break
        if depth == 0 and text.startswith(separator, position):
            parts.append(text[begin:position])
            position += len(separator) - 1
            begin = position + 1
        position += 1
    if depth:
        raise SecRuleError(f'the parentheses of "{text}" are not balanced')
    return [*parts, text[begin:]]


def parse_action_list(actions_text: str) -> tuple[SecAction, ...]:
    """Parses actions separated by semicolons. Raises SecRuleError."""
    parts = [part.strip() for part in split_outside_parentheses(actions_text.strip(), ";")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(_parse_action(part) for part in parts)


def _remove_outer_parentheses(action_text: str) -> str:
    match = re.fullmatch(r"\s*\(\s*(.*?)\s*\)\s*", action_text, re.DOTALL)
    return re.sub(r"\\([()])", r"\1", match[1] if match else action_text)


def _parse_action(action_text: str) -> SecAction:
    name, _, remainder = action_text.partition(" ")
    name, remainder = name.lower(), remainder.strip()
    if name == "none":
        return SecAction("none")
    if name == "logonly":
        return SecAction(name, (_remove_outer_parentheses(remainder) or "%s",))
    if name == "event":
        match = re.fullmatch(r"(?:0*([0-9]+)(?:\s+|$))?(.*)", remainder, re.DOTALL)
        assert match is not None
        return SecAction(name, (_remove_outer_parentheses(match[2]) or "%s",), int(match[1] or 0))
    if name in OUTPUT_ACTIONS:
        match = re.fullmatch(r"('[^']*'|\S+)(?:\s+(.*\S))?", remainder, re.DOTALL)
        if match is None:
            raise SecRuleError(f'the action "{action_text}" has no destination')
        if name == "pipe":
            return SecAction(
                name,
                (_remove_outer_parentheses(match[2] or ""), _remove_outer_parentheses(match[1].strip("'")) or "%s"),
            )
        return SecAction(name, (_remove_outer_parentheses(match[1]), _remove_outer_parentheses(match[2] or "") or "%s"))
    if name in COMMAND_ACTIONS and remainder:
        return SecAction(name, (_remove_outer_parentheses(remainder),))
    if name in _CONTEXT_ACTIONS:
        return SecAction(name, (_remove_outer_parentheses(remainder) or "%s",))
    if name in ("create", "set"):
        return _parse_create_action(name, remainder)
    if name == "assign":
        match = re.fullmatch(r"%([A-Za-z]\w*)(?:\s+(.*\S))?", remainder, re.ASCII | re.DOTALL)
        if match:
            return SecAction(name, (match[1], _remove_outer_parentheses(match[2] or "") or "%s"))
    raise SecRuleError(f'the action "{action_text}" is not supported')


def _parse_create_action(action_name: str, action_text: str) -> SecAction:
    match = re.fullmatch(r"(?:(\S+)(?:\s+(\S+)(?:\s+(.*\S))?)?)?", action_text, re.DOTALL)
    if match is None or (action_name == "set" and not match[2]):
        raise SecRuleError(f'the action "{action_name} {action_text}" is not supported')
    inner = match[3] or ""
    if inner and (wrapped := re.fullmatch(r"\((.*)\)", inner, re.DOTALL)):
        inner = wrapped[1]
    actions = parse_action_list(inner) if inner else ()
    return SecAction(
        action_name,
        (_remove_outer_parentheses(match[1] or "") or "%s", _remove_outer_parentheses(match[2] or "") or "0"),
        inner=actions,
    )


def _parse_context_keyword(context_text: str | None) -> tuple[ContextExpression | None, bool]:
    if context_text is None:
        return None, False
    first = re.fullmatch(r"\s*\[(.*)\]\s*", context_text, re.DOTALL)
    return parse_context_expression(first[1] if first else context_text), first is not None


def parse_context_expression(context_text: str) -> ContextExpression:
    """Parses contexts joined by !, && and ||, with parentheses, to postfix form. Raises SecRuleError.

    The last || is the outermost operator, then the last &&, as in sec.
    """
    for operator in ("||", "&&"):
        parts = split_outside_parentheses(context_text, operator)
        if len(parts) > 1:
            return (
                *parse_context_expression(operator.join(parts[:-1])),
                *parse_context_expression(parts[-1]),
                operator,
            )
    context_text = context_text.strip()
    if context_text.startswith("!"):
        return (*parse_context_expression(context_text[1:]), "!")
    if context_text.startswith("(") and context_text.endswith(")"):
        return (ContextGroup(parse_context_expression(context_text[1:-1])),)
    if not context_text or re.search(r"\s|->|:>|^=", context_text):
        raise SecRuleError(f'the context "{context_text}" is not supported: Perl code is not executed')
    return (ContextName(re.sub(r"\\([()])", r"\1", context_text)),)
