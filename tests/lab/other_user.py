# SPDX-License-Identifier: Apache-2.0
"""A real second user: a forked process with another user id plants files, as a neighbor in a shared directory can."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

import pytest

NEIGHBOR = 54321  # a user id that nobody has

needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


def as_neighbor(plant: Callable[[], object], user: int = NEIGHBOR) -> None:
    """Runs `plant` as another user, in a process of its own. Fails the test when it fails."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.umask(0o022)
            plant()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the second user could not plant its files"
