"""What receivers answer keeps nobody else waiting, in whatever pieces they send it."""

from __future__ import annotations

import asyncio
import socket
import threading

from tests.heartbeat import MOST_SECONDS, longest_stall
from webhooks.requests import Outcome, post

AT_ONCE = 6


async def test_interim_answers_of_several_keep_nobody_else_waiting():
    interim = b"HTTP/1.1 103 Early\r\n\r\n" * 60_000
    answer = interim + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    receiver = socket.create_server(("127.0.0.1", 0))

    def send(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    def receive() -> None:
        # In threads: what is read next has arrived already.
        while True:
            try:
                connection, _address = receiver.accept()
            except OSError:
                return  # it is closed
            threading.Thread(target=send, args=[connection], daemon=True).start()

    async def here(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    url = f"http://receiver.example:{receiver.getsockname()[1]}/"
    outcomes: list[Outcome] = []

    async def ask() -> None:
        asked = (post(url, b"{}", {}, addresses=here) for _number in range(AT_ONCE))
        outcomes.extend(await asyncio.gather(*asked))

    receiving = threading.Thread(target=receive)
    receiving.start()
    try:
        stall = await longest_stall(ask)
    finally:
        receiver.shutdown(socket.SHUT_RDWR)
        receiver.close()
        receiving.join()
    assert stall <= MOST_SECONDS
    assert {outcome.status for outcome in outcomes} == {200}
