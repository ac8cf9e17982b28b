"""A worker's line to a Redis that goes away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.messaging import Consumer

from agentsite.local_services import LocalRedis
from jobs.broker import transport_of
from jobs.redis_transport import Transport

TRANSPORT = transport_of("redis://localhost")


@pytest.fixture
def redis() -> Iterator[LocalRedis]:
    service = LocalRedis()
    service.start()
    yield service
    service.stop()


def test_a_redis_that_goes_away_between_reads_leaves_a_connection_that_closes(redis):
    """As a worker does it: first what is left is collected, then the connection is closed."""
    line = Connection(
        redis.url, transport=TRANSPORT, transport_options={"socket_connect_timeout": 2}
    )
    channels = [line.default_channel, line.channel(), line.channel()]
    taken = []
    for number, channel in enumerate(channels):
        queue = Queue(f"of-{number}", channel=channel)
        queue.declare()
        line.Producer().publish({}, routing_key=queue.name, serializer="json")
        Consumer(
            channel,
            [queue],
            callbacks=[lambda _body, message: taken.append(message)],
            accept=["json"],
        ).consume()
    while len(taken) < len(channels):
        line.drain_events(timeout=10)
    with pytest.raises(TimeoutError):
        line.drain_events(timeout=0.2)  # now each waits for its next message

    redis.stop()
    line.collect()
    line.release()

    assert all(channel.closed for channel in channels)


def test_what_was_not_acknowledged_is_given_back_where_redis_is_there(redis):
    line = Connection(redis.url, transport=TRANSPORT)
    queue = Queue("one", channel=line.default_channel)
    queue.declare()
    line.Producer().publish({"number": 1}, routing_key="one", serializer="json")
    assert queue.get(no_ack=False) is not None
    line.release()

    with Connection(redis.url, transport=TRANSPORT) as again:
        message = Queue("one", channel=again.default_channel).get(no_ack=True)
        assert message is not None
        assert message.payload == {"number": 1}


@pytest.mark.parametrize(
    "url", ["redis://localhost/1", "rediss://localhost/1?ssl_cert_reqs=required"]
)
def test_the_transport_reads_addresses_as_kombus_own_does(url):
    ours, theirs = Connection(url, transport=transport_of(url)), Connection(url)
    assert isinstance(ours.transport, Transport)
    assert ours.info() | {"transport": ""} == theirs.info() | {"transport": ""}


@pytest.mark.parametrize("url", ["", "memory://", "sentinel://localhost:26379"])
def test_another_broker_keeps_the_transport_that_kombu_chooses(url):
    assert transport_of(url) is None
