# SPDX-License-Identifier: Apache-2.0
"""Options of every verb: --color, --quiet and --export; and defaults from configuration files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from sonde.cli.completion import enable_name_completion
from sonde.model.configuration import (
    GENERAL_SETTINGS,
    ConfigurationFile,
    find_verb_setting,
    read_configuration_files,
)
from sonde.model.errors import UserError, suggest_close_name
from sonde.terminal.screen import get_messages_console, get_output_settings
from sonde.terminal.table_export import EXPORT_FORMATS, write_tables_to_stdout

COLORS = ("auto", "always", "never")


def make_color_option() -> click.Option:
    """Returns --color."""
    text = "Colors on standard output. Default: auto, on a terminal unless NO_COLOR is set."
    return _make_output_option(["--color"], "color", text, type=click.Choice(COLORS))


def make_quiet_option() -> click.Option:
    """Returns --quiet."""
    return _make_output_option(["-q", "--quiet"], "is_quiet", "Print results and errors only.", is_flag=True)


def _make_export_option() -> click.Option:
    text = "Write the tables in this format, with exact numbers in bytes and seconds."
    return _make_output_option(["--export"], "export_format", text, type=click.Choice(EXPORT_FORMATS))


def _make_output_option(
    option_names: Sequence[str], settings_member: str, help_text: str, **attributes: Any
) -> click.Option:
    """Returns an option that sets a member of the output settings when it is given."""

    def set_output_member(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(get_output_settings(), settings_member, value)

    return click.Option(option_names, expose_value=False, callback=set_output_member, help=help_text, **attributes)


def add_output_options(verb: click.Command) -> None:
    """Adds --color and --quiet to a verb and its subcommands, and --export where there is --json; names complete.

    Verbs that pass their arguments on to another tool are left alone: the option could be that tool's.
    """
    for command in _iterate_commands(verb):
        enable_name_completion(command)
        refuse_blank_values(command)
        options = {name for parameter in command.params for name in parameter.opts}
        if isinstance(command, click.Group) or command.context_settings.get("ignore_unknown_options"):
            continue
        if "--quiet" not in options:
            command.params.append(make_quiet_option())
        if "--color" not in options:
            command.params.append(make_color_option())
        if "--json" in options and "--export" not in options:
            command.params.append(_make_export_option())


def refuse_blank_values(command: click.Command) -> None:
    """Makes a command refuse options and arguments that are empty or blank, as of a variable that is not set; the
    arguments of another program are left alone. Paths are checked before click makes `.` of an empty one."""
    if command.context_settings.get("ignore_unknown_options"):
        return
    parse_checked_arguments = command.parse_args

    def parse_args(ctx: click.Context, args: list[str]) -> list[str]:
        values = {} if ctx.resilient_parsing else command.make_parser(ctx).parse_args(list(args))[0]
        for parameter in command.params:
            value = values.get(str(parameter.name))
            texts = value if isinstance(value, (list, tuple)) else [value]
            if any(isinstance(text, str) and not text.strip() for text in texts):
                raise click.UsageError(f"The value of {parameter.get_error_hint(ctx)} is blank; write one.", ctx)
        return parse_checked_arguments(ctx, args)

    command.parse_args = parse_args  # type: ignore[method-assign]


def _iterate_commands(verb: click.Command) -> Iterator[click.Command]:
    yield verb
    for command in verb.commands.values() if isinstance(verb, click.Group) else ():
        yield from _iterate_commands(command)


def write_requested_export() -> None:
    """Writes the tables of the finished verb, if --export asked for that."""
    settings = get_output_settings()
    if not settings.export_format:
        return
    if settings.tables:
        write_tables_to_stdout(settings.tables, settings.export_format)
    for text in () if settings.tables else settings.texts:
        get_messages_console().print(text, soft_wrap=True)


def read_defaults(verb_names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the options that configuration files set, as click's default_map, and applies the general ones.

    Raises UserError for a name that is neither a general setting nor a verb.
    """
    defaults: dict[str, Any] = {}
    for file in reversed(read_configuration_files()):  # the file that wins comes last
        for name, value in file.values.items():
            if name in GENERAL_SETTINGS:
                _apply_general_setting(file, name, value)
            elif name not in verb_names or not isinstance(value, Mapping):
                hint = suggest_close_name(name, (*GENERAL_SETTINGS, *verb_names))
                raise UserError(
                    f'{file.path}: "{name}" is no setting; there are {", ".join(GENERAL_SETTINGS)}, and a table for'
                    f" each verb, like [run].{hint}"
                )
            else:
                defaults[name] = _merge_defaults(defaults.get(name, {}), _convert_to_click_defaults(value))
    return defaults


def _merge_defaults(site_defaults: Mapping[str, Any], user_defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of both files, also in tables of subcommands; those of the user win."""
    merged = dict(site_defaults)
    for name, value in user_defaults.items():
        inner = merged.get(name)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            merged[name] = _merge_defaults(inner, value)
        else:
            merged[name] = value
    return merged


def _convert_to_click_defaults(configuration_table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table with names as click spells them; tables of subcommands are inner tables."""
    return {
        name.replace("-", "_"): _convert_to_click_defaults(value) if isinstance(value, Mapping) else value
        for name, value in configuration_table.items()
    }


def _apply_general_setting(configuration_file: ConfigurationFile, setting_name: str, setting_value: Any) -> None:
    if setting_name == "color":
        if setting_value not in COLORS:
            raise UserError(f"{configuration_file.path}: color must be one of {', '.join(COLORS)}.")
        get_output_settings().color = str(setting_value)
    elif setting_name == "quiet":
        if not isinstance(setting_value, bool):
            raise UserError(f"{configuration_file.path}: quiet must be true or false.")
        get_output_settings().is_quiet = setting_value


def check_verb_defaults(verb: click.Command, defaults: Mapping[str, Any], verb_path: str = "") -> None:
    """Raises UserError if a configuration file sets an option that the verb does not have.

    `defaults` is the verb's part of the default map, whose keys become names of parameters.
    """
    verb_path = verb_path or str(verb.name)
    options = {
        name.lstrip("-").replace("-", "_"): parameter.name
        for parameter in verb.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--")
    }
    for name, value in list(defaults.items()):
        if isinstance(verb, click.Group) and isinstance(value, Mapping) and name in verb.commands:
            check_verb_defaults(verb.commands[name], value, f"{verb_path} {name}")
        elif name not in options:
            table = verb_path.replace(" ", ".")
            raise UserError(
                f'{find_verb_setting([*verb_path.split(), name])} sets "{name}" in [{table}], and `sonde {verb_path}`'
                f" has no such option.{suggest_close_name(name, options)}"
            )
        elif options[name] != name and isinstance(defaults, dict):
            defaults[str(options[name])] = defaults.pop(name)
