# SPDX-License-Identifier: Apache-2.0
"""Reads and sets settings of this machine: files of the kernel, commands that print KEY=VALUE, options of mounts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError, format_as_sentence
from sonde.model.mounts import MountEntry, find_mount_of_path
from sonde.tune.description import Tunable

_COMMAND_TIMEOUT_S = 60
_ATIME_OPTIONS = ("noatime", "relatime", "strictatime")


class SettingError(Exception):
    """A value that the system does not accept, or a setting that it does not have. The text is part of a sentence."""


@dataclass(frozen=True)
class ResolvedSetting:
    """A tunable at one location: what reads it and what sets it. The journal stores it, so that a restore needs no
    file of tunables."""

    kind: str
    paths: tuple[str, ...] = ()  # file: the setting, then files that change with it
    read_command: tuple[str, ...] = ()
    write_command: tuple[str, ...] = ()
    option: str = ""  # remount, mount
    directory: str = ""  # remount, mount: the mount point
    mount_arguments: tuple[str, ...] = ()  # mount: type, options without this one, source

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, setting_document: Mapping[str, Any]) -> ResolvedSetting:
        """Raises TypeError for a document that is none."""
        members: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in setting_document.items()
        }
        return cls(**members)

    def read_state(self) -> dict[str, str]:
        """The present values by key. Raises SettingError."""
        if self.kind == "file":
            return {path: _read_kernel_file(path) for path in self.paths}
        if self.kind == "command":
            return _parse_values_by_key(_run_command(self.read_command), self.read_command)
        mount = _require_mount(Path(self.directory))
        if mount.location != self.directory:
            raise SettingError(f"nothing is mounted on {self.directory}")
        return {self.directory: _read_mount_option(mount, self.option)}

    def describe_state(self, values_by_key: Mapping[str, str]) -> str:
        """The value of the setting in a state; several where its keys differ."""
        keys = self.paths[:1] if self.kind == "file" else tuple(values_by_key)
        return ", ".join(dict.fromkeys(values_by_key[key] for key in keys))

    def write_value(self, value_text: str) -> None:
        """Sets the value for all keys and reads it back. Raises SettingError."""
        keys = self.paths[:1] if self.kind == "file" else tuple(self.read_state())
        for key in keys:
            self._write_key(key, value_text)
        self._require_state(dict.fromkeys(keys, value_text))

    def write_state(self, values_by_key: Mapping[str, str]) -> None:
        """Sets each key that differs, and reads all back. Raises SettingError."""
        try:
            current = self.read_state()
        except SettingError:
            current = {}  # for example after an interrupted unmount
        for key, value in values_by_key.items():
            if current.get(key) != value:
                self._write_key(key, value)
        self._require_state(values_by_key)

    def _require_state(self, values_by_key: Mapping[str, str]) -> None:
        current = self.read_state()
        for key, value in values_by_key.items():
            if current.get(key) != _normalize_value(value):
                raise SettingError(f"{key} was set to {value} and reads {current.get(key, 'nothing')}")

    def _write_key(self, setting_key: str, value_text: str) -> None:
        if self.kind == "file":
            try:
                Path(setting_key).write_text(value_text, encoding="ascii")
            except (OSError, UnicodeEncodeError) as reason:
                raise SettingError(f"{setting_key} does not accept {value_text}: {reason}") from None
        elif self.kind == "command":
            filled = [part.replace("{key}", setting_key).replace("{value}", value_text) for part in self.write_command]
            _run_command(filled)
        elif self.kind == "remount":
            _run_command(
                (
                    "mount",
                    "-o",
                    f"remount,{value_text if self.option == 'atime' else f'{self.option}={value_text}'}",
                    setting_key,
                )
            )
        else:
            kind, options, source = self.mount_arguments
            if Path(setting_key).is_mount():
                _run_command(("umount", setting_key))
            _run_command(
                (
                    "mount",
                    "-t",
                    kind,
                    "-o",
                    ",".join(filter(None, (options, f"{self.option}={value_text}"))),
                    source,
                    setting_key,
                )
            )


def resolve_setting(tunable: Tunable, directory: Path, device_override: str = "") -> ResolvedSetting:
    """The setting of the storage that `directory` is on. `device_override` replaces the block device that is found.

    Raises SettingError where this machine does not have it.
    """
    if tunable.kind == "command":
        return ResolvedSetting("command", read_command=tunable.read, write_command=tunable.write)
    if tunable.kind == "file":
        fields = _find_device_fields(tunable, directory, device_override)
        paths = [path.format(**fields) for path in (tunable.name, *tunable.related)]
        if not Path(paths[0]).exists():
            raise SettingError(f"there is no {paths[0]}")
        return ResolvedSetting("file", tuple(path for path in paths if Path(path).exists()))
    mount = _require_mount(directory)
    others = [option for option in mount.options if option.partition("=")[0] != tunable.name]
    has_option = any(option.startswith(f"{tunable.name}=") for option in mount.options)
    may_have_option = mount.kind.startswith("nfs") and tunable.name == "nconnect"
    if tunable.kind == "mount" and not has_option and not may_have_option:
        raise SettingError(f"{mount.location} ({mount.kind}) has no option {tunable.name}")
    arguments = (mount.kind, ",".join(others), mount.device) if tunable.kind == "mount" else ()
    return ResolvedSetting(tunable.kind, option=tunable.name, directory=mount.location, mount_arguments=arguments)


def require_setting_can_be_undone(setting: ResolvedSetting, values_by_key: Mapping[str, str]) -> None:
    """Writes the present values again. Raises MachineError when that fails: what cannot be undone is not changed."""
    try:
        for key in setting.paths[:1] if setting.kind == "file" else values_by_key:
            if setting.kind != "mount":  # mounting again only to test would interrupt others
                setting._write_key(key, values_by_key[key])
        setting._require_state(values_by_key)
    except SettingError as reason:
        hint = "" if os.geteuid() == 0 else " Settings of the machine need root."
        raise MachineError(
            f"{format_as_sentence(f'the setting could not be undone, so it is not tried: {reason}')}{hint}"
        ) from (None)


def _find_device_fields(tunable: Tunable, directory: Path, device_override: str) -> dict[str, str]:
    """The values of {device} and {number} in paths. Raises SettingError."""
    paths = " ".join((tunable.name, *tunable.related))
    fields: dict[str, str] = {}
    if "{number}" in paths:
        status = directory.stat()
        fields["number"] = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
        if device_override:
            fields["number"] = _read_kernel_file(f"/sys/block/{device_override}/dev")
    if "{device}" in paths:
        fields["device"] = device_override or _find_block_device(directory)
    return fields


def _find_block_device(directory: Path) -> str:
    """The whole disk under the file system of `directory`."""
    status = directory.stat()
    entry = Path(f"/sys/dev/block/{os.major(status.st_dev)}:{os.minor(status.st_dev)}")
    if not entry.exists():
        raise SettingError(f"the file system of {directory} is on no block device of this node; name it with --device")
    resolved = entry.resolve()
    return resolved.parent.name if (resolved / "partition").exists() else resolved.name


def _read_kernel_file(kernel_file: str) -> str:
    try:
        text = Path(kernel_file).read_text(encoding="ascii", errors="replace")
    except OSError as reason:
        raise SettingError(f"{kernel_file} cannot be read: {reason.strerror}") from None
    chosen = re.search(r"\[([^\]]+)\]", text)  # the chosen one of several: none [mq-deadline]
    return _normalize_value(chosen[1] if chosen else text)


def _normalize_value(value_text: str) -> str:
    return " ".join(value_text.split())


def _require_mount(directory: Path) -> MountEntry:
    """The mount that holds `directory`. Raises SettingError."""
    mount = find_mount_of_path(str(directory))
    if mount is None:
        raise SettingError(f"no mount holds {directory}")
    return mount


def _read_mount_option(mount_entry: MountEntry, option_name: str) -> str:
    if option_name == "atime":
        return next((name for name in _ATIME_OPTIONS if name in mount_entry.options), "strictatime")
    values = [text.partition("=")[2] for text in mount_entry.options if text.startswith(f"{option_name}=")]
    return values[-1] if values else "1"  # nconnect is absent at its default


def _parse_values_by_key(command_output: str, executed_command: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for line in command_output.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip():
            values[key.strip()] = _normalize_value(value)
    if not values:
        raise SettingError(f"`{' '.join(executed_command)}` printed no KEY=VALUE")
    return values


def _run_command(command: tuple[str, ...] | list[str]) -> str:
    """The output of a command, which Ctrl-C does not reach. Raises SettingError."""
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
            start_new_session=True,
            close_fds=False,  # the lock of the journal is inherited; Python opens all else close-on-exec
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        text = getattr(reason, "strerror", "") or f"no end within {_COMMAND_TIMEOUT_S} s"
        raise SettingError(f"`{' '.join(command)}`: {text}") from None
    if completed.returncode != 0:
        lines = [line.strip() for line in completed.stderr.splitlines() if line.strip()]
        reason_text = lines[-1] if lines else f"exit code {completed.returncode}"
        raise SettingError(f"`{' '.join(command)}`: {reason_text}")
    return completed.stdout
