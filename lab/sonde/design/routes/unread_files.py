# SPDX-License-Identifier: Apache-2.0
"""Configuration files that users have and that no check reads: they get a sentence of their kind instead of one about
a route that cannot be read."""

from __future__ import annotations

import re

# The first pattern that fits tells the kind.
_KINDS = (
    (re.compile(r"^(?:nameserver|search|domain|options|sortlist)\s+\S", re.MULTILINE), re.compile(r"resolv"),
     "a configuration of the DNS resolver"),
    (re.compile(r"^\[(?:main|keyfile|device|logging|global-dns|ifupdown|connection-\S+)\S*\]", re.MULTILINE), None,
     "a configuration of NetworkManager itself, not a profile"),
    (re.compile(r"\b(?:SUBSYSTEM|ACTION|KERNEL)\s*==\s*\""), None, "a rule of udev that names no interface"),
)  # fmt: skip


def describe_unread_kind(file_text: str, file_name: str) -> str:
    """The kind of a file that no check reads; "" for others."""
    base_name = file_name.rpartition("/")[2]
    return next(
        (
            kind
            for form, name_form, kind in _KINDS
            if form.search(file_text) and (name_form is None or name_form.search(base_name))
        ),
        "",
    )
