# SPDX-License-Identifier: Apache-2.0
"""The command `sonde` without its start, which is most of what a short command takes.

One process has the modules of the lab loaded and forks for each command that is asked for. The child has the arguments,
folder, environment and open files of whoever asks, and is killed when the asker goes away; the asker ends with its exit
code. It behaves as a new process does. Starting is tested by those that start `python -m sonde` themselves.

Tests ask with WarmSonde.run(); programs, with ask_warm_sonde.py.

Usage: warm_sonde.py NAME        until its standard input ends; NAME is that of a socket without a file
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import marshal
import os
import random
import select
import selectors
import signal
import socket
import stat
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from ask_warm_sonde import STANDARD_FILES, receive_code, send_request

Request = tuple[list[str], str, dict[str, str]]  # arguments, folder, environment


def receive_request(asker: socket.socket) -> tuple[Request, list[int]]:
    """A request, and the file descriptors that come with it."""
    head, files, _, _ = socket.recv_fds(asker, 4, len(STANDARD_FILES))
    length, text = int.from_bytes(head, "little"), b""
    while len(text) < length:
        text += asker.recv(length - len(text))
    return marshal.loads(text), files  # nosec B302 # of our own tests


def restore_process_state(request: Request, files: list[int]) -> None:
    """Makes a forked process what a new one would be."""
    arguments, folder, environment = request
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.argv = ["sonde", *arguments]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (standard streams stay open)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def run_command(request: Request, files: list[int]) -> int:
    """The command, in the process forked for it."""
    from sonde.cli.main import main

    restore_process_state(request, files)
    code = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


def import_dependencies() -> None:
    """Everything that some command needs, once."""
    import duckdb  # noqa: F401
    import jinja2  # noqa: F401
    import numpy  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from sonde.charts import page_renderer
    from sonde.cli.main import command, list_verbs
    from sonde.model.schema_problems import find_schema_problems
    from sonde.store.pandas_discovery import declare_command_process
    from sonde.store.tables import make_arrow_schema

    for package, template in (("charts", "study"), ("report", "report")):
        page_renderer._make_environment(f"sonde.{package}").get_template(f"{template}.html.j2")
    find_schema_problems({}, {})  # imports jsonschema
    declare_command_process()
    make_arrow_schema({})  # prepares the conversions of Arrow
    context = command.make_context("sonde", [], resilient_parsing=True)
    for verb in list_verbs():
        assert command.get_command(context, verb) is not None
    gc.collect()
    gc.freeze()


def serve(name: str) -> None:
    """Forks for everyone who asks, several at a time, until standard input ends."""
    import_dependencies()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{name}")
    listener.listen(16)
    print("ready", flush=True)
    at_work: dict[int, tuple[int, socket.socket]] = {}  # descriptor of a process -> its number, and who waits for it
    askers: dict[int, int] = {}  # descriptor of an asker -> number of the process that works for it
    while True:
        ready, _, _ = select.select([0, listener.fileno(), *at_work, *askers], [], [])
        for ready_descriptor in ready:
            if ready_descriptor == 0:
                for number in askers.values():
                    os.kill(number, signal.SIGKILL)
                return
            if ready_descriptor == listener.fileno():
                asker, _ = listener.accept()
                request, files = receive_request(asker)
                number = os.fork()
                if number == 0:
                    for other in (listener, asker, *(waiting for _, waiting in at_work.values())):
                        other.close()
                    for descriptor in at_work:
                        os.close(descriptor)
                    os._exit(run_command(request, files) & 255)
                for file in files:
                    os.close(file)
                at_work[os.pidfd_open(number)] = number, asker
                askers[asker.fileno()] = number
            elif ready_descriptor in at_work:
                number, asker = at_work.pop(ready_descriptor)
                _, status = os.waitpid(number, 0)
                os.close(ready_descriptor)
                askers.pop(asker.fileno(), None)
                with contextlib.suppress(OSError):
                    asker.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                asker.close()
            elif ready_descriptor in askers:  # says no more, so it has gone
                os.kill(askers.pop(ready_descriptor), signal.SIGKILL)


class WarmSonde:
    """The process that has everything loaded, for as long as some tests need it."""

    def __init__(self, lab: Path) -> None:
        self.name = f"sonde-warm-{uuid.uuid4().hex}"
        # One thread of numpy's: others would be missing after a fork.
        environment = {**os.environ, "PYTHONPATH": str(lab), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, self.name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", "sonde could not be loaded"

    def run(
        self, arguments: Sequence[str | Path], folder: Path, environment: Mapping[str, str], timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in a folder without standard input; kills it after `timeout_s`."""
        end = time.monotonic() + timeout_s
        outputs: dict[int, bytes] = {}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker, selectors.DefaultSelector() as selector:
            asker.connect(f"\0{self.name}")
            nothing = os.open(os.devnull, os.O_RDONLY)
            (out, out_end), (err, err_end) = os.pipe(), os.pipe()
            texts = [os.fspath(argument) for argument in arguments]
            send_request(asker, texts, str(folder), dict(environment), (nothing, out_end, err_end))
            for descriptor in (nothing, out_end, err_end):
                os.close(descriptor)
            for descriptor in (out, err):
                outputs[descriptor] = b""
                selector.register(descriptor, selectors.EVENT_READ)
            try:
                while selector.get_map():
                    ready = selector.select(end - time.monotonic())
                    if not ready:
                        raise subprocess.TimeoutExpired(["sonde", *arguments], timeout_s)
                    for key, _ in ready:
                        if text := os.read(key.fd, 1 << 16):
                            outputs[key.fd] += text
                        else:
                            selector.unregister(key.fd)
                code = receive_code(asker)
            finally:
                os.close(out)
                os.close(err)
        printed = [io.TextIOWrapper(io.BytesIO(outputs[descriptor])).read() for descriptor in (out, err)]
        return subprocess.CompletedProcess(["sonde", *texts], code, *printed)

    def write_program(self, path: Path, before: str = "") -> Path:
        """Writes a program that does what `sonde` does; `before` are lines of its shell script."""
        asking = f"{sys.executable} -I -S {Path(__file__).with_name('ask_warm_sonde.py')} {self.name}"
        path.write_text(f'#!/bin/sh\n{before}exec {asking} "$@"\n', encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def close(self) -> None:
        """Ends it, and all that it does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


if __name__ == "__main__":
    serve(sys.argv[1])
