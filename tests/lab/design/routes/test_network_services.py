# SPDX-License-Identifier: Apache-2.0
"""Files for systemd-networkd and NetworkManager, applied by these programs in a namespace: the kernel has the same
rules and routes as after the iproute2 script."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fabric_builders import build_fabric

from sonde.design.routes.configurations import make_keyfile_files, make_networkd_files
from sonde.design.routes.plan import HostPlan, plan_routes
from sonde.design.routes.scripts import make_host_script

NETWORKD = Path("/lib/systemd/systemd-networkd")
DEVICE, NAMESPACE = "eth0", f"sonde-services-{os.getpid()}"
ADDRESS = {4: "10.1.0.100/16", 6: "fd01::64/64"}
PATIENCE_S = 20.0

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
    ),
]


def run_ip(*arguments: str) -> str:
    completed = subprocess.run(["ip", "-n", NAMESPACE, *arguments], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.fixture
def namespace() -> Iterator[None]:
    """A host with the device of the plan; it has no address yet."""
    if subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed here")
    try:
        run_ip("link", "set", "lo", "up")
        run_ip("link", "add", DEVICE, "mtu", "9000", "type", "veth", "peer", "name", "other", "mtu", "9000")
        for name in ("other", DEVICE):
            run_ip("link", "set", name, "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True, check=False)


def read_kernel_state(version: int) -> list[str]:
    """Rules and routes of the plan in the kernel, without their protocol, metric and preference."""
    text = run_ip(f"-{version}", "rule") + run_ip(f"-{version}", "route", "show", "table", "all")
    lines = re.sub(r"\n\t", " ", text).splitlines()
    plan_lines = [
        line for line in lines if " table local" not in line and "proto kernel" not in line and "fe80" not in line
    ]
    reduced_lines = [re.sub(r" (proto|metric|pref) \S+| onlink", "", line).strip() for line in plan_lines]
    return sorted(re.sub(r"\s+", " ", line) for line in reduced_lines if not line.startswith(("multicast", "ff00")))


def apply_and_remove_script(host: HostPlan, tmp_path: Path, version: int) -> list[str]:
    """The kernel state after the script applied the plan; the script removes it again."""
    run_ip("addr", "add", ADDRESS[version], "dev", DEVICE, *(["nodad"] if version == 6 else []))
    plan = plan_routes(build_fabric(3, clients=1, servers=1, ip_version=version))
    script = tmp_path / "routes.sh"
    script.write_text(make_host_script(plan, host, script.name))
    command = ["ip", "netns", "exec", NAMESPACE, "sh", str(script)]
    subprocess.run([*command, "apply"], check=True, capture_output=True)
    expected = read_kernel_state(version)
    subprocess.run([*command, "remove"], check=True, capture_output=True)
    run_ip("addr", "flush", "dev", DEVICE, "scope", "global")
    return expected


def start_in_namespace(script: str) -> subprocess.Popen[bytes]:
    """Starts a shell in the namespace with its own /run; /sys is read-only, so that no program waits for a device
    manager."""
    prepared = f"mount -o remount,ro /sys && mount -t tmpfs none /run && {script}"
    return subprocess.Popen(
        ["ip", "netns", "exec", NAMESPACE, "unshare", "-m", "sh", "-c", prepared],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def wait_for_kernel_state(expected: list[str], version: int, process: subprocess.Popen[bytes]) -> list[str]:
    """The kernel state once it is as expected, or when time is over or the process has ended."""
    try:
        end = time.monotonic() + PATIENCE_S
        while (lines := read_kernel_state(version)) != expected and time.monotonic() < end and process.poll() is None:
            time.sleep(0.1)
        return lines
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(not NETWORKD.exists(), reason="systemd-networkd is not installed")
@pytest.mark.parametrize("version", [4, 6])
def test_networkd_makes_same_rules_and_routes(namespace: None, tmp_path: Path, version: int) -> None:
    host = plan_routes(build_fabric(3, clients=1, servers=1, ip_version=version)).find_host_plan("clients")
    expected = apply_and_remove_script(host, tmp_path, version)
    folder = tmp_path / "network"
    for name, text in make_networkd_files(host).items():
        if "systemd/network" in name:
            path = folder / name.split("systemd/network/")[1]
            path.parent.mkdir(parents=True)
            path.write_text(text)
    site = f"[Match]\nName={DEVICE}\n[Network]\nAddress={ADDRESS[version]}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
    (folder / f"50-{DEVICE}.network").write_text(site)
    copied = f"mkdir -p /run/systemd/netif/links && cp -r {folder} /run/systemd/ && chmod -R a+rX /run/systemd"
    tmp_path.chmod(0o755)
    assert wait_for_kernel_state(expected, version, start_in_namespace(f"{copied} && exec {NETWORKD}")) == expected
    assert len(expected) > 6, "rules, tables and the multipath route"


@pytest.mark.skipif(
    shutil.which("NetworkManager") is None or shutil.which("dbus-daemon") is None,
    reason="NetworkManager is not installed (it is not installed for tests: it would take over this machine's network)",
)
@pytest.mark.parametrize("version", [4, 6])
def test_network_manager_makes_same_rules_and_routes(namespace: None, tmp_path: Path, version: int) -> None:
    host = plan_routes(build_fabric(3, clients=1, servers=1, ip_version=version)).find_host_plan("clients")
    expected = apply_and_remove_script(host, tmp_path, version)
    (text,) = [text for name, text in make_keyfile_files(host).items() if name.endswith(".nmconnection")]
    site = configparser.ConfigParser(strict=False, interpolation=None)
    site.optionxform = str  # type: ignore[method-assign,assignment]
    site.read_string(text)
    site["connection"].update({"type": "ethernet", "uuid": "aaaaaaaa-0000-4000-8000-000000000001"})
    for other, method in ((4, "disabled"), (6, "disabled")):
        if other == version:
            site[f"ipv{version}"].update({"method": "manual", "address1": ADDRESS[version]})
        else:
            site[f"ipv{other}"] = {"method": method}
    folder = tmp_path / "etc"
    (folder / "system-connections").mkdir(parents=True)
    file = folder / "system-connections" / f"{DEVICE}.nmconnection"
    with file.open("w") as out:
        site.write(out, space_around_delimiters=False)
    file.chmod(0o600)
    managed = f"[main]\nplugins=keyfile\nno-auto-default=*\n[device]\nmatch-device=interface-name:{DEVICE}\nmanaged=1\n"
    (folder / "NetworkManager.conf").write_text(managed)
    started = (
        f"mkdir -p /run/dbus && mount --bind {folder} /etc/NetworkManager && dbus-daemon --system --fork --nopidfile"
        " --print-pid=3 3>/run/bus && trap 'kill $(cat /run/bus)' EXIT && trap 'kill $child' TERM &&"
        " { NetworkManager --no-daemon & child=$!; wait $child; wait $child; }"
    )
    assert wait_for_kernel_state(expected, version, start_in_namespace(started)) == expected


@pytest.mark.parametrize("version", [4, 6])
def test_script_keeps_rules_of_the_site(namespace: None, tmp_path: Path, version: int) -> None:
    """A rule of the site with the preference of one of ours stays, whether the plan is applied or removed."""
    host = plan_routes(build_fabric(3, clients=1, servers=1, ip_version=version)).find_host_plan("clients")
    target = "192.0.2.0/24" if version == 4 else "2001:db8::/32"
    run_ip(f"-{version}", "rule", "add", "pref", str(host.rules[0].preference), "to", target, "table", "500")
    apply_and_remove_script(host, tmp_path, version)
    assert f"to {target} lookup 500" in run_ip(f"-{version}", "rule")


def test_standby_of_ipv6_carries_nothing_at_first(namespace: None, tmp_path: Path) -> None:
    """The kernel takes a route of the active routers, not that of the standby."""
    fabric = build_fabric(3, clients=1, servers=1, ip_version=6)
    fabric = replace(fabric, routers=(*fabric.routers[:2], replace(fabric.routers[2], priority=1)))
    plan = plan_routes(fabric)
    run_ip("addr", "add", ADDRESS[6], "dev", DEVICE, "nodad")
    script = tmp_path / "routes.sh"
    script.write_text(make_host_script(plan, plan.find_host_plan("clients"), script.name))
    command = ["ip", "netns", "exec", NAMESPACE, "sh", str(script), "apply"]
    subprocess.run(command, check=True, capture_output=True)
    answers = {
        run_ip("-6", "route", "get", f"fd02::{number:x}").split(" via ")[1].split()[0] for number in range(1, 40)
    }
    assert answers <= {"fd01::1", "fd01::2"}
