# SPDX-License-Identifier: Apache-2.0
"""The changes of a C++ source, found in its tokens.

There is no parser here: clang-format has laid the sources out, so binary operators have a space on both sides and
brackets of templates have none. Comments, messages, preprocessor lines, `static_assert` and `using` are not changed.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from mutation.change import SourceChange, make_source_change

_OPERATORS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " % ": " * ",
    " += ": " -= ", " -= ": " += ", " << ": " >> ", " >> ": " << ", " & ": " | ", " | ": " & ",
}  # fmt: skip
_OPERATOR_PATTERN = re.compile(
    r"(?<=[\w)\]}'\"])(" + "|".join(re.escape(operator) for operator in _OPERATORS) + r")(?=[\w(!\-~*&+'\"{])"
)
_NUMBER_PATTERN = re.compile(r"(?<![\w.\"])(0x[0-9a-fA-F']+|[0-9][0-9']*)(\.[0-9]+)?(e-?[0-9]+)?([uUlLf]*)(?![\w.])")
_BOOLEAN_PATTERN = re.compile(r"(?<![\w.])(true|false)(?!\w)")
_NOT_PATTERN = re.compile(r"(?<=[(\s])!(?=[\w(])")
_STEP_PATTERN = re.compile(r"(\+\+|--)(?=\w)")
_CALL_PATTERN = re.compile(r"^ +((?:[\w:]+(?:\.|->))*(?!return)[a-z_]\w*\([^{};]*\));$", re.MULTILINE)
_RETURN_PATTERN = re.compile(r"(?<=return )(?!true;|false;)([^;{}\n]+)(?=;)")
_IF_PATTERN = re.compile(r"(?<=[ }]if )\((?![^;\n]*;)(.+)\)(?= \{$)", re.MULTILINE)
_BOOL_FUNCTION_PATTERN = re.compile(r"(?:^|\s)bool [\w:]+\([^;{}]*\)[^;{}]*\{")
_UNCHANGED_LINE_PATTERN = re.compile(r"^\s*(#|static_assert|using |namespace |template|friend |extern |typedef )")
_ARCHITECTURE_CONDITION_PATTERN = re.compile(r"^#(?:el)?if defined\(__(x86_64|aarch64)__\)")
# The smaller or the larger of two: of equal ones either is.
_CHOICE_PATTERN = re.compile(r"([\w.\[\]]+)(?: < | > | <= | >= )([\w.\[\]]+) \? (?:\1 : \2|\2 : \1)(?![\w.(\[])")
_NAMES_ONLY_PATTERN = re.compile(r"\b(explicit|reserve|assert|noexcept)\b")


def blank_comments_and_strings(source_text: str) -> str:
    """The source with spaces in place of comments and of what stands in quotes, at the same places."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
    return pattern.sub(lambda hit: _blank_quoted_text(hit[0]), source_text)


def _blank_quoted_text(text: str) -> str:
    if text[0] in "\"'" or text[0] == "R":  # quotes stay, so that an operator beside them is still one
        inner = re.sub(r"[^\n]", "\x00", text)
        return text[0] + inner[1:-1] + text[-1]
    return re.sub(r"[^\n]", " ", text)


def list_cpp_changes(source_file: str, source_text: str) -> list[SourceChange]:
    """All changes of a file, in the order of its text."""
    return sorted(set(_find_changes(source_file, source_text)))


def _list_changed_numbers(number_text: str, fraction: str | None, exponent: str | None, suffix: str) -> Iterator[str]:
    if fraction or exponent:
        number = float(number_text.replace("'", "") + (fraction or "") + (exponent or ""))
        yield (repr(number * 2) if number else "1.0") + suffix
        return
    number = int(number_text.replace("'", ""), 16 if number_text.startswith("0x") else 10)
    yield f"{number + 1}{suffix}"
    if number > 1:
        yield f"{number - 1}{suffix}"


def _find_changes(source_file: str, source_text: str) -> Iterator[SourceChange]:
    plain = blank_comments_and_strings(source_text)
    booleans = [
        (match.end(), _find_end_of_block(plain, match.end())) for match in _BOOL_FUNCTION_PATTERN.finditer(plain)
    ]
    skipped = [
        (offset, offset + len(line))
        for offset, line in _list_lines_with_offsets(plain)
        if _UNCHANGED_LINE_PATTERN.search(line) or _NAMES_ONLY_PATTERN.search(line) or "<=>" in line
    ]
    skipped += _find_code_of_other_machines(plain)

    def make_change_outside_skipped_ranges(
        begin_offset: int, end_offset: int, new_text: str, change_kind: str
    ) -> Iterator[SourceChange]:
        if not any(first <= begin_offset < last for first, last in skipped):
            yield make_source_change(source_file, source_text, begin_offset, end_offset, new_text, change_kind)

    choices = [(match.start(), match.end(2)) for match in _CHOICE_PATTERN.finditer(plain)]
    for hit in _OPERATOR_PATTERN.finditer(plain):
        if any(first <= hit.start() < last for first, last in choices):
            continue
        if hit[1] in (" + ", " += ", " << ") and '"' in plain[hit.start() - 1] + plain[hit.end()]:
            continue  # of text
        yield from make_change_outside_skipped_ranges(hit.start(), hit.end(), _OPERATORS[hit[1]], "operator")
    for hit in _NUMBER_PATTERN.finditer(plain):
        for text in _list_changed_numbers(hit[1], hit[2], hit[3], hit[4]):
            yield from make_change_outside_skipped_ranges(hit.start(), hit.end(), text, "constant")
    for hit in _BOOLEAN_PATTERN.finditer(plain):
        yield from make_change_outside_skipped_ranges(
            hit.start(), hit.end(), "false" if hit[1] == "true" else "true", "constant"
        )
    for hit in _NOT_PATTERN.finditer(plain):
        yield from make_change_outside_skipped_ranges(hit.start(), hit.end(), "", "sign or not")
    for hit in _STEP_PATTERN.finditer(plain):
        yield from make_change_outside_skipped_ranges(
            hit.start(), hit.end(), "--" if hit[1] == "++" else "++", "operator"
        )
    for hit in _CALL_PATTERN.finditer(plain):
        yield from make_change_outside_skipped_ranges(hit.start(1), hit.end(1), "", "statement removed")
    for hit in _IF_PATTERN.finditer(plain):
        yield from make_change_outside_skipped_ranges(
            hit.start(1), hit.end(1), f"!({source_text[hit.start(1) : hit.end(1)]})", "condition"
        )
    for hit in _RETURN_PATTERN.finditer(plain):
        if any(first <= hit.start() < last for first, last in booleans):
            for text in ("true", "false"):
                yield from make_change_outside_skipped_ranges(hit.start(), hit.end(), text, "returned constant")
        elif hit[1] not in ("{}", "nullptr", "std::nullopt", "*this", "0"):
            yield from make_change_outside_skipped_ranges(hit.start(), hit.end(), "{}", "returned constant")


def _find_code_of_other_machines(text: str) -> Iterator[tuple[int, int]]:
    """Lines that are compiled on machines of other kinds only: from `#if defined(__x86_64__)` on, and the like."""
    depth, ours = 0, True  # of the block that asks for the machine; whether this branch of it is compiled here
    is_other = False
    for offset, line in _list_lines_with_offsets(text):
        if depth == 0 and line.startswith("#if") and (hit := _ARCHITECTURE_CONDITION_PATTERN.search(line)):
            depth, ours = 1, hit[1] == platform.machine()
            is_other = ours
        elif depth > 0 and line.startswith("#if"):
            depth += 1
        elif depth > 0 and line.startswith("#endif"):
            depth -= 1
            ours = ours or depth == 0
        elif depth == 1 and line.startswith("#el"):
            hit = _ARCHITECTURE_CONDITION_PATTERN.search(line)
            ours = not is_other and (hit is None or hit[1] == platform.machine())
            is_other = is_other or ours
        elif not ours:
            yield offset, offset + len(line)


def _list_lines_with_offsets(text: str) -> Iterator[tuple[int, str]]:
    offset = 0
    for line in text.splitlines(keepends=True):
        yield offset, line
        offset += len(line)


def _find_end_of_block(plain_source: str, begin_offset: int) -> int:
    """Behind the bracket that closes the block that was opened before `begin_offset`."""
    depth = 1
    for index in range(begin_offset, len(plain_source)):
        depth += {"{": 1, "}": -1}.get(plain_source[index], 0)
        if depth == 0:
            return index
    return len(plain_source)
