"""The dashboards and alerts that go along ask for metrics and labels that there are, and can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentsite.metrics import exposition
from jobs import metrics

FOLDER = Path("docs/monitoring")
DASHBOARDS = sorted(FOLDER.glob("*.json"))
OF_PROMETHEUS = {"job", "instance", "le"}
"""Labels that a metric has without our doing."""
OF_ITS_OWN = {"up"}
FUNCTIONS = {"rate", "increase", "sum", "max", "histogram_quantile"}
ONE = re.compile(
    r"""\s*(?:
    (?P<name>[a-z_][a-z0-9_]*)
    |(?P<matchers>\{[^{}]*\})
    |(?P<range>\[(?:\$__rate_interval|\$__range|[0-9]+[smhd])\])
    |(?P<number>[0-9]+(?:\.[0-9]+)?)
    |(?P<sign>==|>|/|,)
    |(?P<open>\()
    |(?P<close>\))
    )""",
    re.VERBOSE,
)
MATCHER = re.compile(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"[^"]*"')


def parts(expression: str) -> list[tuple[str, str]]:
    """The kind and text of each part; one that is none fails."""
    found, place = [], 0
    while place < len(expression.rstrip()):
        part = ONE.match(expression, place)
        assert part, f"{expression!r} at {place}"
        kind = part.lastgroup
        assert kind
        found.append((kind, part[kind]))
        place = part.end()
    return found


def asked_by(expression: str) -> tuple[set[str], set[str]]:
    """The metrics and the labels that it names. An expression that does not read fails."""
    asked, labels = set(), set()
    depth, grouping, before = 0, False, ("", "")
    read = parts(expression)
    for place, (kind, text) in enumerate(read):
        after = read[place + 1][0] if place + 1 < len(read) else ""
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth, grouping = depth - 1, False
            assert depth >= 0, expression
        elif kind == "name" and text == "by":
            assert before[1] in FUNCTIONS, expression
            grouping = True
        elif kind == "name" and grouping:
            labels.add(text)
        elif kind == "name" and (after == "open" or text in FUNCTIONS):
            assert text in FUNCTIONS, f"{text} in {expression}"
        elif kind == "name":
            asked.add(text)
        elif kind == "matchers":
            assert before[1] in asked, expression
            given = [each.strip() for each in text[1:-1].split(", ")]
            assert all(MATCHER.fullmatch(each) for each in given), expression
            labels |= {each.partition("=")[0].rstrip("!~ ") for each in given}
        elif kind == "range":
            assert before[0] == "matchers" or before[1] in asked, expression
        before = (kind, text)
    assert depth == 0, expression
    assert asked, expression
    return asked, labels


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            yield f"{path.name}: {panel['title']}", panel


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def expressions() -> list[str]:
    shown = [target["expr"] for _title, panel in panels() for target in panel["targets"]]
    return shown + [rule["expr"] for rule in alerts()]


def exposed() -> dict[str, set[str]]:
    """The name of each series that /metrics has, with its labels."""
    labels = {
        each._name: set(each._labelnames)
        for each in vars(metrics).values()
        if hasattr(each, "_labelnames")
    }
    ends = {"counter": [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    found: dict[str, set[str]] = {}
    for line in exposition().decode().splitlines():
        if line.startswith("# TYPE agentsite_"):
            _sign, _word, name, kind = line.split(" ")
            own = labels.get(name.removesuffix("_total"), set())
            found |= {f"{name}{end}": own for end in ends[kind] if not name.endswith("_created")}
    return found


@pytest.mark.django_db
def test_they_name_only_metrics_and_labels_that_there_are():
    there = exposed()
    for expression in expressions():
        asked, labels = asked_by(expression)
        assert asked <= there.keys() | OF_ITS_OWN, expression
        known = OF_PROMETHEUS.union(*(there.get(name, set()) for name in asked))
        assert labels <= known, expression


@pytest.mark.django_db
def test_every_metric_stands_on_a_dashboard_and_in_the_document():
    shown = set().union(*(asked_by(expression)[0] for expression in expressions()))
    document = Path("docs/operations.md").read_text()
    for name in exposed():
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert any(each.startswith(family) for each in shown), name
        assert f"`{family}`" in document, name


def test_each_panel_is_whole_and_none_covers_another():
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        taken: set[tuple[int, int]] = set()
        names = {each["name"] for each in board["templating"]["list"]}
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {
                (at["x"] + column, at["y"] + row)
                for column in range(at["w"])
                for row in range(at["h"])
            }
            assert at["x"] + at["w"] <= 24
            assert not taken & cells, panel["title"]
            taken |= cells
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["targets"]
        used = set(re.findall(r"\$\{?([a-z]+)\}?", path.read_text()))
        assert used <= names, path.name
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_each_alert_says_what_is_wrong():
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"].endswith(".")


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(agentsite_errors_total[5m])",
        "agentsite_errors_total)",
        "summ(agentsite_errors_total)",
        "agentsite_errors_total{code=x}",
        "rate([5m])",
        "by (code) (agentsite_errors_total)",
        "1 > 0",
        "agentsite_errors_total & 1",
    ],
)
def test_an_expression_that_does_not_read_is_seen(wrong):
    with pytest.raises(AssertionError):
        asked_by(wrong)
