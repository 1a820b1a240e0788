# SPDX-License-Identifier: Apache-2.0
"""The hashes with which IO500 marks settings and results, so that a later change is noticed. 32 bits; no secret."""

from __future__ import annotations

from collections.abc import Iterable

_UINT32_MASK = 0xFFFFFFFF
_FALLBACK_SEED = 4711  # where the hash would mean "no seed" to IOR


def hash_texts(*texts: str) -> int:
    """Rotated by two bits to the left, and the next byte added (signed, as char is), for each byte of all texts."""
    value = 0
    for text in texts:
        for byte in text.encode():
            rotated = ((value << 2) | (value >> 30)) & _UINT32_MASK
            value = (rotated + (byte - 256 if byte > 127 else byte)) & _UINT32_MASK
    return value


def hash_unordered_pairs(keys_and_values: Iterable[tuple[str, str]]) -> int:
    """Hash of keys and values that does not depend on their order."""
    value = 0
    for key, text in keys_and_values:
        value ^= hash_texts(key, text)
    return value


def compute_part_seed(part_name: str, start_timestamp: str) -> int:
    """The seed (-G) of a part of the benchmark in a run: a signed number of 32 bits, never 0 or -1."""
    value = hash_texts(part_name, start_timestamp)
    if value in (0, _UINT32_MASK):
        return _FALLBACK_SEED
    return value - (1 << 32) if value >> 31 else value
