"""Faults of a body: the field as it was sent, the rule, the remedy; one branch of a union; no secrets."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator
from pydantic_core import core_schema

from harness.errors import Invalid, TooLarge
from harness.faults import MOST_FAULTS, Fault, below, place
from harness.modelfaults import read_as
from tests.phrases import phrase_in, pydantic_error


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Text(Part):
    type: Literal["text"]
    text: Annotated[str, Field(min_length=1, max_length=5)]


class Picture(Part):
    type: Literal["picture"]
    source: Annotated[str, Field(pattern=r"^https?://")]


class Model(Part):
    id: str
    effort: Literal["low", "high"] | None = None


class Order(Part):
    content: Annotated[
        tuple[Annotated[Text | Picture, Field(discriminator="type")], ...], Field(min_length=1)
    ] = ()
    model: str | Model = "demo"
    count: int = Field(default=1, ge=1, le=9)
    labels: Annotated[dict[Annotated[str, Field(max_length=4)], str], Field(max_length=2)] = {}
    token: str = Field(default="", repr=False, max_length=8)
    path: str = ""

    @field_validator("path")
    @classmethod
    def _is_relative(cls, path: str) -> str:
        if path.startswith("/"):
            raise ValueError("a path begins at the workspace")
        return path


def faults_in(data: Any, shape: Any = Order) -> list[Fault]:
    with pytest.raises(Invalid) as caught:
        read_as(data, shape)
    first = caught.value.faults[0]
    assert not phrase_in(" ".join(each.words() for each in caught.value.faults))
    assert (caught.value.field, caught.value.message) == (first.field, first.rule)
    assert caught.value.hint == first.remedy
    return list(caught.value.faults)


@pytest.mark.parametrize(
    ("data", "field", "code", "rule", "remedy"),
    [
        ({"cuont": 1}, "cuont", "unknown_field", "no such field", "mean “count”"),
        ({"zzz": 1}, "zzz", "unknown_field", "no such field", "content, model, count"),
        ({"count": 0}, "count", "out_of_range", "At least 1", "from 1 to 9"),
        ({"count": 10}, "count", "out_of_range", "At most 9", "from 1 to 9"),
        ({"count": []}, "count", "wrong_type", "A list was sent where a number", "whole number"),
        ({"count": "x"}, "count", "wrong_type", "A string was sent", "whole number from 1 to 9"),
        ({"content": [{}]}, "content[0].type", "missing", "missing", "text, picture"),
        ({"content": [{"type": "txt"}]}, "content[0].type", "unknown_type", "txt", "mean “text”"),
        ({"content": [5]}, "content[0]", "wrong_type", "A number", "“type” is one of: text"),
        ({"content": {}}, "content", "wrong_type", "An object", "a list of 1 or more"),
        ({"content": []}, "content", "too_few", "empty", "at least 1"),
        ({"content": [{"type": "text"}]}, "content[0].text", "missing", "missing", "1 to 5"),
        (
            {"content": [{"type": "text", "text": "x" * 7}]},
            "content[0].text",
            "too_long",
            "7 characters; at most 5",
            "Shorten",
        ),
        (
            {"content": [{"type": "picture", "source": "x"}]},
            "content[0].source",
            "malformed",
            "form",
            "^https?://",
        ),
        ({"model": 5}, "model", "wrong_type", "a string or an object", "a string, or an object"),
        ({"model": {}}, "model.id", "missing", "missing", "Send “id”: a string."),
        ({"model": {"id": "x", "effort": "lo"}}, "model.effort", "not_among", "“lo”", "“low”"),
        ({"labels": {"a b": 5}}, 'labels["a b"]', "wrong_type", "A number", "a string"),
        ({"labels": {"longer": "x"}}, "labels.longer", "too_long", "6 characters; at most 4", ""),
        (
            {"labels": dict.fromkeys("abc", "x")},
            "labels",
            "too_many",
            "3 entries; at most 2",
            "Send fewer",
        ),
        ({"path": "/etc"}, "path", "invalid", "A path begins at the workspace.", "Send a string"),
        ([], "", "wrong_type", "A list was sent where an object", "an object"),
    ],
)
def test_a_fault_names_the_field_as_sent_the_rule_and_the_remedy(data, field, code, rule, remedy):
    (fault,) = faults_in(data)
    assert (fault.field, fault.code) == (field, code)
    assert rule in fault.rule
    assert remedy in fault.remedy
    assert fault.remedy


def test_all_faults_are_told_and_a_misspelled_name_first():
    found = faults_in({"count": 0, "modle": "x", "content": [{"type": "text"}, {"type": "x"}]})
    assert [each.field for each in found] == [
        "modle",
        "content[0].text",
        "content[1].type",
        "count",
    ]


def test_of_many_faults_a_few_are_told():
    found = faults_in({"content": [{"type": "x"}] * 500})
    assert len(found) == MOST_FAULTS


@pytest.mark.parametrize("name", ["token", "count", "model", "content", "unheard_of"])
@pytest.mark.parametrize("shape", [lambda s: s, lambda s: [s], lambda s: {"type": s, s: s}])
def test_no_value_is_repeated(name, shape):
    secret = "sk-this-is-secret-0123456789"
    told = [each.words() for each in faults_in({name: shape(secret), "count": -1})]
    said = " ".join(told).replace(f"{name}.{secret}", "")  # the name of a field is no value
    assert secret not in said.replace(f"{secret}: There is no such field", "")


def test_a_text_that_is_too_long_is_too_large():
    with pytest.raises(TooLarge):
        read_as({"token": "x" * 9}, Order)


def test_what_is_checked_inside_something_is_named_from_its_outside():
    with pytest.raises(Invalid) as caught:
        read_as([{"type": "text"}], TypeAdapter(list[Text]), at="resume[1].payload")
    assert caught.value.field == "resume[1].payload[0].text"
    assert caught.value.under("body").field == "body.resume[1].payload[0].text"


def test_places_are_written_as_in_code():
    assert place("tools", 2, "configs", 0, "name") == "tools[2].configs[0].name"
    assert place("metadata", "a.b") == 'metadata["a.b"]'
    assert len(place("x" * 1_000)) < 80
    assert below("", "a") == "a"
    assert below("a", "") == "a"
    assert below("a", "[0].b") == "a[0].b"


@pytest.mark.parametrize("kind", get_args(core_schema.ErrorType))
def test_whatever_pydantic_may_find_is_told_in_our_words(kind):
    """Its own words for each of its kinds of error, none of which comes through."""

    class Odd(Part):
        value: int

        @field_validator("value", mode="before")
        @classmethod
        def _fails(cls, value: Any) -> Any:
            raise pydantic_error(kind)

    (fault,) = faults_in({"value": object()}, Odd)
    assert fault.field.startswith("value")
    assert fault.rule
    assert fault.remedy
    assert not phrase_in(fault.words())
