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

from histories.documented import ROWS, error
from histories.read import histories
from histories.trials import DROPS, Outcome, attempt, study_noise
from sonde.stats.ranks import Floats
from sonde.trends.budget import AlarmBudget, Calibration, calibrate_detector, compute_log_residuals, resample_noise
from sonde.trends.changes import group_changes, measure_changes
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.watch import find_alarms_in_histories, find_alarms_in_rows

VARIABLE = "SONDE_HISTORIES"
MOST_FALSE, LEAST_FOUND = 0.35, 0.90
YEARS, RUNS_A_YEAR = 1000, 365
REPEATS = 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get(VARIABLE), help=f"folder of CSV files (${VARIABLE})"
    )
    parser.add_argument("--rows", type=int, default=24, help="trials a series and cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a describe_alarm_budget is broken")
    return parser.parse_args()


def say(text: str, options: argparse.Namespace) -> None:
    """The tables go to standard output, unless that is for JSON."""
    print(text, file=sys.stderr if options.json else sys.stdout, flush=True)


def line(name: str, outcome: Outcome) -> str:
    cells = "  ".join(f"{outcome.cells[drop].detected_share:4.2f}/{outcome.cells[drop].delay:<3.0f}" for drop in DROPS)
    return f"{name:44} {outcome.false_alarms:5.2f}   {cells}"


HEADING = f"{'':44} {'false':>5}   " + "  ".join(f"{-drop:<8.0%}" for drop in DROPS)


def documented(noises: Sequence[Floats], figures: dict[str, float], options: argparse.Namespace) -> None:
    """The published settings beside what a study found on other systems with them."""
    say(
        f"\nPublished settings: false alarms per 100 runs, share found within ten runs / median runs\n{HEADING}",
        options,
    )
    inside = total = 0
    for row in ROWS:
        outcome = attempt(noises, [row.settings] * len(noises), options.rows, row.repeats, options.seed)
        title = f"{row.name}, {'single runs' if row.repeats == 1 else 'median of 3'}"
        say(line(title, outcome), options)
        pairs = list(zip(row.detected_shares, (outcome.cells[drop].detected_share for drop in DROPS), strict=True))
        verdicts = [abs(ours - documented_value) <= 2 * error(documented_value) for documented_value, ours in pairs]
        inside, total = inside + sum(verdicts), total + len(verdicts)
        marks = "  ".join(
            f"{documented_value:4.2f} {'ok' if ok else '!!'} "
            for (documented_value, _), ok in zip(pairs, verdicts, strict=True)
        )
        say(f"{'   documented':44} {row.false_alarms:5.2f}   {marks}", options)
        figures |= {f"{title} -{drop:.0%}": outcome.cells[drop].detected_share for drop in DROPS}
        figures[f"{title} false alarms"] = outcome.false_alarms
    say(f"{inside} of {total} power cells agree within twice their error", options)
    figures["documented cells"], figures["documented cells that agree"] = total, inside


def settings_words(calibration: Calibration) -> str:
    settings = calibration.settings
    return f"ARL0 {settings.arl0:.0f}, gate at {settings.collapse_deviations:.0f} standard deviations"


def chosen(name: str, series: Sequence[History], figures: dict[str, float], options: argparse.Namespace) -> Outcome:
    """Calibrates settings on the probes of a site; tries them on its noise and on the half not used for calibration."""
    noises = [study_noise(history.values) for history in series]
    calibration = calibrate_detector(
        [_probe(compute_log_residuals(history.values), options.seed) for history in series], AlarmBudget()
    )
    outcome = attempt(noises, [calibration.settings] * len(noises), options.rows, REPEATS, options.seed + 1)
    say(line(f"{name} ({len(noises)}): {settings_words(calibration)}", outcome), options)
    first = [_probe(compute_log_residuals(history.values[: len(history) // 2]), options.seed) for history in series]
    calibration = calibrate_detector(first, AlarmBudget())
    second = [study_noise(history.values[len(history) // 2 :]) for history in series]
    later = attempt(second, [calibration.settings] * len(noises), options.rows, REPEATS, options.seed + 2)
    say(line("   learned on the first half, tried on the other", later), options)
    for title, result in ((name, outcome), (f"{name}, other half", later)):
        figures |= {f"{title} found -{drop:.0%}": result.cells[drop].detected_share for drop in DROPS}
        figures[f"{title} false alarms"] = result.false_alarms
    return outcome


def _probe(noise: Floats, seed: int) -> Floats:
    """A long history of probes of three repeats with this noise, to learn from."""
    random = np.random.default_rng(seed)
    median: Floats = np.median([resample_noise(noise, 1, 1500, random)[0] for _ in range(REPEATS)], axis=0)
    return median


def null_years(name: str, noises: Sequence[Floats], figures: dict[str, float], options: argparse.Namespace) -> float:
    """Alarms a series and year without change, with settings learned on single runs of the same noise."""
    calibration = calibrate_detector(noises, AlarmBudget())
    random = np.random.default_rng(options.seed + 3)
    rows = -(-YEARS // len(noises))
    years = np.concatenate([resample_noise(noise, rows, RUNS_A_YEAR, random) for noise in noises])[:YEARS]
    rate = len(find_alarms_in_rows(years, calibration.settings)) / YEARS
    say(f"{name:44} {rate:5.2f} alarms a year of {RUNS_A_YEAR} runs  ({settings_words(calibration)})", options)
    figures[f"{name} alarms a year"] = rate
    return rate


def as_it_was(series: Sequence[History], options: argparse.Namespace) -> None:
    """The year itself, with its real changes: what would have been said, grouped."""
    settings = calibrate_detector([compute_log_residuals(history.values) for history in series], AlarmBudget()).settings
    changes = measure_changes(series, find_alarms_in_histories(series, settings))
    grouped = group_changes(series, changes)
    years = sum(len(history) for history in series) / RUNS_A_YEAR
    say(
        f"\nThe histories as they were: {len(changes) / years:.1f} alarms a series and year,"
        f" {len(grouped)} joint changes",
        options,
    )
    for joint in sorted(grouped, key=lambda change: -len(change.changes))[:8]:
        say(f"  {convert_run_time_to_utc(joint.begin_time):%Y-%m-%d}  {len(joint.changes)} series", options)
        for part in joint.parts:
            sizes = ", ".join(f"{change.size.value - 1:+.0%}" for change in part.changes)
            scopes = " and ".join(
                " ".join(scope.conditions.values()) or "everything" for scope in part.explanation.scopes
            )
            say(f"    {sizes}: {scopes} ({part.explanation.cause}, {part.explanation.certainty})", options)


def main() -> int:
    options = arguments()
    figures: dict[str, float] = {}
    broken: list[str] = []
    try:
        series = histories(options.data) if options.data else []
    except (OSError, ValueError) as reason:
        print(f"trends: {reason}", file=sys.stderr)
        return 2
    say(f"Years without change ({YEARS} of them)", options)
    random = np.random.default_rng(options.seed)
    white = [random.normal(0, 0.1, 400) for _ in range(10)]
    rates = {"simulated normal noise": null_years("simulated normal noise", white, figures, options)}
    if series:
        systems = [history for history in series if history.labels["file_system"]]
        buffers = [history for history in series if not history.labels["file_system"]] if systems else []
        systems = systems or series
        noises = [compute_log_residuals(history.values) for history in systems]
        rates["file systems"] = null_years("noise of the file systems", noises, figures, options)
        documented([study_noise(history.values) for history in systems], figures, options)
        say(f"\nSettings within a budget of one alarm a series and year, median of 3\n{HEADING}", options)
        outcome = chosen("file systems", systems, figures, options)
        if buffers:
            chosen("burst buffers", buffers, figures, options)
        as_it_was(series, options)
        if outcome.false_alarms > MOST_FALSE:
            broken.append(f"{outcome.false_alarms:.2f} false alarms per 100 runs, more than {MOST_FALSE}")
        if outcome.cells[0.20].detected_share < LEAST_FOUND:
            broken.append(
                f"{outcome.cells[0.20].detected_share:.2f} of the drops of 20 % found, less than {LEAST_FOUND}"
            )
    else:
        say(f"No histories: name a folder with --data or ${VARIABLE} to try real noise.", options)
    broken += [f"{name}: {rate:.2f} alarms a year, the budget is 1" for name, rate in rates.items() if rate > 1]
    for sentence in broken:
        say(f"BROKEN: {sentence}", options)
    if options.json:
        print(json.dumps(figures, indent=2))
    return 1 if broken and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
