# SPDX-License-Identifier: Apache-2.0
"""Samples the local sources in a thread while something else runs, and appends the samples to a file.

Sampling must not disturb the measurement: files of the kernel stay open, a sample is one line, and parts whose counters
did not change are omitted. `bench/telemetry.py` measures its cost.
"""

from __future__ import annotations

import json
import platform
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from sonde.model.confined_files import open_file_to_append
from sonde.telemetry.file_format import TELEMETRY_FORMAT
from sonde.telemetry.list import LOCAL_SOURCES
from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError

DEFAULT_INTERVAL_S = 1.0


class TelemetrySampler:
    """Samples every `usual_interval_s` seconds, and at `sample`, between entering and leaving a `with` block.

    Errors never leave the sampler: a source that fails is recorded as lost, and a full disk ends the sampling.
    """

    def __init__(
        self,
        telemetry_file: Path,
        interval_s: float = DEFAULT_INTERVAL_S,
        sources: Sequence[LocalSource] = LOCAL_SOURCES,
        file_system_root: Path = Path("/"),
    ) -> None:
        self._path = telemetry_file
        self._interval_s = interval_s
        self._sources = sources
        self._root = file_system_root
        self._readers: dict[str, SourceReader] = {}
        self._previous: dict[str, ReadingsByPart] = {}
        self.lost_sources: dict[str, str] = {}  # sources that failed after they had worked, with the reason
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_stopped, name="telemetry", daemon=True)
        # Time of samples: CLOCK_REALTIME at the start, continued by CLOCK_MONOTONIC, which nobody sets.
        self._epoch = time.time() - time.monotonic()

    def __enter__(self) -> TelemetrySampler:
        unavailable: dict[str, str] = {}
        for source in self._sources:
            try:
                self._readers[source.name] = source.open_reader(self._root)
            except UnavailableSourceError as reason:
                unavailable[source.name] = str(reason)
        header = {
            "type": "telemetry",
            "schema": TELEMETRY_FORMAT,
            "host": platform.node(),
            "origin": "sampler",
            "interval_s": self._interval_s,
            "sources": {source.name: list(source.columns) for source in self._sources if source.name in self._readers},
            "unavailable": unavailable,
        }
        try:
            self._file = open_file_to_append(self._path)
        except OSError:
            return self
        self._append_line(header)
        self.take_sample()
        self._thread.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.take_sample()
        if self._file is not None:
            self._file.close()
            self._file = None
        for reader in self._readers.values():
            reader.close()

    def take_sample(self) -> None:
        """Takes one sample now."""
        with self._lock:
            if self._file is None:
                return
            line: dict[str, Any] = {"type": "sample", "time": 0.0}
            lost: dict[str, str] = {}
            for name, reader in self._readers.items():
                try:
                    readings = reader.read()
                except (OSError, ValueError, KeyError, IndexError) as reason:
                    lost[name] = str(reason)
                    continue
                previous = self._previous.get(name, {})
                changed = {part: values for part, values in readings.items() if values != previous.get(part)}
                self._previous[name] = readings
                line[name] = changed
            line["time"] = round(self._epoch + time.monotonic(), 6)
            self._append_line(line)
            for name, text in lost.items():
                self._readers.pop(name).close()
                self.lost_sources[name] = text
                self._append_line({"type": "lost", "time": line["time"], "source": name, "text": text})

    def _sample_until_stopped(self) -> None:
        deadline = time.monotonic() + self._interval_s
        while not self._stop.wait(max(0.0, deadline - time.monotonic())):
            self.take_sample()
            deadline = max(deadline + self._interval_s, time.monotonic())

    def _append_line(self, telemetry_line: dict[str, Any]) -> None:
        """Appends one line with one system call, so that a kill leaves complete lines."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(telemetry_line, separators=(",", ":")).encode() + b"\n")
            self._file.flush()
        except OSError:
            self._file = None
