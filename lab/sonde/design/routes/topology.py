# SPDX-License-Identifier: Apache-2.0
"""A fabric built of network namespaces on this machine: one host of each side, every router, a bridge for each network.

Nothing outside the namespaces is changed. `close` removes them with everything in them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from sonde.design.routes.fabric import FabricRouter, FabricSide, is_address_in_ranges
from sonde.design.routes.plan import RoutePlan
from sonde.design.routes.scripts import make_host_script, make_router_script
from sonde.model.addresses import parse_network
from sonde.model.confined_files import remove_tree, write_file
from sonde.model.errors import MachineError

# Time that processes have to end after SIGTERM before they are killed.
_TERMINATE_GRACE_S = 2.0


class Topology:
    """The namespaces of one fabric. Those of the two hosts are called `near` and `far`, those of the routers have the
    names of the routers."""

    def __init__(self, plan: RoutePlan, near_addresses: Sequence[str], far_addresses: Sequence[str]) -> None:
        """`near_addresses` and `far_addresses` are what the two hosts get: one namespace stands for several clients or
        servers. Raises MachineError where namespaces may not be made."""
        self._plan = plan
        self._fabric = plan.fabric
        self._prefix = f"sonde-{os.getpid()}-"
        self._names: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="sonde-routes-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        if shutil.which("ip") is None:
            raise MachineError("Building a topology needs the program ip (iproute2), which is not installed.")
        try:
            self._build_namespaces(near_addresses, far_addresses)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Topology:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _build_namespaces(self, near_addresses: Sequence[str], far_addresses: Sequence[str]) -> None:
        fabric = self._fabric
        for name in ("near", "far", "near-net", "far-net", *(router.name for router in fabric.routers)):
            self._create_namespace(name)
        for side, host, bridge, addresses in (
            (fabric.near, "near", "near-net", near_addresses),
            (fabric.far, "far", "far-net", far_addresses),
        ):
            self.run_ip_command(bridge, "link", "add", "br0", "type", "bridge")
            self.run_ip_command(bridge, "link", "set", "br0", "up")
            self._connect_namespace(host, side.classes[0].device, bridge, side, addresses)
            for router in fabric.routers:
                address = router.near_address if side is fabric.near else router.far_address
                device = (router.near_device if side is fabric.near else router.far_device) or f"{side.network[:8]}0"
                self._connect_namespace(router.name, device, bridge, side, [address])

    def _create_namespace(self, namespace: str) -> None:
        completed = subprocess.run(["ip", "netns", "add", self._prefix + namespace], capture_output=True, text=True)
        if completed.returncode:
            raise MachineError(
                f"Network namespaces cannot be made here ({completed.stderr.strip()}); run as root on a machine that"
                " allows it."
            )
        self._names.append(namespace)
        self.run_ip_command(namespace, "link", "set", "lo", "up")

    def _connect_namespace(
        self, namespace_name: str, device_name: str, bridge_name: str, fabric_side: FabricSide, addresses: Sequence[str]
    ) -> None:
        """Connects a namespace to a bridge, with the prefix of the network that each address lies in."""
        port = f"p{len(self._names)}-{self._names.index(namespace_name)}"
        mtu = str(min(fabric_side.mtu or 1500, 65535))
        namespace, bridge_namespace = (self._prefix + namespace_name, self._prefix + bridge_name)
        self._run_command("ip", "link", "add", device_name, "mtu", mtu, "netns", namespace, "type", "veth",
                          "peer", "name", port, "mtu", mtu, "netns", bridge_namespace)  # fmt: skip
        self.run_ip_command(bridge_name, "link", "set", port, "master", "br0", "up")
        self.run_ip_command(namespace_name, "link", "set", device_name, "up")
        for address in addresses:
            # without "nodad" an IPv6 address may be used only a second later
            options = ["nodad"] if self._fabric.version == 6 else []
            self.run_ip_command(
                namespace_name, "addr", "add", _add_prefix_length(fabric_side, address), "dev", device_name, *options
            )

    def apply_plan(self) -> None:
        """Runs the scripts of the plan in the namespaces."""
        self._run_host_scripts("apply")
        for router in self._fabric.routers:
            self._run_script(router.name, make_router_script(self._plan, "router.sh"), "apply")

    def remove_plan(self) -> None:
        """Lets the scripts of the two hosts remove what they applied."""
        self._run_host_scripts("remove")

    def _run_host_scripts(self, verb: str) -> None:
        for name, host_class in (("near", self._fabric.near.classes[0]), ("far", self._fabric.far.classes[0])):
            host_plan = self._plan.find_host_plan(host_class.name)
            self._run_script(name, make_host_script(self._plan, host_plan, f"{name}.sh"), verb)

    def _run_script(self, namespace: str, script_text: str, script_verb: str) -> None:
        path = self._folder / f"{namespace}.sh"
        write_file(path, script_text)
        self.run_program(namespace, "sh", str(path), script_verb)

    def hash_by_address(self) -> None:
        """Lets both hosts choose routers by addresses alone (policy 0), whatever the scripts have set. IPv6 hashes flow
        labels too, so the hosts send none."""
        for host in ("near", "far"):
            if self._fabric.version == 6:
                self.run_program(host, "sysctl", "-qw", "net.ipv6.auto_flowlabels=0")
            self.run_program(host, "sysctl", "-qw", f"net.ipv{self._fabric.version}.fib_multipath_hash_policy=0")

    def disable_router(self, router_name: str) -> None:
        """Takes both links of a router down at once."""
        self._set_links(router_name, "down")

    def enable_router(self, router_name: str) -> None:
        """Brings both links of a router up again."""
        self._set_links(router_name, "up")

    def _set_links(self, router_name: str, link_state: str) -> None:
        router = self._find_router(router_name)
        for device in (router.near_device, router.far_device):
            self.run_ip_command(router_name, "link", "set", device, link_state)
        if link_state == "up" and self._fabric.version == 6:  # the kernel removes IPv6 addresses when a link goes down
            for device, address, side in (
                (router.near_device, router.near_address, self._fabric.near),
                (router.far_device, router.far_address, self._fabric.far),
            ):
                self.run_ip_command(
                    router_name, "addr", "replace", _add_prefix_length(side, address), "dev", device, "nodad"
                )

    def limit_router(self, router_name: str, bytes_per_s: float) -> None:
        """Bounds what a router forwards in each direction, by token buckets."""
        router = self._find_router(router_name)
        for device in (router.near_device, router.far_device):
            self.run_program(router_name, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                             f"{int(bytes_per_s * 8)}bit", "burst", "64kb", "latency", "50ms")  # fmt: skip

    def read_bytes_sent_to_near_and_far(self, router_name: str) -> tuple[int, int]:
        """Bytes that a router has sent so far: towards the near network, towards the far one."""
        router = self._find_router(router_name)
        near_bytes, far_bytes = (
            int(self.run_program(router_name, "cat", f"/sys/class/net/{device}/statistics/tx_bytes"))
            for device in (router.near_device, router.far_device)
        )
        return near_bytes, far_bytes

    def _find_router(self, router_name: str) -> FabricRouter:
        return next(router for router in self._fabric.routers if router.name == router_name)

    def read_rules_and_routes(self, namespace: str) -> str:
        """Rules and routes of a namespace, as text; without those of link-local addresses, which the kernel adds."""
        family = f"-{self._fabric.version}"
        text = self.run_program(namespace, "ip", family, "rule")
        text += self.run_program(namespace, "ip", family, "route", "show", "table", "all")
        return "".join(line for line in text.splitlines(keepends=True) if " fe80:" not in f" {line}")

    def start_python(self, namespace: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts Python with these arguments in a namespace; `close` ends it."""
        # -P: a module in the current directory, which others may write, does not count.
        command = ["ip", "netns", "exec", self._prefix + namespace, sys.executable, "-P", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._processes.append(process)
        return process

    def run_ip_command(self, namespace: str, *arguments: str) -> str:
        """Runs `ip` with these arguments in a namespace; returns its standard output. Raises MachineError."""
        return self._run_command("ip", "-n", self._prefix + namespace, *arguments)

    def run_program(self, namespace: str, *command: str) -> str:
        """Runs a command in a namespace; its standard output. Raises MachineError."""
        return self._run_command("ip", "netns", "exec", self._prefix + namespace, *command)

    def _run_command(self, *command: str) -> str:
        completed = subprocess.run(command, capture_output=True, text=True)
        if completed.returncode:
            error_text = " ".join((completed.stderr or completed.stdout).split())
            raise MachineError(f"`{' '.join(command)}` failed while a topology was built: {error_text}.")
        return completed.stdout

    def end_started_programs(self) -> None:
        """Ends what `start_python` started: by SIGTERM, later by SIGKILL."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _TERMINATE_GRACE_S
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()

    def close(self) -> None:
        """Ends the programs and removes the namespaces."""
        self.end_started_programs()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", self._prefix + name], capture_output=True)
        self._names.clear()
        with suppress(OSError):
            remove_tree(self._folder)


def _add_prefix_length(fabric_side: FabricSide, address: str) -> str:
    """An address with the prefix length of the range that it lies in: 10.1.0.1/16."""
    networks = (parse_network(text) for text in fabric_side.ranges if is_address_in_ranges([text], address))
    return f"{address}/{next(networks).prefixlen}"
