# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment: every cell as often as it needs, in a random order, whatever happens meanwhile.

The archive is the only memory. A run is there whole or not at all and says which turn it was, so the runner may be
killed at any moment: whoever takes the experiment up again sees which turns are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonde.conduct.run import Result
from sonde.experiments.cells import Prepared, prepare
from sonde.experiments.executor import Attempt, Executor
from sonde.experiments.forecast import Forecast, code_of
from sonde.experiments.medians import measured
from sonde.experiments.order import Rates, Schedule, Turn
from sonde.experiments.request import Request
from sonde.experiments.results import Place, hash_of, place_of
from sonde.experiments.surroundings import Surroundings
from sonde.model.errors import DONE, FAILED, INTERRUPTED, MISMATCH, StoppedError, UserError
from sonde.model.experiment.description import Variant
from sonde.model.units import format_seconds
from sonde.store.archive import Archive
from sonde.store.groups import folder_of_group, write_group
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import change_tags


@dataclass
class Watcher:
    """What the runner tells while it works; each member may be replaced."""

    seed: Callable[[int], None] = lambda seed: None
    begin: Callable[[Turn, int, int, float | None], None] = lambda turn, number, count, left: None
    done: Callable[[Turn, Result], None] = lambda turn, result: None
    say: Callable[[str], None] = lambda text: None


@dataclass
class Ended:
    """How it ended. The results are in the archive."""

    group: str
    runs: int = 0  # that ended well, in this session
    refused: dict[str, str] = field(default_factory=dict)  # cell id -> why
    codes: dict[str, int] = field(default_factory=dict)  # of refused cells -> exit code of the reason
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    exit_code: int = DONE


@dataclass
class _Known:
    """What is known of the repeats of a cell."""

    rates: dict[int, Rates] = field(default_factory=dict)  # by repeat
    warm_ups: set[int] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)

    def has(self, turn: Turn) -> bool:
        return turn.repeat in (self.warm_ups if turn.warm_up else self.rates)


class Runner:
    """Runs one request."""

    def __init__(
        self, request: Request, archive: Archive, executor: Executor, watcher: Watcher, end: float | None = None
    ) -> None:
        """`end`: no run is begun that would probably not be over by then, seconds of time.time(); None: no limit."""
        self._request, self._archive = request, archive
        self._end = end
        self._executor, self._watcher = executor, watcher
        self._hash = hash_of(request.experiment)
        self._known: dict[str, _Known] = {}
        self._number = 0
        self._ended = Ended(request.group)
        self._variants: Mapping[str, Variant] = {one.id: one for one in request.experiment.file.variants}

    def prepared(self) -> list[Prepared]:
        """Every cell. Raises UserError when a name that the user gave means nothing."""
        return prepare(self._request.experiment, self._request.where.directories(), self._request.group)

    def run(self, prepared: list[Prepared] | None = None, forecasts: Sequence[Forecast] = ()) -> Ended:
        """Blocks until all cells have enough, or somebody stops it. `forecasts` say which are not to be run, and why.

        Raises UserError when a name that the user gave means nothing.
        """
        experiment = self._request.experiment
        prepared = self.prepared() if prepared is None else prepared
        for cell, why, code in (
            *((one.cell.id, one.refused, one.code) for one in prepared),
            *((one.cell, one.refused, one.code) for one in forecasts),
        ):
            if why:
                self._ended.refused[cell], self._ended.codes[cell] = why, code
        ready = {one.cell.id: one for one in prepared if one.cell.id not in self._ended.refused}
        self._read()
        self._keep(prepared)
        self._watcher.seed(self._request.seed)
        schedule = Schedule(
            [one.cell for one in ready.values()],
            self._request.repeat,
            self._request.seed,
            lambda cell: self._of(cell).rates,
            lambda cell: cell in self._ended.refused or cell in self._ended.failed,
        )
        folder = folder_of_group(self._archive.root, self._request.group)
        around = Surroundings(experiment.file.treatments, folder, self._watcher.say)
        try:
            with around:
                self._work(schedule, ready, around)
        except (StoppedError, KeyboardInterrupt):
            self._ended.exit_code = INTERRUPTED
        finally:
            self._keep(prepared)
            for one in ready.values():
                one.clean()
        self._ended.notes += around.notes
        self._judge_end(ready)
        return self._ended

    def _work(self, schedule: Schedule, ready: Mapping[str, Prepared], around: Surroundings) -> None:
        cooldown = self._request.repeat.cooldown
        for turn in schedule.turns():
            if self._of(turn.cell.id).has(turn):
                continue
            if not self._fits(turn, cooldown or 0.0):
                raise StoppedError("")
            if cooldown and self._ended.runs:
                time.sleep(cooldown)
            self._one(turn, ready[turn.cell.id], schedule, around)
            if self._executor.stopped:
                raise StoppedError("")

    def _fits(self, turn: Turn, cooldown: float) -> bool:
        """Whether there is time for a run, by the longest one of its cell, or of all when it had none. What was never
        seen is tried."""
        if self._end is None:
            return True
        seen = self._of(turn.cell.id).seconds or [one for known in self._known.values() for one in known.seconds]
        left = self._end - time.time()
        if not seen or max(seen) + cooldown <= left:
            return True
        self._ended.notes.append(
            f"{turn.cell.id} takes about {format_seconds(max(seen))}, and the job ends in"
            f" {format_seconds(max(left, 0.0))}: it is left to the next one."
        )
        return False

    def _one(self, turn: Turn, prepared: Prepared, schedule: Schedule, around: Surroundings) -> None:
        variant = self._variants.get(str(turn.cell.at.get("variant", "")))
        number, count, left = self._progress(schedule)
        self._watcher.begin(turn, number, count, left)
        began = time.monotonic()
        try:
            around.before(turn.cell.id, variant, prepared.directory)
            result = self._executor.execute(
                Attempt(
                    prepared.plan,
                    self._request.experiment.id,
                    self._facts(turn),
                    prepared.clients,
                    variant,
                    self._request.experiment.storage_of(turn.cell),
                )
            )
        except StoppedError:
            raise
        except UserError as reason:
            if self._executor.stopped:
                raise StoppedError("") from None
            # one cell that cannot be run here must not cost the others
            why = str(reason).removeprefix(f"{prepared.plan.origin}: ")
            self._ended.refused[turn.cell.id], self._ended.codes[turn.cell.id] = why, reason.exit_code
            self._watcher.say(f"{turn.cell.id} is not run: {why}")
            return
        finally:
            around.after()
        self._number += 1
        if self._request.tags:
            change_tags(result.folder, add=self._request.tags)
        if result.exit_code == DONE:
            self._ended.runs += 1
            self._note(read_summary(result.folder), time.monotonic() - began)
        elif not self._executor.stopped:
            self._ended.failed[turn.cell.id] = result.text
            self._watcher.say(f"{turn.cell.id} is not run again: {result.text}")
            if result.exit_code == MISMATCH:
                self._ended.exit_code = MISMATCH
        self._watcher.done(turn, result)

    def _facts(self, turn: Turn) -> dict[str, Any]:
        cell, request = turn.cell, self._request
        variant = str(cell.at.get("variant", ""))
        place = Place(
            request.experiment.id, self._hash, cell.id, cell.at, cell.plan, variant, turn.repeat, turn.warm_up,
            request.profile, request.seed, self._number, self._executor.simulated,
        )  # fmt: skip
        note = {"note": request.note} if request.note else {}
        role = "calibration" if turn.warm_up else "run"
        return {"group": request.group, "role": role, **note, **place.facts()}

    def _of(self, cell: str) -> _Known:
        return self._known.setdefault(cell, _Known())

    def _read(self) -> None:
        """What an earlier session left in the archive."""
        if not self._request.kept:
            return
        from sonde.store.names import folders_of_group  # pyarrow takes long to import

        for folder in folders_of_group(self._archive.root, self._request.group):
            self._note(read_summary(folder))

    def _note(self, run: Summary, taken: float | None = None) -> None:
        """Remembers a run. `taken` are seconds with all that comes before and after it, where that was seen."""
        place = place_of(run)
        if place is None:
            return
        self._number = max(self._number, int(place["number"]) + 1)
        if run.status != "done":
            return
        known = self._of(str(place["cell"]))
        known.seconds.append(taken if taken is not None else run.seconds or 0.0)
        if place["warm_up"]:
            known.warm_ups.add(int(place["repeat"]))
        else:
            known.rates[int(place["repeat"])] = {phase: rate for phase, _, rate in measured(run)}

    def _progress(self, schedule: Schedule) -> tuple[int, int, float | None]:
        """Number of the run that begins, how many there will probably be, and seconds left by what runs took so far."""
        cooldown = self._request.repeat.cooldown or 0.0
        every = [second for known in self._known.values() for second in known.seconds]
        usual = sum(every) / len(every) if every else None
        done = count = 0
        left: float | None = 0.0
        for cell in schedule.cells:
            known = self._of(cell.id)
            has = len(known.rates) + len(known.warm_ups)
            done += has
            if cell.id in self._ended.refused or cell.id in self._ended.failed:
                count += has
                continue
            wanted = max(has, schedule.expected(cell) + self._request.repeat.warmup)
            count += wanted
            each = sum(known.seconds) / len(known.seconds) if known.seconds else usual
            left = None if left is None or each is None else left + (wanted - has) * (each + cooldown)
        return done + 1, max(count, done + 1), left

    def _keep(self, prepared: list[Prepared]) -> None:
        """What was asked, and what is not run: at the start, so that it is there whatever happens, and at the end."""
        write_group(
            self._archive.root,
            self._request.group,
            {
                **self._request.as_kept(),
                "simulated": self._executor.simulated,
                "directories": {one.cell.id: ", ".join(one.places) for one in prepared if one.directory},
                "refused": self._ended.refused,
            },
        )

    def _judge_end(self, ready: Mapping[str, Prepared]) -> None:
        ended = self._ended
        if ended.exit_code != DONE:
            return
        if ended.failed:
            ended.exit_code = FAILED
        elif not any(self._of(cell).rates for cell in ready):
            ended.exit_code = code_of(ended.codes.values())
