# SPDX-License-Identifier: Apache-2.0
"""A real second user: a forked process with another user id plants files, as a neighbor in a shared directory can.
Also a user without privileges: a forked process without capabilities, in which permissions hold for root too."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable

import pytest

NEIGHBOR = 54321  # a user id that nobody has

needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


CAPABILITIES_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words of each set


def drop_capabilities() -> None:
    """Gives up all capabilities of this process, so that permissions of files hold for root as well."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def become_neighbor(user: int) -> None:
    """Takes another user id for good."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.umask(0o022)


def as_neighbor(plant: Callable[[], object], user: int = NEIGHBOR) -> None:
    """Runs `plant` as another user, in a process of its own. Fails the test when it fails."""
    _run_in_child(lambda: become_neighbor(user), plant, "the second user could not plant its files")


def without_capabilities(check: Callable[[], object]) -> None:
    """Runs `check` without capabilities, in a process of its own. Fails the test when it fails."""
    _run_in_child(drop_capabilities, check, "the check failed without capabilities; its error is above")


def _run_in_child(prepare: Callable[[], None], action: Callable[[], object], failure: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            prepare()
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, failure
