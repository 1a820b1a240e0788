# SPDX-License-Identifier: Apache-2.0
"""Kernel settings for storage traffic over routed IP: the kernel options that the plan needs, and which common sysctls
are obsolete, wrong or risky.

Sources: the kernel's Documentation/networking/ip-sysctl.rst, and the kernel versions in the reasons below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

SettingState = Literal["gone", "without effect", "wrong", "risky"]

# Kernel options that the plan needs, and the feature that does not work without each.
REQUIRED_OPTIONS = {
    "CONFIG_IP_ADVANCED_ROUTER": "rules and multipath routes",
    "CONFIG_IP_MULTIPLE_TABLES": "a table for each router",
    "CONFIG_IP_ROUTE_MULTIPATH": "routes with several next hops",
}
# What else IPv6 needs, and IPoIB with large packets.
_IPV6_OPTION = ("CONFIG_IPV6_MULTIPLE_TABLES", "a table for each router")
_CONNECTED_OPTION = ("CONFIG_INFINIBAND_IPOIB_CM", "connected mode, which packets above 4092 B need")
# Sysctls that count pages (usually 4 KiB each), and the largest plausible count (a tebibyte).
_PAGE_COUNTS = ("net.ipv4.tcp_mem", "net.ipv4.udp_mem")
_MAX_PAGES = 2**40 // 4096
# Queues that have no room, or that exist to disturb traffic.
_DROPPING_QDISCS = ("noqueue", "netem", "blackhole")
_DEFAULT_WINDOW_SCALE = "1"


@dataclass(frozen=True)
class SettingFinding:
    """A sysctl that should be changed, with the reason."""

    name: str
    value: str
    state: SettingState
    reason: str
    remedy: str


def _parse_integers(setting_value: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"-?\d+", setting_value)]


# Kernel options of congestion controls whose names differ from those of the settings.
_OPTION_NAMES = {"highspeed": "HSTCP"}
# A configuration with fewer options is an excerpt: that of the smallest kernel with TCP has more.
_OPTIONS_OF_SMALLEST_KERNEL = 300
# Settings that name a part of the kernel, and the beginnings of the kernel options of those parts.
_CONGESTION_SETTING = "net.ipv4.tcp_congestion_control"
_OPTION_PREFIXES = {_CONGESTION_SETTING: "CONFIG_TCP_CONG_", "net.core.default_qdisc": "CONFIG_NET_SCH_"}
_ALWAYS_PRESENT = ("reno", "pfifo_fast", "pfifo", "bfifo", "mq", "noqueue")
_SettingCheck = Callable[[str, Mapping[str, str]], tuple[SettingState, str, str] | None]
# Kernels of distributions that are named by their release.
_RELEASES = (("(?:RHEL|Red Hat[^0-9]*|CentOS[^0-9]*|Scientific Linux[^0-9]*) ?7", (3, 10)),
             ("(?:RHEL|Red Hat[^0-9]*|CentOS[^0-9]*|Rocky[^0-9]*|Alma[^0-9]*) ?8", (4, 18)),
             ("(?:RHEL|Red Hat[^0-9]*|CentOS[^0-9]*|Rocky[^0-9]*|Alma[^0-9]*) ?9", (5, 14)),
             ("(?:SLES|SUSE[^0-9]*) ?11", (3, 0)), ("(?:SLES|SUSE[^0-9]*) ?12", (4, 4)))  # fmt: skip
# The congestion controls that the kernel has loaded.
AVAILABLE_CONTROLS = "net.ipv4.tcp_available_congestion_control"
# Where a kernel states its release among its settings.
RELEASE_SETTING = "kernel.osrelease"


def find_kernel_version(system_name: str) -> tuple[int, int] | None:
    """The kernel version in the name of an operating system: "RHEL 7" is (3, 10), "Linux 6.8" is (6, 8)."""
    if match := re.search(r"\b(?:[Ll]inux|[Kk]ernel) ?(\d+)\.(\d+)", system_name):
        return int(match[1]), int(match[2])
    return next((version for pattern, version in _RELEASES if re.search(pattern, system_name)), None)


def add_kernel_release(settings: Mapping[str, str], operating_system: str) -> dict[str, str]:
    """The settings, with the kernel version that an operating system implies where they state none."""
    version = find_kernel_version(operating_system)
    return ({} if version is None else {RELEASE_SETTING: f"{version[0]}.{version[1]}"}) | dict(settings)


def _is_older(settings: Mapping[str, str], version: tuple[int, int]) -> bool:
    """Whether the settings state a kernel older than `version`."""
    match = re.match(r"(\d+)\.(\d+)", settings.get(RELEASE_SETTING, ""))
    return match is not None and (int(match[1]), int(match[2])) < version


def _check_tw_recycle(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if _is_older(settings, (4, 12)):
        reason = "it drops connections behind address translation, and Linux 4.12 removed it for that"
        return ("risky", reason, "leave it at 0") if setting_value != "0" else None
    return ("gone", "removed in Linux 4.12, because it dropped connections behind address translation", "leave it out")


def _check_tw_reuse(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    # 2 (only for loopback) is the default since Linux 4.19, which every kernel lists
    if setting_value not in ("0", "2") and settings.get("net.ipv4.tcp_timestamps") == "0":
        return ("without effect", "it needs tcp_timestamps, which is 0 here", "leave tcp_timestamps at 1")
    return None


def _check_low_latency(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if setting_value == "0" or _is_older(settings, (4, 14)):
        return None  # the default, which every kernel lists
    return ("without effect", "ignored since Linux 4.14, which has no prequeue", "leave it out")


def _check_timestamps(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if setting_value != "0":
        return None
    reason = (
        "without time stamps sequence numbers are not protected against wrapping (PAWS), which takes"
        " 0.7 s at 56 Gbit/s, and round-trip times are measured worse"
    )
    return ("risky", reason, "leave it at 1")


def _check_tcp_memory_pages(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    numbers = _parse_integers(setting_value)
    if not numbers:
        return None
    if max(numbers) > _MAX_PAGES:
        return (
            "wrong",
            f"it counts pages: {max(numbers)} pages of 4 KiB are {max(numbers) * 4096 / 2**40:.3g} TiB",
            "leave it to the kernel, which derives it from memory",
        )
    # the kernel's own three values are within a factor of two, also on small machines
    if len(numbers) == 3 and numbers[0] * 4096 < 2**25 and numbers[2] > 16 * numbers[0]:
        return (
            "wrong",
            "it counts pages, and these look like bytes: TCP is put under pressure from"
            f" {numbers[1] * 4096 / 2**20:.0f} MiB in all, and {numbers[2]} pages are"
            f" {numbers[2] * 4096 / 2**40:.3g} TiB",
            "leave it to the kernel, which derives it from memory",
        )
    return None


def _check_window_scale(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if setting_value == _DEFAULT_WINDOW_SCALE or _is_older(settings, (6, 6)):
        return None  # the default, which every kernel lists
    return ("without effect", "obsolete since Linux 6.6, which measures it for each connection", "leave it out")


def _check_congestion_control(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if setting_value in ("cubic", "reno", "bbr", "dctcp", *settings.get(AVAILABLE_CONTROLS, "").split()):
        return None
    return (
        "risky",
        f'"{setting_value}" is a module (tcp_{setting_value}): where it is not loaded the setting is refused and '
        "the old one stays",
        "load the module at boot, or stay with cubic",
    )


def _check_option_memory(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    numbers = _parse_integers(setting_value)
    if numbers and numbers[0] > 2**20:
        return (
            "risky",
            "it bounds control data of a socket, not its buffers: any user may take that much kernel memory per socket",
            "leave it at its default",
        )
    return None


def _check_default_qdisc(setting_value: str, settings: Mapping[str, str]) -> tuple[SettingState, str, str] | None:
    if setting_value in _DROPPING_QDISCS:
        return ("risky", "devices drop packets while they are busy, or at random", "set it to fq_codel or fq")
    needs_fq = settings.get(_CONGESTION_SETTING) == "bbr" and _is_older(settings, (4, 13))
    if needs_fq and setting_value != "fq":
        return ("wrong", "before Linux 4.13 bbr sends in bursts without the queue fq, which paces it", "set it to fq")
    return None


_CHECKS: dict[str, _SettingCheck] = {
    "net.ipv4.tcp_tw_recycle": _check_tw_recycle,
    "net.ipv4.tcp_tw_reuse": _check_tw_reuse,
    "net.ipv4.tcp_low_latency": _check_low_latency,
    "net.ipv4.tcp_timestamps": _check_timestamps,
    "net.ipv4.tcp_adv_win_scale": _check_window_scale,
    _CONGESTION_SETTING: _check_congestion_control,
    "net.core.default_qdisc": _check_default_qdisc,
    "net.core.optmem_max": _check_option_memory,
    **dict.fromkeys(_PAGE_COUNTS, _check_tcp_memory_pages),
}


def list_audited_settings(settings: Mapping[str, str]) -> list[str]:
    """Names of the sysctls that `audit_settings` has a rule for."""
    return [name for name in settings if name in _CHECKS]


def _find_option_name(setting_name: str, setting_value: str) -> str:
    """The kernel option of the part of the kernel that a setting names; "" for other settings."""
    prefix = _OPTION_PREFIXES.get(setting_name, "")
    return prefix and prefix + _OPTION_NAMES.get(setting_value, setting_value.upper())


def _check_kernel_part(
    name: str, setting_value: str, kernel_options: Mapping[str, str]
) -> tuple[SettingState, str, str] | None:
    """A setting that names a part of the kernel (congestion control, queue) which this kernel was built without."""
    if name not in _OPTION_PREFIXES or setting_value in _ALWAYS_PRESENT:
        return None
    option = _find_option_name(name, setting_value)
    if kernel_options.get(option, "n") != "n" or not is_option_stated(option, kernel_options):
        return None
    return (
        "wrong",
        f'"{setting_value}" is not in this kernel ({option} is not set): the setting is refused and the old one stays',
        f"name one that it has, or build the kernel with {option}=m",
    )


def audit_settings(
    settings: Mapping[str, str], kernel_options: Mapping[str, str] | None = None
) -> list[SettingFinding]:
    """Faults among the sysctls of a host, in their order. `kernel.osrelease` among them states the kernel."""
    options = kernel_options or {}
    findings = []
    for name, value in settings.items():
        check = _CHECKS.get(name)
        verdict = _check_kernel_part(name, value, options) or (check(value, settings) if check else None)
        if name == _CONGESTION_SETTING and options.get(_find_option_name(name, value)) == "y":
            continue  # a part of the kernel itself, no module
        if verdict:
            findings.append(SettingFinding(name, value, *verdict))
    return findings


def select_valid_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The sysctls of a site that a plan applies: all but those that are gone, without effect or wrong."""
    refused = {finding.name for finding in audit_settings(settings) if finding.state != "risky"}
    return {name: value for name, value in settings.items() if name not in refused}


def is_option_stated(option: str, kernel_options: Mapping[str, str]) -> bool:
    """Whether a kernel configuration decides about an option: an excerpt does not by omission."""
    return option in kernel_options or len(kernel_options) >= _OPTIONS_OF_SMALLEST_KERNEL


def list_missing_kernel_options(
    kernel_options: Mapping[str, str], version: int = 4, needs_connected_mode: bool = False
) -> list[tuple[str, str]]:
    """Kernel options that a plan for this IP version needs and this kernel lacks: the name, and the feature that will
    not work."""
    required = [*REQUIRED_OPTIONS.items(), *([_IPV6_OPTION] if version == 6 else [])]
    missing = [(name, feature) for name, feature in required if kernel_options.get(name, "n") not in ("y", "m")]
    name, feature = _CONNECTED_OPTION
    # a kernel without InfiniBand does not name it
    return [*missing, (name, feature)] if needs_connected_mode and kernel_options.get(name) == "n" else missing
