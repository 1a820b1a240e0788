# SPDX-License-Identifier: Apache-2.0
"""Words that people give to runs: ``tags.json`` in the folder of the run.

A change of tags also changes the month it happens in: the new file is made there and renamed into the run, so whoever
keeps an index sees it by the time stamp of the month.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from sonde.model.errors import MachineError, UserError
from sonde.store import durable

NAME = "tags.json"
_WORD = re.compile(r"[^\W_][\w.+:@/=-]{0,63}")


def check_tag(text: str) -> str:
    """The tag, or a sentence about why it is none."""
    if not _WORD.fullmatch(text):
        raise UserError(
            f'"{text}" cannot be a tag; a tag begins with a letter or digit and goes on with up to 63 of these'
            " and . _ + : @ / = -"
        )
    return text


def read_tags(folder: Path) -> list[str]:
    """The tags of a run; none when the file is absent or is not ours."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    tags = found.get("tags") if isinstance(found, dict) else None
    return sorted({one for one in tags if isinstance(one, str)}) if isinstance(tags, list) else []


def change_tags(folder: Path, add: Iterable[str] = (), remove: Iterable[str] = ()) -> list[str]:
    """Adds and takes away tags. Returns those the run has then. Two who change one run at once: the last wins."""
    before = read_tags(folder)
    after = sorted((set(before) - set(remove)) | {check_tag(one) for one in add})
    if after == before:
        return after
    beside = folder.parent / f".tags-{secrets.token_hex(6)}"
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"tags": after}, indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / NAME)
        durable.sync_folder(folder)
    except OSError as reason:
        beside.unlink(missing_ok=True)
        raise MachineError(f"The tags of {folder} cannot be written: {reason.strerror}.") from None
    return after
