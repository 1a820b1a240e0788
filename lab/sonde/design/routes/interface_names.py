# SPDX-License-Identifier: Apache-2.0
"""Permanent link addresses of adapters (ethtool -P, /proc/net/bonding), and the files that name interfaces: rules of
udev and .link files of systemd.

Source: systemd.link(5), "[Match]", "NamePolicy", "Name"; udev(7), "ATTR", "NAME"; Linux
Documentation/networking/bonding.rst, "Querying Bonding Configuration".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BONDING_PATTERN = re.compile(r"\s*Ethernet Channel Bonding Driver:")
_PORT_PATTERN = re.compile(
    r"^Slave Interface: (\S+)$(.*?)^Permanent HW addr: ([0-9a-fA-F:]+)$", re.MULTILINE | re.DOTALL
)
_ETHTOOL_PATTERN = re.compile(r"\s*Permanent address: ([0-9a-fA-F:]+)\s*")
# Names of saved outputs of `ethtool -P DEVICE`.
_ETHTOOL_FILE_PATTERN = re.compile(r"ethtool[-_ ]+P[-_ ]+([^/]+?)(?:\.(?:txt|out))?$")
_UDEV_LINE_PATTERN = re.compile(r"^[^#\n]*\bNAME\s*=", re.MULTILINE)
_UDEV_PAIR_PATTERN = re.compile(r'([A-Z]+(?:\{\w+\})?)\s*(==|:?=|\+=|!=)\s*"([^"]*)"')
LINK_ADDRESS_PATTERN = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}")
# Options of [Match] whose values are link addresses.
ADDRESS_OPTIONS = ("PermanentMACAddress", "MACAddress")


@dataclass(frozen=True)
class InterfaceName:
    """An entry of a file that names the adapters it selects; `origin` is the file, with the number of the line where it
    has several. `selectors` are options of [Match] with their values, all of which select; `device` is the name ("":
    another one than of `Name=`, so unknown)."""

    origin: str
    selectors: tuple[tuple[str, str], ...]
    device: str

    @property
    def is_link_file(self) -> bool:
        """Whether it is a .link file: for an adapter, the first one by name counts, after rules of udev."""
        return self.origin.endswith(".link")


def is_permanent_address_output(output_text: str) -> bool:
    """Whether a text is /proc/net/bonding/BOND or output of `ethtool -P`."""
    return any(form.match(output_text) for form in (_BONDING_PATTERN, _ETHTOOL_PATTERN))


def parse_permanent_addresses(output_text: str, file_name: str) -> dict[str, str]:
    """The permanent link addresses by device. `ethtool -P` does not print the device: the name of its file does."""
    if match := _ETHTOOL_PATTERN.fullmatch(output_text):
        device = _ETHTOOL_FILE_PATTERN.search(file_name.rpartition("/")[2])
        return {device[1]: match[1].lower()} if device else {}
    return {device: address.lower() for device, _, address in _PORT_PATTERN.findall(output_text)}


def is_udev_file(file_text: str) -> bool:
    """Whether a text has rules of udev that name interfaces."""
    return "SUBSYSTEM" in file_text and _UDEV_LINE_PATTERN.search(file_text) is not None


def parse_udev_rules(file_text: str, file_name: str) -> Iterator[InterfaceName]:
    """The rules that select an interface by its link address and name it; others are left out."""
    lines = file_text.replace("\\\n", "").splitlines()
    for number, line in enumerate(lines, start=1):
        pairs = {name: (sign, value) for name, sign, value in _UDEV_PAIR_PATTERN.findall(line.partition("#")[0])}
        sign, address = pairs.get("ATTR{address}", ("", ""))
        _, device = pairs.get("NAME", ("", ""))
        if sign == "==" and device and "%" not in device and LINK_ADDRESS_PATTERN.fullmatch(address.lower()):
            yield InterfaceName(f"{file_name}, line {number}", (("MACAddress", address.lower()),), device)


def parse_link_file(sections: dict[str, dict[str, str]], file_name: str) -> Iterator[InterfaceName]:
    """The name that a .link file gives the adapters that it selects; systemd ignores a file without [Match]."""
    match, link = sections.get("Match", {}), sections.get("Link", {})
    if match:
        yield InterfaceName(file_name, tuple(match.items()), "" if link.get("NamePolicy") else link.get("Name", ""))
