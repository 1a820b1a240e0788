# SPDX-License-Identifier: Apache-2.0
"""Reads logs in a process of its own, because Darshan's library crashes on some damaged logs."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from sonde.model.errors import MachineError, SondeError, UserError

LogResult = TypeVar("LogResult")
# A log whose records need more address space than this is damaged or not meant for one machine.
_MAX_ADDRESS_SPACE_BYTES = 4 << 30
LOG_READ_TIMEOUT_S = 600.0


class IsolatedLogReader:
    """One process that reads one log after the other; it is started again after a crash. Close it with `close`."""

    def __init__(self, timeout_s: float = LOG_READ_TIMEOUT_S) -> None:
        self._executor: ProcessPoolExecutor | None = None
        self._timeout_s = timeout_s

    def read_in_process(self, read_log: Callable[[Path], LogResult], log_path: Path) -> LogResult:
        """Returns `reader(path)`. Raises UserError when the log is damaged, and whatever SondeError `read_log`
        raises."""
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_limit_reader_process_resources
            )
        try:
            kind, message, result = self._executor.submit(_call_log_reader, read_log, log_path).result(self._timeout_s)
        except BrokenProcessPool:
            self._executor = None
            raise UserError(f"{log_path} is damaged: Darshan's library crashed while it read the log.") from None
        except FutureTimeoutError:
            self.close()
            raise UserError(
                f"{log_path} was not read within {self._timeout_s:.0f} s; it is damaged or too large."
            ) from None
        if result is None:
            raise (MachineError if kind == "MachineError" else UserError)(message)
        return result

    def close(self) -> None:
        """Ends the process."""
        executor, self._executor = self._executor, None
        if executor is not None:
            for process in list((getattr(executor, "_processes", None) or {}).values()):
                with suppress(OSError):
                    process.kill()
            # Waits for the pool's thread: at the end of the program it would be woken through a closed pipe.
            executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> IsolatedLogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _limit_reader_process_resources() -> None:
    """Limits memory, and silences what the library writes to standard error about damaged logs."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    os.close(silent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_ADDRESS_SPACE_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _call_log_reader(read_log: Callable[[Path], LogResult], log_path: Path) -> tuple[str, str, LogResult | None]:
    """Returns the result, or the class and text of an error."""
    try:
        return "", "", read_log(log_path)
    except SondeError as reason:
        return type(reason).__name__, str(reason), None
