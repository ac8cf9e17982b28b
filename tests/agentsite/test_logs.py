"""Log lines bear ids and no secrets, readable or as JSON."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
import structlog

from agentsite import logs


@pytest.fixture(params=["text", "json"])
def written(request) -> Iterator[tuple[io.StringIO, str]]:
    """What a logger called `tests.lines` writes in this form."""
    configuration = logs.configuration(level="INFO", form=request.param)
    made = configuration["formatters"]["line"]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=made["foreign_pre_chain"], processors=made["processors"]
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("tests.lines")
    logger.addHandler(handler)
    yield stream, request.param
    logger.removeHandler(handler)


def test_a_line_bears_the_ids_that_are_bound(written):
    stream, form = written
    with structlog.contextvars.bound_contextvars(request="abc", run=7):
        logging.getLogger("tests.lines").warning("run %s is late", 7)
    line = stream.getvalue()
    if form == "json":
        value = json.loads(line)
        assert value["event"] == "run 7 is late"
        assert (value["request"], value["run"]) == ("abc", 7)
        assert (value["level"], value["logger"]) == ("warning", "tests.lines")
        assert value["timestamp"].endswith("Z")
    else:
        assert "run 7 is late" in line
        assert "request=abc" in line
        assert "run=7" in line


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-verysecretindeed",
        "Bearer abcdverysecretindeed",
        "postgresql://user:verysecretindeed@host/db",
    ],
)
def test_what_looks_like_a_secret_is_masked_also_in_a_traceback(written, secret):
    stream, _form = written
    try:
        raise ValueError(f"refused: {secret}")
    except ValueError:
        logging.getLogger("tests.lines").exception("it failed with %s", secret)
    assert "refused" in stream.getvalue()
    assert "verysecretindeed" not in stream.getvalue()
