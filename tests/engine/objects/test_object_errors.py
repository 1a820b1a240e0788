# SPDX-License-Identifier: Apache-2.0
"""Errors of an object store and wrong plans: one sentence each, retries counted, nothing left behind."""

from __future__ import annotations

import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, Engine, Plan
from object_server import BUCKET, Fault, ObjectServer, run_object_server
from test_objects import LARGE, make_object_plan

WRITE: Plan = {"id": "w", "op": "write"}
TREE: Plan = {"backend": "s3", "tree": {"items_per_dir": 2}}


def make_write_phases(**members: Any) -> list[Plan]:
    return [{**WRITE, **members}]


def make_data(**members: Any) -> Plan:
    return {"data": members}


# Each asks for something that an object store cannot do: phases, members of the plan, and a part of the sentence.
WRONG_PLANS: dict[str, tuple[list[Plan], Plan, str]] = {
    "rewrite": ([WRITE, {"id": "x", "op": "rewrite"}], {}, "changes parts of objects"),
    "mixed": ([WRITE, {"id": "x", "op": "mixed", "access": {"read_ratio": 0.5}}], {}, "changes parts of objects"),
    "overwrite": (make_write_phases(open="overwrite"), {}, "changes parts of objects"),
    "shared": (make_write_phases(), make_data(files={"mapping": "shared"}), "several tasks write one object"),
    "per_node": (make_write_phases(), make_data(files={"mapping": "per_node"}), "several tasks write one object"),
    "group": (
        make_write_phases(),
        make_data(files={"mapping": "per_group", "group_size": 2}),
        "several tasks write one object",
    ),
    "gap": (make_write_phases(), make_data(access={"transfer": "8MiB", "gap": "1MiB"}), "leaves holes"),
    "offset": (make_write_phases(), make_data(access={"transfer": "8MiB", "offset": "1MiB"}), "leaves holes"),
    "stride": (
        make_write_phases(),
        make_data(access={"transfer": "8MiB", "order": "stride", "stride": "9MiB"}),
        "leaves holes",
    ),
    "random_replace": (
        make_write_phases(),
        make_data(access={"transfer": "8MiB", "order": "random_replace"}),
        "leaves holes",
    ),
    "small_part": (make_write_phases(), make_data(access={"transfer": "1MiB", "segments": 2}), "at least 5 MiB"),
    "reverse_stop": (
        make_write_phases(stop={"time": "1s"}),
        make_data(access={"transfer": "5MiB", "segments": 2, "order": "reverse"}),
        "parts missing in the middle",
    ),
    "fsync": (make_write_phases(), make_data(io={"fsync": "end"}), "has no meaning for S3"),
    "sync": (make_write_phases(), make_data(io={"sync": "dsync"}), "no page cache"),
    "direct": (make_write_phases(), make_data(io={"direct": True}), "no page cache"),
    "preallocate": (make_write_phases(), make_data(io={"preallocate": "truncate"}), "has its size when it is stored"),
    "collective": (make_write_phases(), make_data(io={"collective": True}), "mpiio"),
    "paths": (make_write_phases(), make_data(files={"paths": ["/tmp/a"]}), "the target is a bucket"),
    "across": (make_write_phases(), make_data(files={"mapping": "many", "across": ["/tmp"]}), "the target is a bucket"),
    "use_existing": (make_write_phases(), {"target": {"use_existing": True}}, "the target is a bucket"),
    "striping": (make_write_phases(), {"target": {"striping": {"count": 1}}}, "the target is a bucket"),
    "posix": (make_write_phases(), make_data(backend="posix"), 'use "s3"'),
    "directory": (make_write_phases(), {"target": {"path": "/tmp"}}, "needs a bucket"),
    "remount": (make_write_phases(before=[{"kind": "remount"}]), {}, "has a remount"),
    "endpoint": (make_write_phases(), {"target": {"s3": {"endpoints": ["ftp://host"]}}}, "is no address of a server"),
    "key_in_endpoint": (
        make_write_phases(),
        {"target": {"s3": {"endpoints": ["http://a:b@host"]}}},
        "is no address of a server",
    ),
    "mktree": ([{"id": "x", "op": "mktree"}], {"meta": TREE}, "prefixes"),
    "rmtree": ([{"id": "x", "op": "rmtree"}], {"meta": TREE}, "prefixes"),
    "rename": ([{"id": "c", "op": "create"}, {"id": "x", "op": "rename"}], {"meta": TREE}, "does not exist in S3"),
    "open_close": ([{"id": "x", "op": "open_close"}], {"meta": TREE}, "does not exist in S3"),
    "walk": ([{"id": "x", "op": "walk"}], {"meta": TREE}, "S3 does not have"),
    "directories": ([{"id": "x", "op": "create"}], {"meta": {**TREE, "objects": "directories"}}, "do not exist in S3"),
    "mknod": ([{"id": "x", "op": "create"}], {"meta": {**TREE, "file": {"create": "mknod"}}}, "system call"),
    "item_fsync": ([{"id": "x", "op": "create"}], {"meta": {**TREE, "file": {"fsync": True}}}, "system call"),
    "statx": ([{"id": "x", "op": "stat"}], {"meta": {**TREE, "lookup": {"stat": "statx"}}}, "system call"),
    "empty_read": ([{"id": "x", "op": "read"}], {"meta": TREE}, "S3"),
}


@pytest.mark.parametrize("case_name", WRONG_PLANS)
def test_impossible_plan_is_rejected(engine: Engine, object_server: ObjectServer, case_name: str) -> None:
    phases, members, fragment = WRONG_PLANS[case_name]
    result = engine.run(make_object_plan(*phases, **json.loads(json.dumps(members))))
    assert result.code == BAD_PLAN, result.err
    assert fragment in result.only_sentence
    assert sum(object_server.requests.values()) == 0


# Answers of a service to the first request: fault, exit code, part of the sentence.
REFUSALS: dict[str, tuple[Fault, int, str]] = {
    "no_bucket": (Fault("404 Not Found", "NoSuchBucket", "It does not exist"), BAD_PLAN, "name an existing bucket"),
    "unknown_key": (Fault("403 Forbidden", "InvalidAccessKeyId", "No such key"), ENVIRONMENT, "AWS_ACCESS_KEY_ID"),
    "wrong_secret": (Fault("403 Forbidden", "SignatureDoesNotMatch", "It differs"), ENVIRONMENT, "AWS_SECRET_ACCESS"),
    "denied": (Fault("403 Forbidden", "AccessDenied", "Access Denied"), ENVIRONMENT, "AccessDenied"),
    "token": (Fault("400 Bad Request", "ExpiredToken", "The token expired"), ENVIRONMENT, "ExpiredToken"),
    "clock": (Fault("403 Forbidden", "RequestTimeTooSkewed", "Too large"), ENVIRONMENT, "set the clock"),
    "region": (Fault("301 Moved Permanently", "PermanentRedirect", "Elsewhere"), ENVIRONMENT, "PermanentRedirect"),
    "busy": (Fault(), ENVIRONMENT, "503 SlowDown: Please reduce your request rate., also after 1 retry"),
    "broken": (Fault("500 Internal Server Error", "InternalError", "Sorry"), ENVIRONMENT, "500 InternalError"),
}


@pytest.mark.parametrize("case_name", REFUSALS)
def test_refusal_before_the_run_is_one_sentence(engine: Engine, object_server: ObjectServer, case_name: str) -> None:
    fault, code, fragment = REFUSALS[case_name]
    object_server.faults.append(Fault(fault.status, fault.code, fault.message))
    result = engine.run(make_object_plan(target={"s3": {"retries": 1}}))
    assert result.code == code
    assert fragment in result.only_sentence
    assert result.lines == []
    assert object_server.keys() == []


def test_missing_bucket_is_reported(engine: Engine, object_server: ObjectServer) -> None:
    result = engine.run(make_object_plan(target={"path": "s3://absent/x"}))
    assert result.code == BAD_PLAN
    assert "bucket absent at" in result.only_sentence


def test_missing_credentials_are_explained(
    engine: Engine, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = engine.run(make_object_plan())
    assert result.code == ENVIRONMENT
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in result.only_sentence


def test_unreachable_server_is_reported(engine: Engine, object_server: ObjectServer) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        result = engine.run(make_object_plan(target={"s3": {"endpoints": [endpoint], "retries": 1}}))
    assert result.code == ENVIRONMENT
    assert endpoint in result.only_sentence


def test_unknown_host_is_reported(engine: Engine, object_server: ObjectServer) -> None:
    result = engine.run(make_object_plan(target={"s3": {"endpoints": ["http://s3.invalid"], "retries": 0}}))
    assert result.code == ENVIRONMENT
    assert "s3.invalid" in result.only_sentence


def test_storm_of_503_is_retried_and_counted(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(Fault(method="PUT", url="/data", times=3))
    result = engine.run(make_object_plan())
    assert result.code == DONE, result.err
    end = result.finished("w")
    assert end["ops"]["retries"] == 3
    assert end["ops"]["failed"] == 0
    assert end["latency"]["write"]["max_ns"] >= 25_000_000  # the pause before the retry is in the latency
    (finding,) = [line for line in result.of("finding") if line["id"] == "retries"]
    assert (finding["severity"], finding["evidence"]) == ("warning", {"count": 3})


def test_queued_requests_are_retried_and_counted(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(Fault(method="PUT", url="partNumber=2", times=2))
    result = engine.run(make_object_plan(WRITE, {"id": "r", "op": "read", "verify": "on_read"},
                                    data={**LARGE, "io": {"queue_depth": 3}}))  # fmt: skip
    assert result.code == DONE, result.err
    assert result.finished("w")["ops"]["retries"] == 2
    assert result.finished("r")["verify"]["mismatches"] == 0


@pytest.mark.parametrize("depth", [1, 4])
def test_lasting_503_fails_and_leaves_nothing(engine: Engine, object_server: ObjectServer, depth: int) -> None:
    object_server.faults.append(Fault(method="PUT", url="partNumber=2"))
    plan = make_object_plan(data={**LARGE, "io": {"queue_depth": depth}}, target={"s3": {"retries": 2}})
    result = engine.run(plan)
    assert result.code == FAILED
    assert "503 SlowDown: Please reduce your request rate., also after 2 retries (EBUSY)" in result.sentence
    assert object_server.keys() == []
    assert not object_server.bucket.multiparts


def test_rejected_write_names_task_and_object(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(Fault("403 Forbidden", "AccessDenied", "No more", method="PUT", url="/data", after=3))
    result = engine.run(make_object_plan())
    assert result.code == FAILED
    error = result.of("error")[0]
    assert (error["task"], error["name"]) == (0, "EACCES")
    assert "403 AccessDenied: No more" in error["text"]
    assert f"s3://{BUCKET}/bench/" in error["text"]
    assert object_server.keys() == []


def test_failed_completion_is_an_error_of_close(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(
        Fault("400 Bad Request", "InvalidPart", "A part is gone", method="POST", url="uploadId=")
    )
    result = engine.run(make_object_plan(data=LARGE))
    assert result.code == FAILED
    assert "close of" in result.sentence
    assert "InvalidPart" in result.sentence
    assert not object_server.bucket.multiparts


def test_vanished_object_is_reported(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(
        Fault("404 Not Found", "NoSuchKey", "The key does not exist", method="GET", url="/data")
    )
    result = engine.run(make_object_plan(WRITE, {"id": "r", "op": "read"}))
    assert result.code == FAILED
    assert "404 NoSuchKey" in result.sentence
    assert object_server.keys() == []


def test_exclusive_write_of_an_existing_object_fails(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(
        Fault("412 Precondition Failed", "PreconditionFailed", "It exists", method="PUT", url="/data")
    )
    result = engine.run(make_object_plan(*make_write_phases(open="exclusive")))
    assert result.code == FAILED
    assert result.of("error")[0]["name"] == "EEXIST"
    assert any(headers.get("HTTP_IF_NONE_MATCH") == "*" for headers in object_server.headers)


def test_too_many_parts_are_rejected(engine: Engine, object_server: ObjectServer) -> None:
    parts = {"files": {"mapping": "per_task"}, "access": {"transfer": "5MiB", "segments": 10001}}
    result = engine.run(make_object_plan(data=parts))
    assert result.code == FAILED
    assert "S3 allows 10000" in result.sentence


def test_run_prefix_of_another_run_is_not_overwritten(engine: Engine, object_server: ObjectServer) -> None:
    keep = {"keep": True, "directory": "kept"}
    assert engine.run(make_object_plan(target=keep)).code == DONE
    before = object_server.keys()
    again = engine.run(make_object_plan(target=keep))
    assert again.code == ENVIRONMENT
    assert "already exists" in again.sentence
    assert object_server.keys() == before


def make_certificate(folder: Path) -> tuple[Path, Path]:
    serving = pytest.importorskip("werkzeug.serving")
    from cryptography.hazmat.primitives import serialization

    certificate, key = serving.generate_adhoc_ssl_pair("localhost")
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return paths


def test_untrusted_tls_certificate_of_object_server_is_rejected(
    engine: Engine, object_server: ObjectServer, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with run_object_server(context) as secure:
        refused = engine.run(make_object_plan(target={"s3": {"endpoints": [secure.url]}}))
        assert refused.code == ENVIRONMENT
        assert "certificate" in refused.only_sentence
        store = {"endpoints": [secure.url], "ca_file": str(certificate)}
        trusted = engine.run(make_object_plan(target={"s3": store}))
        assert trusted.code == DONE, trusted.err


def test_absent_library_is_explained(engine: Engine, object_server: ObjectServer, tmp_path: Path) -> None:
    (tmp_path / "libcurl.so.4").write_bytes(b"no library")
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    result = engine.run(make_object_plan(), env=environment)
    assert result.code == ENVIRONMENT
    assert "install libcurl 7.88 or later" in result.only_sentence
    assert os.linesep.join(object_server.keys()) == ""


def test_clean_of_a_missing_bucket_is_explained(engine: Engine, object_server: ObjectServer) -> None:
    answer = engine.ask("clean", "s3://absent/x")
    assert answer.code == BAD_PLAN
    assert "NoSuchBucket" in answer.only_sentence
