# SPDX-License-Identifier: Apache-2.0
"""A page reaches its file in one step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(out: Path, html: str) -> None:
    """Writes `html` to `out`; who reads it meanwhile sees the older file, whole. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(html)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, out)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
