"""A mailbox on loopback that speaks as much of IMAP as somebody needs who reads what is new and marks it."""

from __future__ import annotations

import re
import socket
import threading
from typing import Self


class MailboxServer:
    """Use as a context; `mails` are those in its folder, `read` the numbers of those marked as read.
    What begins like one of `refused` is refused, once each; `aside` is said before what is asked for."""

    def __init__(self, *mails: bytes, password: str = "secret") -> None:
        self.mails = list(mails)
        self.read: set[int] = set()
        self.refused: list[str] = []
        self.aside = b""
        self._password = password
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    @property
    def address(self) -> str:
        port = self._listener.getsockname()[1]
        return f"imap://anna:secret@127.0.0.1:{port}/In%20box"

    def _serve(self) -> None:
        while True:
            try:
                line, _address = self._listener.accept()
            except OSError:
                return
            with line, line.makefile("rwb") as stream:
                stream.write(b"* OK ready\r\n")
                stream.flush()
                for said in stream:
                    tag, _space, command = said.strip().partition(b" ")
                    refused = self._refuses(command.decode())
                    stream.write((b"" if refused else self._answer(command.decode())) + tag + b" ")
                    stream.write(b"NO refused\r\n" if refused else b"OK done\r\n")
                    stream.flush()
                    if command.startswith(b"LOGOUT"):
                        break

    def _refuses(self, command: str) -> bool:
        for beginning in self.refused:
            if command.startswith(beginning):
                self.refused.remove(beginning)
                return True
        return command.startswith("LOGIN") and self._password not in command

    def _answer(self, command: str) -> bytes:
        if command.startswith("CAPABILITY"):
            return b"* CAPABILITY IMAP4rev1\r\n"
        if command.startswith("SELECT"):
            assert command.endswith('"In box"')
            return b"* %d EXISTS\r\n" % len(self.mails)
        if command.startswith("UID SEARCH"):
            new = [str(n) for n in range(1, len(self.mails) + 1) if n not in self.read]
            return f"* SEARCH {' '.join(new)}\r\n".encode()
        number = re.match(r"UID (FETCH|STORE) (\d+) ", command)
        if number is None:
            return b"* BYE\r\n" if command.startswith("LOGOUT") else b""
        if number[1] == "STORE":
            self.read.add(int(number[2]))
            return b""
        mail = self.mails[int(number[2]) - 1]
        if "RFC822.SIZE" in command:
            size = f"* 1 FETCH (UID {number[2]} RFC822.SIZE {len(mail)})\r\n".encode()
            return self.aside + size
        head = self.aside + f"* 1 FETCH (UID {number[2]} BODY[] {{{len(mail)}}}\r\n".encode()
        return head + mail + b")\r\n"
