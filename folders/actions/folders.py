"""Folders come into being, are changed, shared within their organisation, and deleted; conversations stay."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from accounts.permissions import require_member
from accounts.persons import hold_place
from agents.models import Agent
from audit.models import AuditEntry
from conversations.actions.conversations import find_agent
from conversations.actions.stored_files import delete_file
from folders.access import editable_folder, own_folder, visible_folder
from folders.auditing import about_folder
from folders.models import INSTRUCTIONS_LIMIT, Folder, FolderMember
from harness.errors import Invalid, LimitReached, NotFound, TooLarge
from wire.naming import named

MOST = 200
"""Folders that a person has in one organisation."""
MEMBERS = 200


def create_folder(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    instructions: str = "",
    default_agent: Agent | None = None,
) -> Folder:
    """Raises NotFound for a stranger, Invalid and TooLarge naming the field, LimitReached."""
    require_member(actor, organisation)
    name, instructions = _checked(name, instructions)
    _require_agent(actor, organisation, default_agent)
    with transaction.atomic():
        hers = hold_place(actor, organisation)
        if Folder.objects.filter(owner__in=hers, organisation=organisation).count() >= MOST:
            raise LimitReached(
                _("You have %(limit)d folders here already.") % {"limit": MOST},
                hint=_("Delete one first; its conversations stay."),
            )
        return Folder.objects.create(
            organisation=organisation,
            owner=actor,
            name=name,
            instructions=instructions,
            default_agent=default_agent,
        )


def change_folder(
    *,
    actor: User,
    folder: Folder,
    name: str,
    instructions: str,
    default_agent: Agent | None = None,
) -> Folder:
    """What conversations that begin from now on are told; those that began stay with what they were told.

    Raises NotFound, Forbidden, and as `create_folder`.
    """
    name, instructions = _checked(name, instructions)
    with transaction.atomic():
        held = editable_folder(actor, folder)
        if default_agent is not None and default_agent.pk != held.default_agent_id:
            _require_agent(actor, held.organisation, default_agent)
        held.name, held.instructions, held.default_agent = name, instructions, default_agent
        held.save(update_fields=["name", "instructions", "default_agent"])
        about_folder(AuditEntry.Action.FOLDER_CHANGED, actor, held)
    return held


def delete_folder(*, actor: User, folder: Folder) -> None:
    """The folder, its members and its files go; all conversations stay, with what they were told.

    Raises NotFound, Forbidden.
    """
    with transaction.atomic():
        held = own_folder(actor, folder)
        about_folder(AuditEntry.Action.FOLDER_DELETED, actor, held)
        for row in held.files.there():
            delete_file(actor=row.file.owner, file=row.file)
        held.delete()


def share_folder(*, actor: User, folder: Folder, whom: str, role: str) -> FolderMember:
    """Let somebody of the organisation in, by name or mail address, or give her another role. She sees the
    folder and begins conversations of her own in it; others' conversations stay theirs.

    Raises NotFound, Forbidden, and Invalid for nobody of that name there and for another role.
    """
    if role not in FolderMember.Role.values:
        raise Invalid(_("There is no such role."), field="role")
    with transaction.atomic():
        held = own_folder(actor, folder)
        wanted = whom.strip()
        there = Membership.objects.filter(
            organisation=held.organisation, user__is_active=True
        ).select_related("user")
        member = (
            there.filter(user__username=wanted).first()
            or there.filter(user__email__iexact=wanted).first()
            or there.filter(user__uid=wanted).first()
            if wanted
            else None
        )
        if member is None:
            raise Invalid(
                _("Nobody in %(organisation)s is called so.")
                % {"organisation": held.organisation.name},
                field="whom",
                hint=_("Write the name or the mail address of a member."),
            )
        if member.user_id == held.owner_id:
            raise Invalid(_("The folder is hers."), field="whom")
        if held.members.count() >= MEMBERS:
            raise LimitReached(_("A folder has at most %(limit)d members.") % {"limit": MEMBERS})
        row, _made = FolderMember.objects.update_or_create(
            folder=held, user=member.user, defaults={"role": role}
        )
        about_folder(AuditEntry.Action.FOLDER_SHARED, actor, held, user=member.user.uid, role=role)
    return row


def unshare_folder(*, actor: User, folder: Folder, member_uid: str) -> None:
    """Let somebody out again: her conversations stay hers. A member may leave by herself.

    Raises NotFound, Forbidden.
    """
    with transaction.atomic():
        held = visible_folder(actor, folder)
        if member_uid != actor.uid:
            held = own_folder(actor, folder)
        row = held.members.select_related("user").filter(user__uid=member_uid).first()
        if row is None:
            raise NotFound(_("There is no such member."))
        held.places.filter(user=row.user).delete()
        row.delete()
        about_folder(AuditEntry.Action.FOLDER_UNSHARED, actor, held, user=member_uid)


def _checked(name: str, instructions: str) -> tuple[str, str]:
    name, _nothing = named(name, "", missing=_("A folder needs a name."))
    instructions = instructions.replace("\0", "").replace("\r\n", "\n").strip()
    if len(instructions) > INSTRUCTIONS_LIMIT:
        raise TooLarge(
            _("The instructions are longer than %(limit)d characters.")
            % {"limit": INSTRUCTIONS_LIMIT},
            field="instructions",
            hint=_("Put long texts into a file of the folder."),
        )
    return name, instructions


def _require_agent(actor: User, organisation: Organisation, agent: Agent | None) -> None:
    if agent is not None:
        find_agent(actor=actor, organisation=organisation, wanted=agent.uid, name=agent.name)
