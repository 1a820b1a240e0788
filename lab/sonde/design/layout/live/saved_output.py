# SPDX-License-Identifier: Apache-2.0
"""Identifies saved output of tools by its content and parses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sonde.design.layout.live import cray_x1_output, linux_tool_output
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.model.errors import UserError
from sonde.model.file_text import MAX_OUTPUT_BYTES, read_limited_text

Reader = Callable[[str, str], ObservedStorage]

# Name of the output -> pattern that identifies it, and its parser. The first match counts.
FORMS: Mapping[str, tuple[str, Reader]] = {
    "lsblk --json --bytes --output-all": (r'^[ \t]*\{\s*"blockdevices"', linux_tool_output.read_lsblk),
    "multipathd show maps json": (r'"path_groups"|"maps"\s*:', linux_tool_output.read_multipath),
    "lvs --segments --reportformat json": (r'^[ \t]*\{\s*"report"', linux_tool_output.read_lvs),
    "xfs_info, mkfs.xfs or xfs_growfs -n": (r"meta-data=", cray_x1_output.read_xfs_info),
    "mdadm --detail": (r"^MD_LEVEL=|^[ \t]*Raid Level :", linux_tool_output.read_mdadm),
    "dumpe2fs -h": (r"^Filesystem magic number:|^Block count:", linux_tool_output.read_dumpe2fs),
    "lfs getstripe": (r"lmm_stripe_count:|^stripe_count:", linux_tool_output.read_getstripe),
    "zpool status": (r"^[ \t]*pool: ", linux_tool_output.read_zpool),
    "csmreport": (r"RAID-\d+/|^RS200 ", cray_x1_output.read_csmreport),
    "xlv_mgr show -long": (r"^[ \t]*VE \S+ \[", cray_x1_output.read_xlv),
    "pm": (r"^pm\d\w*L\d+|^fc\w+\s+(pri|alt)", cray_x1_output.read_pm),
    "parts": (r"^[ \t]*part\s+\d+\s", cray_x1_output.read_parts),
}


def read_output(text: str, origin: str) -> ObservedStorage:
    """The observations in saved output. Raises UserError for unknown or damaged output."""
    for name, (pattern, reader) in FORMS.items():
        if re.search(pattern, text, re.MULTILINE):
            try:
                return reader(text, origin)
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as reason:
                raise UserError(
                    f"{origin} looks like output of {name}, but holds a value that cannot be read"
                    f" ({type(reason).__name__}: {reason}); save that output as it is."
                ) from None
    raise UserError(f"{origin} is no output that is known; it may be of {', '.join(FORMS)}.")


def read_files(paths: Iterable[Path]) -> ObservedStorage:
    """The observations in several files. Raises UserError."""
    storage = ObservedStorage()
    for path in paths:
        try:
            text = read_limited_text(path, MAX_OUTPUT_BYTES)
        except UnicodeDecodeError as reason:
            raise UserError(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
        except OSError as reason:
            raise UserError(f"{path} cannot be read: {reason.strerror}.") from None
        storage = merge_observations(storage, read_output(text, str(path)))
    return storage
