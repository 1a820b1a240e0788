# SPDX-License-Identifier: Apache-2.0
"""Whether a result file belongs to an ini file, and was left as it was written: IO500's --verify."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sonde.dialects.io500.hashes import hash_of_pairs
from sonde.dialects.io500.ini import Config
from sonde.dialects.io500.phases import ALL, Group
from sonde.model.errors import MachineError, UserError

_PAIR = re.compile(r"\s*([0-9a-zA-Z_.-]+)\s*=\s*([^#;]*?)\s*")
_UNHASHED = {phase.name for phase in ALL if phase.extra or phase.group is Group.NONE}


@dataclass(frozen=True)
class Verdict:
    """What was found. `text`: in the words of IO500. `whole`: settings and results are as they were; a run that is
    invalid by the rules is not."""

    text: str
    whole: bool


def verify(config: Config, path: Path) -> Verdict:
    """Compares the hashes in the result file `path` with what they should be. Raises UserError when it is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise UserError(f"There is no result file {path}.") from None
    except OSError as reason:
        raise MachineError(f"{path} cannot be read: {reason.strerror}.") from None
    pairs, config_hash, score_hash = _hashed(text)
    if not config_hash or not score_hash:
        raise UserError(f"{path} has no config-hash or no hash of a score: it is no result.txt of a finished run.")
    lines = [
        *(f"result file ver = {value}" for key, value in pairs if key == "version"),
        "[run]",
        f"config-hash     = {config_hash}",
        f"score-hash      = {score_hash}",
    ]
    good = True
    if config.hash != config_hash:
        good = False
        lines.append(f"ERROR: Configuration hash expected: {config.hash} read: {config_hash}")
    wanted = hash_of_pairs(pairs)
    if f"{wanted:X}" != score_hash:
        good = False
        marked = f"{wanted ^ hash_of_pairs([('valid', 'NO')]):X}"
        lines += [
            "",
            "[OK] But this is an invalid run!"
            if marked == score_hash
            else f'ERROR: Score hash expected: "{wanted:X}" read: "{score_hash}"',
        ]
    return Verdict("\n".join([*lines, *(["", "[OK]"] if good else [])]), good)


def _hashed(text: str) -> tuple[list[tuple[str, str]], str, str]:
    """The pairs that a score's hash is of, the hash of the settings and that of the score."""
    section, pairs, config_hash, score_hash = "", [], "", ""
    for line in text.splitlines():
        if found := re.fullmatch(r"\s*\[\s*([0-9a-zA-Z_-]+)\s*\]\s*", line):
            section = found[1]
        elif found := _PAIR.fullmatch(line):
            key, value = found[1], found[2]
            if key == "version":
                pairs.append((key, value))
            elif key == "config-hash":
                config_hash = value
            elif section == "SCORE":
                if key == "hash":
                    score_hash = value
                else:
                    pairs.append((key, value.split(" ")[0]))
            elif key == "score" and section not in _UNHASHED and section != "SCOREX":
                pairs.append((section, value))
    return pairs, config_hash, score_hash
