# SPDX-License-Identifier: Apache-2.0
"""Flows between two hosts of a topology, started as a program of its own in each namespace.

``python -m sonde.design.routes.traffic serve PORT`` answers every message of every connection with one byte;
``… send JSON`` opens connections from given source ports, sends messages at a given pace, and prints what became of
each connection as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import threading
import time
from typing import Any

_MESSAGE_SIZE = 16384


def serve_messages(port: int) -> None:
    """Accepts connections and answers their messages without end."""
    family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET
    listener = socket.create_server(("", port), family=family, dualstack_ipv6=socket.has_ipv6, backlog=512)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    unanswered_bytes: dict[socket.socket, int] = {}
    while True:
        for key, _ in selector.select():
            ready_socket = key.fileobj
            assert isinstance(ready_socket, socket.socket)
            if ready_socket is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
                unanswered_bytes[connection] = 0
                continue
            try:
                data = ready_socket.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                selector.unregister(ready_socket)
                ready_socket.close()
                del unanswered_bytes[ready_socket]
                continue
            unanswered_bytes[ready_socket] += len(data)
            while unanswered_bytes[ready_socket] >= _MESSAGE_SIZE:
                unanswered_bytes[ready_socket] -= _MESSAGE_SIZE
                ready_socket.sendall(b".")


def send_flows(flow_order: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs one thread for each flow. `flows` of the order are [source, source port, target, target port]; each sends a
    message every `pace_s` seconds, for `seconds`. The result of a flow has its answered messages, the longest time
    without an answer in seconds, and an error or ""."""
    results: list[dict[str, Any]] = [{} for _ in flow_order["flows"]]

    def send_flow(
        flow_index: int, source_address: str, source_port: int, target_address: str, target_port: int
    ) -> None:
        answered, stall_s, error = 0, 0.0, ""
        try:
            connection = socket.create_connection(
                (target_address, target_port), timeout=10, source_address=(source_address, source_port)
            )
            connection.settimeout(30)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            message, last = b"x" * _MESSAGE_SIZE, time.monotonic()
            end = last + flow_order["seconds"]
            while last < end:
                connection.sendall(message)
                if not connection.recv(1):
                    raise ConnectionError("closed by the other side")
                now = time.monotonic()
                stall_s = max(stall_s, now - last)
                answered += 1
                time.sleep(flow_order["pace_s"])
                last = time.monotonic()
            connection.close()
        except OSError as reason:
            error = str(reason) or type(reason).__name__
        results[flow_index] = {"answered": answered, "stall_s": stall_s, "error": error}

    threads = [
        threading.Thread(target=send_flow, args=(index, *flow)) for index, flow in enumerate(flow_order["flows"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve_messages(int(sys.argv[2]))
    else:
        print(json.dumps(send_flows(json.loads(sys.argv[2]))))
