# SPDX-License-Identifier: Apache-2.0
"""Proves advised changes: the job's calls are replayed before and after each change, in interleaved runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.advise.advice import JobAdvice
from sonde.advise.call_costs import CallCosts, make_calibration_phases, read_call_costs
from sonde.advise.call_log import CallLog
from sonde.advise.call_sources import read_call_log
from sonde.advise.proof import (
    GainShare,
    Proof,
    build_proof_document,
    convert_ratio_to_gain_share,
    predict_gain_from_costs,
    predict_gain_share,
    print_proofs,
)
from sonde.advise.replay_changes import ReplayChange, list_replay_changes
from sonde.advise.replay_plan import (
    Replay,
    ReplayRequest,
    build_replay,
    make_calibration_plan,
    read_replayed_io_seconds,
)
from sonde.cli.replay_runs import ReplayRunner, open_replay_runner
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.store.archive import Archive, make_run_id
from sonde.terminal.screen import get_messages_console, get_results_console, print_json
from sonde.tune.search import SearchResult, SearchRule, compare_candidate_with_present_value, estimate_min_and_max_runs

PROOF_FILE = "proof.json"
# A model repeats a calibration exactly.
_CALIBRATIONS, _CALIBRATIONS_OF_MODEL = 5, 1


@dataclass(frozen=True)
class ProofRequest:
    """Where to replay, and how often at most."""

    directory: str | None
    system: str | None
    mount: str
    below: str
    blocks: int
    is_cold: bool
    as_json: bool


def prove_advice(advice: JobAdvice, log_file: Path, proof_request: ProofRequest, archive: Archive) -> int:
    """Proves the advised changes that a replay can express, prints them and stores them with the last run."""
    with ExitStack() as stack:
        runner = open_replay_runner(
            stack, proof_request.directory, proof_request.system, proof_request.mount, archive, proof_request.as_json
        )
        with get_messages_console().status(f"reading {log_file}", spinner="dots"):
            calls = read_call_log(log_file, proof_request.below)
            changes = list_replay_changes(advice, calls, has_stripes=proof_request.system is not None)
        group = make_run_id("prove")
        rule = SearchRule(max_blocks=proof_request.blocks)
        runner.expected = _CALIBRATIONS + len(changes) * estimate_min_and_max_runs(1, rule)[1]
        prover = _AdviceProver(runner, calls, proof_request.is_cold, group)
        if changes:
            prover.measure_call_costs()
        proofs = [prover.prove_change(advice, change, rule) for change in changes]
        storage = proof_request.system or runner.target
        document = build_proof_document(advice, storage, group, proofs)
        if prover.last_run is not None:
            write_file(prover.last_run / PROOF_FILE, json.dumps(document, indent=1) + "\n")
    if proof_request.as_json:
        print_json(document)
    else:
        print_proofs(get_results_console(), advice, storage, proofs)
    return EXIT_OK


@dataclass
class _AdviceProver:
    """Replays of one job. The calls follow one another without pauses."""

    runner: ReplayRunner
    calls: CallLog
    is_cold: bool
    group: str
    last_run: Path | None = None
    costs: list[CallCosts] = field(default_factory=list)

    def measure_call_costs(self) -> None:
        """Measures what calls cost on the storage with as many tasks as the job has."""
        phases = make_calibration_phases(self.calls)
        plan = make_calibration_plan(phases, self.runner.folder, ReplayRequest(self.runner.target, False, self.is_cold))
        facts = {"role": "prove", "group": self.group, "replay": {"log": self.calls.source, "change": "", "side": ""}}
        for _ in range(_CALIBRATIONS if self.runner.launcher is None else _CALIBRATIONS_OF_MODEL):
            self.costs.append(read_call_costs(self.runner.run_replay(plan, "prove-costs", facts).record, phases))

    def prove_change(self, advice: JobAdvice, change: ReplayChange, search_rule: SearchRule) -> Proof:
        """Replays before and after one change until the interval of the gain is narrow enough."""
        before = self._make_replay(self.calls, None, f"{change.name}-before")
        after = self._make_replay(change.after, change.stripes, f"{change.name}-after")

        def measure_variant(advised_value: str | None) -> float:
            return self._measure_replay(
                after if advised_value else before, change.name, "after" if advised_value else "before"
            )

        result = compare_candidate_with_present_value(change.name, measure_variant, search_rule, seed=1)
        return _make_proof(advice, change, predict_gain_from_costs(self.costs, self.calls, change), result)

    def _make_replay(self, call_log: CallLog, stripe_count: int | None, replay_name: str) -> Replay:
        request = ReplayRequest(self.runner.target, False, self.is_cold, stripe_count)
        return build_replay(call_log, self.runner.folder, request, replay_name)

    def _measure_replay(self, replay: Replay, change_name: str, side_name: str) -> float:
        facts: Mapping[str, Any] = {
            "role": "prove",
            "group": self.group,
            "replay": {"log": self.calls.source, "change": change_name, "side": side_name},
        }
        run = self.runner.run_replay(replay.plan, f"prove-{change_name}", facts)
        self.last_run = run.folder
        seconds = read_replayed_io_seconds(run.record)
        if seconds <= 0:
            raise UserError(f"The replay of {self.calls.source} took no time, so no gain can be proven with it.")
        return 1 / seconds


def _make_proof(
    advice: JobAdvice, change: ReplayChange, predicted_gain: GainShare | None, search_result: SearchResult
) -> Proof:
    ratio = search_result.ratio
    return Proof(
        change.name,
        change.title,
        predicted_gain,
        predict_gain_share(advice, change),
        change.predicted is not None and change.predicted.is_bound,
        convert_ratio_to_gain_share(ratio.value, ratio.low, ratio.high) if ratio is not None else None,
        statistics.median(1 / rate for rate in search_result.present),
        statistics.median(1 / rate for rate in search_result.changed),
        len(search_result.present) + len(search_result.changed),
        search_result.verdict,
    )
