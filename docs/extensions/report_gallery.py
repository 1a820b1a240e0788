# SPDX-License-Identifier: Apache-2.0
"""Writes the reports of the gallery when the site is built, from the records in ``docs/start/gallery``."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

RECORDS = Path(__file__).resolve().parents[1] / "start" / "gallery"


def write_reports(records: Path, folder: Path) -> list[Path]:
    """Writes the report of each packed record of a folder into another one."""
    from sonde.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for record in sorted(records.glob("*.ndjson.gz")):
        name = record.name.removesuffix(".ndjson.gz")
        with tempfile.TemporaryDirectory() as run:
            (Path(run) / "record.ndjson").write_bytes(gzip.decompress(record.read_bytes()))
            pages.append(write_report([Path(run)], folder / f"{name}.html", None))
    return pages


def _write_gallery(app: Sphinx) -> None:
    if app.builder.format == "html":
        write_reports(RECORDS, Path(app.outdir) / "start" / "gallery")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the extension."""
    app.connect("builder-inited", _write_gallery)
    return {"parallel_read_safe": True}
