# SPDX-License-Identifier: Apache-2.0
"""Files in directories that other users may write: the only module of the lab that creates, replaces or removes files.

An archive or an output directory may be shared, and root may run Sonde there. Another user may therefore have planted
symbolic links, named pipes or whole directories under names that we use. A `ConfinedDirectory` is a directory that is
held open. Each of its methods takes one plain name, resolves it relative to the descriptor of the directory, and never
follows a symbolic link. New files get random names and appear under their final name by a rename.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from sonde.model.documents import MAX_JSON_BYTES, parse_json

_DIRECTORY_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PARTIAL_FILE_SUFFIX = ".part"  # ends the name of a file that is still being written
_OTHERS_WRITE_BITS = stat.S_IWGRP | stat.S_IWOTH
# Directories with the names of devices and of open files; other users cannot add entries there.
_STREAM_FOLDERS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


def is_owned_by_user_or_root(file_status: os.stat_result) -> bool:
    """Whether the file or directory belongs to the caller or to root."""
    return file_status.st_uid in (os.geteuid(), 0)


def is_partial_file_name(file_name: str) -> bool:
    """Whether a file of that name was still being written when its writer died."""
    return file_name.startswith(".") and file_name.endswith(_PARTIAL_FILE_SUFFIX)


class ConfinedDirectory:
    """A directory that stays open until `close`, with access to the files directly in it. Methods raise OSError."""

    def __init__(self, descriptor: int, path: Path) -> None:
        """`path` only serves messages: it may lead somewhere else by now."""
        self.descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, directory: Path, create_if_absent: bool = False) -> ConfinedDirectory:
        """Opens a directory that the user named. Where its last component is a link, the link must belong to the caller
        or root. `create_if_absent`: makes it with its parents."""
        if create_if_absent:
            directory.mkdir(parents=True, exist_ok=True)
        try:
            return cls(os.open(directory, _DIRECTORY_OPEN_FLAGS | os.O_NOFOLLOW), directory)
        except OSError as reason:
            if reason.errno not in (errno.ELOOP, errno.ENOTDIR) or not stat.S_ISLNK(directory.lstat().st_mode):
                raise
            if not is_owned_by_user_or_root(directory.lstat()):
                raise OSError(errno.ELOOP, "it is a symbolic link of another user", str(directory)) from None
        return cls(os.open(directory, _DIRECTORY_OPEN_FLAGS), directory)

    @classmethod
    def open_beneath(cls, root_folder: Path, subdirectory: Path) -> ConfinedDirectory:
        """Opens `subdirectory`, a directory below `root_folder`, without following a link below `root_folder`. Raises
        ValueError when `subdirectory` does not lie below `root_folder`."""
        try:
            relative = subdirectory.absolute().relative_to(root_folder.absolute())
        except ValueError:
            relative = subdirectory.resolve().relative_to(root_folder.resolve())
        directory = cls.open(root_folder)
        for name in relative.parts:
            with directory:
                directory = directory.open_subdirectory(name)
        return directory

    def close(self) -> None:
        os.close(self.descriptor)

    def __enter__(self) -> ConfinedDirectory:
        return self

    def __exit__(self, error_type: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        self.close()

    def stat_directory(self) -> os.stat_result:
        """Owner, permissions and times of the directory itself."""
        return os.fstat(self.descriptor)

    def is_protected_from_others(self) -> bool:
        """Whether only the caller and root may add, rename and remove entries."""
        status = self.stat_directory()
        return is_owned_by_user_or_root(status) and not status.st_mode & _OTHERS_WRITE_BITS

    def can_others_rename_entries(self) -> bool:
        """Whether users other than its owner and root may rename and remove entries of the caller."""
        mode = self.stat_directory().st_mode
        return bool(mode & _OTHERS_WRITE_BITS) and not mode & stat.S_ISVTX

    def set_sticky_bit(self) -> None:
        """Makes a directory of the caller sticky where others may write, so that each keeps its entries."""
        if self.can_others_rename_entries() and self.stat_directory().st_uid == os.geteuid():
            os.fchmod(self.descriptor, stat.S_IMODE(self.stat_directory().st_mode) | stat.S_ISVTX)

    def list_names(self) -> list[str]:
        """Names in the directory, sorted."""
        return sorted(os.listdir(self.descriptor))

    def stat_entry(self, entry_name: str) -> os.stat_result:
        """Status of an entry; of a link the link itself."""
        return os.stat(_require_single_path_component(entry_name), dir_fd=self.descriptor, follow_symlinks=False)

    def has_entry(self, entry_name: str) -> bool:
        """Whether there is an entry of that name, of whatever kind."""
        try:
            self.stat_entry(entry_name)
        except FileNotFoundError:
            return False
        return True

    def has_file(self, entry_name: str, trusted_only: bool = False) -> bool:
        """Whether `entry_name` is a regular file; `trusted_only`: one of the caller or of root."""
        try:
            status = self.stat_entry(entry_name)
        except FileNotFoundError:
            return False
        return stat.S_ISREG(status.st_mode) and (is_owned_by_user_or_root(status) or not trusted_only)

    def open_subdirectory(self, directory_name: str, create_if_absent: bool = False) -> ConfinedDirectory:
        """Opens a directory in this one. `create_if_absent`: makes it when it is absent."""
        if create_if_absent:
            with suppress(FileExistsError):
                os.mkdir(_require_single_path_component(directory_name), dir_fd=self.descriptor)
        flags = _DIRECTORY_OPEN_FLAGS | os.O_NOFOLLOW
        return ConfinedDirectory(
            _open_without_links(_require_single_path_component(directory_name), flags, dir_fd=self.descriptor),
            self.path / directory_name,
        )

    def create_directory(self, directory_name: str) -> ConfinedDirectory:
        """Makes a directory that only its owner may write, whatever the umask, until `apply_umask_permissions` is
        called."""
        os.mkdir(_require_single_path_component(directory_name), 0o755, dir_fd=self.descriptor)
        directory = self.open_subdirectory(directory_name)
        owner = directory.stat_directory().st_uid
        if (owner != os.geteuid() and owner != self._find_owner_of_new_files()) or directory.list_names():
            directory.close()
            raise PermissionError(
                errno.EPERM, "another user replaced the new directory", str(self.path / directory_name)
            )
        return directory

    def _find_owner_of_new_files(self) -> int:
        """User id that the file system gives to files of the caller; a server may map root to another user."""
        name = f".{secrets.token_hex(8)}{_PARTIAL_FILE_SUFFIX}"
        with self.create_file(name) as file:
            self.remove_file(name)
            return os.fstat(file.fileno()).st_uid

    def remove_write_permission_of_others(self) -> None:
        """Takes from other users the permission to write, where the caller owns the directory."""
        status = self.stat_directory()
        if status.st_mode & _OTHERS_WRITE_BITS and status.st_uid == os.geteuid():
            os.fchmod(self.descriptor, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE_BITS)

    def apply_umask_permissions(self) -> None:
        """Gives the directory the permissions that the umask allows: it is complete."""
        mode = stat.S_IMODE(self.stat_directory().st_mode) | (_OTHERS_WRITE_BITS & ~_read_umask())
        if mode != stat.S_IMODE(self.stat_directory().st_mode):
            os.fchmod(self.descriptor, mode)

    def open_file(self, file_name: str, trusted_only: bool = False) -> BinaryIO:
        """Opens a regular file to read. `trusted_only`: refuses one that belongs neither to the caller nor to root."""
        file = _require_regular_file(
            _open_without_links(_require_single_path_component(file_name), _READ_FLAGS, dir_fd=self.descriptor),
            self.path / file_name,
        )
        return _require_trusted_owner(file, self.path / file_name, trusted_only)

    def read_json_file(self, file_name: str, trusted_only: bool = False) -> dict[str, Any] | None:
        """The object in a JSON file; None when there is none that can be read, or it has more than MAX_JSON_BYTES."""
        try:
            with self.open_file(file_name, trusted_only) as file:
                return _parse_json_object(file.read(MAX_JSON_BYTES + 1))
        except OSError:
            return None

    def create_file(self, file_name: str) -> BinaryIO:
        """Creates a file to write. Raises FileExistsError when anything has that name."""
        return os.fdopen(
            os.open(_require_single_path_component(file_name), _CREATE_FLAGS, 0o666, dir_fd=self.descriptor), "wb"
        )

    @contextmanager
    def open_atomic_replacement(self, file_name: str) -> Iterator[BinaryIO]:
        """A new file that takes the place of `file_name`, on storage and in one step, when the block ends without
        error."""
        part = f".{_require_single_path_component(file_name)[:80]}.{secrets.token_hex(8)}{_PARTIAL_FILE_SUFFIX}"
        file = self.create_file(part)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            self.rename_entry(part, self, file_name)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=self.descriptor)
            raise

    def write_bytes(self, file_name: str, content: bytes) -> None:
        """Replaces a file; its content and its name are on storage afterwards."""
        with self.open_atomic_replacement(file_name) as file:
            file.write(content)
        self.fsync_directory()

    def write_text(self, file_name: str, file_text: str) -> None:
        """The same with text."""
        self.write_bytes(file_name, file_text.encode())

    def write_json_file(self, file_name: str, document: Mapping[str, Any]) -> None:
        """The same with a JSON document that a person can read."""
        self.write_text(file_name, format_json_file(document))

    def rename_entry(self, entry_name: str, destination: ConfinedDirectory, new_name: str) -> None:
        """Moves an entry. A file or an empty directory that has the new name is replaced."""
        os.rename(
            _require_single_path_component(entry_name),
            _require_single_path_component(new_name),
            src_dir_fd=self.descriptor,
            dst_dir_fd=destination.descriptor,
        )

    def remove_file(self, file_name: str, missing_ok: bool = False) -> None:
        """Removes a file, or a link but not its target."""
        try:
            os.unlink(_require_single_path_component(file_name), dir_fd=self.descriptor)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_empty_directory(self, directory_name: str) -> None:
        """Removes a directory that holds nothing."""
        os.rmdir(_require_single_path_component(directory_name), dir_fd=self.descriptor)

    def remove_tree(self, directory_name: str, files_removed_last: Collection[str] = ()) -> None:
        """Removes a directory with its contents; files named in `files_removed_last` are removed after all others."""
        with self.open_subdirectory(directory_name) as directory:
            for entry in sorted(directory.list_names(), key=lambda entry: entry in files_removed_last):
                if stat.S_ISDIR(directory.stat_entry(entry).st_mode):
                    shutil.rmtree(entry, dir_fd=directory.descriptor)
                else:
                    directory.remove_file(entry, missing_ok=True)
        self.remove_empty_directory(directory_name)

    def fsync_directory(self) -> None:
        """Makes the names in the directory durable."""
        os.fsync(self.descriptor)

    def fsync_file(self, file_name: str) -> None:
        """Makes the data written to the file durable."""
        with self.open_file(file_name) as file:
            os.fsync(file.fileno())


@contextmanager
def open_atomic_replacement(output_file: Path, creates_directory: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes the place of `output_file`, an output that the user named. `creates_directory`: makes its
    directory when that is absent. A pipe, a character device or a standard stream is written to as it is. Raises
    OSError."""
    if _is_written_in_place(output_file):
        with os.fdopen(_open_in_place(output_file), "wb") as file:
            yield file
    else:
        with (
            ConfinedDirectory.open(output_file.parent, creates_directory) as directory,
            directory.open_atomic_replacement(output_file.name) as file,
        ):
            yield file


def _is_written_in_place(output_file: Path) -> bool:
    """Raises OSError for a pipe or device of another user, and for one behind a link of another user."""
    if output_file.parent in _STREAM_FOLDERS:
        return True
    try:
        entry, status = output_file.lstat(), output_file.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return False
    if not is_owned_by_user_or_root(entry) or not is_owned_by_user_or_root(status):
        raise OSError(errno.EINVAL, "it is not a regular file", str(output_file))
    return True


def _open_in_place(output_file: Path) -> int:
    """A descriptor. A regular file that is not one of the standard streams was created meanwhile and remains
    unchanged."""
    descriptor = os.open(output_file, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISREG(mode) and output_file.parent not in _STREAM_FOLDERS):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a pipe or a character device", str(output_file))
    if stat.S_ISREG(mode):
        os.ftruncate(descriptor, 0)
    return descriptor


def write_file(output_file: Path, file_text: str, creates_directory: bool = False) -> None:
    """Replaces a file that the user named by this text."""
    with open_atomic_replacement(output_file, creates_directory) as file:
        file.write(file_text.encode())


def write_json_file(output_file: Path, document: Mapping[str, Any]) -> None:
    """Replaces a file by a JSON document that a person can read."""
    write_file(output_file, format_json_file(document))


def create_file(new_file: Path) -> BinaryIO:
    """A new file that is read while it grows; what had its name is removed. Raises OSError."""
    with ConfinedDirectory.open(new_file.parent) as directory:
        directory.remove_file(new_file.name, missing_ok=True)
        return directory.create_file(new_file.name)


def open_file_to_append(appended_file: Path, trusted_only: bool = False) -> BinaryIO:
    """A file to add to, made when it is absent; a link, a file with several names, a pipe or a device is refused, and
    with `trusted_only` a file that belongs neither to the caller nor to root. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = _require_trusted_owner(
        _require_regular_file(_open_without_links(appended_file, flags), appended_file, "ab"),
        appended_file,
        trusted_only,
    )
    if os.fstat(file.fileno()).st_nlink > 1:
        file.close()
        raise OSError(errno.EMLINK, "it has another name elsewhere", str(appended_file))
    return file


def remove_file(file_path: Path) -> None:
    """Removes a file, or a link but not its target; nothing when it is absent. Raises OSError."""
    with suppress(FileNotFoundError), ConfinedDirectory.open(file_path.parent) as directory:
        directory.remove_file(file_path.name, missing_ok=True)


def remove_tree(removed_directory: Path) -> None:
    """Removes a directory and all that it holds, and follows no link in it. Raises OSError."""
    with ConfinedDirectory.open(removed_directory.parent) as directory:
        directory.remove_tree(removed_directory.name)


def open_file(file_path: Path, trusted_only: bool = False) -> BinaryIO:
    """Opens a regular file to read; a link, a named pipe or a device is refused, and with `trusted_only` a file that
    belongs neither to the caller nor to root. Raises OSError."""
    return _require_trusted_owner(
        _require_regular_file(_open_without_links(file_path, _READ_FLAGS), file_path), file_path, trusted_only
    )


def read_json_file(file_path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None when there is none that can be read, or it has more than MAX_JSON_BYTES."""
    try:
        with open_file(file_path) as file:
            return _parse_json_object(file.read(MAX_JSON_BYTES + 1))
    except OSError:
        return None


def format_json_file(document: Mapping[str, Any]) -> str:
    """The text of a JSON document as a file holds it."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _parse_json_object(json_bytes: bytes) -> dict[str, Any] | None:
    if len(json_bytes) > MAX_JSON_BYTES:
        return None
    try:
        document = parse_json(json_bytes.decode("utf-8", "replace"))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _open_without_links(file_name: str | Path, open_flags: int, dir_fd: int | None = None) -> int:
    """Opens a file without following links. For a symbolic link the error says so, not "too many levels"."""
    try:
        return os.open(file_name, open_flags, 0o666, dir_fd=dir_fd)
    except OSError as reason:
        if reason.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(file_name)) from None
        raise


def _require_regular_file(descriptor: int, file_path: Path, open_mode: str = "rb") -> BinaryIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(file_path))
    os.set_blocking(descriptor, True)
    return cast(BinaryIO, os.fdopen(descriptor, open_mode))


def _require_trusted_owner(file: BinaryIO, file_path: Path, trusted_only: bool) -> BinaryIO:
    if trusted_only and not is_owned_by_user_or_root(os.fstat(file.fileno())):
        file.close()
        raise PermissionError(errno.EPERM, "it belongs to another user", str(file_path))
    return file


def _require_single_path_component(entry_name: str) -> str:
    """The name, when it is one component of a path."""
    if not entry_name or entry_name in (".", "..") or "/" in entry_name or "\0" in entry_name:
        raise OSError(errno.EINVAL, "it is not the name of a file", entry_name)
    return entry_name


def _read_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
