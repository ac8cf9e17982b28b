"""What is wrong with a definition is said in words, and a run goes where its answers lead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Invalid, TooLarge
from pipelines.files import read_pipeline, written_pipeline
from pipelines.graph.answers import NotUsable, outcome_of
from pipelines.graph.checking import problems
from pipelines.graph.following import Done, Ends, Go, Outcome, following, most_steps
from pipelines.graph.spec import MOST_OF_A_RUN, PipelineSpec
from pipelines.graph.texts import ANSWER_LIMIT, asked
from pipelines.shipped import example_pipelines
from prompts.filling import MOST_FILLED

from .conftest import spec_of, step

GATE = {"when": {"field": "score", "at_least": 0.7}, "to": "end"}


def test_what_rules_look_at_can_be_kept_by_every_database():
    rules = [{"when": {"field": "said", "equals": "x"}, "to": "end"}, {"to": "fail"}]
    spec = spec_of(step("a", next=rules))

    read = outcome_of(spec, "a", r'{"said": "one\u0000two"}')

    assert read.fields == {"said": "one\N{REPLACEMENT CHARACTER}two"}


@pytest.mark.parametrize("name", sorted(example_pipelines()))
def test_a_shipped_pipeline_is_right_and_survives_being_written(name):
    spec = read_pipeline(example_pipelines()[name])

    assert problems(spec) == []
    assert read_pipeline(written_pipeline(spec)) == spec


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([step("a"), step("a")], "Two steps are called “a”."),
        ([step("end")], "No step can be called “end”"),
        ([step("a", next=[{"to": "b"}])], "“a” leads to “b”, and there is no such step."),
        ([step("a", next=[{"to": "end"}]), step("b")], "“b” is never reached."),
        ([step("a", next=[{"to": "fail"}])], "No rule leads to the end"),
        (
            [step("a"), step("b", next=[{"to": "a"}])],
            "“b” leads back to “a” without a bound",
        ),
        (
            [step("a"), step("b", next=[{"to": "a", "at_most": 1}, {"to": "end"}])],
            "“b” leads back to “a”, which would be asked the same",
        ),
        ([step("a", tries=2)], "“a” may be tried again, and would be asked the same"),
        (
            [step("a", tries=2, again="Do it: {{question}}")],
            "“a” may be tried again, and would be asked the same",
        ),
        (
            [step("a", prompt="{{b}}"), step("b")],
            "“a” has {{b}}, and that step runs later or not at all before it.",
        ),
        ([step("a", prompt="{{a}}")], "“a” has {{a}}, and that step runs later"),
        ([step("a", prompt="{{nobody}}")], "“a” has {{nobody}}, and there is no such step."),
        ([step("a", prompt="{{problem}}")], "“a” has {{problem}} in a text that is no “again”"),
        ([step("a", prompt=" ")], "“a” has no prompt."),
        ([step("a", words=["yes"])], "“a” needs several different words"),
        ([step("a", words=["Yes", "no"])], "“Yes” is no word that “a” can answer"),
        (
            [step("a", words=["yes", "no"], next=[{"when": {"word": ["maybe"]}, "to": "end"}])],
            "“a” never answers “maybe”",
        ),
        ([step("a", next=[GATE])], "The last rule of “a” must hold always"),
        (
            [step("a", next=[{"to": "end"}, {"to": "fail"}])],
            "Rules of “a” behind one that always holds are never asked.",
        ),
        (
            [step("a", next=[{"when": {"field": "x"}, "to": "end"}, {"to": "fail"}])],
            "does not say what its field must be",
        ),
        (
            [step("a", next=[{"when": {}, "to": "end"}, {"to": "fail"}])],
            "looks at a word or a field: give one of them",
        ),
        (
            [
                step("a", next=[{"when": {"of": "b", "word": ["x"]}, "to": "end"}, {"to": "b"}]),
                step("b", words=["x", "y"]),
            ],
            "A rule of “a” looks at “b”, which runs later",
        ),
        ([{"name": "a", "approval": "Well?", "prompt": "Do"}], "“a” asks a person"),
        ([{"name": "a", "approval": "Well?"}], "The answer is to be that of a step with an agent"),
    ],
)
def test_what_is_wrong_is_said_in_words(steps, words):
    assert words in "\n".join(problems(spec_of(*steps)))


def test_a_step_without_any_agent_is_named():
    spec = PipelineSpec.model_validate({"name": "Line", "steps": [step("a")]})

    assert problems(spec) == ["“a” has no agent, and the pipeline names none."]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("name: [", Invalid),
        ("name: Line\nsteps: []", Invalid),
        ("name: Line\nsteps:\n- {name: a, prompt: Do, surprise: 1}", Invalid),
        ("name: Line\nsteps:\n- {name: a, next: [{to: end, at_most: 99}]}", Invalid),
        ("a" * 200_001, TooLarge),
        ("[" * 3_000, TooLarge),
        ("[" + "?," * 90_000, TooLarge),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused(text, refusal):
    with pytest.raises(refusal):
        read_pipeline(text)


# --- what an answer says --------------------------------------------------------------------------

ROUTE = spec_of(step("route", words=["research", "calculate"]), step("b"))
REVIEW = spec_of(
    step(
        "review",
        next=[GATE, {"when": {"field": "by.whom", "equals": "x"}, "to": "fail"}, {"to": "end"}],
    )
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("research", "research"),
        ("It could be research.\n\n**Calculate**\n", "calculate"),
        ("I choose calculate, since sums are wanted.\nThat is all.", "calculate"),
    ],
)
def test_a_word_is_read_of_the_last_line_or_of_all(text, word):
    assert outcome_of(ROUTE, "route", text).word == word


@pytest.mark.parametrize("text", ["", " \n", "Neither.", "research or calculate", "researching"])
def test_an_answer_without_one_word_is_not_usable(text):
    with pytest.raises(NotUsable):
        outcome_of(ROUTE, "route", text)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0.8, "by": {"whom": "x"}}',
        'Well:\n```json\n{"score": 0.8, "by": {"whom": "x"}}\n```\nSo.',
        'I say {"score": 0.8, "by": {"whom": "x"}}.',
    ],
)
def test_fields_are_read_of_json_wherever_it_stands(text):
    assert outcome_of(REVIEW, "review", text).fields == {"score": 0.8, "by.whom": "x"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.8", "no JSON object"),
        ('{"score": 0.8}', "has no “by.whom”"),
        ('{"score": "0.8", "by": {"whom": "x"}}', "“score” of its JSON is no number"),
        ('{"score": true, "by": {"whom": "x"}}', "“score” of its JSON is no number"),
        ('{"score": 1, "by": {"whom": []}}', "is neither text, number, true nor false"),
        ('{"score": NaN, "by": {"whom": "x"}}', "no JSON object"),
    ],
)
def test_an_answer_without_its_fields_says_what_it_lacks(text, why):
    with pytest.raises(NotUsable, match=why):
        outcome_of(REVIEW, "review", text)


# --- where it goes --------------------------------------------------------------------------------


def test_a_gate_sends_back_so_often_as_it_may_and_then_fails():
    spec = spec_of(
        step("write", again="Anew: {{review}}"),
        step("review", next=[GATE, {"to": "write", "at_most": 2}, {"to": "fail"}]),
    )
    poor = Outcome(fields={"score": 0.1})
    steps: list[Done] = []
    went = []
    while isinstance(due := following(spec, steps), Go):
        went.append(due.name)
        steps.append(Done(due.name, due.came_by, poor))

    assert went == ["write", "review"] * 3
    assert due.words
    assert (
        following(spec, [*steps[:-1], Done("review", "write.0", Outcome(fields={"score": 0.7}))])
        == Ends()
    )


def test_tries_count_anew_each_time_something_else_leads_to_a_step():
    spec = spec_of(
        step("write", again="Anew", tries=2),
        step("review", next=[GATE, {"to": "write", "at_most": 1}, {"to": "fail"}]),
    )
    poor = Outcome(fields={"score": 0.1})
    steps = [
        Done("write", "start", None),
        Done("write", "retry", Outcome()),
        Done("review", "write.0", poor),
        Done("write", "review.1", None),
    ]

    assert following(spec, steps) == Go("write", "retry")
    assert isinstance(following(spec, [*steps, Done("write", "retry", None)]), Ends)
    assert isinstance(
        following(spec, [*steps[:-1], Done("write", "review.1", None, final=True)]), Ends
    )


def test_true_is_no_number_one():
    rule = {"when": {"field": "ok", "equals": 1}, "to": "end"}
    spec = spec_of(step("a", next=[rule, {"to": "fail"}]))

    assert following(spec, [Done("a", "start", Outcome(fields={"ok": 1}))]) == Ends()
    assert following(spec, [Done("a", "start", Outcome(fields={"ok": True}))]) != Ends()


def test_bounds_that_multiply_end_at_the_bound_of_a_run():
    back = [{"to": "s0", "at_most": 5}] * 19
    steps = [
        step(f"s{n}", again="Anew", tries=5, next=[*back, {"to": f"s{n + 1}" if n < 29 else "end"}])
        for n in range(30)
    ]
    spec = spec_of(*steps)
    assert (problems(spec), most_steps(spec)) == ([], MOST_OF_A_RUN)
    done: list[Done] = []
    while isinstance(due := following(spec, done), Go) and len(done) <= MOST_OF_A_RUN:
        done.append(Done(due.name, due.came_by, Outcome()))
    assert len(done) == MOST_OF_A_RUN
    assert "no run has more" in due.words


@st.composite
def pipelines(draw):
    """Any that passes the checks, with ways back and forth."""
    number = draw(st.integers(1, 6))
    steps = []
    for place in range(number):
        rules = []
        for _each in range(draw(st.integers(0, 3))):
            goal = draw(st.integers(0, number))
            rule: dict[str, Any] = {"to": "end" if goal == number else f"s{goal}"}
            if draw(st.booleans()):
                rule["when"] = {
                    "word": draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3))
                }
            if goal <= place or "when" not in rule:
                rule["at_most"] = draw(st.integers(1, 3))
            rules.append(rule)
        last = draw(st.integers(place + 1, number))
        rules.append({"to": "end" if last == number else f"s{last}"})
        steps.append(
            step(
                f"s{place}",
                again="Anew",
                words=["x", "y", "z"],
                tries=draw(st.integers(1, 3)),
                next=rules,
            )
        )
    return spec_of(*steps)


@given(pipelines(), st.data())
def test_every_run_ends_within_its_bound_whatever_is_answered(spec, data):
    reached = {each.name for each in spec.steps}
    told = problems(spec)
    assert all("never reached" in each for each in told)
    steps: list[Done] = []
    while isinstance(due := following(spec, steps), Go):
        assert due.name in reached
        outcome = data.draw(st.sampled_from([None, *(Outcome(word=word) for word in "xyz")]))
        steps.append(Done(due.name, due.came_by, outcome))
        assert len(steps) <= most_steps(spec)


# --- what is asked --------------------------------------------------------------------------------


def test_what_is_filled_in_is_not_read_again_and_is_bounded():
    spec = spec_of(step("a"), step("b", prompt="{{a}} / {{question}} / {{other}}"))

    text = asked(
        spec,
        spec.step("b"),
        question="{{a}}",
        answers={"a": "{{question}}" + "x" * ANSWER_LIMIT},
        times=1,
    )

    assert text.startswith("{{question}}xxx")
    assert "[12 characters are left out here.]" in text
    assert text.endswith(" / {{a}} / {{other}}")


def test_an_answer_that_stands_in_thousands_of_places_fills_no_memory():
    spec = spec_of(step("a"), step("b", prompt="{{a}}" * 4_000))

    text = asked(spec, spec.step("b"), question="", answers={"a": "x" * ANSWER_LIMIT}, times=1)

    assert text.count("x") == MOST_FILLED
    assert text.endswith("{{a}}")
