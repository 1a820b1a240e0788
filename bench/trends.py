#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the trend detector is wrong and how soon it is right, on the noise of real histories.

The data are a folder of CSV files (columns time_utc, system, file_system, benchmark, files, operation, rate_GiBps),
named with --data or $SONDE_HISTORIES; without one only simulated years are tried. Prints tables; with --json one object
of named figures instead. With --check the exit code is 1 when a describe_alarm_budget is broken:

* false alarms per 100 runs at most 0.35 and a drop of 20 % found within ten runs nine times of ten, with probes of
  three repeats, on the file systems (burst buffers, rows without file_system, are shown beside them);
* 1,000 simulated years without change stay within the alarm budget of one a series and year.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from histories.documented import DOCUMENTED_ROWS, compute_allowed_error
from histories.read import read_histories
from histories.trials import DROPS, TrialOutcome, run_trials, study_noise
from sonde.stats.ranks import Floats
from sonde.trends.budget import (
    AlarmBudget,
    DetectorCalibration,
    calibrate_detector,
    compute_log_residuals,
    resample_noise,
)
from sonde.trends.changes import group_changes, measure_changes
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.watch import find_alarms_in_histories, find_alarms_in_rows

HISTORIES_VARIABLE = "SONDE_HISTORIES"
MAX_FALSE, MIN_FOUND = 0.35, 0.90
YEARS, RUNS_A_YEAR = 1000, 365
PROBE_REPEATS = 3


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(HISTORIES_VARIABLE),
        help=f"folder of CSV files (${HISTORIES_VARIABLE})",
    )
    parser.add_argument("--rows", type=int, default=24, help="trials a series and cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a describe_alarm_budget is broken")
    return parser.parse_args()


def print_unless_quiet(text: str, options: argparse.Namespace) -> None:
    """The tables go to standard output, unless that is for JSON."""
    print(text, file=sys.stderr if options.json else sys.stdout, flush=True)


def format_outcome_line(name: str, outcome: TrialOutcome) -> str:
    cells = "  ".join(f"{outcome.cells[drop].detected_share:4.2f}/{outcome.cells[drop].delay:<3.0f}" for drop in DROPS)
    return f"{name:44} {outcome.false_alarms:5.2f}   {cells}"


HEADING = f"{'':44} {'false':>5}   " + "  ".join(f"{-drop:<8.0%}" for drop in DROPS)


def compare_documented_rows(noises: Sequence[Floats], figures: dict[str, float], options: argparse.Namespace) -> None:
    """The published settings beside what a study found on other systems with them."""
    print_unless_quiet(
        f"\nPublished settings: false alarms per 100 runs, share found within ten runs / median runs\n{HEADING}",
        options,
    )
    inside = total = 0
    for row in DOCUMENTED_ROWS:
        outcome = run_trials(noises, [row.settings] * len(noises), options.rows, row.repeats, options.seed)
        title = f"{row.name}, {'single runs' if row.repeats == 1 else 'median of 3'}"
        print_unless_quiet(format_outcome_line(title, outcome), options)
        pairs = list(zip(row.detected_shares, (outcome.cells[drop].detected_share for drop in DROPS), strict=True))
        verdicts = [
            abs(ours - documented_value) <= 2 * compute_allowed_error(documented_value)
            for documented_value, ours in pairs
        ]
        inside, total = inside + sum(verdicts), total + len(verdicts)
        marks = "  ".join(
            f"{documented_value:4.2f} {'ok' if ok else '!!'} "
            for (documented_value, _), ok in zip(pairs, verdicts, strict=True)
        )
        print_unless_quiet(f"{'   documented':44} {row.false_alarms:5.2f}   {marks}", options)
        figures |= {f"{title} -{drop:.0%}": outcome.cells[drop].detected_share for drop in DROPS}
        figures[f"{title} false alarms"] = outcome.false_alarms
    print_unless_quiet(f"{inside} of {total} power cells agree within twice their error", options)
    figures["documented cells"], figures["documented cells that agree"] = total, inside


def describe_settings(calibration: DetectorCalibration) -> str:
    settings = calibration.settings
    return f"ARL0 {settings.arl0:.0f}, gate at {settings.collapse_deviations:.0f} standard deviations"


def measure_calibrated_settings(
    name: str, series: Sequence[History], figures: dict[str, float], options: argparse.Namespace
) -> TrialOutcome:
    """Calibrates settings on the probes of a site; tries them on its noise and on the half not used for calibration."""
    noises = [study_noise(history.values) for history in series]
    calibration = calibrate_detector(
        [_make_probe_values(compute_log_residuals(history.values), options.seed) for history in series], AlarmBudget()
    )
    outcome = run_trials(noises, [calibration.settings] * len(noises), options.rows, PROBE_REPEATS, options.seed + 1)
    print_unless_quiet(
        format_outcome_line(f"{name} ({len(noises)}): {describe_settings(calibration)}", outcome), options
    )
    first = [
        _make_probe_values(compute_log_residuals(history.values[: len(history) // 2]), options.seed)
        for history in series
    ]
    calibration = calibrate_detector(first, AlarmBudget())
    second = [study_noise(history.values[len(history) // 2 :]) for history in series]
    later = run_trials(second, [calibration.settings] * len(noises), options.rows, PROBE_REPEATS, options.seed + 2)
    print_unless_quiet(format_outcome_line("   learned on the first half, tried on the other", later), options)
    for title, result in ((name, outcome), (f"{name}, other half", later)):
        figures |= {f"{title} found -{drop:.0%}": result.cells[drop].detected_share for drop in DROPS}
        figures[f"{title} false alarms"] = result.false_alarms
    return outcome


def _make_probe_values(noise: Floats, seed: int) -> Floats:
    """A long history of probes of three repeats with this noise, to learn from."""
    random = np.random.default_rng(seed)
    median: Floats = np.median([resample_noise(noise, 1, 1500, random)[0] for _ in range(PROBE_REPEATS)], axis=0)
    return median


def count_false_alarms_in_simulated_years(
    name: str, noises: Sequence[Floats], figures: dict[str, float], options: argparse.Namespace
) -> float:
    """Alarms a series and year without change, with settings learned on single runs of the same noise."""
    calibration = calibrate_detector(noises, AlarmBudget())
    random = np.random.default_rng(options.seed + 3)
    rows = -(-YEARS // len(noises))
    years = np.concatenate([resample_noise(noise, rows, RUNS_A_YEAR, random) for noise in noises])[:YEARS]
    rate = len(find_alarms_in_rows(years, calibration.settings)) / YEARS
    print_unless_quiet(
        f"{name:44} {rate:5.2f} alarms a year of {RUNS_A_YEAR} runs  ({describe_settings(calibration)})", options
    )
    figures[f"{name} alarms a year"] = rate
    return rate


def run_on_real_histories(series: Sequence[History], options: argparse.Namespace) -> None:
    """The year itself, with its real changes: what would have been said, grouped."""
    settings = calibrate_detector([compute_log_residuals(history.values) for history in series], AlarmBudget()).settings
    changes = measure_changes(series, find_alarms_in_histories(series, settings))
    grouped = group_changes(series, changes)
    years = sum(len(history) for history in series) / RUNS_A_YEAR
    print_unless_quiet(
        f"\nThe histories as they were: {len(changes) / years:.1f} alarms a series and year,"
        f" {len(grouped)} joint changes",
        options,
    )
    for joint in sorted(grouped, key=lambda change: -len(change.changes))[:8]:
        print_unless_quiet(
            f"  {convert_run_time_to_utc(joint.begin_time):%Y-%m-%d}  {len(joint.changes)} series", options
        )
        for part in joint.parts:
            sizes = ", ".join(f"{change.size.value - 1:+.0%}" for change in part.changes)
            scopes = " and ".join(
                " ".join(scope.conditions.values()) or "everything" for scope in part.explanation.scopes
            )
            print_unless_quiet(
                f"    {sizes}: {scopes} ({part.explanation.cause}, {part.explanation.certainty})", options
            )


def main() -> int:
    options = parse_arguments()
    figures: dict[str, float] = {}
    broken: list[str] = []
    try:
        series = read_histories(options.data) if options.data else []
    except (OSError, ValueError) as reason:
        print(f"trends: {reason}", file=sys.stderr)
        return 2
    print_unless_quiet(f"Years without change ({YEARS} of them)", options)
    random = np.random.default_rng(options.seed)
    white = [random.normal(0, 0.1, 400) for _ in range(10)]
    rates = {
        "simulated normal noise": count_false_alarms_in_simulated_years(
            "simulated normal noise", white, figures, options
        )
    }
    if series:
        systems = [history for history in series if history.labels["file_system"]]
        buffers = [history for history in series if not history.labels["file_system"]] if systems else []
        systems = systems or series
        noises = [compute_log_residuals(history.values) for history in systems]
        rates["file systems"] = count_false_alarms_in_simulated_years(
            "noise of the file systems", noises, figures, options
        )
        compare_documented_rows([study_noise(history.values) for history in systems], figures, options)
        print_unless_quiet(
            f"\nSettings within a budget of one alarm a series and year, median of 3\n{HEADING}", options
        )
        outcome = measure_calibrated_settings("file systems", systems, figures, options)
        if buffers:
            measure_calibrated_settings("burst buffers", buffers, figures, options)
        run_on_real_histories(series, options)
        if outcome.false_alarms > MAX_FALSE:
            broken.append(f"{outcome.false_alarms:.2f} false alarms per 100 runs, more than {MAX_FALSE}")
        if outcome.cells[0.20].detected_share < MIN_FOUND:
            broken.append(f"{outcome.cells[0.20].detected_share:.2f} of the drops of 20 % found, less than {MIN_FOUND}")
    else:
        print_unless_quiet(
            f"No histories: name a folder with --data or ${HISTORIES_VARIABLE} to try real noise.", options
        )
    broken += [f"{name}: {rate:.2f} alarms a year, the budget is 1" for name, rate in rates.items() if rate > 1]
    for sentence in broken:
        print_unless_quiet(f"BROKEN: {sentence}", options)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 1 if broken and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
