# SPDX-License-Identifier: Apache-2.0
"""The variables of obdfilter-survey, from the environment or as name=value arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sonde.model.errors import UserError, suggest_close_name

TEST_NAMES = ("write", "rewrite", "read", "reread", "rewrite_again")
_NUMBER_DEFAULTS = {
    "size": 16384,
    "rszlo": 1024,
    "rszhi": 1024,
    "nobjlo": 1,
    "nobjhi": 16,
    "thrlo": 1,
    "thrhi": 16,
}
_TEXT_DEFAULTS = {"case": "disk", "targets": "", "tests_str": "write rewrite read", "rslt": "", "rslt_loc": ""}
_SWITCH_DEFAULTS = {"verify": False, "buffered": False}
VARIABLE_NAMES = (*_NUMBER_DEFAULTS, *_TEXT_DEFAULTS, *_SWITCH_DEFAULTS)


@dataclass(frozen=True)
class SurveyPoint:
    """One combination. `record` in KiB; objects and threads are of each target."""

    record: int
    objects: int
    threads: int


@dataclass(frozen=True)
class SurveySettings:
    """Settings of a survey. `size` in MiB of each target; `rslt` begins the name of the summary file, or is empty."""

    case: str
    targets: tuple[str, ...]
    size: int
    records: tuple[int, int]
    objects: tuple[int, int]
    threads: tuple[int, int]
    tests: tuple[str, ...]
    verify: bool = False
    buffered: bool = False
    rslt: str = ""

    def list_points(self) -> list[SurveyPoint]:
        """All combinations in the order of the original: everything doubles; threads are a multiple of objects."""
        return [
            SurveyPoint(record, objects, threads)
            for record in _list_doubling_values(*self.records)
            for objects in _list_doubling_values(*self.objects)
            for threads in _list_doubling_values(*self.threads)
            if threads % objects == 0
        ]

    def count_records_per_thread(self, point: SurveyPoint) -> int:
        """Returns how many records each thread transfers, so that all threads of a target transfer its size."""
        return self.size * 1024 // (point.record * point.threads)

    def compute_total_kib(self, point: SurveyPoint) -> int:
        """KiB of all targets together."""
        return point.record * self.count_records_per_thread(point) * point.threads * len(self.targets)


def _list_doubling_values(smallest_value: int, largest_value: int) -> list[int]:
    values = []
    while smallest_value <= largest_value:
        values.append(smallest_value)
        smallest_value *= 2
    return values


def parse_survey_settings(assignments: Sequence[str], environment: Mapping[str, str]) -> SurveySettings:
    """Returns the survey of the variables; arguments override the environment. Raises UserError."""
    values = {name: environment[name] for name in VARIABLE_NAMES if name in environment}
    for argument in assignments:
        name, equals, value = argument.partition("=")
        if not equals or name not in VARIABLE_NAMES:
            raise UserError(
                f'"{argument}" is not known; give name=value, like size=1024.{suggest_close_name(name, VARIABLE_NAMES)}'
            )
        values[name] = value
    numbers = {name: _parse_variable(name, values.get(name), default) for name, default in _NUMBER_DEFAULTS.items()}
    texts = {name: values.get(name, default) for name, default in _TEXT_DEFAULTS.items()}
    for low, high in (("rszlo", "rszhi"), ("nobjlo", "nobjhi"), ("thrlo", "thrhi")):
        if numbers[low] > numbers[high]:
            raise UserError(f"{low}={numbers[low]} is more than {high}={numbers[high]}.")
    tests = tuple(texts["tests_str"].split())
    unknown = [test for test in tests if test not in TEST_NAMES]
    if unknown:
        raise UserError(f"tests_str names {unknown[0]}; there are {', '.join(TEST_NAMES)}.")
    if not tests or tests[0] != "write":
        raise UserError("The first of tests_str must be write: it makes the data.")
    if texts["case"] not in ("disk", "netdisk"):
        raise UserError(
            f"case={texts['case']} is not built into Sonde: use disk (directories, or OSTs of this server) or netdisk"
            " (OSCs of this client)."
        )
    targets = tuple(texts["targets"].replace(",", " ").split())
    survey = SurveySettings(
        texts["case"],
        targets,
        numbers["size"],
        (numbers["rszlo"], numbers["rszhi"]),
        (numbers["nobjlo"], numbers["nobjhi"]),
        (numbers["thrlo"], numbers["thrhi"]),
        tests,
        values.get("verify", "0") not in ("", "0"),
        values.get("buffered", "0") not in ("", "0"),
        texts["rslt"] or (f"{texts['rslt_loc']}/obdfilter_survey" if texts["rslt_loc"] else ""),
    )
    small = [point for point in survey.list_points() if survey.count_records_per_thread(point) < 1]
    if small:
        raise UserError(
            f"size={survey.size} MiB is less than one record of {small[0].record} KiB for each of"
            f" {small[0].threads} threads; make it larger."
        )
    return survey


def _parse_variable(variable_name: str, value_text: str | None, default_value: int) -> int:
    if value_text is None:
        return default_value
    if not value_text.isdigit() or int(value_text) == 0:
        raise UserError(f"{variable_name}={value_text} must be a whole number above zero.")
    return int(value_text)
