# SPDX-License-Identifier: Apache-2.0
"""An experiment without a file: a plan, and on the command line how often, with which values, and what before."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.model.errors import UserError
from sonde.model.experiment.description import SCHEMA
from sonde.model.plan import Plan
from sonde.model.settings import read_setting

_RANGE = re.compile(r"([^.,*+]+)\.\.([^.,*+]+)([*+])([^.,*+]+)")


def document_of(plan: Plan) -> dict[str, Any]:
    """The experiment that runs a plan as it is."""
    whole = copy.deepcopy(dict(plan.document))
    name, title = whole.pop("id"), whole.pop("title", "")
    whole.pop("schema", None)
    return {"schema": SCHEMA, "id": name, **({"title": title} if title else {}), "plan": whole, "repeat": {"min": 1}}


def with_options(
    document: Mapping[str, Any],
    repeat: int | None = None,
    warmup: int | None = None,
    prepare: str | None = None,
    sweeps: Sequence[str] = (),
) -> dict[str, Any]:
    """The experiment with what the command line says besides. Raises UserError for a sweep that means nothing."""
    changed = copy.deepcopy(dict(document))
    changed["repeat"] = _repeated(changed.get("repeat", {}), repeat, warmup)
    # a number that somebody names is meant, whatever the profile says
    for name, members in changed.get("profiles", {}).items():
        changed["profiles"][name] = _profile(members, repeat, warmup)
    if prepare:
        treatment = {"kind": "command", "command": prepare, "when": "run", "need": "required"}
        changed["treatments"] = [*changed.get("treatments", []), treatment]
    if sweeps:
        changed["sweep"] = [*changed.get("sweep", []), *(read_sweep(one) for one in sweeps)]
    return changed


def _repeated(members: Mapping[str, Any], repeat: int | None, warmup: int | None) -> dict[str, Any]:
    """How often, with the numbers of the command line: so many repeats, no more and no fewer."""
    own = dict(members)
    if repeat is not None:
        own = {name: value for name, value in own.items() if name not in ("max", "interval")} | {"min": repeat}
    return own if warmup is None else own | {"warmup": warmup}


def _profile(members: Mapping[str, Any], repeat: int | None, warmup: int | None) -> dict[str, Any]:
    """A profile without what the command line says instead."""
    gone = [*(("min", "max", "interval") if repeat is not None else ()), *(("warmup",) if warmup is not None else ())]
    own = {path: value for path, value in members.items() if path not in [f"repeat.{name}" for name in gone]}
    if isinstance(own.get("repeat"), Mapping):
        own["repeat"] = _repeated(own["repeat"], repeat, warmup)
    return own


def read_sweep(text: str) -> dict[str, Any]:
    """``data.access.transfer=4KiB,64KiB`` or ``tasks.threads=1..32*2``; several paths together are joined by ``+``, and
    so are their values. Raises UserError."""
    left, equals, right = text.partition("=")
    paths = [one.strip() for one in left.split("+")]
    if not equals or not all(paths) or not right.strip():
        raise UserError(
            f'--sweep "{text}" is not PATH=VALUES; write it like --sweep data.access.transfer=4KiB,64KiB,1MiB or'
            " --sweep tasks.threads=1..32*2."
        )
    found = _RANGE.fullmatch(right.strip())
    if found:
        step = "factor" if found[3] == "*" else "step"
        values: Any = {"from": _value(found[1]), "to": _value(found[2]), step: _value(found[4])}
    else:
        values = [_several(one, len(paths), text) for one in right.split(",")]
    return {"paths": paths if len(paths) > 1 else paths[0], "values": values}


def _several(word: str, count: int, text: str) -> Any:
    if count == 1:
        return _value(word)
    together = [_value(one) for one in word.split("+")]
    if len(together) != count:
        raise UserError(
            f'--sweep "{text}" has {count} paths, so each of its values is {count} joined by "+"; "{word}" is not.'
        )
    return together


def _value(word: str) -> Any:
    return read_setting(f"value={word.strip()}")[1]
