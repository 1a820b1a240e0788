# SPDX-License-Identifier: Apache-2.0
"""Asks a process that has everything loaded (warm_sonde.py) for one command; ends with the exit code of that command.

A program of its own, because its start is most of what it costs: it imports three modules of C and no package.

Usage: python -I -S ask_warm_sonde.py NAME WORDS…      NAME is that of a socket without a file
"""

from __future__ import annotations

import _socket
import array
import marshal
import os
import signal
import sys

STANDARD_FILES = (0, 1, 2)


def send_request(
    asker: _socket.socket,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    files: tuple[int, int, int] = STANDARD_FILES,
) -> None:
    """Sends arguments, folder and environment of a command, and the files that it reads and writes."""
    text = marshal.dumps((arguments, folder, environment))
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", files))]
    asker.sendmsg([len(text).to_bytes(4, "little")], rights)
    asker.sendall(text)


def receive_code(asker: _socket.socket) -> int:
    """The exit code, or minus the number of the signal that ended the command."""
    answer = asker.recv(16)
    if not answer:
        raise SystemExit("ask_warm_sonde.py: the process that has everything loaded is gone")
    return int(answer)


def main() -> None:
    asker = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    asker.connect(f"\0{sys.argv[1]}")
    send_request(asker, sys.argv[2:], os.getcwd(), dict(os.environ))
    code = receive_code(asker)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
