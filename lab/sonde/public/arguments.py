# SPDX-License-Identifier: Apache-2.0
"""Arguments of public functions: one text or several, and the checks that option types do for the command."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.model.errors import UserError

Texts = str | Sequence[str]


def list_texts(texts: Texts) -> tuple[str, ...]:
    """Returns the texts. A single text counts as one, not as a sequence of its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raises UserError unless the value is one of the choices."""
    if value not in choices:
        raise UserError(f'There is no {name} "{value}"; use {", ".join(choices[:-1])} or {choices[-1]}.')


def require_range(name: str, value: float, low: float, high: float) -> None:
    """Raises UserError unless the value is in the closed range; NaN never is."""
    if not low <= value <= high:
        raise UserError(f"{name} is {value}; it must be from {low} to {high}.")
