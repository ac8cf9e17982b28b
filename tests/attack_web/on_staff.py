"""Attacks of staff who hold one permission and want them all, and of members who want to be more."""

from __future__ import annotations

import threading
from functools import partial

from django.contrib.auth.models import Permission

from accounts.actions.invitations import invite_member
from accounts.models import Invitation, Membership, Organisation, Role, User
from agents.models import Environment
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import Visitor
from tests.attack_web.world import MARK, PASSWORD, World

SUBJECT = "staff and roles"


def _clerk(world: World, *permissions: str) -> User:
    clerk = world.person(is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return clerk


def _admin(world: World, clerk: User) -> Visitor:
    visitor = world.browser(clerk)
    tried(visitor.get("/admin/").status_code == 200, "the administration does not open")
    return visitor


@attack(
    SUBJECT, "the administration by a member", "opens every list of the administration as alice"
)
def _member(world: World) -> Got:
    with world.browser(world.alice) as visitor:
        for path in (
            "/admin/",
            "/admin/accounts/user/",
            "/admin/conversations/event/",
            "/operations/",
        ):
            answer = visitor.get(path)
            if (
                answer.status_code == 200
                and "username" in answer.text
                and "login" not in str(answer.url)
            ):
                return f"{path} opens"
    return ""


@attack(SUBJECT, "staff without permissions", "reads lists and posts actions with nothing allowed")
def _nothing(world: World) -> Got:
    with _admin(world, _clerk(world)) as visitor:
        visitor.get("/")  # her own organisation is made by the first page
        before = world.state()
        texts = [
            visitor.get(f"/admin/{path}/").text
            for path in (
                "accounts/user",
                "accounts/apitoken",
                "conversations/conversation",
                "conversations/event",
            )
        ]
        visitor.form(
            "/admin/accounts/user/",
            action="delete_selected",
            _selected_action=world.bob.pk,
            post="yes",
        )
        return world.changed_since(before) or ("it shows alice's" if MARK in "".join(texts) else "")


@attack(
    SUBJECT,
    "an owner by adding a membership",
    "staff who may add memberships make themselves owner",
)
def _membership(world: World) -> Got:
    clerk = _clerk(
        world,
        "add_membership",
        "view_membership",
        "change_membership",
        "view_user",
        "view_organisation",
    )
    with _admin(world, clerk) as visitor:
        visitor.form(
            "/admin/accounts/membership/add/",
            user=clerk.pk,
            organisation=world.acme.pk,
            role="owner",
        )
        own = Membership.objects.filter(user=clerk, organisation=world.acme).first()
        return f"now {own.role} of alice's organisation" if own is not None else ""


@attack(
    SUBJECT, "a role by changing a membership", "staff who may change memberships raise their own"
)
def _role(world: World) -> Got:
    clerk = _clerk(world, "view_membership", "change_membership")
    own = Membership.objects.create(user=clerk, organisation=world.acme, role=Role.MEMBER)
    with _admin(world, clerk) as visitor:
        visitor.form(f"/admin/accounts/membership/{own.pk}/change/", role="owner")
    own.refresh_from_db()
    return f"now {own.role}" if own.role != Role.MEMBER else ""


@attack(
    SUBJECT, "powers by changing a person", "staff who may change people make themselves superusers"
)
def _powers(world: World) -> Got:
    clerk = _clerk(world, "view_user", "change_user", "add_user")
    with _admin(world, clerk) as visitor:
        visitor.form(
            f"/admin/accounts/user/{clerk.pk}/change/",
            username=clerk.username,
            email=clerk.email,
            is_active="on",
            is_staff="on",
            is_superuser="on",
            user_permissions=[one.pk for one in Permission.objects.all()[:5]],
        )
    clerk.refresh_from_db()
    return "a superuser" if clerk.is_superuser or clerk.user_permissions.count() > 3 else ""


@attack(
    SUBJECT, "a superuser's password and address", "staff who may change people change the operator"
)
def _operator(world: World) -> Got:
    clerk = _clerk(world, "view_user", "change_user")
    old = (world.staff.email, world.staff.password)
    with _admin(world, clerk) as visitor:
        visitor.form(
            f"/admin/accounts/user/{world.staff.pk}/change/",
            username="staff",
            email="evil@evil.example",
            is_active="on",
        )
        visitor.form(
            f"/admin/accounts/user/{world.staff.pk}/password/",
            password1=PASSWORD,
            password2=PASSWORD,
            usable_password="true",
        )
    world.staff.refresh_from_db()
    return (
        "the operator's account is changed"
        if (world.staff.email, world.staff.password) != old
        else ""
    )


@attack(
    SUBJECT,
    "the operator's second factor",
    "staff remove the second factor and the address of a superuser",
)
def _factor(world: World) -> Got:
    from allauth.account.models import EmailAddress  # noqa: PLC0415
    from allauth.mfa.models import Authenticator  # noqa: PLC0415

    row = Authenticator.objects.create(user=world.staff, type="totp", data={"secret": "x"})
    mail = EmailAddress.objects.get(user=world.staff)
    clerk = _clerk(
        world,
        "view_user",
        "change_user",
        *(
            f"{verb}_{model}"
            for verb in ("view", "change", "delete", "add")
            for model in ("authenticator", "emailaddress")
        ),
    )
    try:
        with _admin(world, clerk) as visitor:
            visitor.form(f"/admin/mfa/authenticator/{row.pk}/delete/", post="yes")
            visitor.form(
                "/admin/mfa/authenticator/",
                action="delete_selected",
                _selected_action=row.pk,
                post="yes",
            )
            visitor.form(
                f"/admin/account/emailaddress/{mail.pk}/change/",
                user=world.staff.pk,
                email="evil@evil.example",
                verified="on",
                primary="on",
            )
            visitor.form(
                "/admin/account/emailaddress/add/",
                user=world.staff.pk,
                email="evil2@evil.example",
                verified="on",
                primary="on",
            )
        gone = not Authenticator.objects.filter(pk=row.pk).exists()
        moved = EmailAddress.objects.filter(
            user=world.staff, email__endswith="evil.example"
        ).exists()
        return "the second factor is gone" if gone else "the address is another" if moved else ""
    finally:
        Authenticator.objects.filter(pk=row.pk).delete()


def _mount(kind: str, world: World) -> Got:
    clerk = _clerk(world, "view_environment", "add_environment", "change_environment")
    data = world.directory / "data"
    places = {
        "the data folder": str(data),
        "the environment file": str(world.directory / "env"),
        "the folder around it": str(world.directory),
        "the root": "/",
        "a way around": f"/tmp/../{str(data).lstrip('/')}",
        "the processes": "/proc/1",
    }
    good, name = f"Good {world.number()}", f"Evil {world.number()}"
    with _admin(world, clerk) as visitor:
        values = {"name": good, "upload_limit": 1000, "backend": "", "policy": ""}
        answer = visitor.form("/admin/agents/environment/add/", **values)
    tried(
        Environment.objects.filter(name=good).exists(),
        f"not even a harmless one: {answer.status_code}",
    )
    for access in ("read_only", "read_write"):
        policy = f"filesystem_policy: {{{access}: ['{places[kind]}']}}"
        with _admin(world, clerk) as visitor:
            visitor.form(
                "/admin/agents/environment/add/",
                name=name,
                description="",
                upload_limit=1000,
                backend="",
                policy=policy,
            )
        if Environment.objects.filter(name=name).exists():
            return f"{places[kind]} may be opened {access}"
    return ""


for _kind in (
    "the data folder",
    "the environment file",
    "the folder around it",
    "the root",
    "a way around",
    "the processes",
):
    attack(
        SUBJECT,
        f"an environment that opens {_kind}",
        "staff who may add environments mount what is the server's",
    )(partial(_mount, _kind))


@attack(SUBJECT, "an environment without a sandbox", "staff ask for commands that nothing holds")
def _unconfined(world: World) -> Got:
    clerk = _clerk(world, "view_environment", "add_environment", "change_environment")
    name = f"Evil {world.number()}"
    with _admin(world, clerk) as visitor:
        visitor.form(
            "/admin/agents/environment/add/",
            name=name,
            description="",
            upload_limit=1000,
            backend="none",
            policy="",
        )
    return "it was made" if Environment.objects.filter(name=name).exists() else ""


# --- members who want to be more ------------------------------------------------------------------


def _open_invitation(world: World, email: str, role: str = "member") -> str:
    return invite_member(actor=world.alice, organisation=world.acme, email=email, role=role).token


@attack(SUBJECT, "somebody else's invitation", "mallory follows a link for another address")
def _foreign(world: World) -> Got:
    token = _open_invitation(world, f"guest{world.number()}@example.org")
    with world.browser(world.mallory) as visitor:
        visitor.form(f"/invitations/{token}/")
        visitor.form(f"/invitations/{token}/", email=world.mallory.email, role="owner")
    return (
        "she joined"
        if Membership.objects.filter(user=world.mallory, organisation=world.acme).exists()
        else ""
    )


@attack(SUBJECT, "an invitation with another role", "accepts as owner what was offered to a member")
def _other_role(world: World) -> Got:
    person = world.person()
    token = _open_invitation(world, person.email)
    with world.browser(person) as visitor:
        visitor.form(f"/invitations/{token}/?role=owner", role="owner", organisation=world.acme.uid)
    own = Membership.objects.filter(user=person, organisation=world.acme).first()
    tried(own, "she could not join at all")
    return f"now {own.role}" if own and own.role != Role.MEMBER else ""


@attack(
    SUBJECT,
    "an invitation for a second time",
    "joins again after being removed, and after a withdrawal",
)
def _again(world: World) -> Got:
    person = world.person()
    token = _open_invitation(world, person.email)
    with world.browser(person) as visitor:
        visitor.form(f"/invitations/{token}/")
        tried(
            Membership.objects.filter(user=person, organisation=world.acme).exists(),
            "she could not join",
        )
        Membership.objects.filter(user=person).delete()
        visitor.form(f"/invitations/{token}/")
        if Membership.objects.filter(user=person, organisation=world.acme).exists():
            return "she joined again"
        second = _open_invitation(world, person.email)
        Invitation.objects.filter(email=person.email).delete()
        visitor.form(f"/invitations/{second}/")
    return (
        "a withdrawn one works"
        if Membership.objects.filter(user=person, organisation=world.acme).exists()
        else ""
    )


@attack(
    SUBJECT, "powers of a member", "a member invites, raises, removes, renames and makes robots"
)
def _member_powers(world: World) -> Got:
    person = world.member()
    own = Membership.objects.get(user=person, organisation=world.acme)
    hers = Membership.objects.get(user=world.alice, organisation=world.acme)
    before = world.state()
    with world.browser(person, world.acme) as visitor:
        for path, values in (
            ("/organisation/invite/", {"email": "x@evil.example", "role": "owner"}),
            (f"/organisation/members/{own.pk}/role/", {"role": "owner"}),
            (f"/organisation/members/{hers.pk}/remove/", {}),
            ("/organisation/rename/", {"name": "stolen"}),
            ("/settings/service-accounts/", {"service-name": "Evil", "service-role": "admin"}),
            ("/settings/tokens/", {"name": "evil", "scopes": ["admin"]}),
            (
                "/settings/keys/",
                {"provider": "anthropic", "key": "k" * 20, "scope": "organisation"},
            ),
            ("/settings/keys/", {"provider": "anthropic", "key": "k" * 20, "scope": "deployment"}),
            (
                "/organisation/webhooks/",
                {"url": "https://hooks.example.invalid/", "event_types": ["*"]},
            ),
            (
                "/approvals/rules/add/",
                {"level": "organisation", "tool": "bash", "permission": "always_allow"},
            ),
            (
                "/usage/budgets/",
                {"scope": "organisation", "unit": "tokens", "period": "day", "limit": "1"},
            ),
        ):
            visitor.form(path, **world.shown(world.acme, **values))
    return world.changed_since(before)


@attack(
    SUBJECT, "an owner by an administrator", "an administrator invites, makes and removes owners"
)
def _administrator(world: World) -> Got:
    person = world.member(role=Role.ADMIN)
    own = Membership.objects.get(user=person, organisation=world.acme)
    hers = Membership.objects.get(user=world.alice, organisation=world.acme)
    with world.browser(person, world.acme) as visitor:
        visitor.form(
            "/organisation/invite/",
            **world.shown(world.acme, email="own@evil.example", role="owner"),
        )
        visitor.form(
            f"/organisation/members/{own.pk}/role/", **world.shown(world.acme, role="owner")
        )
        visitor.form(
            f"/organisation/members/{hers.pk}/role/", **world.shown(world.acme, role="member")
        )
        visitor.form(f"/organisation/members/{hers.pk}/remove/", **world.shown(world.acme))
    own.refresh_from_db()
    if own.role == Role.OWNER or Invitation.objects.filter(email="own@evil.example").exists():
        return "an owner was made"
    return (
        ""
        if Membership.objects.filter(pk=hers.pk, role=Role.OWNER).exists()
        else "the owner is gone"
    )


@attack(
    SUBJECT,
    "robots without measure",
    "service accounts and organisations past their number, all at once",
)
def _measure(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    session = world.session_of(person, home)

    def make(number: int) -> None:
        with Visitor(world.address, session=session) as visitor:
            for each in range(4):
                visitor.form(
                    "/settings/service-accounts/",
                    **world.shown(
                        home, **{"service-name": f"R{number}-{each}", "service-role": "member"}
                    ),
                )
                visitor.form("/organisation/create/", **{"new-name": f"O{number}-{each}"})

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    robots = Membership.objects.filter(organisation=home, user__kind=User.Kind.SERVICE).count()
    made = Organisation.objects.filter(
        memberships__user=person, memberships__role=Role.OWNER, personal_of=None
    ).count()
    tried(robots and made, "none was made")
    return f"{robots} robots" if robots > 20 else f"{made} organisations" if made > 11 else ""


@control(SUBJECT, "staff with a permission", "add an environment, and an owner invites a member")
def _permitted(world: World) -> Got:
    name = f"Good {world.number()}"
    clerk = _clerk(world, "view_environment", "add_environment", "change_environment")
    with _admin(world, clerk) as visitor:
        values = {"name": name, "upload_limit": 1000, "backend": "", "policy": ""}
        visitor.form("/admin/agents/environment/add/", **values)
    person = world.person()
    token = _open_invitation(world, person.email)
    with world.browser(person) as visitor:
        visitor.form(f"/invitations/{token}/")
    made = Environment.objects.filter(name=name).exists()
    joined = Membership.objects.filter(user=person, organisation=world.acme).exists()
    return "" if made and joined else f"made: {made}, joined: {joined}"
