"""A webhook that does as it is told: a small HTTP server on a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """Receives webhooks. `answer` says how: a status, or a function of the number of the request."""

    def __init__(self, answer: Callable[[int], int] | int = 204) -> None:
        self.answer = answer
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.accepted: list[bytes] = []
        self.location = ""
        self.hang = 0.0
        self.drip = False
        self.retry_after = ""
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._handle(self)

            def do_GET(self) -> None:
                receiver._handle(self)

            def log_message(self, *arguments: Any) -> None:
                """Silence."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *arguments: Any) -> None:
                """Connections break when a server is killed."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length", 0))
        body = handler.rfile.read(length)
        if len(body) < length:
            return  # whoever sent it died on the way
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            status = self.answer(number) if callable(self.answer) else self.answer
            if status < 300 and not self.hang and not self.drip:
                self.accepted.append(body)
        time.sleep(self.hang)
        try:
            handler.send_response(status)
            if self.location:
                handler.send_header("location", self.location)
            if self.retry_after:
                handler.send_header("retry-after", self.retry_after)
            if self.drip:
                handler.send_header("content-length", "100000")
                handler.end_headers()
                for _ in range(100):
                    handler.wfile.write(b"x")
                    handler.wfile.flush()
                    time.sleep(0.1)
                return
            handler.send_header("content-length", "0")
            handler.end_headers()
        except OSError:
            return

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
