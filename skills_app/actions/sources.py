"""Skills from elsewhere: who may add a source, what it offered when it was looked at, and what is taken from
it, which is reviewed.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from accounts.persons import hold_names
from accounts.staff import require_staff
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import AgentError, Conflict, Invalid, LimitReached, NotFound
from skills_app.actions.releases import ask_for_release
from skills_app.actions.skills import add_version, create_skill
from skills_app.clawhub import address_of_page
from skills_app.fetching import address_of, require_private_way, server_of
from skills_app.folder import SkillFolder
from skills_app.lookalikes import same_look
from skills_app.looking import Found, Look, folder_on_offer, look_at
from skills_app.models import MANAGE_ANY, Skill, SkillSource, SkillVersion, SourceOffer
from skills_app.repositories import commit_of

Kind = SkillSource.Kind
MOST_SOURCES = 50
"""Of one organisation, or of the server."""


def know_source(
    *, actor: User, organisation: Organisation | None, address: str, key: str = ""
) -> SkillSource:
    """The source at this address: one that is known, or another Agentsite, made known with the key that its
    index has to be signed with.

    Raises NotFound for a stranger, Forbidden for who does not manage the organisation, Invalid, and Conflict
    for another key than the one that is known, and for none where none is.
    """
    _require_manager(actor, organisation)
    there = SkillSource.objects.filter(organisation=organisation)
    found = there.filter(address__in={address.strip(), address_of(address)}).first()
    if found is not None and key in {"", found.key}:
        return found
    if found is not None or not key:
        raise Conflict(
            _("The source has another key.") if found else _("The source is not known yet."),
            hint=_("Ask who runs it for the key, and give it with --key."),
        )
    return add_source(
        actor=actor, organisation=organisation, kind=Kind.SERVER, address=address, key=key
    )


def add_source(
    *,
    actor: User,
    organisation: Organisation | None,
    kind: str,
    address: str,
    key: str = "",
    commit: str = "",
) -> SkillSource:
    """A further source, for the organisation, or without one for the whole server. Nothing is asked of it.

    Raises NotFound for a stranger, Forbidden for who does not manage it and for a folder by anybody but
    staff, Invalid, Conflict for one that is there, LimitReached.
    """
    _require_manager(actor, organisation)
    if kind not in Kind.values:
        raise Invalid(_("There is no such kind."), field="kind", hint=", ".join(Kind.values))
    if kind == Kind.FOLDER:
        require_staff(actor, MANAGE_ANY)
    place = _place_of(Kind(kind), address)
    key = key.strip() if kind == Kind.SERVER else ""
    if kind == Kind.SERVER and not key:
        raise Invalid(
            _("Its key is needed."),
            field="key",
            hint=_("Whoever runs it prints it by “agent skills key”."),
        )
    with transaction.atomic():
        hold_names(organisation)
        there = SkillSource.objects.filter(organisation=organisation)
        if there.filter(address=place).exists():
            raise Conflict(_("This source is there already."))
        if there.count() >= MOST_SOURCES:
            raise LimitReached(
                _("There are %(most)d sources already.") % {"most": MOST_SOURCES},
                hint=_("Take one away first."),
            )
        made = SkillSource.objects.create(
            organisation=organisation,
            kind=kind,
            address=place,
            key=key,
            commit=_pin_of(Kind(kind), commit),
            created_by=actor,
        )
        _audit(AuditEntry.Action.SKILL_SOURCE_ADDED, actor, made)
    return made


def move_source(*, actor: User, source: SkillSource, commit: str) -> SkillSource:
    """Have a repository read at another commit, or a bundle taken with another digest. Raises NotFound,
    Forbidden, Invalid."""
    with transaction.atomic():
        held = _held(actor, source)
        if held.kind not in {Kind.GIT, Kind.PLUGIN}:
            raise Invalid(_("Only a repository has commits."), field="commit")
        held.commit = _pin_of(Kind(held.kind), commit)
        held.looked_at, held.problem = None, ""
        held.save(update_fields=["commit", "looked_at", "problem"])
        _audit(AuditEntry.Action.SKILL_SOURCE_CHANGED, actor, held)
    return held


def remove_source(*, actor: User, source: SkillSource) -> None:
    """What was installed from it stays. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = _held(actor, source)
        _audit(AuditEntry.Action.SKILL_SOURCE_REMOVED, actor, held)
        held.delete()


def look_at_source(*, actor: User, source: SkillSource) -> SkillSource:
    """Ask what it offers now, and keep that. Raises what `look_at` raises, having kept why; NotFound,
    Forbidden; Conflict for an index that goes back to what it had before."""
    _require_seen(actor, source)
    try:
        look = look_at(source)
        with transaction.atomic():
            held = _held(actor, source)
            _keep(held, look)
            held.problem, held.remarks, held.seen = "", list(look.remarks), look.issued
            held.looked_at = timezone.now()
            held.save(update_fields=["problem", "remarks", "seen", "looked_at"])
    except AgentError as problem:
        words = problem.words[:500]
        SkillSource.objects.filter(pk=source.pk).update(
            problem=words, looked_at=timezone.now(), remarks=[]
        )
        raise
    return held


def take_from_source(
    *, actor: User, source: SkillSource, offer: SourceOffer, folder: SkillFolder
) -> SkillVersion:
    """Store what was fetched and verified as a version, and have it reviewed.

    Raises NotFound, Forbidden, Conflict for a name that is taken for another one that is there, and what
    `create_skill`, `add_version` and `ask_for_release` raise.
    """
    with transaction.atomic():
        held = _held(actor, source)
        if not held.offers.filter(pk=offer.pk, gone=False).exists():
            raise Conflict(
                _("The source does not offer this any more."), hint=_("Look at it again.")
            )
        there = Skill.objects.filter(organisation=held.organisation, owner=None)
        skill = there.filter(name=folder.name).first()
        note = _("From %(source)s") % {"source": held.address}
        if offer.label:
            note = _("From %(source)s, version %(version)s") % {
                "source": held.address,
                "version": offer.label,
            }
        if skill is None:
            _require_no_lookalike(held.organisation, folder.name)
            version = create_skill(
                actor=actor, organisation=held.organisation, files=folder.files, note=note[:500]
            )
        else:
            version = add_version(actor=actor, skill=skill, files=folder.files, note=note[:500])
        version.source = held
        version.save(update_fields=["source"])
        SourceOffer.objects.filter(pk=offer.pk).update(content=folder.digest)
        return ask_for_release(actor=actor, version=version)


def _place_of(kind: SkillSource.Kind, address: str) -> str:
    if kind == Kind.FOLDER:
        return str(folder_on_offer(address.strip()))
    match kind:
        case Kind.GIT | Kind.PLUGIN:
            place = server_of(address)
        case Kind.CLAWHUB:
            place = address_of_page(address)
        case _:
            place = address_of(address)
    if kind != Kind.SERVER:
        require_private_way(place)
    return place


def _pin_of(kind: Kind, text: str) -> str:
    """What says which content is meant; empty for kinds that need none. Raises Invalid."""
    if kind == Kind.GIT:
        return commit_of(text)
    if kind != Kind.PLUGIN:
        return ""
    digest = text.strip().lower().removeprefix("sha256:")
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise Invalid(
            _("A bundle is named by the SHA-256 of its archive."),
            field="commit",
            hint=_("Whoever offers it tells it; sha256sum reckons it of a file."),
        )
    return digest


def _keep(source: SkillSource, look: Look) -> None:
    if look.issued < source.seen:
        raise Conflict(_("The source showed a newer index meanwhile."), hint=_("Try again."))
    before = {_key(each): each for each in source.offers.all()}
    now = {(each.name, each.label, each.digest): each for each in look.found}
    if source.kind in {Kind.INDEX, Kind.CLAWHUB}:
        _require_nothing_returns(before, now)
    if source.kind == Kind.CLAWHUB:
        _require_no_version_changed(before, now)
    for position, (key, found) in enumerate(now.items()):
        row = before.get(key) or SourceOffer(source=source, content=found.content)
        _describe(row, found, position)
        row.save()
    for key, row in before.items():
        if key not in now and not row.gone:
            row.gone = True
            row.save(update_fields=["gone"])


_Key = tuple[str, str, str]


def _key(offer: SourceOffer) -> _Key:
    return (offer.name, offer.label, offer.digest)


def _describe(row: SourceOffer, found: Found, position: int) -> None:
    row.name, row.label, row.digest = found.name, found.label, found.digest
    row.description, row.place, row.size = found.description, found.place, found.size
    row.deprecated, row.replacement = found.deprecated, found.replacement
    row.removal_on, row.position, row.gone = found.removal_on, position, False
    row.content = found.content or row.content


def _require_nothing_returns(before: dict[_Key, SourceOffer], now: dict[_Key, Found]) -> None:
    """An unsigned index has no time of its own; but what it replaced once it does not offer again."""
    for key in now:
        row = before.get(key)
        newer = any(
            each.name == key[0] and row is not None and each.pk > row.pk for each in before.values()
        )
        if row is not None and row.gone and newer:
            raise Conflict(
                _("The source offers again what it had replaced: %(name)s.") % {"name": key[0]},
                hint=_(
                    "Somebody may show an old index. If it is meant so, take the source away and add it anew."
                ),
            )


def _require_no_version_changed(before: dict[_Key, SourceOffer], now: dict[_Key, Found]) -> None:
    """What a registry calls one version is one content for ever."""
    known = {(name, label): digest for name, label, digest in before}
    for name, label, digest in now:
        if known.get((name, label), digest) != digest:
            raise Conflict(
                _("The source shows another content of %(name)s %(version)s than before.")
                % {"name": name, "version": label},
                hint=_("Tell who runs it. Nothing of it is taken."),
            )


def _require_no_lookalike(organisation: Organisation | None, name: str) -> None:
    there = Skill.objects.filter(owner=None)
    if organisation is not None:
        there = there.usable_in(organisation, None)
    other = same_look(name, there.values_list("name", flat=True))
    if other:
        raise Conflict(
            _("“%(name)s” looks like “%(other)s”, which is another skill.")
            % {"name": name, "other": other},
            hint=_("Who reads quickly takes one for the other; it has to be called otherwise."),
        )


def _require_manager(actor: User, organisation: Organisation | None) -> None:
    if organisation is None:
        require_staff(actor, MANAGE_ANY)
    else:
        require_manager(actor, organisation)


def _require_seen(actor: User, source: SkillSource) -> None:
    if not SkillSource.objects.visible_to(actor).filter(pk=source.pk).exists():
        raise NotFound(_("There is no such source."))


def _held(actor: User, source: SkillSource) -> SkillSource:
    _require_seen(actor, source)
    held = SkillSource.objects.select_for_update(of=("self",), no_key=True).filter(pk=source.pk)
    found = held.select_related("organisation").first()
    if found is None:
        raise NotFound(_("There is no such source."))
    return found


def _audit(action: AuditEntry.Action, actor: User, source: SkillSource) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=source.organisation_id,
        kind=source.kind,
        # Without what stands behind it, which of some addresses is the secret.
        address=source.address.partition("?")[0],
        key=source.key,
        commit=source.commit,
    )
