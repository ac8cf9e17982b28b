"""An index of Python packages on loopback, and wheels made by hand. It counts what it was asked for."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


def wheel(
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    requires: Sequence[str] = (),
    scripts: Mapping[str, str] | None = None,
) -> tuple[str, bytes]:
    """Its file's name and content."""
    plain = name.replace("-", "_")
    about = f"{plain}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    held = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        lines = "".join(f"{each} = {entry}\n" for each, entry in scripts.items())
        held[f"{about}/entry_points.txt"] = f"[console_scripts]\n{lines}"
    held[f"{about}/RECORD"] = ""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for path, text in held.items():
            packed.writestr(zipfile.ZipInfo(path), text)
    return f"{plain}-{version}-py3-none-any.whl", data.getvalue()


class PackageIndex:
    """At `/simple/`, for as long as the block lasts."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, bytes]] = {}
        """By path: kind and content."""
        self.asked: list[str] = []
        self._links: dict[str, dict[str, str]] = {}
        outer = self

        class Door(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                kind, body = outer.held.get(self.path, ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, file: str, body: bytes, *, digest: str = "") -> None:
        """`digest`: that the index vouches for, if it lies."""
        name = file.partition("-")[0].replace("_", "-").lower()
        self.held[f"/files/{file}"] = ("application/zip", body)
        links = self._links.setdefault(name, {})
        links[file] = digest or sha256(body).hexdigest()
        page = "".join(
            f'<a href="/files/{each}#sha256={said}">{each}</a>\n' for each, said in links.items()
        )
        self.held[f"/simple/{name}/"] = ("text/html", page.encode())
