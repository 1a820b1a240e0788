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
_COMMON = {"ptype", "pattern"}
_SECOND = {"ptype2", "pattern2", "desc2", "action2"}
_OPTIONAL_SECOND = {"continue", "context", "continue2", "context2"}
# Rule type -> keywords that it must have, and keywords that it may have.
_KEYWORDS: dict[str, tuple[set[str], set[str]]] = {
    "Single": (_COMMON | {"desc", "action"}, {"continue", "context"}),
    "SingleWithSuppress": (_COMMON | {"desc", "action", "window"}, {"continue", "context"}),
    "SingleWithThreshold": (_COMMON | {"desc", "action", "window", "thresh"}, {"continue", "context", "action2"}),
    "Pair": (_COMMON | {"desc", "action"} | _SECOND, _OPTIONAL_SECOND | {"window"}),
    "PairWithWindow": (_COMMON | {"desc", "action", "window"} | _SECOND, _OPTIONAL_SECOND),
    "Suppress": (_COMMON, {"context", "desc"}),
}
# Actions that hand a text to something outside: they become events and are never executed.
OUTPUT_ACTIONS = ("write", "writen", "pipe", "udpsock", "tcpsock", "udgram", "ustream", "owritecl")
COMMAND_ACTIONS = ("shellcmd", "spawn", "cmdexec", "spawnexec")
_CONTEXT_ACTIONS = ("delete", "obsolete", "unalias")
_PATTERN_TYPE = re.compile(r"(n?)(regexp|substr)(1?)|(tvalue)", re.IGNORECASE)
_KEYWORD = re.compile(r"\s*([A-Za-z0-9]+)\s*=\s*(.*\S)", re.DOTALL)
_MATCH_VARIABLE = re.compile(r"\$(?:\$|\d+|\{\d+\}|\+\{(?:[A-Za-z_][\w!]*|\d+)\})", re.ASCII)
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
    """One rule. `next_rule` says where matching goes on: the position of a rule, or -1 for no more rules at all."""

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


def read_sec_file(path: Path) -> SecRuleFile:
    """Reads a rule file. Raises EventError when it cannot be read or has no usable rule."""
    text = read_text_file(path, "rule file of SEC", MAX_CONFIGURATION_BYTES, EventError)
    result = SecRuleFile()
    jumps: list[tuple[SecRule, str, str]] = []
    labels: dict[str, int] = {}
    positions: list[int] = []  # of each rule in the file among the rules that can be used
    for line, keywords in _split_rules(text, labels, result):
        positions.append(len(result.rules))
        try:
            rule = _parse_rule(keywords, line)
        except SecRuleError as reason:
            result.problems.append(f"{path}: the rule at line {line} is skipped: {reason}.")
            continue
        jumps.append((rule, keywords.get("continue", "dontcont"), keywords.get("continue2", "dontcont")))
        result.rules.append(rule)
    positions.append(len(result.rules))
    labels = {name: positions[number] for name, number in labels.items()}
    for position, (rule, first, second) in enumerate(jumps):
        rule.next_rule = _resolve_continue(first, position, len(jumps), labels)
        rule.next_rule2 = _resolve_continue(second, position, len(jumps), labels)
    if not result.rules:
        raise EventError(f"{path} has no rule of SEC that can be used. {' '.join(result.problems[:1])}".strip())
    return result


def _split_rules(text: str, labels: dict[str, int], result: SecRuleFile) -> list[tuple[int, dict[str, str]]]:
    """Rules as keyword -> value with the line of their beginning. Labels get the number of the next rule."""
    rules: list[tuple[int, dict[str, str]]] = []
    keywords: dict[str, str] = {}
    begin, joined = 1, ""
    for number, raw in enumerate([*text.splitlines(), ""], start=1):
        line = (joined + raw).strip()
        if line.endswith("\\") and number <= text.count("\n") + 1:
            joined = line[:-1]
            continue
        joined = ""
        if not line or line.startswith("#"):
            if keywords:
                rules.append((begin, keywords))
            keywords, begin = {}, number + 1
            continue
        match = _KEYWORD.match(line)
        if match is None:
            result.problems.append(f"Line {number} has no keyword=value and is ignored.")
        elif match[1] == "label":
            labels[match[2]] = len(rules)
        elif match[1] != "rem":
            keywords[match[1]] = match[2]
    return rules


def _resolve_continue(text: str, position: int, count: int, labels: dict[str, int]) -> int:
    lowered = text.lower()
    if lowered.startswith("goto"):
        return max(position + 1, labels.get(text[4:].strip(), count))
    return {"takenext": position + 1, "endmatch": -1}.get(lowered, count)


def _parse_rule(keywords: dict[str, str], line: int) -> SecRule:
    name = keywords.get("type", "")
    kind = SEC_RULE_TYPES.get(name.lower())
    if kind is None:
        supported = ", ".join(SEC_RULE_TYPES.values())
        raise SecRuleError(f'its type "{name}" is not one of {supported}' if name else "it has no type")
    needed, allowed = _KEYWORDS[kind]
    if missing := sorted(needed - set(keywords)):
        raise SecRuleError(f"it lacks {', '.join(missing)}")
    if extra := sorted(set(keywords) - needed - allowed - {"type"}):
        raise SecRuleError(f"a {kind} rule has no {', '.join(extra)}")
    for word in ("continue", "continue2"):
        if not re.fullmatch(r"takenext|dontcont|endmatch|goto\s+\S.*", keywords.get(word, "dontcont"), re.IGNORECASE):
            raise SecRuleError(f'{word} is "{keywords[word]}"')
    context, is_first = _parse_context_keyword(keywords.get("context"))
    context2, is_first2 = _parse_context_keyword(keywords.get("context2"))
    pattern = _parse_pattern(keywords["ptype"], keywords["pattern"], None)
    is_pair = kind.startswith("Pair")
    return SecRule(
        type=kind,
        line=line,
        pattern=pattern,
        context=context,
        is_context_first=is_first,
        desc=keywords.get("desc", ""),
        actions=parse_action_list(keywords["action"]) if kind != "Suppress" else (),
        window=_parse_number(keywords.get("window", "0"), "window", least=0 if kind == "Pair" else 1)
        if kind not in ("Single", "Suppress")
        else 0,
        threshold=_parse_number(keywords["thresh"], "thresh", least=1) if kind == "SingleWithThreshold" else 0,
        pattern2=_parse_pattern(keywords["ptype2"], keywords["pattern2"], pattern) if is_pair else None,
        context2=context2,
        is_context2_first=is_first2,
        desc2=keywords.get("desc2", ""),
        actions2=parse_action_list(keywords["action2"])
        if "action2" in keywords and (is_pair or kind == "SingleWithThreshold")
        else (),
    )


def _parse_number(text: str, name: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < least:
        raise SecRuleError(f'{name} is "{text}", not a whole number of at least {least}')
    return int(text)


def _parse_pattern(kind: str, text: str, first: SecPattern | None) -> SecPattern:
    match = _PATTERN_TYPE.fullmatch(kind)
    if match is None:
        raise SecRuleError(f'its pattern type "{kind}" is not RegExp, NRegExp, SubStr, NSubStr or TValue of one line')
    if match[4]:
        if text.upper() not in ("TRUE", "FALSE"):
            raise SecRuleError(f'its truth value is "{text}", not TRUE or FALSE')
        return SecPattern("tvalue", False, text.upper())
    is_negated = bool(match[1])
    if match[2].lower() == "substr":
        return SecPattern("substr", is_negated, _replace_special_characters(text))
    if first is not None and first.kind == "regexp" and _MATCH_VARIABLE.search(text):
        return SecPattern("regexp", is_negated, text)
    return SecPattern("regexp", is_negated, text, compile_perl_expression(text))


def _replace_special_characters(text: str) -> str:
    characters = {"0": "", "n": "\n", "r": "\r", "s": " ", "t": "\t", "\\": "\\"}
    return re.sub(r"\\([0nrst\\])", lambda match: characters[match[1]], text)


def compile_perl_expression(text: str) -> re.Pattern[str]:
    """Compiles a regular expression of Perl. Raises SecRuleError for what Python does not have."""
    text = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text)
    text = re.sub(r"\\k(?:<(\w+)>|\{(\w+)\})", lambda match: f"(?P={match[1] or match[2]})", text)
    text = re.sub(r"\[:(\w+):\]", lambda match: _POSIX_CLASSES.get(match[1], match[0]), text)
    text = re.sub(r"\\([zhR])", lambda match: {"z": r"\Z", "h": r"[ \t]", "R": r"(?:\r\n|\n)"}[match[1]], text)
    try:
        return re.compile(text, re.ASCII)
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


def parse_action_list(text: str) -> tuple[SecAction, ...]:
    """Parses actions separated by semicolons. Raises SecRuleError."""
    parts = [part.strip() for part in split_outside_parentheses(text.strip(), ";")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(_parse_action(part) for part in parts)


def _unwrap(text: str) -> str:
    match = re.fullmatch(r"\s*\(\s*(.*?)\s*\)\s*", text, re.DOTALL)
    return re.sub(r"\\([()])", r"\1", match[1] if match else text)


def _parse_action(text: str) -> SecAction:
    name, _, remainder = text.partition(" ")
    name, remainder = name.lower(), remainder.strip()
    if name == "none":
        return SecAction("none")
    if name == "logonly":
        return SecAction(name, (_unwrap(remainder) or "%s",))
    if name == "event":
        match = re.fullmatch(r"(?:0*([0-9]+)(?:\s+|$))?(.*)", remainder, re.DOTALL)
        assert match is not None
        return SecAction(name, (_unwrap(match[2]) or "%s",), int(match[1] or 0))
    if name in OUTPUT_ACTIONS:
        match = re.fullmatch(r"('[^']*'|\S+)(?:\s+(.*\S))?", remainder, re.DOTALL)
        if match is None:
            raise SecRuleError(f'the action "{text}" has no destination')
        if name == "pipe":
            return SecAction(name, (_unwrap(match[2] or ""), _unwrap(match[1].strip("'")) or "%s"))
        return SecAction(name, (_unwrap(match[1]), _unwrap(match[2] or "") or "%s"))
    if name in COMMAND_ACTIONS and remainder:
        return SecAction(name, (_unwrap(remainder),))
    if name in _CONTEXT_ACTIONS:
        return SecAction(name, (_unwrap(remainder) or "%s",))
    if name in ("create", "set"):
        return _parse_create(name, remainder)
    if name == "assign":
        match = re.fullmatch(r"%([A-Za-z]\w*)(?:\s+(.*\S))?", remainder, re.ASCII | re.DOTALL)
        if match:
            return SecAction(name, (match[1], _unwrap(match[2] or "") or "%s"))
    raise SecRuleError(f'the action "{text}" is not supported')


def _parse_create(name: str, text: str) -> SecAction:
    match = re.fullmatch(r"(?:(\S+)(?:\s+(\S+)(?:\s+(.*\S))?)?)?", text, re.DOTALL)
    if match is None or (name == "set" and not match[2]):
        raise SecRuleError(f'the action "{name} {text}" is not supported')
    inner = match[3] or ""
    if inner and (wrapped := re.fullmatch(r"\((.*)\)", inner, re.DOTALL)):
        inner = wrapped[1]
    actions = parse_action_list(inner) if inner else ()
    return SecAction(name, (_unwrap(match[1] or "") or "%s", _unwrap(match[2] or "") or "0"), inner=actions)


def _parse_context_keyword(text: str | None) -> tuple[ContextExpression | None, bool]:
    if text is None:
        return None, False
    first = re.fullmatch(r"\s*\[(.*)\]\s*", text, re.DOTALL)
    return parse_context(first[1] if first else text), first is not None


def parse_context(text: str) -> ContextExpression:
    """Parses contexts joined by !, && and ||, with parentheses, to postfix form. Raises SecRuleError.

    The last || is the outermost operator, then the last &&, as in sec.
    """
    for operator in ("||", "&&"):
        parts = split_outside_parentheses(text, operator)
        if len(parts) > 1:
            return (*parse_context(operator.join(parts[:-1])), *parse_context(parts[-1]), operator)
    text = text.strip()
    if text.startswith("!"):
        return (*parse_context(text[1:]), "!")
    if text.startswith("(") and text.endswith(")"):
        return (ContextGroup(parse_context(text[1:-1])),)
    if not text or re.search(r"\s|->|:>|^=", text):
        raise SecRuleError(f'the context "{text}" is not supported: Perl code is not executed')
    return (ContextName(re.sub(r"\\([()])", r"\1", text)),)
