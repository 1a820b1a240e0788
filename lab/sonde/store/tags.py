# SPDX-License-Identifier: Apache-2.0
"""Words that people give to runs: ``tags.json`` in the folder of the run.

A change of tags also changes the month it happens in: the new file is created there and renamed into the run, so that
an index detects it by the time stamp of the month.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sonde.model.confined_files import format_json_file, read_json_file
from sonde.model.errors import MachineError, UserError
from sonde.store.shards import open_shard_of_run

TAGS_FILE = "tags.json"
_TAG_PATTERN = re.compile(r"[^\W_][\w.+:@/=-]{0,63}")


def check_tag(tag: str) -> str:
    """The tag, or a sentence about why it is none."""
    if not _TAG_PATTERN.fullmatch(tag):
        raise UserError(
            f'"{tag}" cannot be a tag; a tag begins with a letter or digit and goes on with up to 63 of these'
            " and . _ + : @ / = -"
        )
    return tag


def read_tags(run_folder: Path) -> list[str]:
    """The tags of a run; none when the file is absent or is not ours."""
    return _read_tags(read_json_file(run_folder / TAGS_FILE))


def change_tags(run_folder: Path, added_tags: Iterable[str] = (), removed_tags: Iterable[str] = ()) -> list[str]:
    """Adds and takes away tags. Returns those the run has then. Two who change one run at once: the last wins."""
    part = f".tags-{secrets.token_hex(6)}.part"
    try:
        with open_shard_of_run(run_folder) as month, month.open_subdirectory(run_folder.name) as run:
            before = _read_tags(run.read_json_file(TAGS_FILE))
            after = sorted((set(before) - set(removed_tags)) | {check_tag(tag) for tag in added_tags})
            if after == before:
                return after
            try:
                with month.create_file(part) as file:
                    file.write(format_json_file({"tags": after}).encode())
                    file.flush()
                    os.fsync(file.fileno())
                month.rename_entry(part, run, TAGS_FILE)
            except BaseException:
                with suppress(OSError):
                    month.remove_file(part, missing_ok=True)
                raise
            run.fsync_directory()
    except OSError as reason:
        raise MachineError(f"The tags of {run_folder} cannot be written: {reason.strerror}.") from None
    return after


def _read_tags(run_document: Mapping[str, Any] | None) -> list[str]:
    tags = run_document.get("tags") if run_document else None
    return sorted({tag for tag in tags if isinstance(tag, str)}) if isinstance(tags, list) else []
