# SPDX-License-Identifier: Apache-2.0
"""Kernel settings for storage traffic over routed IP: which options the plan needs, and which of the usual sysctls are
obsolete, wrong or risky.

Sources: the kernel's Documentation/networking/ip-sysctl.rst, and the changes named with each entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Worth = Literal["gone", "without effect", "wrong", "risky"]

# Kernel options without which a part of the plan does not work, and what that part is.
OPTIONS = {
    "CONFIG_IP_ADVANCED_ROUTER": "rules and multipath routes",
    "CONFIG_IP_MULTIPLE_TABLES": "a table for each router",
    "CONFIG_IP_ROUTE_MULTIPATH": "routes with several next hops",
}
# What the kernel counts in pages of usually 4 KiB; the largest number that can be meant (a terabyte).
_PAGES = ("net.ipv4.tcp_mem", "net.ipv4.udp_mem")
_MOST_PAGES = 2**40 // 4096


@dataclass(frozen=True)
class Remark:
    """One setting that should not stay as it is: what is the matter, and what to do."""

    name: str
    value: str
    worth: Worth
    reason: str
    remedy: str


def _numbers(value: str) -> list[int]:
    return [int(one) for one in re.findall(r"-?\d+", value)]


_Judge = Callable[[str, Mapping[str, str]], tuple[Worth, str, str] | None]


def _tw_recycle(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    return ("gone", "removed in Linux 4.12, because it dropped connections behind address translation", "leave it out")


def _tw_reuse(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    if value != "0" and all_of.get("net.ipv4.tcp_timestamps") == "0":
        return ("without effect", "it needs tcp_timestamps, which is 0 here", "leave tcp_timestamps at 1")
    return None


def _low_latency(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    return ("without effect", "ignored since Linux 4.14, where the prequeue went", "leave it out")


def _timestamps(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    if value != "0":
        return None
    reason = (
        "without time stamps sequence numbers are not protected against wrapping (PAWS), which takes"
        " 0.7 s at 56 Gbit/s, and round-trip times are measured worse"
    )
    return ("risky", reason, "leave it at 1")


def _pages(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    numbers = _numbers(value)
    if not numbers:
        return None
    if max(numbers) > _MOST_PAGES:
        return (
            "wrong",
            f"it counts pages: {max(numbers)} pages of 4 KiB are {max(numbers) * 4096 / 2**40:.3g} TiB",
            "leave it to the kernel, which derives it from memory",
        )
    if len(numbers) == 3 and numbers[0] * 4096 < 2**25:
        return (
            "wrong",
            "it counts pages, and these look like bytes: TCP is put under pressure from"
            f" {numbers[1] * 4096 / 2**20:.0f} MiB in all, and {numbers[2]} pages are"
            f" {numbers[2] * 4096 / 2**40:.3g} TiB",
            "leave it to the kernel, which derives it from memory",
        )
    return None


def _window_scale(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    return ("without effect", "obsolete since Linux 6.6, which measures it for each connection", "leave it out")


def _congestion(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    if value in ("cubic", "reno", "bbr", "dctcp"):
        return None
    return (
        "risky",
        f'"{value}" is a module (tcp_{value}): where it is not loaded the setting is refused and the old one stays',
        "load the module at boot, or stay with cubic",
    )


def _option_memory(value: str, all_of: Mapping[str, str]) -> tuple[Worth, str, str] | None:
    numbers = _numbers(value)
    if numbers and numbers[0] > 2**20:
        return (
            "risky",
            "it bounds control data of a socket, not its buffers: any user may take that much kernel memory per socket",
            "leave it at its default",
        )
    return None


_JUDGES: dict[str, _Judge] = {
    "net.ipv4.tcp_tw_recycle": _tw_recycle,
    "net.ipv4.tcp_tw_reuse": _tw_reuse,
    "net.ipv4.tcp_low_latency": _low_latency,
    "net.ipv4.tcp_timestamps": _timestamps,
    "net.ipv4.tcp_adv_win_scale": _window_scale,
    "net.ipv4.tcp_congestion_control": _congestion,
    "net.core.optmem_max": _option_memory,
    **dict.fromkeys(_PAGES, _pages),
}


def audit(settings: Mapping[str, str]) -> list[Remark]:
    """What is wrong among sysctls that somebody set, in their order."""
    found = []
    for name, value in settings.items():
        judge = _JUDGES.get(name)
        said = judge(value, settings) if judge else None
        if said:
            found.append(Remark(name, value, *said))
    return found


def kept(settings: Mapping[str, str]) -> dict[str, str]:
    """The sysctls of a site that a plan hands on: all but those that are gone, without effect or wrong."""
    refused = {one.name for one in audit(settings) if one.worth != "risky"}
    return {name: value for name, value in settings.items() if name not in refused}


def missing_options(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """Kernel options that the plan needs and that kernel lacks: name, and what will not work."""
    return [(name, part) for name, part in OPTIONS.items() if options.get(name, "n") not in ("y", "m")]
