# SPDX-License-Identifier: Apache-2.0
"""Names of targets: paths of directories, or URLs of buckets (s3://bucket/prefix)."""

from __future__ import annotations

from pathlib import Path

_BUCKET_SCHEME = "s3://"


def is_bucket(target: str) -> bool:
    """True when the target is a bucket of an object store, not a directory."""
    return target.startswith(_BUCKET_SCHEME)


def make_absolute(target: str) -> str:
    """Returns a name that is valid from any working directory."""
    return target if is_bucket(target) else str(Path(target).absolute())
