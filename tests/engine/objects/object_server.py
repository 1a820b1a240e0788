# SPDX-License-Identifier: Apache-2.0
"""An S3 service for tests: moto, behind a gate that counts requests and fails on purpose."""

from __future__ import annotations

import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

BUCKET = "tests"
KEY, SECRET = "AKIDFORTESTS", "secretfortests"

Environ = dict[str, Any]


class SilentHandler(WSGIRequestHandler):
    def log_request(self, status_code: int | str = "-", response_bytes: int | str = "-") -> None:
        """Writes nothing."""


@dataclass
class Fault:
    """Requests whose method and URL match are answered with an error, `times` times."""

    status: str = "503 Service Unavailable"
    code: str = "SlowDown"
    message: str = "Please reduce your request rate."
    method: str = ""
    url: str = ""
    times: int = 10**9
    after: int = 0  # matching requests that pass first

    def matches(self, environ: Environ) -> bool:
        url = f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        if (self.method and environ["REQUEST_METHOD"] != self.method) or self.url not in url:
            return False
        self.after -= 1
        if self.after >= 0:
            return False
        self.times -= 1
        return self.times >= 0


@dataclass
class ObjectServer:
    server: BaseWSGIServer
    url: str
    faults: list[Fault] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    headers: list[Environ] = field(default_factory=list)
    delay_s: float = 0.0
    page_keys: int = 1000  # most keys of one page of a listing

    def reset(self) -> None:
        """An empty bucket, no faults, no counts."""
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        backend.reset()
        backend.create_bucket(BUCKET, "us-east-1")
        self.faults.clear()
        self.requests.clear()
        self.headers.clear()
        self.delay_s = 0.0
        self.page_keys = 1000

    @property
    def bucket(self) -> Any:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]

    def keys(self) -> list[str]:
        return sorted(str(key) for key in self.bucket.keys)

    def put(self, key: str, content: bytes) -> None:
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(BUCKET, key, content)


def make_error_body(error_code: str, message: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{error_code}</Code><Message>{message}</Message></Error>".encode()


@contextmanager
def run_object_server(certificate: ssl.SSLContext | None = None) -> Iterator[ObjectServer]:
    """A service with the bucket `tests` on a free port of the loopback interface."""
    backend = DomainDispatcherApplication(create_backend_app)
    holder: list[ObjectServer] = []

    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        service = holder[0]
        kind = environ["REQUEST_METHOD"]
        query = environ["QUERY_STRING"]
        for name in ("uploads", "uploadId", "list-type"):
            kind += f" {name}" if name in query else ""
        service.requests[kind] += 1
        service.headers.append({name: value for name, value in environ.items() if name.startswith("HTTP_")})
        time.sleep(service.delay_s)
        for fault in service.faults:
            if fault.matches(environ):
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                body = make_error_body(fault.code, fault.message)
                start_response(fault.status, [("Content-Length", str(len(body))), ("Content-Type", "application/xml")])
                return [body]
        if "list-type" in query and "max-keys" not in query:
            environ["QUERY_STRING"] = f"{query}&max-keys={service.page_keys}"
        response: Iterable[bytes] = backend(environ, start_response)
        return response

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=SilentHandler, ssl_context=certificate)
    scheme = "https" if certificate else "http"
    service = ObjectServer(server, f"{scheme}://localhost:{server.server_port}")
    holder.append(service)
    service.reset()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
