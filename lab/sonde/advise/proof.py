# SPDX-License-Identifier: Apache-2.0
"""Compares predicted gains with measured ones: the job's calls are replayed before and after an advised change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from sonde.advise.advice import JobAdvice
from sonde.advise.call_costs import CallCosts, compute_lower_quartile_costs, predict_saved_fraction
from sonde.advise.call_log import CallLog
from sonde.advise.replay_changes import ReplayChange
from sonde.terminal.screen import make_plain_table

PROOF_FORMAT = "sonde-proof/1"
# A prediction needs calibrations that agree: other programs or the write-back of earlier data make them differ.
MAX_SPREAD, NO_GAIN = 0.5, 0.05  # of the predicted gain; of the time in calls


@dataclass(frozen=True)
class GainShare:
    """Gain as a fraction of the time in I/O calls: 0.5 halves it, negative values are a loss."""

    value: float
    low: float | None
    high: float | None

    @property
    def is_precise(self) -> bool:
        """Whether the interval is narrow enough for a prediction, or is about no gain at all."""
        if self.low is None or self.high is None:
            return False
        is_no_gain = max(abs(self.low), abs(self.high)) < NO_GAIN
        return is_no_gain or self.high - self.low <= MAX_SPREAD * abs(self.value)

    def __str__(self) -> str:
        text = f"{100 * self.value:.0f} %"
        if self.low is None or self.high is None:
            return text
        return f"{text} [{100 * self.low:.0f}, {100 * self.high:.0f}]"


@dataclass(frozen=True)
class Proof:
    """One change. `before_s` and `after_s` are the medians of seconds in I/O calls, summed over tasks. `predicted` is
    from the costs of calls on the storage; `advised` is the gain of the advice, which `is_bound` is about."""

    change: str
    title: str
    predicted: GainShare | None
    advised: GainShare | None
    is_bound: bool
    proven: GainShare | None
    before_s: float
    after_s: float
    runs: int
    verdict: str


def predict_gain_share(advice: JobAdvice, change: ReplayChange) -> GainShare | None:
    """The predicted gain as a fraction of the job's I/O time; None where nothing is predicted."""
    seconds = advice.job.io_seconds
    if change.predicted is None or seconds <= 0:
        return None
    low, value, high = (
        min(1.0, gain / seconds) for gain in (change.predicted.low, change.predicted.value, change.predicted.high)
    )
    return GainShare(value, low, high)


def predict_gain_from_costs(
    calibrations: Sequence[CallCosts], original_log: CallLog, change: ReplayChange
) -> GainShare | None:
    """The predicted gain, and its range over single calibrations; None where the calls do not change."""
    if not calibrations or change.stripes is not None:
        return None
    value = predict_saved_fraction(compute_lower_quartile_costs(calibrations), original_log, change.after)
    single = [predict_saved_fraction(costs, original_log, change.after) for costs in calibrations]
    return GainShare(value, min(value, *single), max(value, *single))


def convert_ratio_to_gain_share(rate_ratio: float, low_ratio: float | None, high_ratio: float | None) -> GainShare:
    """The gain of a change from the ratio of rates after and before it: twice as fast saves half of the time."""
    return GainShare(
        1 - 1 / rate_ratio, 1 - 1 / low_ratio if low_ratio else None, 1 - 1 / high_ratio if high_ratio else None
    )


def build_proof_document(
    advice: JobAdvice, storage_name: str, run_group: str, proofs: Sequence[Proof]
) -> dict[str, Any]:
    """The proofs of one job as JSON."""
    return {
        "schema": PROOF_FORMAT,
        "log": advice.job.source,
        "program": advice.job.program,
        "storage": storage_name,
        "group": run_group,
        "io_seconds": advice.job.io_seconds,
        "proofs": [
            {**asdict(proof), "is_predicted": proof.predicted is not None and proof.predicted.is_precise}
            for proof in proofs
        ],
    }


def print_proofs(console: Console, advice: JobAdvice, storage_name: str, proofs: Sequence[Proof]) -> None:
    """Prints a row for each change."""
    console.print(f"{advice.job.source}, replayed on {storage_name}; gains in percent of the time in I/O calls.",
                  soft_wrap=True)  # fmt: skip
    if not proofs:
        console.print("None of the advised changes changes the calls of this log, so there is nothing to prove.")
        return
    table = make_plain_table()
    for title in ("change", "advised", "predicted", "proven", "runs", ""):
        table.add_column(title, justify="right" if title == "runs" else "left")
    for proof in proofs:
        advised = str(proof.advised or "-")
        if proof.is_bound and proof.advised is not None and proof.advised.high is not None:
            advised = f"at most {100 * proof.advised.high:.0f} %"
        predicted = proof.predicted
        text = str(predicted or "-") if predicted is None or predicted.is_precise else "not predicted"
        table.add_row(proof.change, advised, text, str(proof.proven or "-"), str(proof.runs), proof.verdict)
    console.print(table)
    for proof in proofs:
        if proof.predicted is not None and not proof.predicted.is_precise:
            console.print(
                f"{proof.change}: the calibrations differ too much for a prediction ({proof.predicted}); repeat it when"
                " the storage and this machine are quiet.",
                soft_wrap=True,
            )
    for proof in proofs:
        console.print(f"{proof.change}: {proof.title}.", style="dim", soft_wrap=True)
