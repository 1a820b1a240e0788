# SPDX-License-Identifier: Apache-2.0
"""A real second user, who acts beside the engine in directories where others may write."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

RENAME_EXCHANGE = 2
AT_FDCWD = -100


def start_child_as_user(user_id: int, action: Callable[[], object]) -> int:
    """Starts a child of that user; its process number."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user_id)
            os.setuid(user_id)
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def do_as(user_id: int, action: Callable[[], object]) -> None:
    assert os.waitpid(start_child_as_user(user_id, action), 0)[1] == 0


@contextmanager
def exchanging(user_id: int, first_path: Path, second_path: Path, pause_s: float = 0) -> Iterator[None]:
    """Another user exchanges two names, with a random pause of up to `pause_s` seconds after each exchange."""
    libc = ctypes.CDLL(None)

    def loop() -> None:
        a, b = bytes(first_path), bytes(second_path)
        while True:
            libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)
            if pause_s > 0:
                time.sleep(random.uniform(0, pause_s))

    child = start_child_as_user(user_id, loop)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
