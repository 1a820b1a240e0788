# SPDX-License-Identifier: Apache-2.0
"""The only module that writes shell: commands, comments and whole scripts.

Values reach a script as arguments, never as text of the script. An argument is a string, which is quoted, or a `Word`,
which a function of this module has encoded. `ShellScript.literal` takes constants of the source code only;
tests/structure/test_shell.py checks this for every call.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sonde.model.escaping import escape_line

_INDENTATION = "    "
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A comment is cut after this many characters.
_LONGEST_COMMENT = 400


@dataclass(frozen=True)
class _Expansion:
    """Shell text that stands in a script as it is: an expansion between double quotes, or the user's own shell."""

    text: str


@dataclass(frozen=True)
class Word:
    """One word of a script: values, which are quoted, and expansions. Only functions of this module make one."""

    pieces: tuple[str | _Expansion, ...]

    @property
    def text(self) -> str:
        """The word as it stands in a script. Raises ValueError for a NUL character, which no argument can hold."""
        encoded = []
        for is_value, group in itertools.groupby(self.pieces, key=lambda piece: isinstance(piece, str)):
            text = "".join(piece if isinstance(piece, str) else piece.text for piece in group)
            if "\0" in text:
                raise ValueError("an argument of a program cannot hold a NUL character")
            encoded.append(quote(text) if is_value else text)
        return "".join(encoded)


Argument = str | int | Word


def quote(text: object) -> str:
    """`text` as one word of a shell."""
    return shlex.quote(str(text))


def quote_command(arguments: Iterable[object]) -> str:
    """A command line of these arguments, to be printed or written into a script."""
    return " ".join(quote(argument) for argument in arguments)


def refer_to_variable(name: str) -> Word:
    """The value of a shell variable, as one word."""
    return Word((_Expansion(f'"${check_identifier(name)}"'),))


def concatenate(*parts: Argument) -> Word:
    """One word that consists of several: an option and its value."""
    pieces = (part.pieces if isinstance(part, Word) else (str(part),) for part in parts)
    return Word(tuple(itertools.chain.from_iterable(pieces)))


def substitute(*arguments: Argument) -> Word:
    """The output of a command, as one word."""
    return Word((_Expansion(f'"$({_format_command_line(arguments)})"'),))


def accept_user_shell(text: str) -> Word:
    """Shell text that the user wrote as such, in a sites file. Raises ValueError for a second line."""
    if escape_line(text, len(text)) != text:
        raise ValueError(f"{text!r} is not one line of printable characters")
    return Word((_Expansion(text),))


def format_comment(text: object) -> str:
    """`text` on one line without control characters, as the text after a `#`."""
    return escape_line(" ".join(str(text).split()), _LONGEST_COMMENT)


def check_identifier(name: str) -> str:
    """Returns `name`. Raises ValueError when a shell cannot have a variable of that name."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a shell variable")
    return name


def _encode_argument(argument: Argument) -> str:
    return concatenate(argument).text


def _format_command_line(arguments: Sequence[Argument]) -> str:
    return " ".join(_encode_argument(argument) for argument in arguments)


class ShellScript:
    """A script, written line by line. `str()` gives its text."""

    def __init__(self, interpreter: str = "/bin/sh") -> None:
        self._lines = [f"#!{interpreter}"]
        self._depth = 0

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _add(self, line: str) -> None:
        self._lines.append(f"{_INDENTATION * self._depth}{line}" if line else "")

    def append(self, other: ShellScript) -> None:
        """Adds all lines of another script, without its first line."""
        for line in other._lines[1:]:
            self._add(line)

    def blank(self) -> None:
        """Adds an empty line."""
        self._add("")

    def comment(self, text: object) -> None:
        """Adds a comment of one line."""
        self._add(f"# {format_comment(text)}")

    def literal(self, text: str) -> None:
        """Adds lines of shell that are a constant of our source code: no value is ever part of them."""
        for line in text.strip("\n").split("\n"):
            self._add(line)

    def command(self, *arguments: Argument, warning: str = "", failure: str = "", quiet: bool = False) -> None:
        """Adds a command. When it fails, the script prints `warning` and continues, or runs `failure`, a
        constant of our source code. `quiet` discards the command's error messages and its failure."""
        line = _format_command_line(arguments)
        if warning:
            line += f" || printf '%s\\n' {quote(escape_line(warning))} >&2"
        if failure:
            line += f" || {failure}"
        if quiet:
            line += " 2>/dev/null || :"
        self._add(line)

    def pipeline(self, *commands: Sequence[Argument]) -> None:
        """Adds commands of which each runs when the one before has succeeded."""
        self._add(" && ".join(_format_command_line(arguments) for arguments in commands))

    def repeat_until_failure(self, *arguments: Argument) -> None:
        """Adds a loop that repeats a command until it fails."""
        self._add(f"while {_format_command_line(arguments)} 2>/dev/null; do :; done")

    def assign(self, name: str, value: Argument) -> None:
        """Sets a shell variable."""
        self._add(f"{check_identifier(name)}={_encode_argument(value)}")

    def export(self, name: str, value: Argument) -> None:
        """Sets an environment variable."""
        self._add(f"export {check_identifier(name)}={_encode_argument(value)}")

    def require_variable(self, name: str, meaning: str) -> None:
        """Ends the script with exit code 2 when its caller has not set a variable."""
        message = quote(f"{check_identifier(name)}: set it to {escape_line(meaning)}")
        self._add(f"""[ -n "${{{name}:-}}" ] || {{ printf '%s\\n' {message} >&2; exit 2; }}""")

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """The lines added inside are the body of a shell function."""
        self._add(f"{check_identifier(name)}() {{")
        begin = len(self._lines)
        self._depth += 1
        try:
            yield
        finally:
            if len(self._lines) == begin:
                self._add(":")
            self._depth -= 1
            self._add("}")
