# SPDX-License-Identifier: Apache-2.0
"""Where Lustre keeps its files, by version: /proc/fs/lustre, /sys/fs/lustre, /sys/kernel/debug/lustre."""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import ReopenedKernelFile, UnavailableSourceError

PARAMETER_ROOTS = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre")


def find_lustre_files(file_system_root: Path, path_patterns: tuple[str, ...]) -> dict[str, Path]:
    """The first file of every part: a target or a mount, by the name of its folder."""
    paths: dict[str, Path] = {}
    for base in PARAMETER_ROOTS:
        for pattern in path_patterns:
            for path in sorted((file_system_root / base).glob(pattern)):
                paths.setdefault(path.parent.name, path)
    return paths


def open_lustre_files(paths_by_part: dict[str, Path], remedy_sentence: str) -> dict[str, ReopenedKernelFile]:
    """The opened files by part. Raises UnavailableSourceError when none can be opened."""
    files: dict[str, ReopenedKernelFile] = {}
    problem = ""
    for part, path in paths_by_part.items():
        try:
            files[part] = ReopenedKernelFile(path)
        except OSError as error:
            problem = f"{path}: {error.strerror}"
    if not files:
        raise UnavailableSourceError(f"{problem}; {remedy_sentence}")
    return files
