# SPDX-License-Identifier: Apache-2.0
"""The S3 backend on a real implementation of the service: geometry, integrity, requests, latencies, cleaning."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from engine_under_test import DONE, INTERRUPTED, MISMATCH, Engine, Plan, find_schema_errors
from object_server import BUCKET, KEY, SECRET, Fault, ObjectServer

KIB = 1024
MIB = 1024 * KIB


def make_object_plan(*phases: Plan, **members: Any) -> Plan:
    """A plan of eight objects of 64 KiB per task."""
    target = {"path": f"s3://{BUCKET}/bench", **members.pop("target", {})}
    if "meta" in members:
        return {"schema": "sonde-plan/2", "id": "objects", "target": target, "phases": list(phases), **members}
    data: Plan = {"backend": "s3", "files": {"mapping": "many", "count": 8}, "access": {"transfer": "64KiB"}}
    data.update(members.pop("data", {}))
    return {
        "schema": "sonde-plan/2",
        "id": "objects",
        "target": target,
        "data": data,
        "phases": list(phases) or [{"id": "w", "op": "write"}],
        **members,
    }


LARGE = {"files": {"mapping": "per_task"}, "access": {"transfer": "5MiB", "segments": 3}}


def test_objects_are_written_verified_and_removed(engine: Engine, object_server: ObjectServer) -> None:
    phases = [{"id": "w", "op": "write"}, {"id": "r", "op": "read", "verify": "on_read"}, {"id": "s", "op": "stat"}]
    result = engine.run(make_object_plan(*phases, tasks={"threads": 2}))
    assert result.code == DONE, result.err
    assert [complaint for line in result.lines for complaint in find_schema_errors(line)] == []
    assert result.finished("w")["bytes"]["written"] == 16 * 64 * KIB
    assert result.finished("r")["verify"] == {"checked_bytes": 16 * 64 * KIB, "mismatches": 0}
    assert object_server.requests["HEAD"] == 16
    assert object_server.requests["PUT"] == 16 + 1  # the manifest
    assert result.end["files_removed"] == 16
    assert object_server.keys() == []
    assert result.of("run")[0]["store"]["bucket"] == BUCKET


def test_removal_phase_deletes_each_object_once(engine: Engine, object_server: ObjectServer) -> None:
    result = engine.run(make_object_plan({"id": "w", "op": "write"}, {"id": "d", "op": "remove"}))
    assert result.code == DONE
    assert result.finished("d")["ops"]["done"] == 8
    assert object_server.requests["DELETE"] == 8 + 1  # the manifest


def test_large_object_is_a_multipart_upload(engine: Engine, object_server: ObjectServer) -> None:
    reads = {"id": "r", "op": "read", "verify": "on_read", "access": {"transfer": "64KiB", "block": "15MiB"}}
    result = engine.run(make_object_plan({"id": "w", "op": "write"}, reads, data=LARGE))
    assert result.code == DONE, result.err
    assert object_server.requests["POST uploads"] == 1
    assert object_server.requests["PUT uploadId"] == 3
    assert object_server.requests["POST uploadId"] == 1
    assert object_server.requests["GET"] == 240 + 1  # ranges, and the search for a manifest
    latency = result.finished("w")["latency"]
    assert {kind: latency[kind]["count"] for kind in ("open", "write", "close")} == {"open": 1, "write": 3, "close": 1}
    assert result.finished("r")["verify"] == {"checked_bytes": 15 * MIB, "mismatches": 0}


def test_queued_requests_are_in_flight_together(engine: Engine, object_server: ObjectServer) -> None:
    object_server.delay_s = 0.02
    data = {**LARGE, "io": {"queue_depth": 8}}
    reads = {"id": "r", "op": "read", "verify": "on_read", "access": {"transfer": "640KiB", "block": "15MiB"}}
    result = engine.run(make_object_plan({"id": "w", "op": "write"}, reads, data=data))
    assert result.code == DONE, result.err
    read = result.finished("r")
    assert read["verify"] == {"checked_bytes": 15 * MIB, "mismatches": 0}
    # One after the other, 24 requests would take longer than all their latencies divided by two.
    assert read["seconds"]["elapsed"] < read["latency"]["read"]["mean_ns"] * 24 / 1e9 / 2


def test_changed_byte_is_a_mismatch(engine: Engine, object_server: ObjectServer) -> None:
    keep = {"keep": True, "directory": "kept"}
    assert engine.run(make_object_plan({"id": "w", "op": "write"}, target=keep)).code == DONE
    stored = object_server.keys()
    key = next(name for name in stored if not name.endswith(".json"))
    content = bytearray(object_server.bucket.keys[key].value)
    content[5000] ^= 1

    # A phase in a separate process reads the objects of the phase before it.
    class Corrupting(Fault):
        def matches(self, environ: dict[str, Any]) -> bool:
            if environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"].endswith(key.rpartition("/")[2]):
                object_server.put(environ["PATH_INFO"].removeprefix(f"/{BUCKET}/"), bytes(content))
            return False

    object_server.reset()
    object_server.faults.append(Corrupting())
    reads = {"id": "r", "op": "read", "verify": "on_read"}
    result = engine.run(make_object_plan({"id": "w", "op": "write"}, reads))
    assert result.code == MISMATCH
    assert result.finished("r")["verify"]["mismatches"] == 1
    assert result.of("error")[0]["offset"] == 5000


def test_metadata_phases_count_requests_by_method(engine: Engine, object_server: ObjectServer) -> None:
    meta = {
        "backend": "s3",
        "tree": {"depth": 1, "branching": 2, "items_per_dir": 5},
        "file": {"write": "4KiB", "read": "4KiB"},
    }
    phases = [
        {"id": "c", "op": "create"},
        {"id": "s", "op": "stat"},
        {"id": "r", "op": "read", "verify": "on_read"},
        {"id": "l", "op": "readdir"},
        {"id": "d", "op": "remove"},
    ]
    result = engine.run(make_object_plan(*phases, meta=meta, tasks={"threads": 2}))
    assert result.code == DONE, result.err
    assert {phase: result.finished(phase)["ops"]["done"] for phase in "csrd"} == dict.fromkeys("csrd", 30)
    assert result.finished("r")["verify"]["mismatches"] == 0
    assert result.finished("l")["entries"] == 30 + 2  # items, and the two prefixes below the root
    assert object_server.requests["HEAD"] == 30
    assert object_server.requests["DELETE"] == 30 + 1
    assert object_server.keys() == []


def test_listing_of_several_pages_is_complete(engine: Engine, object_server: ObjectServer) -> None:
    object_server.page_keys = 10
    meta = {"backend": "s3", "tree": {"items_per_dir": 55}}
    result = engine.run(make_object_plan({"id": "c", "op": "create"}, {"id": "l", "op": "readdir"}, meta=meta))
    assert result.code == DONE, result.err
    assert result.finished("l")["entries"] == 55
    assert result.end["files_removed"] == 55
    assert object_server.requests["GET list-type"] >= 6
    assert object_server.keys() == []


def test_killed_run_is_removed_by_clean(engine: Engine, object_server: ObjectServer) -> None:
    object_server.put("bench/users-own", b"data")
    data = {"files": {"mapping": "per_task"}, "access": {"transfer": "5MiB", "segments": 100}}
    object_server.delay_s = 0.05
    with engine.start(make_object_plan(data=data)) as running:
        running.wait_for_phase("w")
        running.process.kill()
        running.process.wait()
    assert object_server.bucket.multiparts
    object_server.put("bench/stranger/file", b"data")
    answer = engine.ask("clean", f"s3://{BUCKET}/bench", "--json")
    (entry,) = json.loads(answer.out)
    assert (answer.code, entry["remaining"]) == (DONE, [])
    assert object_server.keys() == ["bench/stranger/file", "bench/users-own"]
    assert not object_server.bucket.multiparts


def test_clean_preserves_objects_of_no_run(engine: Engine, object_server: ObjectServer) -> None:
    keep = {"keep": True, "directory": "kept"}
    assert engine.run(make_object_plan(target=keep)).code == DONE
    object_server.put("bench/kept/users-own", b"data")
    answer = engine.ask("clean", f"s3://{BUCKET}/bench", "--json")
    (entry,) = json.loads(answer.out)
    assert entry["remaining"] == [f"s3://{BUCKET}/bench/kept holds objects that this run did not make: left alone"]
    assert object_server.keys() == ["bench/kept/.sonde-manifest.json", "bench/kept/users-own"]


def test_interrupted_run_leaves_nothing(engine: Engine, object_server: ObjectServer) -> None:
    data = {"files": {"mapping": "per_task"}, "access": {"transfer": "5MiB", "segments": 100}}
    object_server.delay_s = 0.05
    with engine.start(make_object_plan(data=data)) as running:
        running.wait_for_phase("w")
        running.process.send_signal(signal.SIGINT)
        result = running.result()
    assert result.code == INTERRUPTED
    assert object_server.keys() == []
    assert not object_server.bucket.multiparts


def test_later_process_reads_objects_of_an_earlier_process(engine: Engine, object_server: ObjectServer) -> None:
    reads = {"id": "r", "op": "read", "verify": "on_read", "process": "separate"}
    result = engine.run(make_object_plan({"id": "w", "op": "write"}, reads))
    assert result.code == DONE, result.err
    assert result.finished("r")["verify"] == {"checked_bytes": 8 * 64 * KIB, "mismatches": 0}
    assert object_server.keys() == []


def test_requests_are_signed_without_the_secret(engine: Engine, object_server: ObjectServer) -> None:
    result = engine.run(make_object_plan(target={"s3": {"region": "eu-test-1"}}))
    assert result.code == DONE
    signatures = {headers.get("HTTP_AUTHORIZATION", "") for headers in object_server.headers}
    assert all(f"Credential={KEY}/" in text and "/eu-test-1/s3/aws4_request" in text for text in signatures)
    assert SECRET not in (engine.folder / "record.ndjson").read_text(encoding="utf-8")


def test_credentials_file_is_used_without_variables(
    engine: Engine, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_PROFILE", "lab")
    file = engine.folder / "credentials"
    file.write_text("[default]\naws_access_key_id = no\n[lab]\naws_access_key_id = FROMFILE\naws_secret_access_key=x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    assert engine.run(make_object_plan()).code == DONE
    assert all("Credential=FROMFILE/" in headers["HTTP_AUTHORIZATION"] for headers in object_server.headers)


def test_endpoints_are_used_in_turn(engine: Engine, object_server: ObjectServer) -> None:
    endpoints = [object_server.url, object_server.url.replace("localhost", "127.0.0.1")]
    result = engine.run(make_object_plan(target={"s3": {"endpoints": endpoints}}, tasks={"threads": 2}))
    assert result.code == DONE, result.err
    hosts = [headers["HTTP_HOST"].partition(":")[0] for headers in object_server.headers]
    assert {host: hosts.count(host) >= 8 for host in set(hosts)} == {"localhost": True, "127.0.0.1": True}
