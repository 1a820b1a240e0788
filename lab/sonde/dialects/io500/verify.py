# SPDX-License-Identifier: Apache-2.0
"""Verifies that a result file belongs to an ini file and is unchanged (IO500's --verify)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sonde.dialects.io500.hashes import hash_unordered_pairs
from sonde.dialects.io500.ini import Io500Config
from sonde.dialects.io500.phases import ALL_PHASES, ScoreGroup
from sonde.model.errors import MachineError, UserError
from sonde.model.file_text import MAX_OUTPUT_BYTES, read_limited_text

_KEY_AND_VALUE_PATTERN = re.compile(r"\s*([0-9a-zA-Z_.-]+)\s*=\s*([^#;]*?)\s*")
_UNHASHED_PHASES = {phase.name for phase in ALL_PHASES if phase.extra or phase.group is ScoreGroup.NONE}


@dataclass(frozen=True)
class VerifyResult:
    """Result of a verification. `text`: the message of IO500. `is_intact`: settings and results are as they were; a run
    that is invalid by the rules is not."""

    text: str
    is_intact: bool


def verify_result_hashes(config: Io500Config, result_file: Path) -> VerifyResult:
    """Compares the hashes in the result file `result_file` with what they should be. Raises UserError when it is
    none."""
    try:
        text = read_limited_text(result_file, MAX_OUTPUT_BYTES, decode_errors="replace")
    except FileNotFoundError:
        raise UserError(f"There is no result file {result_file}.") from None
    except OSError as reason:
        raise MachineError(f"{result_file} cannot be read: {reason.strerror}.") from None
    pairs, config_hash, score_hash = _read_hashed_pairs(text)
    if not config_hash or not score_hash:
        raise UserError(
            f"{result_file} has no config-hash or no hash of a score: it is no result.txt of a finished run."
        )
    lines = [
        *(f"result file ver = {value}" for key, value in pairs if key == "version"),
        "[run]",
        f"config-hash     = {config_hash}",
        f"score-hash      = {score_hash}",
    ]
    is_intact = True
    if config.settings_hash != config_hash:
        is_intact = False
        lines.append(f"ERROR: Configuration hash expected: {config.settings_hash} read: {config_hash}")
    expected_hash = hash_unordered_pairs(pairs)
    if f"{expected_hash:X}" != score_hash:
        is_intact = False
        invalid_hash = f"{expected_hash ^ hash_unordered_pairs([('valid', 'NO')]):X}"
        lines += [
            "",
            "[OK] But this is an invalid run!"
            if invalid_hash == score_hash
            else f'ERROR: Score hash expected: "{expected_hash:X}" read: "{score_hash}"',
        ]
    return VerifyResult("\n".join([*lines, *(["", "[OK]"] if is_intact else [])]), is_intact)


def _read_hashed_pairs(result_text: str) -> tuple[list[tuple[str, str]], str, str]:
    """Returns the hashed pairs, the hash of the settings and the hash of the score."""
    section, pairs, config_hash, score_hash = "", [], "", ""
    for line in result_text.splitlines():
        if match := re.fullmatch(r"\s*\[\s*([0-9a-zA-Z_-]+)\s*\]\s*", line):
            section = match[1]
        elif match := _KEY_AND_VALUE_PATTERN.fullmatch(line):
            key, value = match[1], match[2]
            if key == "version":
                pairs.append((key, value))
            elif key == "config-hash":
                config_hash = value
            elif section == "SCORE":
                if key == "hash":
                    score_hash = value
                else:
                    pairs.append((key, value.split(" ")[0]))
            elif key == "score" and section not in _UNHASHED_PHASES and section != "SCOREX":
                pairs.append((section, value))
    return pairs, config_hash, score_hash
