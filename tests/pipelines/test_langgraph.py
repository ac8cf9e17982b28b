"""LangGraph, the real package, drives a pipeline over our conversations, with checkpoints in our tables."""

from __future__ import annotations

import pytest

from pipelines import driving
from pipelines.actions.definitions import save_pipeline
from pipelines.actions.runs import decide_step, start_run
from pipelines.files import read_pipeline
from pipelines.graph.following import Done, Go, Outcome, following, rules_that_hold
from pipelines.models import GraphCheckpoint, GraphWrite, PipelineRun
from pipelines.running import go_on
from pipelines.shipped import example_pipelines
from pipelines.withlanggraph.building import build
from pipelines.withlanggraph.saving import TableSaver
from tests.conversations.conftest import until

from .conftest import QUESTION, asked, ended, names, spec_of, step

pytestmark = pytest.mark.django_db(transaction=True)
LANGGRAPH = "reviewed-answer-langgraph"


def test_the_reviewed_answer_goes_the_same_way_and_its_checkpoints_hold_no_words(
    alice, acme, worker, environment
):
    spec = read_pipeline(example_pipelines()[LANGGRAPH])
    version = save_pipeline(actor=alice, organisation=acme, spec=spec)

    run = ended(start_run(actor=alice, pipeline=version.pipeline, question=QUESTION, scripted=True))

    once = ["research", "calculate", "write", "review"]
    assert names(run) == ["route", *once, *once]
    assert run.state == "done"
    assert [each.came_by for each in run.steps.order_by("place")][:2] == ["start", "route.1"]
    assert "with other words than before" in asked(run, 6), "the second search is another one"
    assert "600 m high" not in asked(run, 9), "the bad draft was replaced"
    held = b"".join(
        bytes(row.body)
        for rows in (GraphCheckpoint.objects.all(), GraphWrite.objects.all())
        for row in rows
    )
    assert b"calculate" in held
    for words in (QUESTION, "tower", "guide.txt"):
        assert words.encode() not in held
    # As if the machine of the first step had been ahead of the others.
    first = GraphCheckpoint.objects.order_by("pk").values("pk")[:1]
    GraphCheckpoint.objects.filter(pk__in=list(first.values_list("pk", flat=True))).update(
        uid="f" * 36
    )
    newest = TableSaver(run)
    told = build(spec).compile(checkpointer=newest).get_state(newest.config())
    assert [came["name"] for came in told.values["trail"]] == names(run)
    assert told.next == ()
    run.root.delete()
    assert not GraphCheckpoint.objects.exists()


def test_a_person_is_asked_tries_are_counted_and_a_bad_end_is_said(start, alice):
    run = start(
        step(
            "a", "?", "yes", words=["yes", "no"], tries=2, again="Again: {{question}} {{problem}}"
        ),
        {"name": "release", "approval": "May this go out? {{a}}"},
        step("b"),
        engine="langgraph",
    )
    until(lambda: run.steps.filter(state="asking").exists())
    for _again in range(2):
        go_on(run.pk)
    decide_step(actor=alice, run=run, place=3, approved=False)

    assert ended(run).state == "failed"
    assert "“release” answered ends it" in run.problem
    assert [each.came_by for each in run.steps.order_by("place")] == ["start", "retry", "a.0"]


def test_without_the_package_it_is_said_and_what_runs_waits_for_it():
    spec = spec_of(step("a"), engine="langgraph")
    assert driving.missing(spec) == ""
    assert driving.missing(spec, find=lambda _name: None) == (
        "LangGraph is not installed on this server."
    )
    assert driving.driver_of(spec, find=lambda _name: None) is None


def test_what_waits_for_the_package_is_not_due_and_keeps_no_other_waiting(start):
    mine, other = start(step("a"), engine="langgraph"), start(step("b"), name="Other")
    for run in (mine, other):
        ended(run)
    PipelineRun.objects.update(state="running", ended_at=None)
    lacks = driving.lacking(find=lambda _name: None)
    assert (lacks, driving.lacking()) == (["langgraph"], [])
    assert set(PipelineRun.objects.due()) == {mine, other}
    assert set(PipelineRun.objects.due(lacking=lacks)) == {other}
    # That its step has ended is written down all the same.
    mine.steps.update(state="running")
    assert set(PipelineRun.objects.due(lacking=lacks)) == {mine, other}
    PipelineRun.objects.update(state="done")


def test_the_drawn_graph_is_langgraphs_own():
    spec = read_pipeline(example_pipelines()[LANGGRAPH])
    drawn = build(spec).compile().get_graph()
    lines = {(edge.source, edge.target) for edge in drawn.edges}
    assert {("__start__", "route"), ("route", "calculate"), ("review", "research")} <= lines
    assert ("review", "write") not in lines


def test_what_langgraph_is_told_leads_where_the_outcomes_do():
    spec = spec_of(step("a", next=[{"when": {"word": ["x"]}, "to": "end"}, {"to": "b"}]), step("b"))
    for word in ("x", "y"):
        steps = [Done("a", "start", Outcome(word=word))]
        told = following(spec, [Done("a", "start", Outcome())], rules_that_hold(spec, steps))
        assert told == following(spec, steps)
        assert isinstance(told, Go) == (word == "y")
