# SPDX-License-Identifier: Apache-2.0
"""Names of targets: paths of directories or block devices, or URLs of buckets (s3://bucket/prefix)."""

from __future__ import annotations

from pathlib import Path

_BUCKET_SCHEME = "s3://"


def is_object_store_target(target_name: str) -> bool:
    """True when the target is a bucket of an object store, not a directory."""
    return target_name.startswith(_BUCKET_SCHEME)


def is_block_device(target_name: str) -> bool:
    """True when the target is a block device of this machine."""
    try:
        return bool(target_name) and Path(target_name).is_block_device()
    except (OSError, ValueError):
        return False


def make_target_absolute(target_name: str) -> str:
    """Returns a name that is valid from any working directory."""
    return target_name if is_object_store_target(target_name) else str(Path(target_name).absolute())
