"""Staff's changes of the environments on offer, and of what organisations take away from them.

Conversations hold on to their environment, so one that was ever used is archived, never deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.staff import require_staff
from agents.models import Environment, SandboxRules
from agents.uses import is_used
from audit import record as audit
from harness.errors import Conflict, Invalid, NotFound
from sandbox.policy import read_policy
from tools_app.mountroots import mount_roots
from tools_app.reach import check_reach
from webhooks import outbox
from wire.naming import named

MOST_UPLOAD_BYTES = 1024**3
"""Above this one upload would hold a worker and a disk for too long."""

SHORT = ("name", "upload_limit", "backend")
"""Fields of which the audit log has both values; of the others, that they changed."""

ADD = "agents.add_environment"
CHANGE = "agents.change_environment"
DELETE = "agents.delete_environment"
CHANGE_RULES = "agents.change_sandboxrules"


@dataclass(frozen=True, slots=True)
class Checked:
    """What an environment will say, tidied up."""

    name: str
    description: str
    upload_limit: int
    backend: str
    policy: str


def create_environment(
    *,
    actor: User,
    organisation: Organisation | None,
    name: str,
    description: str,
    upload_limit: int,
    backend: str = "",
    policy: str = "",
) -> Environment:
    """An environment for one organisation or, with none, for everybody. Raises as `change_environment`."""
    require_staff(actor, ADD)
    checked = check_environment(
        name=name,
        description=description,
        upload_limit=upload_limit,
        backend=backend,
        policy=policy,
    )
    with transaction.atomic():
        environment = Environment.objects.create(
            organisation=organisation,
            name=checked.name,
            description=checked.description,
            upload_limit=checked.upload_limit,
            backend=checked.backend,
            policy=checked.policy,
        )
        _record(audit.Action.ENVIRONMENT_MADE, environment, actor, backend=environment.backend)
        outbox.announce(environment.organisation_id, "environment.created", subject=environment.uid)
    return environment


def change_environment(
    *,
    actor: User,
    environment: Environment,
    name: str,
    description: str,
    upload_limit: int,
    backend: str | None = None,
    policy: str | None = None,
) -> Environment:
    """Change it for all conversations that use it, from their next upload and command on. None leaves
    sandbox and policy as they are; a change of them is a new version.

    Raises Invalid, naming the field, for an empty or too long text, an impossible limit, or a policy
    that breaks its schema.
    """
    require_staff(actor, CHANGE)
    with transaction.atomic():
        current = _lock(environment)
        checked = check_environment(
            name=name,
            description=description,
            upload_limit=upload_limit,
            backend=current.backend if backend is None else backend,
            policy=current.policy if policy is None else policy,
        )
        _keep_workers(current, checked.backend)
        other_sandbox = (current.backend, current.policy) != (checked.backend, checked.policy)
        values = {field: getattr(checked, field) for field in Checked.__slots__}
        before = {field: getattr(current, field) for field in values}
        changed = [field for field, value in values.items() if before[field] != value]
        if changed:
            for field, value in values.items():
                setattr(current, field, value)
            current.version += other_sandbox
            current.save(update_fields=[*values, "version", "updated_at"])
            short = [field for field in changed if field in SHORT]
            _record(
                audit.Action.ENVIRONMENT_CHANGED,
                current,
                actor,
                version=current.version,
                changed=changed,
                before={field: before[field] for field in short},
                after={field: values[field] for field in short},
            )
            outbox.announce(current.organisation_id, "environment.updated", subject=current.uid)
    return current


def trust_workers(*, actor: User, environment: Environment, trusted: bool) -> Environment:
    """Whether what its workers answer counts as written by the team; from their next answer on."""
    require_staff(actor, CHANGE)
    with transaction.atomic():
        current = _lock(environment)
        if current.trusts_workers != trusted:
            current.trusts_workers = trusted
            current.save(update_fields=["trusts_workers", "updated_at"])
            _record(audit.Action.ENVIRONMENT_CHANGED, current, actor, trusts_workers=trusted)
            outbox.announce(current.organisation_id, "environment.updated", subject=current.uid)
    return current


def archive_environment(
    *, actor: User, environment: Environment, archived: bool = True
) -> Environment:
    """Offer it no longer for new conversations, or again. Those that use it go on."""
    require_staff(actor, CHANGE)
    with transaction.atomic():
        current = _lock(environment)
        if archived != (current.archived_at is not None):
            current.archived_at = timezone.now() if archived else None
            current.save(update_fields=["archived_at", "updated_at"])
            action = audit.Action.ENVIRONMENT_ARCHIVED
            _record(
                action if archived else audit.Action.ENVIRONMENT_CHANGED,
                current,
                actor,
                archived=archived,
            )
            event_type = "environment.archived" if archived else "environment.updated"
            outbox.announce(current.organisation_id, event_type, subject=current.uid)
    return current


def delete_environment(*, actor: User, environment: Environment) -> None:
    """Delete one that no conversation uses and that the next start would not bring back; Conflict
    for any other."""
    require_staff(actor, DELETE)
    with transaction.atomic():
        current = _lock(environment)
        used = is_used(environment=current)
        if used or current.seed_name is not None:
            raise Conflict(
                _("%(environment)s is in use, or comes with this software.")
                % {"environment": current.name},
                hint=_("Archive it: it is no longer offered, and its conversations go on."),
            )
        _record(audit.Action.ENVIRONMENT_DELETED, current, actor)
        outbox.announce(current.organisation_id, "environment.deleted", subject=current.uid)
        current.delete()


def set_sandbox_rules(
    *, actor: User, organisation: Organisation, policy: str
) -> SandboxRules | None:
    """What the organisation takes away from every environment; an empty text takes nothing away.

    Holds from the next command on. Raises Invalid for a policy that breaks its schema.
    """
    require_staff(actor, CHANGE_RULES)
    text = checked_policy(policy).strip()
    with transaction.atomic():
        rules = SandboxRules.objects.select_for_update().filter(organisation=organisation).first()
        if text == (rules.policy if rules else ""):
            return rules
        if not text:
            if rules is not None:
                rules.delete()
            rules = None
        elif rules is None:
            rules = SandboxRules.objects.create(
                organisation=organisation, policy=text, updated_by=actor
            )
        else:
            rules.policy, rules.updated_by = text, actor
            rules.version += 1
            rules.save(update_fields=["policy", "version", "updated_by", "updated_at"])
        audit.about_setting(
            audit.Action.SANDBOX_RULES_SET,
            actor=actor,
            organisation_id=organisation.pk,
            **({"version": rules.version} if rules else {"removed": True}),
        )
    return rules


def check_environment(
    *, name: str, description: str, upload_limit: int, backend: str = "", policy: str = ""
) -> Checked:
    """The values tidied up; Invalid, naming the field, if one breaks a rule."""
    name, description = named(name, description, missing=_("An environment needs a name."))
    if not 1 <= upload_limit <= MOST_UPLOAD_BYTES:
        raise Invalid(
            _("The upload limit is out of range."),
            field="upload_limit",
            hint=_("Give a number of bytes from 1 to %(most)d.") % {"most": MOST_UPLOAD_BYTES},
        )
    if backend not in Environment.Backend.values:
        names = [value for value in Environment.Backend.values if value]
        raise Invalid(
            _("There is no sandbox “%(name)s”.") % {"name": backend[:60]},
            field="backend",
            hint=_("Choose from: %(names)s; or leave it empty.") % {"names": ", ".join(names)},
        )
    text = checked_policy(policy)
    mount_roots().check(read_policy(text))
    check_reach(read_policy(text))
    if backend == Environment.Backend.NONE and read_policy(text).required:
        raise Invalid(
            _("Without a sandbox nothing that the policy requires can be promised."),
            field="policy",
            hint=_("Write “require: []” in the policy, or choose a sandbox."),
        )
    if backend == Environment.Backend.WORKER and text:
        raise Invalid(
            _("What a worker's machine may do is settled on that machine, not by a policy here."),
            field="policy",
            hint=_("Leave the policy empty."),
        )
    return Checked(name, description, upload_limit, backend, text)


def checked_policy(text: str) -> str:
    """The text with plain line ends, if it is a policy. Raises Invalid for the field `policy`."""
    text = text.replace("\r\n", "\n")
    try:
        read_policy(text)
    except Invalid as problem:
        raise Invalid(problem.message, field="policy", hint=problem.hint) from problem
    return text if text.strip() else ""


def _keep_workers(environment: Environment, backend: str) -> None:
    """Conversations do not move between this server's disk and their workers': Conflict."""
    moved = (backend == Environment.Backend.WORKER) != environment.has_workers
    if moved and is_used(environment=environment):
        raise Conflict(
            _("Conversations use this environment: their files do not move to or from workers."),
            hint=_("Create another environment for new conversations."),
        )


def _record(action: audit.Action, environment: Environment, actor: User, **details: Any) -> None:
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=environment.organisation_id,
        environment=environment.uid,
        name=environment.name,
        **details,
    )


def _lock(environment: Environment) -> Environment:
    current = Environment.objects.select_for_update().filter(pk=environment.pk).first()
    if current is None:
        raise NotFound(_("There is no such environment."))
    return current
