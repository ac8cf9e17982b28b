"""The phrases of other people's validators, from their own tables: none of them is a word of ours.

Pydantic's, REST framework's, Django's, jsonschema's and the JSON reader's, each taken from the library as
it is installed.
"""

from __future__ import annotations

import ast
import inspect
import json.decoder
import json.scanner
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import jsonschema._keywords
import jsonschema._utils
from django.core import validators
from django.db import models
from django.forms import fields as forms
from pydantic_core import PydanticKnownError, core_schema
from rest_framework import exceptions, relations, serializers
from rest_framework import validators as rest_validators

SHORTEST = 10
"""Characters of a phrase: shorter ones are anybody's words."""
ANYBODYS = frozenset(
    {
        "already exists",
        "cannot check `",
        "characters (it has",
        "does not exist",
        "does not match",
        "in request",
        "instance with",
        "not allowed",
        "object with",
        "the fields",
        "was expected",
    }
)
"""What we may say as well as they do."""
_HOLE = re.compile(r"\{[^}]*\}|%\([^)]*\)[a-z]|%[sdr]")


@cache
def validators_phrases() -> frozenset[str]:
    """Lower case; whatever stands between the holes of their templates."""
    found = {
        part.strip(" .,:;'\"").lower()
        for template in (*_pydantic(), *_rest(), *_django(), *_jsonschema(), *_json())
        for part in _HOLE.split(template)
    }
    more = {"input should be", "field required", "value error,", "value_error", "pydantic"}
    found = {each for each in found if len(each) >= SHORTEST and " " in each}
    return frozenset(found) - ANYBODYS | more


def phrase_in(text: str) -> str:
    """One of them that stands in `text`; empty: none."""
    lowered = text.lower()
    return next((each for each in sorted(validators_phrases()) if each in lowered), "")


def pydantic_error(kind: Any) -> PydanticKnownError:
    """An error of this kind, whatever context it needs."""
    values: tuple[Any, ...] = (3, "x", ValueError("x"))
    context: dict[str, Any] = {}
    tried: dict[str, int] = {}
    while True:
        try:
            return PydanticKnownError(kind, context or None)
        except TypeError as problem:
            name = re.findall(r"'(\w+)'", str(problem))[0]
            tried[name] = tried.get(name, -1) + 1
            context[name] = values[tried[name]]


def _pydantic() -> Iterator[str]:
    for kind in get_args(core_schema.ErrorType):
        if kind not in {"value_error", "assertion_error"}:  # the words are the raiser's
            yield pydantic_error(kind).message_template


def _rest() -> Iterator[str]:
    for module in (serializers, relations, exceptions, rest_validators):
        for _name, member in inspect.getmembers(module, inspect.isclass):
            yield from map(str, getattr(member, "default_error_messages", {}).values())
            for attribute in ("default_detail", "message"):
                said = getattr(member, attribute, "")
                if not isinstance(said, property) and member.__module__.startswith(
                    "rest_framework"
                ):
                    yield str(said)


def _django() -> Iterator[str]:
    for module in (forms, models):
        for _name, member in inspect.getmembers(module, inspect.isclass):
            yield from map(str, getattr(member, "default_error_messages", {}).values())
    for _name, member in inspect.getmembers(validators, inspect.isclass):
        said = getattr(member, "message", "")
        yield said if isinstance(said, str) else str(said)


def _jsonschema() -> Iterator[str]:
    for module in (jsonschema._keywords, jsonschema._utils):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.JoinedStr):
                for part in node.values:
                    if isinstance(part, ast.Constant):
                        yield str(part.value)


def _json() -> Iterator[str]:
    for module in (json.decoder, json.scanner):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "JSONDecodeError":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    yield str(first.value)
    yield "Expecting value"
    yield "unexpected character"
