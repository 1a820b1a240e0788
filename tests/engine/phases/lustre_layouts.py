# SPDX-License-Identifier: Apache-2.0
"""Layouts of files in the bytes that Lustre answers with (lustre_user.h), for an engine that is to pretend them."""

from __future__ import annotations

import struct

KIB64 = 65536
NO_END = (1 << 64) - 1
Parts = list[tuple[int, int, bytes]]


def pack_lov_layout(stripe_bytes: int, *osts: int, requested_stripes: int | None = None) -> bytes:
    """struct lov_user_md_v1 of lustre_user.h with its objects; without objects when `requested_stripes` is given."""
    head = struct.pack(
        "<IIQQIHH", 0x0BD10BD0, 1, 17, 0, stripe_bytes, len(osts) if requested_stripes is None else requested_stripes, 0
    )
    return head + b"".join(struct.pack("<QQII", 5, 0, 0, ost) for ost in osts)


def pack_composite_layout(parts: Parts) -> bytes:
    """struct lov_comp_md_v1: components (start, end, layout)."""
    blob_offset = 32 + 48 * len(parts)
    entries, blobs = b"", b""
    for number, (start, end, blob) in enumerate(parts, 1):
        entries += struct.pack("<IIQQII", number, 0x10, start, end, blob_offset + len(blobs), len(blob)) + bytes(16)
        blobs += blob
    head = struct.pack("<IIIHHH", 0x0BD60BD0, blob_offset + len(blobs), 1, 0, len(parts), 0)
    return head.ljust(32, b"\0") + entries + blobs
