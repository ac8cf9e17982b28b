"""Suites as files: YAML that people write and review, read and written without loss.

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
from reading.foreignyaml import Loader, read_yaml

from .checks.spec import CaseSpec, SuiteSpec

LIMIT = 10_000_000
"""Characters of one file."""
MOST_YAML = 500_000
MOST_BRACKETS = 5_000
"""Characters, and brackets that open, of one that is not plain JSON: its reader takes time for both."""


class _Loader(Loader):
    """A key that is given twice is refused: one of both would be lost."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    pairs = [(loader.construct_object(key, deep=True), value) for key, value in node.value]
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key “{key}” is given twice", node.start_mark
            )
        found[key] = loader.construct_object(value, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


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


def read_suite(text: str) -> SuiteSpec:
    """The suite of a file. Raises Invalid, naming the place and the rule, and TooLarge."""
    spec: SuiteSpec = read_as(_loaded(text), SuiteSpec)
    return spec


def read_case(text: str) -> CaseSpec:
    """One case, as its page shows it."""
    spec: CaseSpec = read_as(_loaded(text), CaseSpec)
    return spec


def written_suite(spec: SuiteSpec) -> str:
    return _written(_plain(spec))


def written_case(spec: CaseSpec) -> str:
    return _written(_plain(spec))


def _loaded(text: str) -> Any:
    if len(text) > LIMIT:
        raise TooLarge(
            _("The file is longer than %(limit)s characters.") % {"limit": f"{LIMIT:,}"},
            field="file",
            hint=_("Split the suite."),
        )
    if text.lstrip().startswith("{"):
        try:
            return read_json(text, limit=LIMIT)
        except Unreadable:
            pass  # it may be YAML that looks like it
    brackets = text.count("{") + text.count("[")
    if len(text) > MOST_YAML or brackets > MOST_BRACKETS:
        raise TooLarge(
            _("The YAML is longer than %(limit)s characters, or opens more than %(most)s brackets.")
            % {"limit": f"{MOST_YAML:,}", "most": f"{MOST_BRACKETS:,}"},
            field="file",
            hint=_("Split the suite, or give it as JSON."),
        )
    try:
        return read_yaml(text, _Loader)
    except (yaml.YAMLError, TypeError) as problem:
        mark = getattr(problem, "problem_mark", None)
        where = _(" in line %(line)d") % {"line": mark.line + 1} if mark else ""
        words = getattr(problem, "problem", None) or str(problem)
        raise Invalid(
            _("This is no YAML%(where)s: %(problem)s.") % {"where": where, "problem": words},
            field="file",
            hint=_("docs/evals.md shows what a suite looks like."),
        ) from None


def _plain(spec: SuiteSpec | CaseSpec) -> Any:
    """Only what was said: defaults are left out, but what a check is."""
    plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if isinstance(spec, CaseSpec):
        return _named_checks(plain, spec)
    plain["cases"] = [
        _named_checks(case, said)
        for case, said in zip(plain.get("cases", []), spec.cases, strict=True)
    ]
    return {"version": spec.version, **plain}


def _named_checks(case: dict[str, Any], said: CaseSpec) -> dict[str, Any]:
    checks = zip(case["checks"], said.checks, strict=True)
    return {**case, "checks": [{"type": full.type, **check} for check, full in checks]}


def _written(plain: Any) -> str:
    """As JSON where YAML of it would not be read again; that is YAML too."""
    written: str = yaml.dump(plain, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)
    if len(written) > MOST_YAML or written.count("{") + written.count("[") > MOST_BRACKETS:
        return json.dumps(plain, ensure_ascii=False, indent=1)
    return written
