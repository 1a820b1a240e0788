# SPDX-License-Identifier: Apache-2.0
"""Which output a saved text is, told by what it looks like, and what it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sonde.design.layout.live import listings, tools
from sonde.design.layout.live.seen import Seen, merged
from sonde.model.errors import UserError

Reader = Callable[[str, str], Seen]

# Name of the output -> what only it looks like, and its reader. The first that fits is taken.
FORMS: Mapping[str, tuple[str, Reader]] = {
    "lsblk --json --bytes --output-all": (r'^\s*\{\s*"blockdevices"', tools.read_lsblk),
    "multipathd show maps json": (r'"path_groups"|"maps"\s*:', tools.read_multipath),
    "lvs --segments --reportformat json": (r'^\s*\{\s*"report"', tools.read_lvs),
    "xfs_info, mkfs.xfs or xfs_growfs -n": (r"meta-data=", listings.read_xfs),
    "mdadm --detail": (r"^MD_LEVEL=|^\s*Raid Level :", tools.read_mdadm),
    "dumpe2fs -h": (r"^Filesystem magic number:|^Block count:", tools.read_dumpe2fs),
    "lfs getstripe": (r"lmm_stripe_count:|^stripe_count:", tools.read_getstripe),
    "zpool status": (r"^\s*pool: ", tools.read_zpool),
    "csmreport": (r"RAID-\d+/|^RS200 ", listings.read_csmreport),
    "xlv_mgr show -long": (r"^\s*VE \S+ \[", listings.read_xlv),
    "pm": (r"^pm\d\w*L\d+|^fc\w+\s+(pri|alt)", listings.read_pm),
    "parts": (r"^\s*part\s+\d+\s", listings.read_parts),
}


def read_output(text: str, origin: str) -> Seen:
    """What a saved output says. Raises UserError when it is none that is known."""
    for pattern, reader in FORMS.values():
        if re.search(pattern, text, re.MULTILINE):
            return reader(text, origin)
    raise UserError(f"{origin} is no output that is known; it may be of {', '.join(FORMS)}.")


def read_files(paths: Iterable[Path]) -> Seen:
    """Several files together. Raises UserError."""
    found = Seen()
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as reason:
            raise UserError(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
        except OSError as reason:
            raise UserError(f"{path} cannot be read: {reason.strerror}.") from None
        found = merged(found, read_output(text, str(path)))
    return found
