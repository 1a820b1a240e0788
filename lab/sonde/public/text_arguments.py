# SPDX-License-Identifier: Apache-2.0
"""Arguments of public functions that are one text or several."""

from __future__ import annotations

from collections.abc import Sequence

Texts = str | Sequence[str]


def list_texts(texts: Texts) -> tuple[str, ...]:
    """Returns the texts. A single text counts as one, not as a sequence of its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)
