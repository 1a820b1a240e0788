# SPDX-License-Identifier: Apache-2.0
"""Describes the run whose record ``make_record`` writes: its phases with the rate of each task at each moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIB = 1 << 20
Pages = Callable[..., str]  # the fixture `page`
Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def steady(rate: float) -> Curve:
    """The same rate all the time, bytes per second and task."""
    return lambda t: np.full_like(t, rate)


def stepped(before: float, after: float, at_s: float) -> Curve:
    """One rate until `at_s`, another one after it."""
    return lambda t: np.where(t < at_s, before, after)


def ramping(start: float, end: float, seconds: float) -> Curve:
    """From one rate to another in a straight line."""
    return lambda t: start + (end - start) * np.clip(t / seconds, 0.0, 1.0)


@dataclass(frozen=True)
class Work:
    """One phase: what is done, how fast, and what the record says about the circumstances."""

    id: str = "write"
    op: str = "write"
    curve: Curve = field(default_factory=lambda: steady(500e6))
    seconds: float = 4.0
    transfer: int = MIB
    noise: float = 0.04
    slow: Mapping[int, float] = field(default_factory=dict)  # task -> factor by which it is slower
    backend: str = "posix"
    direct: bool = False
    cache: str = "unknown"
    residency: float | None = None
    measured: bool = True
    slice_s: float = 0.01
    stonewall: float | None = None
    fsync: float = 0.05  # seconds of each task in fsync; 0 = none
    treatments: Sequence[Mapping[str, Any]] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[Mapping[str, Any]] = ()
    ends: bool = True
    plan: Mapping[str, Any] = field(default_factory=dict)
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Scene:
    """A whole run."""

    works: Sequence[Work] = (Work(),)
    tasks: int = 4
    nodes: int = 1
    title: str = "Sequential write and read"
    path: str = "/scratch"
    file_system: Mapping[str, Any] = field(
        default_factory=lambda: {
            "type": "xfs",
            "mount_point": "/scratch",
            "source": "/dev/nvme0n1p2",
            "options": "rw,noatime,swidth=8192",
            "block_bytes": 4096,
            "total_bytes": 3_840_000_000_000,
            "free_bytes": 2_100_000_000_000,
            "available_bytes": 2_100_000_000_000,
            "read_only": False,
            "network": False,
            "memory_backed": False,
            "block_device": {"name": "nvme0n1", "model": "Model of a device", "rotational": False},
        }
    )
    hosts: Sequence[str] = ("node17",)
    status: str = "done"
    text: str = ""
    findings: Sequence[Mapping[str, Any]] = ()
    data: Mapping[str, Any] = field(default_factory=lambda: {"io": {"fsync": "end_timed_separately"}})
    ends: bool = True
    seed: int = 7
    started: str = "2026-11-21T20:45:01Z"
    plan: str = "known"
    simulated: Mapping[str, Any] = field(default_factory=dict)
