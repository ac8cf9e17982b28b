"""What the review queue shows: pages of approvals by keyset, their filters, counts and look-alikes.

Which ones a person sees is `Approval.objects.visible_to`; deciding is `actions.approvals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from chat.presentation.dangers import danger_words
from chat.presentation.touched import Touched
from conversations.models import Conversation
from conversations.models.share import DECIDING
from harness.errors import Invalid, NotFound
from jobs.prepared import Prepared
from reading.digits import number_of
from reading.unseen import first_unseen, visible, visible_json
from rendering.diff import diff_table
from tools_app.touches import is_told_of

from .consents import agreement
from .deciders import may_not_allow, may_not_answer, may_not_decide
from .models import Approval, ApprovalDecision
from .models.approval import CHANGE, VIEW, ApprovalQuerySet
from .surroundings import Around, around

PAGE_SIZE = 25
COUNTED = 1_000
"""Counts end here; more is shown as “1000+”."""
WAITING, MINE, DECIDED = "waiting", "mine", "decided"
VIEWS = (WAITING, MINE, DECIDED)
FILTERS = ("organisation", "tool", "risk", "assigned")
FOR_ME, FOR_NOBODY = "me", "nobody"

_ASKED = Prepared(
    lambda given: Approval.objects.filter(state=Approval.State.PENDING).values_list("pk")[:1]
)
_ASKED_THERE = Prepared(
    lambda given: Approval.objects.filter(
        state=Approval.State.PENDING, organisation__memberships__user=given.user
    ).values_list("pk")[:1]
)
"""Whether anything waits at all where a person belongs: mostly nothing does, and that is cheaper to
ask than whether it waits for her."""


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a call as a form shows it: text as it is, anything else, and text with signs that
    nobody sees, as JSON."""

    name: str
    value: str
    is_text: bool
    rows: int

    @property
    def label(self) -> str:
        return visible(self.name)

    @classmethod
    def of(cls, name: str, value: Any) -> Field:
        is_text = isinstance(value, str) and not first_unseen(value.replace("\r\n", "\n"))
        text = value if is_text else visible_json(value)
        return cls(name, text, is_text, min(16, max(1, text.count("\n") + 1 + len(text) // 90)))


@dataclass(frozen=True, slots=True)
class Item:
    """One approval with what its card needs."""

    approval: Approval
    fields: tuple[Field, ...]
    diff: SafeString
    """Empty where the call is no change of a file."""
    touched: Touched
    """What it acts on, where its arguments only name that."""
    may_not: str
    """Why the viewer may not decide on it; empty when she may."""
    may_not_allow: str
    """Why she may not allow it as it stands, where she may decide on it."""
    asked_for: tuple[Field, ...]
    """What the agent asked for, where somebody has put other arguments in its place."""
    is_own: bool
    allowed: int
    """How many people have allowed it, of several whom it takes, while it waits."""
    lapsed: frozenset[int]
    """The keys of the consents that count no more, though the question is still the same."""
    dangers: tuple[str, ...]
    """What makes a command dangerous, in words."""
    around: Around
    alike: int = 0
    """How many others beside it in the list, on which the viewer may decide, ask for exactly the same."""
    repeats: bool = False
    """It asks for exactly the same as the one before it in the list."""

    @property
    def alike_key(self) -> str:
        return asked_for(self.approval)


@dataclass(frozen=True, slots=True)
class Queue:
    items: Sequence[Item]
    after: str
    """Continues the list; empty on the last page."""


def queue(
    user: User, view: str = WAITING, after: str = "", filters: Mapping[str, str] | None = None
) -> Queue:
    """One page. Raises Invalid for an unknown view, filter value or place."""
    found = chosen(user, view, filters or {})
    # Waiting: the oldest first. Decided: the latest first.
    forward = view != DECIDED
    found = found.order_by("pk" if forward else "-pk")
    if after:
        pk = number_of(after)
        if pk is None:
            raise Invalid(
                _("This is not a place in the list."),
                field="after",
                hint=_("Begin again with the first page."),
            )
        found = found.filter(**{"pk__gt" if forward else "pk__lt": pk})
    rows = list(with_facts(found)[: PAGE_SIZE + 1])
    page = rows[:PAGE_SIZE]
    shown = items(user, page)
    behind = str(page[-1].pk) if len(rows) > PAGE_SIZE else ""
    return Queue(_alike_together(shown) if forward else shown, behind)


def chosen(user: User, view: str, filters: Mapping[str, str]) -> ApprovalQuerySet:
    """Those of a list that pass the filters, in no order yet; an empty filter lets all pass."""
    found = of_view(user, view)
    for name, value in filters.items():
        if value:
            found = _filtered(user, found, name, value)
    return found


def of_view(user: User, view: str) -> ApprovalQuerySet:
    match view:
        case "waiting":
            return Approval.objects.visible_to(user).waiting()
        case "mine":
            return Approval.objects.decidable_by(user)
        case "decided":
            return Approval.objects.visible_to(user).exclude(state=Approval.State.PENDING)
    raise Invalid(
        _("There is no such list."),
        field="view",
        hint=_("Choose from: %(views)s.") % {"views": ", ".join(VIEWS)},
    )


def with_facts(found: ApprovalQuerySet) -> ApprovalQuerySet:
    return found.select_related(
        "organisation",
        "conversation__agent_version__agent",
        "root",
        "requested_by",
        "assignee",
        "closed_by",
    ).prefetch_related("decisions__by")


def items(user: User, approvals: Sequence[Approval]) -> list[Item]:
    surroundings = around(user, approvals)
    here = {approval.conversation_id for approval in approvals}
    rows = Conversation.objects.visible_to(user).filter(pk__in=here)
    readable = set(rows.values_list("pk", flat=True))
    found = [_item(user, approval, surroundings[approval.pk], readable) for approval in approvals]
    number = Counter(item.alike_key for item in found if _is_open(item))
    return [
        replace(item, alike=number[item.alike_key] - 1) if _is_open(item) else item
        for item in found
    ]


def _alike_together(shown: Sequence[Item]) -> list[Item]:
    """Identical calls one behind the other, where the first of them stands."""
    groups: dict[str, list[Item]] = {}
    for item in shown:
        groups.setdefault(item.alike_key, []).append(item)
    return [
        replace(item, repeats=place > 0)
        for group in groups.values()
        for place, item in enumerate(group)
    ]


def asked_for(approval: Approval) -> str:
    """What of two calls is the same where they ask for exactly the same, and act on exactly the same: the
    arguments of some only name that, each in its own conversation."""
    bound = approval.touches.get("bound", "") if is_told_of(approval.tool) else ""
    return f"{approval.tool}:{approval.host}:{approval.effective_sha256}:{bound}"


def _is_open(item: Item) -> bool:
    return item.approval.is_waiting and not item.may_not


def find(user: User, uid: str) -> Approval:
    """Raises NotFound; somebody else's looks the same."""
    found = with_facts(Approval.objects.visible_to(user)).filter(uid=uid.replace("\0", "")).first()
    if found is None:
        raise NotFound(
            _("There is no such approval."), hint=_("The review queue lists those you may see.")
        )
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """Which question a page showed: what an answer from it is bound to."""

    input_hash: str = ""
    round: int = 0
    """0, of no question: nothing is allowed by an answer that says neither."""

    @classmethod
    def of(cls, input_hash: str, number: str) -> Seen:
        """`number` as a form has it."""
        return cls(input_hash, number_of(number) or 0)


def seen_by_uid(shown: Iterable[str]) -> dict[str, Seen]:
    """Of `uid:hash:round` for each call that a page with several of them showed."""
    parts = [(*item.split(":", 2), "", "")[:3] for item in shown]
    return {uid: Seen.of(input_hash, number) for uid, input_hash, number in parts}


def number_to_decide(user: User) -> str:
    """How many calls wait for this person, as the header's badge shows it; empty for none."""
    staff = has_staff_permission(user, VIEW) or has_staff_permission(user, CHANGE)
    asked = _ASKED.exists() if staff else _ASKED_THERE.exists(user=user.pk)
    if not asked:
        return ""
    number = Approval.objects.decidable_by(user).order_by()[: COUNTED + 1].count()
    return "" if not number else _capped(number)


def counts(user: User) -> dict[str, str]:
    """By view, for those that can be counted cheaply."""
    return {
        view: _capped(of_view(user, view).order_by()[: COUNTED + 1].count())
        for view in (WAITING, MINE)
    }


def tools_in(user: User, view: str) -> list[str]:
    """The tools a filter can choose from."""
    found: QuerySet[Any] = of_view(user, view).order_by()[:COUNTED]
    return sorted(set(found.values_list("tool", flat=True)))


def organisations_in(user: User, view: str) -> QuerySet[Organisation]:
    """The organisations a filter can choose from: the person's own, and those of what she sees."""
    asking = of_view(user, view).order_by()[:COUNTED].values("organisation")
    own = Organisation.objects.visible_to(user).values("pk")
    return Organisation.objects.filter(Q(pk__in=own) | Q(pk__in=asking))


def _capped(number: int) -> str:
    return str(number) if number <= COUNTED else f"{COUNTED}+"


def _item(user: User, approval: Approval, surroundings: Around, readable: Collection[int]) -> Item:
    touches = approval.touches
    diff = SafeString("")
    if touches.get("kind") == "diff":
        caption = _("Change of %(path)s") % {"path": touches.get("path", "")}
        diff = diff_table(str(touches.get("diff", "")), caption=caption)
    may_not = may_not_decide(user, approval) if approval.is_waiting else ""
    asks = approval.is_waiting and not may_not
    own = may_not_allow(user, approval, approval.effective_sha256) if asks else ""
    allowed, lapsed = _consents(approval)
    return Item(
        approval=approval,
        fields=_fields(approval.effective_input),
        diff=diff,
        touched=Touched.of(touches),
        may_not=may_not,
        may_not_allow=own,
        asked_for=_fields(approval.input) if approval.was_edited else (),
        is_own=approval.conversation_id in readable,
        allowed=allowed,
        lapsed=lapsed,
        dangers=tuple(danger_words(approval.tool, approval.effective_input)),
        around=surroundings,
    )


def _fields(given: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(Field.of(name, value) for name, value in given.items())


def people_who_allowed(approval: Approval) -> int:
    """Of those whom it takes; 0 where one is enough, and for what does not wait."""
    return _consents(approval)[0]


def _consents(approval: Approval) -> tuple[int, frozenset[int]]:
    given = [
        one.pk
        for one in approval.decisions.all()
        if one.verdict == ApprovalDecision.Verdict.APPROVE
        and (one.round, one.input_sha256) == (approval.round, approval.effective_sha256)
    ]
    if not given or not approval.is_waiting:
        return 0, frozenset()
    agreed = agreement(approval)
    return agreed.persons, frozenset(given) - {one.decision.pk for one in agreed.consents}


def _handed_to(user: User) -> Q:
    """To her, or to a role that she has where it was asked."""
    mine = Q(assignee=user)
    for place, role in user.memberships.values_list("organisation", "role"):
        mine |= Q(organisation=place, assignee=None, assignee_role=role)
    return mine


def assignees(approval: Approval) -> list[User]:
    """The people it may be handed to, those who could answer it."""
    reviewing = Q(memberships__organisation=approval.organisation_id)
    reviewing &= Q(memberships__role__in=list(REVIEWING))
    people = User.objects.filter(kind=User.Kind.PERSON, is_active=True)
    given = Q(shares__conversation=approval.conversation_id, shares__role__in=list(DECIDING))
    found = people.filter(reviewing | given | Q(pk=approval.conversation.owner_id)).distinct()
    return [
        one for one in found.order_by("username")[:COUNTED] if not may_not_answer(one, approval)
    ]


def assignee_named(approval: Approval, name: str) -> tuple[User | None, str]:
    """The person and the role of `person:` and an id or `role:` and a name; neither for nobody.

    Raises NotFound for somebody it could not be handed to, and Invalid for another spelling.
    """
    if not name:
        return None, ""
    kind, _colon, meant = name.partition(":")
    match kind:
        case "role" if meant:
            return None, meant
        case "person":
            for one in assignees(approval):
                if one.uid == meant:
                    return one, ""
            raise NotFound(_("There is no such person to ask."))
    raise Invalid(
        _("assignee: Neither a person nor a role is named."),
        field="assignee",
        hint=_("Give “person:” and an id, “role:reviewer”, “role:admin” or “role:owner”."),
    )


def _filtered(user: User, found: ApprovalQuerySet, name: str, value: str) -> ApprovalQuerySet:
    if name == "tool":
        return found.filter(tool=value.replace("\0", ""))
    if name == "risk" and value in Approval.Risk.values:
        return found.filter(risk=value)
    if name == "assigned" and value == FOR_ME:
        return found.filter(_handed_to(user))
    if name == "assigned" and value == FOR_NOBODY:
        return found.filter(assignee=None, assignee_role="")
    if name == "organisation":
        organisation = Organisation.objects.filter(uid=value.replace("\0", "")).first()
        return found.filter(organisation=organisation) if organisation else found.none()
    raise Invalid(_("There is no such choice."), field=name, hint=_("Choose one of the list."))
