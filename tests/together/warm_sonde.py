# SPDX-License-Identifier: Apache-2.0
"""The command `sonde` without its start, which is most of what a short command takes.

One process has the modules of the lab loaded and forks for each command that is asked for. The child has the arguments,
folder, environment and open files of whoever asks, and is killed when the asker goes away; the asker ends with its exit
code. What it does is what a new process would do. Starting is tested by those that start `python -m sonde` themselves.

Usage: warm_sonde.py serve NAME        until its standard input ends; NAME is that of a socket without a file
       warm_sonde.py ask NAME WORDS…
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import random
import select
import signal
import socket
import stat
import subprocess
import sys
import traceback
import uuid
from pathlib import Path
from typing import Any

FILES = 3  # standard input, output and error


def ask(name: str, arguments: list[str]) -> int:
    """Has a command done; its exit code, or minus the number of the signal that ended it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.connect(f"\0{name}")
        text = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
        socket.send_fds(asker, [len(text).to_bytes(4, "little")], list(range(FILES)))
        asker.sendall(text)
        answer = asker.recv(16)
    if not answer:
        raise SystemExit("warm_sonde.py: the process that has everything loaded is gone")
    return int(answer)


def receive_request(asker: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What somebody asks for, and the files that come with it."""
    head, files, _, _ = socket.recv_fds(asker, 4, FILES)
    length, text = int.from_bytes(head, "little"), b""
    while len(text) < length:
        text += asker.recv(length - len(text))
    return json.loads(text), files


def become(request: dict[str, Any], files: list[int]) -> None:
    """Makes a forked process what a new one would be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()
    sys.argv = ["sonde", *request["arguments"]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (standard streams stay open)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def do(request: dict[str, Any], files: list[int]) -> int:
    """The command, in the process forked for it."""
    from sonde.cli.main import main

    become(request, files)
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


def load() -> None:
    """Everything that some command needs, once."""
    import duckdb  # noqa: F401
    import jinja2  # noqa: F401
    import numpy  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from sonde.cli.main import command, list_verbs

    context = command.make_context("sonde", [], resilient_parsing=True)
    for verb in list_verbs():
        assert command.get_command(context, verb) is not None
    gc.collect()
    gc.freeze()


def serve(name: str) -> None:
    """Forks for everyone who asks, several at a time, until standard input ends."""
    load()
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
                    os._exit(do(request, files) & 255)
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
        command = [sys.executable, __file__, "serve", self.name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", "sonde could not be loaded"

    def write_program(self, path: Path, before: str = "") -> Path:
        """Writes a program that does what `sonde` does; `before` are lines of its shell script."""
        python = f"{sys.executable} -I -S"
        path.write_text(f'#!/bin/sh\n{before}exec {python} {__file__} ask {self.name} "$@"\n', encoding="utf-8")
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
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        code = ask(sys.argv[2], sys.argv[3:])
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        sys.exit(code)
