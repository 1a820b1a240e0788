# SPDX-License-Identifier: Apache-2.0
"""A survey of Lustre's own objects: its echo client, driven through `lctl` on the server (or, case=netdisk, a client).

The sequence is that of obdfilter-survey: an echo client is attached to each target, objects are created, `test_brw`
runs on all targets at once, objects are destroyed, and what was attached is detached. It was written against the tool's
source and is tested on answers of the form that its parser expects; no live OSS was at hand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sonde.dialects.survey.plans import SurveyResult
from sonde.dialects.survey.variables import SurveyPoint, SurveySettings
from sonde.model.errors import MachineError, RunFailedError, UserError

PAGE_KIB = 4
# Runs `lctl` with these arguments and this standard input; several at once, their outputs in the same order.
LctlRunner = Callable[[Sequence[Sequence[str]], str], list[str]]

_DEVICE_LINE_PATTERN = re.compile(r"^\s*(\d+)\s+(\S+)\s+(\S+)\s+(\S+)", re.M)
_OBJECT_ID_PATTERN = re.compile(r"is object id (0x[0-9a-fA-F]+|\d+)")
# What one target says in the end: all threads of it together.
_TOTAL_RATE_LINE_PATTERN = re.compile(r"^Total: total \d+ threads \d+ sec [\d.]+ (\d+\.\d+)/second$", re.M)
_SNAPSHOT_RATE_LINE_PATTERN = re.compile(r"^\d+/\d+ Total: (\d+\.\d+)/second$", re.M)


@dataclass(frozen=True)
class LustreDevice:
    """A line of `lctl dl`."""

    number: int
    state: str
    kind: str
    name: str


class EchoSurvey:
    """Drives the echo clients of one survey."""

    def __init__(
        self, survey_settings: SurveySettings, lctl: LctlRunner, read_clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._survey, self._lctl, self._clock = survey_settings, lctl, read_clock_s
        self._below = "osc" if survey_settings.case == "netdisk" else "obdfilter"

    def list_devices(self) -> list[LustreDevice]:
        """Lustre devices that are set up on this machine."""
        (text,) = self._lctl([["dl"]], "")
        return [
            LustreDevice(int(number), state, kind, name)
            for number, state, kind, name in _DEVICE_LINE_PATTERN.findall(text)
        ]

    def list_targets(self) -> list[str]:
        """The targets that were named, or all that are up. Raises UserError when one is not there."""
        devices = [name.name for name in self.list_devices() if name.kind == self._below and name.state == "UP"]
        missing = [name for name in self._survey.targets if name not in devices]
        if missing:
            available = f"; there are {', '.join(devices)}" if devices else ""
            raise UserError(
                f"{missing[0]} is neither a directory nor an {self._below} of this machine that is UP{available}."
            )
        if not devices:
            raise MachineError(f"`lctl dl` shows no {self._below} that is UP: run this on an OSS, or name directories.")
        return list(self._survey.targets) or devices

    @contextmanager
    def open_echo_clients(self, target_names: Sequence[str]) -> Iterator[list[int]]:
        """Yields the device number of an echo client for each target. Clients that did not exist before are removed
        afterwards."""
        attached: list[str] = []
        try:
            for target in target_names:
                if self._find_echo_client_device(target) is None:
                    name = f"{target}_ecc"
                    self._lctl([[]], f"attach echo_client {name} {name}_UUID\nsetup {target}\n")
                    attached.append(name)
            numbers = [self._find_echo_client_device(target) for target in target_names]
            if None in numbers:
                raise MachineError(
                    f"An echo client cannot be set up on {target_names[numbers.index(None)]}; is obdecho loaded?"
                )
            yield [number for number in numbers if number is not None]
        finally:
            for name in attached:
                self._lctl([[]], f"--device {name} cleanup\n--device {name} detach\n")

    def _find_echo_client_device(self, target_name: str) -> int | None:
        wanted = f"{target_name}_ecc"
        return next(
            (client.number for client in self.list_devices() if (client.kind, client.name) == ("echo_client", wanted)),
            None,
        )

    def run_tests(self, point: SurveyPoint, client_devices: Sequence[int]) -> list[SurveyResult]:
        """All tests of one combination. Objects are destroyed however it ends."""
        objects: list[tuple[int, int]] = []
        try:
            for client in client_devices:
                first_object = self._create_objects(client, point.objects)
                objects.append(
                    (client, first_object)
                )  # one by one: what is made so far is destroyed if the next one fails
            return [self._run_test(name, point, objects) for name in self._survey.tests]
        finally:
            for client, first_object in objects:
                self._lctl([["--device", str(client), "destroy", str(first_object), str(point.objects)]], "")

    def _create_objects(self, client_device: int, object_count: int) -> int:
        (text,) = self._lctl([["--device", str(client_device), "create", str(object_count)]], "")
        numbers = [int(number, 0) for number in _OBJECT_ID_PATTERN.findall(text)]
        if len(numbers) != object_count or numbers != list(range(numbers[0], numbers[0] + object_count)):
            raise RunFailedError(
                f"Device {client_device} did not create {object_count} objects in a row: {text.strip()[-200:]}"
            )
        return numbers[0]

    def _run_test(
        self, test_name: str, point: SurveyPoint, clients_with_first_object: Sequence[tuple[int, int]]
    ) -> SurveyResult:
        pages = -(-point.record // PAGE_KIB)
        kind = ("w" if "write" in test_name else "r") + ("" if self._survey.verify else "x")
        mode = ("g" if self._survey.case == "netdisk" else "p") + str(pages)
        commands = [
            [
                *("--threads", str(point.threads), "-1", str(client)),
                *("test_brw", str(self._survey.count_records_per_thread(point)), kind, "q", str(pages)),
                *(f"{point.threads // point.objects}t{first_object}", mode),
            ]
            for client, first_object in clients_with_first_object
        ]
        began = self._clock()
        answers = self._lctl(commands, "")
        elapsed = self._clock() - began
        total = (
            self._survey.count_records_per_thread(point)
            * point.threads
            * pages
            * PAGE_KIB
            * len(clients_with_first_object)
            / 1024
        )
        rates = [
            float(rate) * pages * PAGE_KIB / 1024
            for answer in answers
            for rate in _SNAPSHOT_RATE_LINE_PATTERN.findall(answer)
        ]
        return SurveyResult(
            test_name,
            total / elapsed if elapsed > 0 else 0.0,
            min(rates, default=None),
            max(rates, default=None),
            any("error" in answer for answer in answers),
            tuple(
                _get_last_rate(_TOTAL_RATE_LINE_PATTERN.findall(answer), pages * PAGE_KIB / 1024) for answer in answers
            ),
        )


def _get_last_rate(record_rates: Sequence[str], record_mib: float) -> float | None:
    """The last of the rates, which count records of `record_mib` MiB."""
    return float(record_rates[-1]) * record_mib if record_rates else None
