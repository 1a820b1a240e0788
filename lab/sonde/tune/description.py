# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of a file of tunables, and the reader of such files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.model.documents import parse_toml
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file
from sonde.model.file_trust import require_file_not_writable_by_others
from sonde.model.tables.members import declare_choice, declare_plain_number, declare_tables, declare_text, declare_texts
from sonde.model.tables.table_reader import ReadContext, read_table

TUNABLES_FORMAT = "sonde-tunables/1"
# Kinds whose values are set on the machine; the others change only the runs.
SYSTEM_TUNABLE_KINDS = ("file", "command", "remount", "mount")
TUNABLE_KINDS = (*SYSTEM_TUNABLE_KINDS, "plan", "environment")


@dataclass(frozen=True, kw_only=True)
class Tunable:
    """One setting: how to read, set and undo it, and which values are safe to try."""

    id: str = declare_text("name of the tunable, used once", required=True, pattern=r"[a-z0-9][a-z0-9-]*")
    title: str = declare_text("what the setting does", required=True)
    kind: str = declare_choice(
        "file: a file of the kernel below /proc or /sys; command: `read` prints it and `write` sets it; remount: an "
        "option of the mount that `mount -o remount` changes; mount: an option that needs unmounting; plan: a member "
        "of the plan; environment: a variable of the measuring program",
        TUNABLE_KINDS,
        required=True,
    )
    name: str = declare_text(
        "file: its path, with {device} (like sda) or {number} (like 8:0) of the target's storage; remount and mount: "
        "the option; plan: the path of the member; environment: the variable"
    )
    read: tuple[str, ...] = declare_texts("command: arguments of a command that prints lines of KEY=VALUE")
    write: tuple[str, ...] = declare_texts("command: arguments of a command that sets {key} to {value}; it also undoes")
    related: tuple[str, ...] = declare_texts(
        "file: further files that the kernel changes with this one; they are restored too"
    )
    privilege: str = declare_choice("who may set it", ("root", "user"), default_word="root")
    values: tuple[str, ...] = declare_texts("values to try")
    least: float | None = declare_plain_number(
        "number", "smallest safe value; without `least` and `most`: only `values`"
    )
    most: float | None = declare_plain_number("number", "largest safe value")
    model: str = declare_text(
        "parameter of simulated machines that this setting is: node.NAME (of the nodes that make calls) or "
        "file_system.NAME"
    )
    model_unit: str = declare_text("unit of the value there, like KiB; a multiple of bytes is written like 4096 B")
    permanent: str = declare_text("how to keep a value beyond the next boot")
    caution: str = declare_text("what a value can do besides changing rates, in one sentence, with its source")

    @property
    def changes_system(self) -> bool:
        """Whether a value is set on the machine and must be restored."""
        return self.kind in SYSTEM_TUNABLE_KINDS


@dataclass(frozen=True, kw_only=True)
class TunablesFile:
    """Settings that `sonde tune` can try."""

    schema: str = declare_choice("version of this format", (TUNABLES_FORMAT,), required=True)
    title: str = declare_text("what the settings are about", required=True)
    tunables: tuple[Tunable, ...] = declare_tables("the settings", Tunable, required=True)


@dataclass(frozen=True)
class TuneRequest:
    """A tunable with the values to try."""

    tunable: Tunable
    values: tuple[str, ...]


def read_tunables(extra_files: Sequence[Path] = ()) -> dict[str, Tunable]:
    """The shipped tunables and those of further files, by id. Raises UserError."""
    shipped = Path(str(resources.files("sonde.tune").joinpath("tunables.toml")))
    tunables: dict[str, Tunable] = {}
    for path in (shipped, *extra_files):
        if path != shipped:
            read_text_file(path, "file of tunables", MAX_CONFIGURATION_BYTES, UserError, requires_regular_file=True)
            require_file_not_writable_by_others(path, "file of tunables")
        text_read = read_text_file(path, "file of tunables", MAX_CONFIGURATION_BYTES, UserError)
        try:
            document = parse_toml(text_read)
        except ValueError as reason:
            raise UserError(f"{path} is not valid TOML: {reason}.") from None
        for tunable in read_table(TunablesFile, document, ReadContext(UserError, str(path))).tunables:
            if tunable.id in tunables:
                raise UserError(f'{path}: two tunables have the id "{tunable.id}"; give one of them another.')
            _check_tunable_definition(tunable, path)
            tunables[tunable.id] = tunable
    return tunables


def _check_tunable_definition(tunable: Tunable, tunables_file: Path) -> None:
    """Raises UserError if the definition lacks what is needed to set the value or to restore it."""
    if not tunable.values:
        raise UserError(f"{tunables_file}: {tunable.id} lacks values: what to try.")
    if tunable.kind == "command":
        if not tunable.read or not tunable.write:
            raise UserError(
                f"{tunables_file}: {tunable.id} lacks {'write' if tunable.read else 'read'}, so it has no undo."
            )
        if not any("{value}" in argument for argument in tunable.write):
            raise UserError(f"{tunables_file}: {tunable.id}: write has no {{value}}, so it sets nothing.")
    elif not tunable.name:
        raise UserError(f"{tunables_file}: {tunable.id} lacks name: what {tunable.kind} it is.")
    if tunable.kind == "file":
        for file in (tunable.name, *tunable.related):
            if not file.startswith(("/proc/", "/sys/")) or ".." in file.split("/"):
                raise UserError(f"{tunables_file}: {tunable.id}: {file} is not below /proc or /sys.")


def parse_request(text_written: str, tunables: dict[str, Tunable]) -> TuneRequest:
    """NAME or NAME=VALUE,VALUE,… of a command line. Raises UserError."""
    name, equals, values_text = text_written.partition("=")
    tunable = tunables.get(name)
    if tunable is None:
        hint = suggest_close_name(name, tunables) or " `sonde tune --list` lists them."
        raise UserError(f'There is no tunable "{name}".{hint}')
    values = tuple(dict.fromkeys(value.strip() for value in values_text.split(","))) if equals else tunable.values
    if not all(values):
        raise UserError(f'--try "{text_written}" holds an empty value; write it like --try {name}={tunable.values[0]}.')
    for value in values:
        _check_value_is_safe(tunable, value)
    return TuneRequest(tunable, values)


def _check_value_is_safe(tunable: Tunable, tried_value: str) -> None:
    """Raises UserError for a value outside of the safe range."""
    if tunable.least is None and tunable.most is None:
        if tunable.kind != "plan" and tried_value not in tunable.values:
            raise UserError(f"--try {tunable.id}: {tried_value} is not one of {', '.join(tunable.values)}.")
        return
    try:
        number = float(tried_value)
    except ValueError:
        raise UserError(f'--try {tunable.id}: "{tried_value}" is no number.') from None
    least = tunable.least if tunable.least is not None else float("-inf")
    most = tunable.most if tunable.most is not None else float("inf")
    if not least <= number <= most:
        raise UserError(f"--try {tunable.id}: {tried_value} is outside of the safe range, {least:g} to {most:g}.")
