"""The first administrator of an installation, through a link that works once."""

from __future__ import annotations

from datetime import timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.actions.organisations import clean_name, create_organisation
from accounts.models import SetupLink, User
from accounts.tokens import hash_token, new_token
from harness.errors import Conflict, Invalid, NotFound


def issue_setup_link() -> str | None:
    """A new token in the place of earlier ones, or None once there is a superuser."""
    if _is_set_up():
        return None
    token = new_token()
    expires_at = timezone.now() + timedelta(hours=settings.AGENTSITE_SETUP_HOURS)
    with transaction.atomic():
        SetupLink.objects.filter(used_at=None).delete()
        SetupLink.objects.create(token_hash=hash_token(token), expires_at=expires_at)
    return token


def find_setup_link(token: str) -> SetupLink:
    """The link a token opens. NotFound if it is wrong, used, expired or no longer needed."""
    links = SetupLink.objects.open_at(timezone.now()).filter(token_hash=hash_token(token))
    link = None if _is_set_up() else links.first()
    if link is None:
        raise NotFound(
            _("This set-up link is not valid any more."),
            hint=_("Start the server again; it prints a new one until the set-up is done."),
        )
    return link


@sensitive_variables("password")
def create_first_administrator(
    *, token: str, organisation_name: str, username: str, email: str, password: str
) -> User:
    """A superuser who owns a new organisation. The token is the permission; it works once.

    Raises NotFound for a token that does not count, Invalid for a value (the link stays usable).
    """
    link = find_setup_link(token)
    clean_name(organisation_name)
    user = User(username=username.strip(), email=email.strip(), is_staff=True, is_superuser=True)
    _validate(user, password)
    user.set_password(password)
    try:
        with transaction.atomic():
            used = SetupLink.objects.open_at(timezone.now()).filter(pk=link.pk)
            if not used.update(used_at=timezone.now()):
                raise NotFound(_("This set-up link was used meanwhile."))
            user.save(force_insert=True)
            # The operator reads the link on the server itself; nobody else vouches for the address.
            EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
            create_organisation(actor=user, name=organisation_name)
    except IntegrityError:
        raise Conflict(_("This user name or e-mail address is taken already.")) from None
    return user


def _is_set_up() -> bool:
    return User.objects.filter(is_superuser=True).exists()


@sensitive_variables("password")
def _validate(user: User, password: str) -> None:
    if not user.email:
        raise Invalid(
            _("An e-mail address is needed."),
            field="email",
            hint=_("It is used for signing in and for resetting the password."),
        )
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(" ".join(messages), field="" if field == "__all__" else field) from None
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from None
