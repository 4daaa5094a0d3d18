"""A server of this machine for tests of downloads."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

CONTENT = os.urandom(400_000)


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's next answer does."""

    def do_GET(self) -> None:
        server: Server = self.server  # type: ignore[assignment]
        server.asked.append(self.path)
        assert self.headers["Accept-Encoding"] == "identity"
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        answer(self)

    def start(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


Answer = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    """answers: what the next requests get, the last one over and over; asked: the path of each request."""

    answers: list[Answer]
    asked: list[str]

    def url(self, path: str = "/a/weights.hdf5") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


def whole(handler: Handler, content: bytes = CONTENT) -> None:
    handler.start(200, Content_Length=len(content))
    handler.wfile.write(content)


@contextmanager
def serving() -> Iterator[Server]:
    """Yield a server, which answers with CONTENT unless its answers are changed."""
    with Server(("127.0.0.1", 0), Handler) as made:
        made.answers, made.asked = [whole], []
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()
