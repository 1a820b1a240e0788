# SPDX-License-Identifier: Apache-2.0
"""Flows between two hosts of a built topology: started as a program of its own in each namespace.

``python -m sonde.design.routes.traffic answer PORT`` answers every message of every connection with one byte;
``… ask JSON`` opens connections from chosen ports, sends messages at a pace, and prints what came of each as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import threading
import time
from typing import Any

_SIZE = 16384


def answer(port: int) -> None:
    """Takes connections without end."""
    family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET
    listener = socket.create_server(("", port), family=family, dualstack_ipv6=socket.has_ipv6, backlog=512)
    chosen = selectors.DefaultSelector()
    chosen.register(listener, selectors.EVENT_READ)
    waiting: dict[socket.socket, int] = {}
    while True:
        for key, _ in chosen.select():
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if one is listener:
                made, _ = listener.accept()
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                chosen.register(made, selectors.EVENT_READ)
                waiting[made] = 0
                continue
            try:
                data = one.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                chosen.unregister(one)
                one.close()
                del waiting[one]
                continue
            waiting[one] += len(data)
            while waiting[one] >= _SIZE:
                waiting[one] -= _SIZE
                one.sendall(b".")


def ask(order: dict[str, Any]) -> list[dict[str, Any]]:
    """One thread a flow: `flows` are [source, source port, target, target port], for `seconds`, a message every
    `pace_s`. Of each: messages answered, the longest time without an answer in seconds, and an error or ""."""
    results: list[dict[str, Any]] = [{} for _ in order["flows"]]

    def one(place: int, source: str, port: int, target: str, target_port: int) -> None:
        answered, stall_s, error = 0, 0.0, ""
        try:
            made = socket.create_connection((target, target_port), timeout=10, source_address=(source, port))
            made.settimeout(30)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            message, last = b"x" * _SIZE, time.monotonic()
            end = last + order["seconds"]
            while last < end:
                made.sendall(message)
                if not made.recv(1):
                    raise ConnectionError("closed by the other side")
                now = time.monotonic()
                stall_s = max(stall_s, now - last)
                answered += 1
                time.sleep(order["pace_s"])
                last = time.monotonic()
            made.close()
        except OSError as reason:
            error = str(reason) or type(reason).__name__
        results[place] = {"answered": answered, "stall_s": stall_s, "error": error}

    threads = [threading.Thread(target=one, args=(at, *flow)) for at, flow in enumerate(order["flows"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


if __name__ == "__main__":
    if sys.argv[1] == "answer":
        answer(int(sys.argv[2]))
    else:
        print(json.dumps(ask(json.loads(sys.argv[2]))))
