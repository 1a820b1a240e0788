# SPDX-License-Identifier: Apache-2.0
"""The only module that writes shell: commands, comments and whole scripts.

Values reach a script as arguments, never as text of the script. An argument is a string, which is quoted, or a
`ShellWord`, which a function of this module has encoded. `ShellScript.literal` takes constants of the source code only;
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
_IDENTIFIER_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A comment is cut after this many characters.
_MAX_COMMENT_CHARACTERS = 400


@dataclass(frozen=True)
class _UnquotedText:
    """Shell text that stands in a script as it is: an expansion between double quotes, or the user's own shell."""

    text: str


@dataclass(frozen=True)
class ShellWord:
    """One word of a script: values, which are quoted, and expansions. Only functions of this module make one."""

    pieces: tuple[str | _UnquotedText, ...]

    @property
    def script_text(self) -> str:
        """The word as it stands in a script. Raises ValueError for a NUL character, which no argument can hold."""
        encoded = []
        for is_value, group in itertools.groupby(self.pieces, key=lambda piece: isinstance(piece, str)):
            text = "".join(piece if isinstance(piece, str) else piece.text for piece in group)
            if "\0" in text:
                raise ValueError("an argument of a program cannot hold a NUL character")
            encoded.append(quote_word(text) if is_value else text)
        return "".join(encoded)


Argument = str | int | ShellWord


def quote_word(argument: object) -> str:
    """`argument` as one word of a shell."""
    return shlex.quote(str(argument))


def quote_command(arguments: Iterable[object]) -> str:
    """A command line of these arguments, to be printed or written into a script."""
    return " ".join(quote_word(argument) for argument in arguments)


def make_variable_reference(variable_name: str) -> ShellWord:
    """The value of a shell variable, as one word."""
    return ShellWord((_UnquotedText(f'"${check_shell_identifier(variable_name)}"'),))


def concatenate_into_word(*word_parts: Argument) -> ShellWord:
    """One word that consists of several: an option and its value."""
    pieces = (part.pieces if isinstance(part, ShellWord) else (str(part),) for part in word_parts)
    return ShellWord(tuple(itertools.chain.from_iterable(pieces)))


def substitute_command_output(*command_words: Argument) -> ShellWord:
    """The output of a command, as one word."""
    return ShellWord((_UnquotedText(f'"$({_format_command_line(command_words)})"'),))


def make_unquoted_user_word(shell_text: str) -> ShellWord:
    """Shell text that the user wrote as such, in a sites file. Raises ValueError for a second line."""
    if escape_line(shell_text, len(shell_text)) != shell_text:
        raise ValueError(f"{shell_text!r} is not one line of printable characters")
    return ShellWord((_UnquotedText(shell_text),))


def format_comment(comment: object) -> str:
    """`comment` on one line without control characters, as the text after a `#`."""
    return escape_line(" ".join(str(comment).split()), _MAX_COMMENT_CHARACTERS)


def check_shell_identifier(variable_name: str) -> str:
    """Returns `variable_name`. Raises ValueError when a shell cannot have a variable of that name."""
    if not _IDENTIFIER_PATTERN.fullmatch(variable_name):
        raise ValueError(f"{variable_name!r} is not the name of a shell variable")
    return variable_name


def _encode_argument(argument: Argument) -> str:
    return concatenate_into_word(argument).script_text


def _format_command_line(arguments: Sequence[Argument]) -> str:
    return " ".join(_encode_argument(argument) for argument in arguments)


class ShellScript:
    """A script, written line by line. `str()` gives its text."""

    def __init__(self, interpreter_path: str = "/bin/sh") -> None:
        self._lines = [f"#!{interpreter_path}"]
        self._depth = 0

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _add_line(self, line: str) -> None:
        self._lines.append(f"{_INDENTATION * self._depth}{line}" if line else "")

    def append_script(self, other: ShellScript) -> None:
        """Adds all lines of another script, without its first line."""
        for line in other._lines[1:]:
            self._add_line(line)

    def add_blank_line(self) -> None:
        """Adds an empty line."""
        self._add_line("")

    def add_comment(self, comment_text: object) -> None:
        """Adds a comment of one line."""
        self._add_line(f"# {format_comment(comment_text)}")

    def add_literal_lines(self, shell_lines: str) -> None:
        """Adds lines of shell that are a constant of our source code: no value is ever part of them."""
        for line in shell_lines.strip("\n").split("\n"):
            self._add_line(line)

    def add_command(
        self, *arguments: Argument, warning_text: str = "", failure_command: str = "", hides_output: bool = False
    ) -> None:
        """Adds a command. When it fails, the script prints `warning_text` and continues, or runs `failure_command`, a
        constant of our source code. `hides_output` discards the command's error messages and its failure."""
        line = _format_command_line(arguments)
        if warning_text:
            line += f" || printf '%s\\n' {quote_word(escape_line(warning_text))} >&2"
        if failure_command:
            line += f" || {failure_command}"
        if hides_output:
            line += " 2>/dev/null || :"
        self._add_line(line)

    def add_command_chain(self, *commands: Sequence[Argument]) -> None:
        """Adds a chain of commands; each runs only if the previous one succeeded."""
        self._add_line(" && ".join(_format_command_line(arguments) for arguments in commands))

    def add_loop_until_failure(self, *arguments: Argument) -> None:
        """Adds a loop that repeats a command until it fails."""
        self._add_line(f"while {_format_command_line(arguments)} 2>/dev/null; do :; done")

    def assign_variable(self, variable_name: str, value: Argument) -> None:
        """Sets a shell variable."""
        self._add_line(f"{check_shell_identifier(variable_name)}={_encode_argument(value)}")

    def export_variable(self, variable_name: str, value: Argument) -> None:
        """Sets an environment variable."""
        self._add_line(f"export {check_shell_identifier(variable_name)}={_encode_argument(value)}")

    def require_variable(self, variable_name: str, variable_meaning: str) -> None:
        """Ends the script with exit code 2 when its caller has not set a variable."""
        message = quote_word(f"{check_shell_identifier(variable_name)}: set it to {escape_line(variable_meaning)}")
        self._add_line(f"""[ -n "${{{variable_name}:-}}" ] || {{ printf '%s\\n' {message} >&2; exit 2; }}""")

    @contextmanager
    def define_function(self, function_name: str) -> Iterator[None]:
        """The lines added inside are the body of a shell function."""
        self._add_line(f"{check_shell_identifier(function_name)}() {{")
        begin = len(self._lines)
        self._depth += 1
        try:
            yield
        finally:
            if len(self._lines) == begin:
                self._add_line(":")
            self._depth -= 1
            self._add_line("}")
