"""Web servers on loopback that run beside a test."""

import functools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LoopbackServer:
    """Serves while its `with` block runs; `handler` is made with it and a connection."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]):
        make: Any = functools.partial(handler, self)  # type: ignore[arg-type]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), make)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
