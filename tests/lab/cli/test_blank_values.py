# SPDX-License-Identifier: Apache-2.0
"""Options and arguments whose value is empty or blank, as of a shell variable that is not set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest

from sonde.cli.main import command, list_verbs


def iterate_commands(parent: click.Context) -> Iterator[click.Context]:
    """The contexts of a command and its subcommands, without those that pass arguments on to other programs."""
    if not parent.command.context_settings.get("ignore_unknown_options"):
        yield parent
    if isinstance(parent.command, click.Group):
        for name in parent.command.list_commands(parent):
            child = parent.command.get_command(parent, name)
            assert child is not None
            yield from iterate_commands(click.Context(child, parent, name))


def list_valued_parameters(verb: str) -> Iterator[tuple[click.Context, click.Parameter]]:
    root = click.Context(command, info_name="sonde")
    verb_command = command.get_command(root, verb)
    assert verb_command is not None
    for context in iterate_commands(click.Context(verb_command, root, verb)):
        for parameter in context.command.params:
            if isinstance(parameter, click.Argument) or not any(
                getattr(parameter, name, False) for name in ("is_flag", "count")
            ):
                yield context, parameter


@pytest.mark.parametrize("verb", list_verbs())
@pytest.mark.parametrize("blank", ["", " \t"])
def test_blank_value_of_every_parameter_is_refused(verb: str, blank: str) -> None:
    for context, parameter in list_valued_parameters(verb):
        arguments = [item for item in context.command.params if isinstance(item, click.Argument)]
        number = arguments.index(parameter) if isinstance(parameter, click.Argument) else 0
        blank_arguments = [blank] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len), blank]
        with pytest.raises(click.UsageError) as error:
            context.command.make_context(
                verb, [*["x"] * number, *blank_arguments, *["x"] * len(arguments)], context.parent
            )
        assert "is blank" in error.value.message, parameter.name


@pytest.mark.parametrize(
    "arguments", [("run", ""), ("tag", "last", ""), ("system", "check", " "), ("event", "add", "")]
)
def test_blank_argument_is_one_sentence(sonde: Any, arguments: tuple[str, ...]) -> None:
    result = sonde(*arguments)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert "is blank; write one." in result.err
