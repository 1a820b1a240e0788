# SPDX-License-Identifier: Apache-2.0
"""The attributes that the scripts of a plan write: every option of every command, read from the scripts themselves."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.scripts import list_command_lines, make_file_system_scripts
from sonde.model.errors import UserError
from sonde.model.system import System

# Options whose value is the next argument.
_VALUE_OPTIONS = frozenset({
    "-L", "-b", "-d", "-l", "-m", "-t", "-E", "-J", "-T", "-o", "-O", "--label", "--name", "--create", "--update",
    "--stripes", "--stripesize", "--extents", "--dataalignment", "--physicalextentsize",
})  # fmt: skip
# Options that hold further options, separated by commas.
_LIST_OPTIONS = frozenset({"-b", "-d", "-l", "-E", "-J", "-o", "-O"})
_NESTED_OPTION = "--mkfsoptions"


@dataclass(frozen=True)
class WrittenAttribute:
    """One option of a command with its value; option "" holds all other arguments. `number` is that of the command,
    `devices` are those whose queues the value is for."""

    program: str
    option: str
    value: str
    number: int
    devices: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The program and the option."""
        return self.program, self.option


def list_written_attributes(system: System, layout: FileSystemLayout) -> tuple[WrittenAttribute, ...]:
    """All attributes that the scripts of one file system write."""
    scripts = make_file_system_scripts(system, layout).values()
    return tuple(parse_script_attributes(scripts))


def list_attributes_of_plan(system: System, layouts: Sequence[FileSystemLayout]) -> tuple[WrittenAttribute, ...]:
    """All attributes that the scripts of several file systems write, without those that have no script."""
    scripts: list[str] = []
    for layout in layouts:
        with suppress(UserError):  # as of a slice without a size: it concerns that file system only
            scripts += make_file_system_scripts(system, layout).values()
    return tuple(parse_script_attributes(scripts))


def group_by_command(written: Iterable[WrittenAttribute]) -> dict[int, dict[tuple[str, str], str]]:
    """The options of each command with their values; of an option that is given twice the last value."""
    commands: dict[int, dict[tuple[str, str], str]] = {}
    for attribute in written:
        commands.setdefault(attribute.number, {})[attribute.key] = attribute.value
    return commands


def parse_script_attributes(script_texts: Iterable[str]) -> Iterator[WrittenAttribute]:
    """The attributes in the commands of scripts."""
    number = 0
    for text in script_texts:
        for line in list_command_lines(text):
            for command in _split_chain(shlex.split(line)):
                number += 1
                program, *arguments = command
                devices = tuple(arguments[2:]) if program == "queue" else ()
                for option, value in _split_arguments(program, arguments):
                    yield WrittenAttribute(program, option, value, number, devices)


def _split_chain(chain_arguments: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for argument in chain_arguments:
        if argument == "&&":
            yield command
            command = []
        else:
            command.append(argument)
    yield command


def _split_arguments(program_name: str, program_arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    if program_name == "queue":
        setting, value, *_ = program_arguments
        yield setting, value
        return
    others = list[str]()
    pending = list(program_arguments)
    while pending:
        token = pending.pop(0)
        option, sign, value = token.partition("=")
        if not token.startswith("-"):
            # zfs set mountpoint=/home, lctl set_param -P obdfilter.*.brw_size=8
            if sign and re.fullmatch(r"[\w.*-]+", option):
                yield option.rpartition(".")[2], value
            else:
                others.append(token)
        elif option == _NESTED_OPTION:
            yield from ((f"{option} {inner}".strip(), text) for inner, text in _split_arguments("", shlex.split(value)))
        elif sign:
            yield option, value
        elif token in _VALUE_OPTIONS and pending:
            yield from _split_option_list(token, pending.pop(0))
        else:
            yield token, ""
    if others:
        yield "", " ".join(others)


def _split_option_list(option_name: str, value_text: str) -> Iterator[tuple[str, str]]:
    if option_name not in _LIST_OPTIONS:
        yield option_name, value_text
        return
    for item in value_text.split(","):
        name, sign, value = item.partition("=")
        if not sign and name.isdigit():
            yield option_name, name  # mke2fs -b 4096
        else:
            yield f"{option_name} {name}", value
