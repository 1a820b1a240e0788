# SPDX-License-Identifier: Apache-2.0
"""The sampler next to sar, collectl and node_exporter here: all see the same bytes of a known write, within 2 %.

Each comparison uses one interval: the first and the last sample of the other program. Counters of the kernel are read
at slightly different times, so the writer rests around both ends; other programs may not, so a comparison has three
attempts.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import read_telemetry_files
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults
from sonde.telemetry.sampler import TelemetrySampler

pytestmark = pytest.mark.nightly  # they compare what the whole machine does, and wait for samples
WRITTEN_BYTES = 256 << 20
MAX_DIFFERENCE = 0.02


def write_to_disk(folder: Path) -> None:
    """Writes a known number of bytes to the device under a folder."""
    with (folder / "written").open("wb", 0) as file:
        for _ in range(WRITTEN_BYTES >> 20):
            file.write(os.urandom(1 << 10) * 1024)
        os.fsync(file.fileno())


def require_agreement(compare: Callable[[Path], tuple[float | None, float]], folder: Path) -> None:
    """In one of three attempts the other program and the sampler differ by at most 2 %, and saw the written bytes."""
    differences = []
    for attempt in range(3):
        attempt_folder = folder / f"attempt{attempt}"
        attempt_folder.mkdir()
        other, sampled = compare(attempt_folder)
        assert sampled >= 0.9 * WRITTEN_BYTES
        differences.append(abs((other or 0.0) / sampled - 1))
        if differences[-1] <= MAX_DIFFERENCE:
            return
    raise AssertionError(f"differences of {differences}")


def find_device(data: TelemetryData, start: float, stop: float) -> tuple[str, float]:
    """The whole device that wrote most in the interval, and how much."""
    grown = {
        key.part: data.compute_increase("disk_written_bytes", key.part, start, stop) or 0.0
        for key in data.list_series_keys("disk_written_bytes")
    }
    device = max(grown, key=lambda part: grown[part])
    return device, grown[device]


@contextmanager
def sampling(folder: Path) -> Iterator[None]:
    """Samples every 0.2 s into the folder."""
    with TelemetrySampler(folder / "telemetry.ndjson", interval_s=0.2):
        yield


@pytest.mark.skipif(shutil.which("sadf") is None, reason="sysstat is not installed")
def test_sar_and_the_sampler_see_the_same_bytes(tmp_path: Path) -> None:
    require_agreement(compare_with_sar, tmp_path)


def compare_with_sar(tmp_path: Path) -> tuple[float | None, float]:
    """Bytes that sar and the sampler saw on the device that wrote most."""
    collector = next(iter(Path("/usr/lib").glob("sysstat/sadc")), Path("/usr/lib64/sa/sadc"))
    if not collector.exists():
        pytest.skip("sadc of sysstat is not where it is expected")
    log = tmp_path / "sa"
    # A record each second; sadf gives the rates between two records.
    command = [str(collector), "-S", "DISK", "1", "9", str(log)]
    with sampling(tmp_path), subprocess.Popen(command) as process:
        time.sleep(2)
        write_to_disk(tmp_path)
        process.wait(timeout=60)
    answer = subprocess.run(
        ["sadf", "-j", "-T", str(log), "--", "-d"],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
    )
    (tmp_path / "sar.json").write_text(answer.stdout)
    (foreign,) = read_foreign_telemetry(tmp_path / "sar.json", TelemetryDefaults("n1"))
    sampled = TelemetryData(read_telemetry_files(tmp_path))
    samples = [sample for sample in foreign.samples if sample.source == "disks"]
    start, stop = samples[0].time, samples[-1].time
    device, written = find_device(sampled, start, stop)
    # Each value is the rate of the second before its time; the writer rested in the first.
    column = foreign.columns["disks"].index("disk_write_rate")
    rates = [(sample.parts[device][column] or 0.0) for sample in samples if device in sample.parts]
    return sum(rates[1:]), written


@pytest.mark.skipif(shutil.which("collectl") is None, reason="collectl is not installed")
def test_collectl_and_the_sampler_see_the_same_bytes(tmp_path: Path) -> None:
    require_agreement(compare_with_collectl, tmp_path)


def compare_with_collectl(tmp_path: Path) -> tuple[float | None, float]:
    """The same of collectl."""
    command = ["collectl", "-P", "-sD", "-i1", "-c8"]
    environment = {**os.environ, "TZ": "UTC"}
    with (
        sampling(tmp_path),
        (tmp_path / "collectl.txt").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=environment) as process,
    ):
        time.sleep(3)
        write_to_disk(tmp_path)
        process.wait(timeout=60)
    (foreign,) = read_foreign_telemetry(tmp_path / "collectl.txt", TelemetryDefaults("n1"))
    sampled = TelemetryData(read_telemetry_files(tmp_path))
    # Its times are whole seconds, so the interval is known to a second; the writer rested longer at both ends.
    start, stop = foreign.samples[0].time - 1, foreign.samples[-1].time
    device, written = find_device(sampled, start, stop)
    column = foreign.columns["disks"].index("disk_write_rate")
    rates = [sample.parts[device][column] or 0.0 for sample in foreign.samples]
    return sum(rates), written


def scrape(port: int) -> str:
    """The metrics of node_exporter now, after a line with the time."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return f"{time.time():.3f}\n{answer.read().decode()}"


def find_free_port() -> int:
    """A port of the loopback interface that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def node_exporter() -> Iterator[int]:
    """node_exporter on a free port of this host."""
    port = find_free_port()
    command = ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults"]
    command += ["--collector.diskstats", "--collector.netdev", "--collector.meminfo"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                scrape(port)
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.mark.skipif(shutil.which("prometheus-node-exporter") is None, reason="node_exporter is not installed")
def test_node_exporter_and_the_sampler_see_the_same_bytes(tmp_path: Path) -> None:
    require_agreement(compare_with_node_exporter, tmp_path)


def compare_with_node_exporter(tmp_path: Path) -> tuple[float | None, float]:
    """The same of node_exporter; its memory agrees too."""
    with node_exporter() as port, sampling(tmp_path):
        time.sleep(0.5)
        scrapes = [scrape(port)]
        write_to_disk(tmp_path)
        time.sleep(0.5)
        scrapes.append(scrape(port))
        time.sleep(0.5)
    (tmp_path / "scrapes.txt").write_text("\n".join(scrapes))
    (foreign,) = read_foreign_telemetry(tmp_path / "scrapes.txt", TelemetryDefaults("n1"))
    other, sampled = TelemetryData([foreign]), TelemetryData(read_telemetry_files(tmp_path))
    start, stop = foreign.samples[0].time, foreign.samples[-1].time
    device, written = find_device(sampled, start, stop)
    memory = other.compute_mean("memory_available_bytes", "", start, stop)
    assert memory == pytest.approx(sampled.compute_mean("memory_available_bytes", "", start, stop), rel=0.1)
    return other.compute_increase("disk_written_bytes", device, start, stop), written


@contextmanager
def prometheus(folder: Path, exporter_port: int) -> Iterator[int]:
    """A Prometheus that scrapes the exporter each second, on a free port of this host."""
    port = find_free_port()
    target = f'{{"targets": ["127.0.0.1:{exporter_port}"]}}'
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: node, static_configs: [{target}]}}]\n"
    )
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10).close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.skipif(
    shutil.which("prometheus-node-exporter") is None or shutil.which("prometheus") is None,
    reason="prometheus and node_exporter are not installed",
)
def test_prometheus_and_the_sampler_see_the_same_bytes(tmp_path: Path) -> None:
    require_agreement(compare_with_prometheus, tmp_path)


def compare_with_prometheus(tmp_path: Path) -> tuple[float | None, float]:
    """The same of Prometheus, which answers with its last scrape; the writer rests for several around both ends."""
    with node_exporter() as exporter_port, prometheus(tmp_path, exporter_port) as port, sampling(tmp_path):
        time.sleep(3)
        begin = time.time()
        time.sleep(3)
        write_to_disk(tmp_path)
        time.sleep(4)
        query = f"query=node_disk_written_bytes_total&start={begin:.0f}&end={int(time.time())}&step=1"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query_range?{query}", timeout=10) as answer:
            (tmp_path / "answer.json").write_bytes(answer.read())
    (foreign,) = read_foreign_telemetry(tmp_path / "answer.json", TelemetryDefaults("n1"))
    other, sampled = TelemetryData([foreign]), TelemetryData(read_telemetry_files(tmp_path))
    start, stop = foreign.samples[0].time, foreign.samples[-1].time
    device, written = find_device(sampled, start, stop)
    return other.compute_increase("disk_written_bytes", device, start, stop), written
