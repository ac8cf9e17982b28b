"""The cases that a version of a skill carries, run like any other: a suite by the skill's name, trials in
which the version stands although nobody released it yet, and what came of them.
"""

from __future__ import annotations

import json
from contextlib import suppress

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from harness.errors import AgentError, Declined, Invalid, NotFound
from skills_app.actions.releases import promote_canary
from skills_app.choosing import with_required
from skills_app.contracts import CASES, Contract, Course, Step
from skills_app.files import file_of
from skills_app.models import SkillVersion
from skillsets.fixing import add
from skillsets.models import UsedSkill
from tools_app.confinement import parse_path

from .actions.suites import digest_of, import_suite
from .checks.spec import ScriptedCall, SuiteSpec
from .files import read_suite
from .models import Evaluation, Suite, Trial


def spec_of_skill(version: SkillVersion) -> SuiteSpec | None:
    """Its cases, as a suite called by its name; None: it has none. Raises Invalid for what cannot be read."""
    try:
        data = file_of(version, CASES)
    except NotFound:
        return None
    return _read(data).model_copy(update={"name": suite_name(version)})


def suite_name(version: SkillVersion) -> str:
    return f"Skill {version.skill.name}"


def faults(data: bytes) -> str:
    try:
        _read(data)
    except Declined as problem:
        return f"{CASES}: {problem.message}"
    return ""


def courses(data: bytes) -> tuple[Course, ...]:
    """What the scripts of these cases do in a workspace. Raises Declined for what cannot be read."""
    return tuple(
        Course(
            case.name,
            {path: file.content for path, file in case.files.items()},
            tuple(
                step
                for reply in case.script.replies
                for each in reply.calls
                if (step := _step(each)) is not None
            ),
        )
        for case in _read(data).cases
    )


def _step(made: ScriptedCall) -> Step | None:
    """None: it is done without the skill's files."""
    given = made.input
    match made.tool:
        case "bash":
            return Step("command", str(given.get("command", "")))
        case "write_file":
            try:
                path = "/".join(parse_path(str(given.get("path", ""))))
            except AgentError:
                return None
            return Step("write", path, str(given.get("content", "")).encode()) if path else None
        case name if name.startswith("skill__"):
            return Step("tool", name, json.dumps(given).encode())
    return None


def contract(version: SkillVersion) -> Contract | None:
    """Green: all its cases, as it carries them, passed in the last evaluation of it that ended."""
    try:
        spec = spec_of_skill(version)
    except AgentError as problem:
        return Contract(0, green=False, why=problem.message, address="")
    if spec is None:
        return None
    tried = Evaluation.objects.filter(skill_version=version, state=Evaluation.State.DONE)
    last = tried.order_by("-id").first()
    why = _("They were not tried yet.") if last is None else _why_not_green(last, spec)
    return Contract(
        len(spec.cases),
        green=not why,
        why=why,
        address=reverse("evals:skill", args=[version.uid]),
    )


def suite_for(*, actor: User, organisation: Organisation, version: SkillVersion) -> Suite:
    """The suite that holds its cases, made or brought to what this version says.

    Raises NotFound for a version that the actor does not see or that is another organisation's, Invalid for
    one without cases, and what `import_suite` raises.
    """
    seen = SkillVersion.objects.visible_to(actor).filter(pk=version.pk).exists()
    if not seen or version.skill.organisation_id not in {None, organisation.pk}:
        raise NotFound(_("There is no such version."))
    spec = spec_of_skill(version)
    if spec is None:
        raise Invalid(
            _("This version carries no cases."),
            field="suite",
            hint=_("They stand in %(file)s beside SKILL.md.") % {"file": CASES},
        )
    return import_suite(actor=actor, organisation=organisation, spec=spec)


def give(evaluation: Evaluation, conversation: Conversation) -> None:
    """In a trial, the version itself stands in place of any other of its skill."""
    version = evaluation.skill_version
    if version is None:
        return
    versions = with_required(version, conversation.organisation)
    taken = UsedSkill.objects.filter(conversation=conversation)
    taken.filter(skill__in=[each.skill_id for each in versions]).delete()
    add(conversation, versions, {version.skill.name})


def ended(evaluation: Evaluation) -> None:
    """A canary that its skill lets become stable does so when its cases are green."""
    version, actor = evaluation.skill_version, evaluation.started_by
    if version is None or actor is None:
        return
    with suppress(AgentError), transaction.atomic():
        promote_canary(actor=actor, version=version)


def _read(data: bytes) -> SuiteSpec:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Invalid(_("It is no text."), field="file") from None
    return read_suite(text)


def _why_not_green(evaluation: Evaluation, spec: SuiteSpec) -> str:
    trials = list(evaluation.trials.all())
    if {each.digest for each in trials} != {digest_of(case) for case in spec.cases}:
        return _("They were not tried as it carries them.")
    failed = sorted({each.name for each in trials if each.state != Trial.State.PASSED})
    if failed:
        return _("Not passed: %(names)s.") % {"names": ", ".join(failed[:20])}
    return ""
