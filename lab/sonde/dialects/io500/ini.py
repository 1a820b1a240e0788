# SPDX-License-Identifier: Apache-2.0
"""The ini file of IO500: what it says, what is wrong with it, and how its settings are listed."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sonde.dialects.io500.hashes import hash_unordered_pairs
from sonde.dialects.io500.keys import SECTIONS, IniKey, IniSection, KeyKind
from sonde.model.errors import MachineError, UserError, suggest_close_name
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_limited_text

_SECTION_LINE_PATTERN = re.compile(r"\s*\[\s*([0-9a-zA-Z_-]+)\s*\]\s*(\s[#;].*)?")
_KEY_AND_VALUE_PATTERN = re.compile(r"\s*([0-9a-zA-Z_.-]+)\s*=\s*([^#;]*)\s*(\s[#;].*)?")
_BLANK_OR_COMMENT_PATTERN = re.compile(r"\s*([#;].*)?")
_VALUE_PATTERNS = {
    KeyKind.TEXT: re.compile(r".*", re.DOTALL),
    KeyKind.INTEGER: re.compile(r"-?[0-9]{1,10}"),
    KeyKind.COUNT: re.compile(r"[0-9]{1,19}"),
    KeyKind.FLAG: re.compile(r"true|false|1|0", re.IGNORECASE),
    KeyKind.NUMBER: re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?"),
}


@dataclass(frozen=True)
class Io500Config:
    """Values by section and key, as IO500 keeps them: text, with TRUE and FALSE for flags; None where there is none."""

    values: Mapping[tuple[str, str], str | None]
    source: str = ""  # the file as it was read

    def get_text(self, section_name: str, key_name: str) -> str | None:
        """The value; None when none was given and there is no default."""
        return self.values[section_name, key_name]

    def get_required_text(self, section_name: str, key_name: str) -> str:
        """The value of a key that has a default."""
        return self.values[section_name, key_name] or ""

    def get_flag(self, section_name: str, key_name: str) -> bool | None:
        """The value of a flag."""
        value = self.values[section_name, key_name]
        return None if value is None else value == "TRUE"

    def get_number(self, section_name: str, key_name: str) -> int | None:
        """The value of an integer."""
        value = self.values[section_name, key_name]
        return None if value is None else int(value)

    def replace_values(self, changed_values: Mapping[tuple[str, str], str]) -> Io500Config:
        """Returns a copy with changed values."""
        return Io500Config({**self.values, **changed_values}, self.source)

    @property
    def settings_hash(self) -> str:
        """Hash of all settings, as IO500 prints it: files with equal settings have equal hashes."""
        pairs = [
            (key.name, value)
            for (section, key) in _list_all_keys()
            if (value := self.values[section.name, key.name]) is not None
        ]
        return f"{hash_unordered_pairs(pairs):X}"


def _list_all_keys() -> list[tuple[IniSection, IniKey]]:
    return [(section, key) for section in SECTIONS for key in section.keys]


DEFAULT_CONFIG = Io500Config({(section.name, key.name): key.default for section, key in _list_all_keys()})


def read_ini_file(ini_file: Path) -> Io500Config:
    """The settings in a file. Raises UserError: which line is wrong, and how."""
    try:
        if ini_file.is_dir():
            raise UserError(f"{ini_file} is a directory, not an ini file of IO500.")
        text = read_limited_text(ini_file, MAX_CONFIGURATION_BYTES)
    except FileNotFoundError:
        raise UserError(f"There is no ini file {ini_file}; `sonde io500 --list` prints one with all keys.") from None
    except UnicodeDecodeError as reason:
        raise UserError(f"{ini_file} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        if reason.errno == errno.EFBIG:
            raise UserError(f"{ini_file} is larger than 1 MiB; that is no ini file of IO500.") from None
        raise MachineError(f"{ini_file} cannot be read: {reason.strerror}.") from None
    return parse_ini(text, str(ini_file))


def parse_ini(ini_text: str, file_name: str) -> Io500Config:
    """The settings in the text of a file called `file_name`."""
    values = dict(DEFAULT_CONFIG.values)
    section: IniSection | None = None
    for number, line in enumerate(ini_text.split("\n"), 1):
        location = f"{file_name}, line {number}"
        if match := _SECTION_LINE_PATTERN.fullmatch(line):
            section = _find_section(match[1], location)
        elif match := _KEY_AND_VALUE_PATTERN.fullmatch(line):
            _store_value(values, section, match[1], match[2].strip(" \t\r"), location)
        elif not _BLANK_OR_COMMENT_PATTERN.fullmatch(line):
            raise UserError(
                f'{location}: "{line.strip()[:60]}" is neither [section] nor key = value; a comment behind a value'
                f" begins"
                " with a blank and #, and values hold no # or ;."
            )
    _check_values_together(values, file_name)
    return Io500Config(values, ini_text)


def _find_section(section_name: str, location: str) -> IniSection:
    for section in SECTIONS:
        if section.name.lower() == section_name.lower():
            return section
    near = suggest_close_name(section_name, [section.name for section in SECTIONS])
    raise UserError(f"{location}: IO500 has no section [{section_name}].{near}")


def _store_value(
    value_by_section_and_key: dict[tuple[str, str], str | None],
    section: IniSection | None,
    key_name: str,
    value_text: str,
    location: str,
) -> None:
    if value_text == "":
        return  # as if the line were not there
    if section is None:
        raise UserError(f"{location}: {key_name} stands before the first [section].")
    key = next((key for key in section.keys if key.name.lower() == key_name.lower()), None)
    if key is None:
        elsewhere = next(
            (alternative.name for alternative, key in _list_all_keys() if key.name.lower() == key_name.lower()), None
        )
        near = suggest_close_name(key_name, [key.name for key in section.keys])
        hint = near or (f" It belongs to [{elsewhere}]." if elsewhere else "")
        raise UserError(f'{location}: [{section.name}] has no key "{key_name}".{hint}')
    if not _VALUE_PATTERNS[key.kind].fullmatch(value_text):
        raise UserError(f'{location}: [{section.name}] {key.name} is "{value_text}", but must be {key.kind.value}.')
    value_by_section_and_key[section.name, key.name] = (
        ("TRUE" if value_text.lower() in ("true", "1") else "FALSE") if key.kind is KeyKind.FLAG else value_text
    )


def _check_values_together(value_by_section_and_key: Mapping[tuple[str, str], str | None], file_name: str) -> None:
    """Checks rules between values of several keys. Raises UserError."""
    is_missing = [value_by_section_and_key["mdworkbench", key] is None for key in ("precreatePerSet", "filesPerProc")]
    if is_missing[0] != is_missing[1]:
        raise UserError(f"{file_name}: [mdworkbench] needs both precreatePerSet and filesPerProc, or neither.")
    for section in ("find", "find-easy", "find-hard"):
        if int(value_by_section_and_key[section, "pfind-queue-length"] or 0) < 10:
            raise UserError(f"{file_name}: [{section}] pfind-queue-length must be at least 10.")
        if value_by_section_and_key[section, "nproc"] == "0":
            raise UserError(f"{file_name}: [{section}] nproc is 0, but at least one task must search.")
    for section, key in (("debug", "stonewall-time"), ("ior-hard", "segmentCount")):
        if int(value_by_section_and_key[section, key] or 0) < 1:
            raise UserError(f"{file_name}: [{section}] {key} must be at least 1.")
    for section in ("mdtest-easy", "mdtest-hard"):
        if int(value_by_section_and_key[section, "n"] or 0) < 1:
            raise UserError(f"{file_name}: [{section}] n must be at least 1.")


def format_settings_as_ini(config: Io500Config, with_descriptions: bool, with_extended: bool = True) -> str:
    """The settings as an ini file; `with_descriptions`: with what each key means; without `with_extended`: no sections
    of extended mode."""
    lines: list[str] = []
    for section in SECTIONS:
        if section.extra and not with_extended:
            continue
        lines.append(f"[{section.name}]")
        for key in section.keys:
            lines += [f"# {key.about}"] if with_descriptions else []
            lines.append(f"{key.name} = {config.values[section.name, key.name] or ''}")
        lines.append("")
    return "\n".join(lines) + "\n"
