# SPDX-License-Identifier: Apache-2.0
"""Man pages from the same declarations as the help: sonde(1), and one page for each verb with its subcommands."""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Iterator, Mapping

import click

from sonde.model.version import __version__

_GROUP_HELP_OPTION = "-h, --help"
_EXAMPLES_HEADING = "Examples:"
_HELP_REFERENCE_PATTERN = re.compile(r"^ *More: sonde help (\S+)$", re.MULTILINE)


def make_man_pages(main_command: click.Group) -> dict[str, str]:
    """Returns the text of sonde.1 and of sonde-VERB.1 for every verb, by file name.

    The date is SOURCE_DATE_EPOCH where that is set.
    """
    context = click.Context(main_command, info_name="sonde")
    pages = {"sonde": _format_program(main_command, context)}
    for name in main_command.list_commands(context):
        verb = main_command.get_command(context, name)
        if verb is not None:
            pages[f"sonde-{name}"] = _format_verb(verb, click.Context(verb, info_name=name, parent=context))
    return {f"{name}.1": text for name, text in pages.items()}


def _make_man_header(page_path: str, summary: str) -> list[str]:
    day = time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())))
    title = f'.TH {_escape_roff(page_path.upper())} 1 {day} "Sonde {_escape_roff(__version__)}" "Sonde manual"'
    first, *remaining = _fold_input_lines(f"{page_path} @ {summary}")
    return [title, ".SH NAME", first.replace(" @ ", " \\- ", 1), *remaining]


def _format_program(main_command: click.Group, context: click.Context) -> str:
    lines = _make_man_header("sonde", "measure storage and report how far the numbers can be trusted")
    lines += [".SH SYNOPSIS", ".B sonde", ".RI [ options ]", ".I verb", ".RI [ arguments ]"]
    lines += [".SH DESCRIPTION", *_convert_help_to_roff(main_command.help or "")]
    lines += _format_options(main_command, context)
    lines += [".SH VERBS"]
    names = main_command.list_commands(context)
    for name in names:
        verb = main_command.get_command(context, name)
        if verb is not None:
            lines += [
                ".TP",
                f".BR sonde\\-{_escape_roff(name)} (1)",
                *_fold_input_lines(verb.get_short_help_str(limit=1000)),
            ]
    lines += [".SH SEE ALSO", _format_references([f"sonde-{name}" for name in names])]
    return "\n".join(lines) + "\n"


def _format_verb(verb: click.Command, context: click.Context) -> str:
    name = context.command_path
    summary = verb.get_short_help_str(limit=1000).rstrip(".")
    lines = _make_man_header(name.replace(" ", "-"), summary[:1].lower() + summary[1:])
    lines += [".SH SYNOPSIS", *_format_usage(verb, context)]
    lines += [".SH DESCRIPTION", *_convert_help_to_roff(verb.help or "")]
    lines += _format_options(verb, context)
    for path, command, inner in _iterate_subcommands(verb, context):
        lines += [f'.SH "{_escape_roff(path.upper())}"', *_format_usage(command, inner), ".PP"]
        lines += [*_convert_help_to_roff(command.help or ""), *_format_options(command, inner, ".SS Options")]
    topic = _HELP_REFERENCE_PATTERN.search(verb.help or "")
    references = [_format_references(["sonde"])]
    if topic:
        page = _escape_roff(topic[1])
        references += [".PP", f"The page {page}:", f"\\fBsonde help {page}\\fR"]
    return "\n".join([*lines, ".SH SEE ALSO", *references]) + "\n"


def _iterate_subcommands(
    parent_command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    commands: Mapping[str, click.Command] = parent_command.commands if isinstance(parent_command, click.Group) else {}
    for name, command in sorted(commands.items()):
        inner = click.Context(command, info_name=name, parent=context)
        yield inner.command_path, command, inner
        yield from _iterate_subcommands(command, inner)


def _format_usage(command: click.Command, context: click.Context) -> list[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    return [f".B {_escape_roff(context.command_path)}", *_fold_input_lines(pieces)]


def _format_options(command: click.Command, context: click.Context, section_heading: str = ".SH OPTIONS") -> list[str]:
    """Returns options and arguments that have a help text. The usage and the description name all arguments."""
    lines = []
    for parameter in command.get_params(context):
        name, help_text = parameter.get_help_record(context) or ("", "")
        if help_text and name != _GROUP_HELP_OPTION:
            lines += [".TP", f".B {_escape_roff(name)}", *_fold_input_lines(help_text)]
    return [section_heading, *lines] if lines else []


def _format_references(page_names: list[str]) -> str:
    return "\n".join(
        f".BR {_escape_roff(name)} (1){',' if position < len(page_names) else ''}"
        for position, name in enumerate(page_names, start=1)
    )


def _convert_help_to_roff(help_text: str) -> list[str]:
    """Returns paragraphs of a help text as man macros: those after a \\b keep their lines, examples get a heading."""
    lines: list[str] = []
    paragraphs = [part for part in re.split(r"\n\s*\n", inspect.cleandoc(help_text)) if part.strip()]
    for position, paragraph in enumerate(paragraphs):
        if _HELP_REFERENCE_PATTERN.search(paragraph):
            continue
        is_verbatim = paragraph.startswith("\b")
        body = paragraph.removeprefix("\b").strip("\n")
        if is_verbatim and body.strip().startswith(_EXAMPLES_HEADING):
            body = body.split(_EXAMPLES_HEADING, 1)[1].strip("\n")
            lines += [".PP", "Examples:"]
        if is_verbatim:
            lines += [".PP", ".nf", *(_escape_roff(line.rstrip()) for line in body.splitlines()), ".fi"]
        else:
            lines += [*([".PP"] if position else []), *_fold_input_lines(body)]
    return _drop_empty_paragraphs(lines)


def _drop_empty_paragraphs(roff_lines: list[str]) -> list[str]:
    """mandoc warns of .PP directly after another or at the beginning of a section."""
    output: list[str] = []
    for line in roff_lines:
        if line == ".PP" and (not output or output[-1] == ".PP"):
            continue
        output.append(line)
    return output


def _fold_input_lines(roff_text: str) -> list[str]:
    """Returns text as input lines of at most 78 bytes, including escapes; mandoc reports lines longer than 80."""
    lines = [""]
    for word in roff_text.split():
        line = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and _count_input_bytes(line) > 78:
            lines.append(word)
        else:
            lines[-1] = line
    return [_escape_roff(line) for line in lines if line]


def _count_input_bytes(text: str) -> int:
    """Returns the bytes of an input line as mandoc counts them: it reads `×` as \\[u00D7]."""
    return sum(1 if character.isascii() else 8 for character in _escape_roff(text))


def _escape_roff(input_line: str) -> str:
    """Returns text for one input line of roff: backslashes, hyphens of options, and a leading dot or quote."""
    escaped = input_line.replace("\\", "\\e").replace("-", "\\-")
    escaped = escaped.replace("“", '"').replace("”", '"')
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
