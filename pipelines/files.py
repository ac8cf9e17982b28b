"""Pipelines as files: YAML that people write and review, read and written without loss."""

from __future__ import annotations

from typing import Any

import yaml
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from harness.modelfaults import read_as
from reading.foreignyaml import read_yaml

from .graph.spec import PipelineSpec

LIMIT = 200_000
"""Characters of one file."""
MOST_BRACKETS = 2_000
"""That open: its reader takes time for them."""
MOST_SIGNS = 20_000
"""That may begin or part something, which takes as much; prose of that length has half as many."""
_SIGNS = ",:-?\n"


def read_pipeline(text: str) -> PipelineSpec:
    """Raises Invalid, naming the place and the rule, and TooLarge. Whether it makes sense is `checking`'s."""
    brackets, signs = text.count("{") + text.count("["), sum(map(text.count, _SIGNS))
    if len(text) > LIMIT or brackets > MOST_BRACKETS or signs > MOST_SIGNS:
        raise TooLarge(
            _(
                "The file is longer than %(limit)s characters, opens more than %(most)s brackets, or has more"
                " than %(signs)s lines, commas, colons and dashes."
            )
            % {
                "limit": f"{LIMIT:,}",
                "most": f"{MOST_BRACKETS:,}",
                "signs": f"{MOST_SIGNS:,}",
            },
            field="file",
            hint=_("Shorten its prompts."),
        )
    try:
        loaded = read_yaml(text)
    except (yaml.YAMLError, TypeError) as problem:
        mark = getattr(problem, "problem_mark", None)
        where = _(" in line %(line)d") % {"line": mark.line + 1} if mark else ""
        words = getattr(problem, "problem", None) or str(problem)
        raise Invalid(
            _("This is no YAML%(where)s: %(problem)s.") % {"where": where, "problem": words},
            field="file",
            hint=_("docs/pipelines.md shows what a pipeline looks like."),
        ) from None
    spec: PipelineSpec = read_as(loaded, PipelineSpec)
    return spec


def written_pipeline(spec: PipelineSpec) -> str:
    plain = {"version": spec.version, **stored(spec)}
    written: str = yaml.dump(
        plain, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000
    )
    return written


def stored(spec: PipelineSpec) -> dict[str, Any]:
    """As a row keeps it: what is not said is not kept."""
    plain: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    return plain


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)
