# SPDX-License-Identifier: Apache-2.0
"""How this Sonde was installed: by which tool, and where."""

from __future__ import annotations

import json
import os
from importlib import metadata
from pathlib import Path

from sonde.model.bundled_files import find_bundled_folder, find_source_tree

# What the tools of distributions write into INSTALLER.
_INSTALLER_PHRASES = {"pip": "pip", "uv": "uv", "conda": "conda", "rpm": "an RPM package", "debian": "a Debian package"}


def describe_installation() -> str:
    """Returns one line: the tool that installed Sonde, the folder, the container, and what is not part of it."""
    package = Path(__file__).resolve().parents[1]
    text = f"{_get_installer_name(package)}, in {package.parent}"
    container = os.environ.get("APPTAINER_CONTAINER") or os.environ.get("SINGULARITY_CONTAINER")
    if container:
        text += f", in the container {container}"
    if find_bundled_folder("bin") is None and find_source_tree() is None:
        text += "; the pure-Python package, without the engine"
    return text


def _get_installer_name(package_folder: Path) -> str:
    if find_source_tree() is not None:
        return "source tree"
    if any((parent / ".spack").is_dir() for parent in package_folder.parents):
        return "Spack"
    try:
        distribution = metadata.distribution("sonde")
    except metadata.PackageNotFoundError:
        return "copied by hand"
    if "dist-packages" in package_folder.parts and package_folder.is_relative_to("/usr/lib"):
        return "a Debian package"
    written = (distribution.read_text("INSTALLER") or "").strip()
    name = _INSTALLER_PHRASES.get(written, written or "an unknown tool")
    url = _read_install_source(distribution.read_text("direct_url.json"))
    return f"{name}, from {url}" if url else name


def _read_install_source(direct_url_json: str | None) -> str:
    """Returns the folder or file that pip installed from, "" if it was an index."""
    try:
        document = json.loads(direct_url_json) if direct_url_json else {}
    except ValueError:
        return ""
    url = document.get("url") if isinstance(document, dict) else None
    return str(url).removeprefix("file://") if isinstance(url, str) else ""
