"""Prompts as files: YAML that people write and review, read and written without loss.

What YAML may hold is `reading.foreignyaml`'s; how long it may be is said here.
"""

from __future__ import annotations

import json
from typing import Any

import yaml
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from harness.modelfaults import read_as
from reading.foreignjson import Unreadable, read_json
from reading.foreignyaml import read_yaml

from .spec import PromptSpec

LIMIT = 10_000_000
"""Characters of one file."""
MOST_YAML = 500_000
MOST_BRACKETS = 5_000
"""Characters, and brackets that open, of one that is not JSON: its reader takes time for both."""


def read_prompt(text: str) -> PromptSpec:
    """Raises Invalid, naming the place and the rule, and TooLarge."""
    spec: PromptSpec = read_as(_loaded(text), PromptSpec)
    return spec


def written_prompt(spec: PromptSpec) -> str:
    """As JSON where YAML of it would not be read again; that is YAML too."""
    plain = {"version": spec.version, **spec.model_dump(mode="json", exclude_defaults=True)}
    written: str = yaml.dump(
        plain, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000
    )
    if len(written) > MOST_YAML or _brackets(written) > MOST_BRACKETS:
        return json.dumps(plain, ensure_ascii=False, indent=1)
    return written


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # A block cannot hold what YAML would fold or refuse; the library quotes that.
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


def _brackets(text: str) -> int:
    return text.count("{") + text.count("[")


def _loaded(text: str) -> Any:
    if text.lstrip().startswith("{") and len(text) <= LIMIT:
        try:
            return read_json(text, limit=LIMIT)
        except Unreadable:
            pass  # it may be YAML that looks like it
    if len(text) > MOST_YAML or _brackets(text) > MOST_BRACKETS:
        raise TooLarge(
            _("The YAML is longer than %(limit)s characters, or opens more than %(most)s brackets.")
            % {"limit": f"{MOST_YAML:,}", "most": f"{MOST_BRACKETS:,}"},
            field="file",
            hint=_("Leave old versions out, or give it as JSON."),
        )
    try:
        return read_yaml(text)
    except (yaml.YAMLError, TypeError) as problem:
        mark = getattr(problem, "problem_mark", None)
        where = _(" in line %(line)d") % {"line": mark.line + 1} if mark else ""
        words = getattr(problem, "problem", None) or str(problem)
        raise Invalid(
            _("This is no YAML%(where)s: %(problem)s.") % {"where": where, "problem": words},
            field="file",
            hint=_("docs/prompts.md shows what a prompt looks like."),
        ) from None
