"""A server on this machine that sends one file slowly, for `elmo download`."""

from __future__ import annotations

import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

SERVED = Random(0).randbytes(2**20)
_PIECE = 2**15


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Send the file from the first byte that was asked for."""
        wanted = self.headers.get("Range", "")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(SERVED) - 1}/{len(SERVED)}")
        self.send_header("Content-Length", str(len(SERVED) - start))
        self.end_headers()
        for place in range(start, len(SERVED), _PIECE):
            try:
                self.wfile.write(SERVED[place : place + _PIECE])
            except OSError:  # the other end was killed
                return
            time.sleep(0.01)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@cache
def url() -> str:
    """Start the server if it does not run. Returns the address of the file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/file.bin"
