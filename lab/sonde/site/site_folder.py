# SPDX-License-Identifier: Apache-2.0
"""The folder of a site: writes pages whose content changed, removes pages that no longer exist.

A manifest lists the pages with a key of their content. Only files of the manifest are ever replaced or removed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError, UserError
from sonde.model.version import __version__

MANIFEST_FILE = "sonde-site.json"
_MANIFEST_FORMAT = "sonde-site/1"
_PACKAGE_FOLDER = Path(__file__).resolve().parent.parent
# Folders of the package whose code determines a page.
_PAGE_CODE_FOLDERS = ("site", "charts", "trends", "report", "findings", "telemetry")


@functools.cache
def hash_page_code() -> str:
    """A digest of the code that makes pages."""
    digest = hashlib.sha256(__version__.encode())
    for folder in _PAGE_CODE_FOLDERS:
        for file in sorted((_PACKAGE_FOLDER / folder).rglob("*")):
            if file.suffix in (".py", ".j2", ".css"):
                with suppress(OSError):  # the version identifies sources that cannot be read
                    digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def hash_page_inputs(*parts: object) -> str:
    """The key of a page: a digest of the code and of the `repr` or bytes of everything that the page depends on."""
    digest = hashlib.sha256(hash_page_code().encode())
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode("utf-8", "backslashreplace")
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()[:32]


@dataclass
class SiteFolder:
    """A site that is being rebuilt. Pages are named with at most one folder: ``runs/2026-11.html``."""

    root: Path
    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    removed: list[str] = field(default_factory=list)
    _old: dict[str, str] = field(default_factory=dict)
    _new: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open_site(cls, site_root: Path) -> SiteFolder:
        """Opens an absent or empty folder, or a site. Raises UserError for a folder with other files."""
        try:
            with ConfinedDirectory.open(site_root, create_if_absent=True) as directory:
                manifest = directory.read_json_file(MANIFEST_FILE, trusted_only=True)
                if manifest is None and directory.list_names():
                    raise UserError(
                        f"{site_root} holds files that are no site of Sonde; name an empty or a new folder."
                    )
        except OSError as error:
            raise MachineError(f"The folder {site_root} cannot be written: {error.strerror}.") from None
        pages = manifest.get("pages") if manifest and manifest.get("schema") == _MANIFEST_FORMAT else {}
        old = {name: key for name, key in pages.items() if isinstance(key, str)} if isinstance(pages, dict) else {}
        return cls(site_root, _old=old)

    def write_page(self, page_path: str, content_key: str, render_html: Callable[[], str]) -> None:
        """Writes a page unless the site has it already with this key."""
        if self._old.get(page_path) == content_key and self._has_file(page_path):
            self.unchanged += 1
        else:
            self._write_file(page_path, render_html().encode())
            self.written.append(page_path)
        self._new[page_path] = content_key  # only now: an interrupted page must not count as written

    def remove_stale_pages(self) -> None:
        """Removes pages that were not named since `open_site`, and writes the manifest."""
        for name in sorted(set(self._old) - set(self._new)):
            folder, _, file = name.rpartition("/")
            with (
                suppress(OSError, ValueError),
                ConfinedDirectory.open_beneath(self.root, self.root / folder) as directory,
            ):
                directory.remove_file(file, missing_ok=True)
            self.removed.append(name)
        self._write_manifest(self._new)

    def save_progress(self) -> None:
        """Writes the manifest of an unfinished site, so that the next build continues there."""
        self._write_manifest({**self._old, **self._new})

    def _write_manifest(self, input_hash_by_page: dict[str, str]) -> None:
        try:
            with ConfinedDirectory.open(self.root) as directory:
                directory.write_json_file(MANIFEST_FILE, {"schema": _MANIFEST_FORMAT, "pages": input_hash_by_page})
        except OSError as error:
            raise self._make_write_error(error) from None

    def _has_file(self, file_name: str) -> bool:
        folder, _, file = file_name.rpartition("/")
        try:
            with ConfinedDirectory.open_beneath(self.root, self.root / folder) as directory:
                return directory.has_file(file)
        except (OSError, ValueError):
            return False

    def _write_file(self, file_name: str, content: bytes) -> None:
        folder, _, file = file_name.rpartition("/")
        try:
            with ConfinedDirectory.open(self.root) as root:
                if not folder:
                    with root.open_atomic_replacement(file) as stream:
                        stream.write(content)
                    return
                with (
                    root.open_subdirectory(folder, create_if_absent=True) as directory,
                    directory.open_atomic_replacement(file) as stream,
                ):
                    stream.write(content)
        except OSError as error:
            raise self._make_write_error(error) from None

    def _make_write_error(self, error: OSError) -> MachineError:
        return MachineError(f"The site in {self.root} cannot be written: {error.strerror}.")
