# SPDX-License-Identifier: Apache-2.0
"""A fabric built of network namespaces on this machine: one host of each side, every router, a bridge for each network.

Nothing outside the namespaces is changed, and `close` removes them with everything in them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from sonde.design.routes.fabric import Side
from sonde.design.routes.plan import RoutePlan
from sonde.design.routes.scripts import host_script, router_script
from sonde.model.addresses import network
from sonde.model.errors import MachineError

# Time for processes to end before they are killed.
_PATIENCE_S = 2.0


class Topology:
    """The namespaces of one fabric. `near` and `far` are hosts, routers have the names of the fabric's."""

    def __init__(self, plan: RoutePlan, near_hosts: Sequence[str], far_hosts: Sequence[str]) -> None:
        """`near_hosts` and `far_hosts` are the addresses that the two hosts have: one namespace stands for several
        clients or servers. Raises MachineError where namespaces may not be made."""
        self._plan = plan
        self._fabric = plan.fabric
        self._prefix = f"sonde-{os.getpid()}-"
        self._names: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="sonde-routes-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        if shutil.which("ip") is None:
            raise MachineError("Building a topology needs the program ip (iproute2), which is not installed.")
        try:
            self._build(near_hosts, far_hosts)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Topology:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _build(self, near_hosts: Sequence[str], far_hosts: Sequence[str]) -> None:
        fabric = self._fabric
        for name in ("near", "far", "near-net", "far-net", *(way.router for way in fabric.ways)):
            self._namespace(name)
        for side, host, bridge, hosts in (
            (fabric.near, "near", "near-net", near_hosts),
            (fabric.far, "far", "far-net", far_hosts),
        ):
            self.ip(bridge, "link", "add", "br0", "type", "bridge")
            self.ip(bridge, "link", "set", "br0", "up")
            self._join(host, side.classes[0].device, bridge, side, hosts)
            for way in fabric.ways:
                address = way.near if side is fabric.near else way.far
                device = (way.near_device if side is fabric.near else way.far_device) or f"{side.network[:8]}0"
                self._join(way.router, device, bridge, side, [address])

    def _namespace(self, name: str) -> None:
        done = subprocess.run(["ip", "netns", "add", self._prefix + name], capture_output=True, text=True)
        if done.returncode:
            raise MachineError(
                f"Network namespaces cannot be made here ({done.stderr.strip()}); run as root on a machine that"
                " allows it."
            )
        self._names.append(name)
        self.ip(name, "link", "set", "lo", "up")

    def _join(self, name: str, device: str, bridge: str, side: Side, addresses: Sequence[str]) -> None:
        """Connects a namespace to a bridge, with the prefix of the network that each address lies in."""
        port = f"p{len(self._names)}-{self._names.index(name)}"
        mtu = str(min(side.mtu or 1500, 65535))
        ends = (self._prefix + name, self._prefix + bridge)
        self._run("ip", "link", "add", device, "mtu", mtu, "netns", ends[0], "type", "veth",
                  "peer", "name", port, "mtu", mtu, "netns", ends[1])  # fmt: skip
        self.ip(bridge, "link", "set", port, "master", "br0", "up")
        self.ip(name, "link", "set", device, "up")
        for address in addresses:
            prefix = next(network(one).prefixlen for one in side.ranges if _inside(one, address))
            extra = ["nodad"] if self._fabric.version == 6 else []
            self.ip(name, "addr", "add", f"{address}/{prefix}", "dev", device, *extra)

    def apply(self) -> None:
        """Runs the scripts of the plan in the namespaces."""
        for host, group in (("near", self._fabric.near.classes[0]), ("far", self._fabric.far.classes[0])):
            self._script(host, host_script(self._plan, self._plan.of(group.name), f"{host}.sh"), "apply")
        for way in self._fabric.ways:
            self._script(way.router, router_script(self._plan, "router.sh"), "apply")

    def hash_addresses(self) -> None:
        """Both hosts choose routers by addresses alone (policy 0), against what the scripts have set. IPv6 hashes flow
        labels too, so they give none."""
        for host in ("near", "far"):
            if self._fabric.version == 6:
                self.run(host, "sysctl", "-qw", "net.ipv6.auto_flowlabels=0")
            self.run(host, "sysctl", "-qw", f"net.ipv{self._fabric.version}.fib_multipath_hash_policy=0")

    def remove(self) -> None:
        """Runs their other half."""
        for host, group in (("near", self._fabric.near.classes[0]), ("far", self._fabric.far.classes[0])):
            self._script(host, host_script(self._plan, self._plan.of(group.name), f"{host}.sh"), "remove")

    def _script(self, name: str, text: str, word: str) -> None:
        path = self._folder / f"{name}.sh"
        path.write_text(text, encoding="utf-8")
        self.run(name, "sh", str(path), word)

    def kill(self, router: str) -> None:
        """A router loses both its links at once."""
        self._links(router, "down")

    def revive(self, router: str) -> None:
        """And gets them back."""
        self._links(router, "up")

    def _links(self, router: str, state: str) -> None:
        way = next(one for one in self._fabric.ways if one.router == router)
        for device in (way.near_device, way.far_device):
            self.ip(router, "link", "set", device, state)
        if state == "up" and self._fabric.version == 6:  # addresses of IPv6 go with the link
            for device, address, side in (
                (way.near_device, way.near, self._fabric.near),
                (way.far_device, way.far, self._fabric.far),
            ):
                prefix = next(network(one).prefixlen for one in side.ranges if _inside(one, address))
                self.ip(router, "addr", "replace", f"{address}/{prefix}", "dev", device, "nodad")

    def limit(self, router: str, bytes_per_s: float) -> None:
        """Bounds what a router passes on in each direction by token buckets."""
        way = next(one for one in self._fabric.ways if one.router == router)
        for device in (way.near_device, way.far_device):
            self.run(router, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                     f"{int(bytes_per_s * 8)}bit", "burst", "64kb", "latency", "50ms")  # fmt: skip

    def counted(self, router: str) -> tuple[int, int]:
        """Bytes that a router has sent so far: towards the near network, towards the far one."""
        way = next(one for one in self._fabric.ways if one.router == router)
        sent = []
        for device in (way.near_device, way.far_device):
            text = self.run(router, "cat", f"/sys/class/net/{device}/statistics/tx_bytes")
            sent.append(int(text))
        return sent[0], sent[1]

    def tables(self, name: str) -> str:
        """Rules and routes of a namespace, as text; without those of link-local addresses, which come by themselves."""
        family = f"-{self._fabric.version}"
        said = self.run(name, "ip", family, "rule") + self.run(name, "ip", family, "route", "show", "table", "all")
        return "".join(line for line in said.splitlines(keepends=True) if " fe80:" not in f" {line}")

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts a Python program of ours in a namespace; `close` ends it."""
        words = ["ip", "netns", "exec", self._prefix + name, sys.executable, *arguments]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._processes.append(process)
        return process

    def ip(self, name: str, *words: str) -> str:
        return self._run("ip", "-n", self._prefix + name, *words)

    def run(self, name: str, *words: str) -> str:
        return self._run("ip", "netns", "exec", self._prefix + name, *words)

    def _run(self, *words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            raise MachineError(f"`{' '.join(words)}` failed while a topology was built: {said}.")
        return done.stdout

    def end_programs(self) -> None:
        """Ends what was started here: politely, then not."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_S
        for process in self._processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()

    def close(self) -> None:
        """Ends what was started here and removes the namespaces."""
        self.end_programs()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", self._prefix + name], capture_output=True)
        self._names.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _inside(text: str, address: str) -> bool:
    here, place = ipaddress.ip_address(address), network(text)
    return here.version == place.version and here in place
