"""Who manages an organisation sets up its webhooks; staff with the permission does for any.

For everybody else there is no such endpoint. What is sent, when and how often is `webhooks`' part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from accounts.models import Organisation, User
from accounts.permissions import may_manage, require_manager
from audit import record as audit
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from reading.hostnames import split_address
from webhooks import outbox
from webhooks.addresses import check_url
from webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookSecret
from webhooks.signing import new_secret
from webhooks.types import EVERYTHING, TYPES
from wire.naming import one_line

DESCRIPTION_LIMIT = 200
"""Characters; the width of the column."""
MOST_SECRETS = 4
"""That sign at once: one header has to hold all signatures."""
MOST_SECRET_HOURS = 7 * 24
AT_ONCE = 500
"""Deliveries that are sent again in one go."""


@dataclass(frozen=True, slots=True)
class Issued:
    """An endpoint with the secret that is shown now and never again."""

    endpoint: WebhookEndpoint
    secret: str


@sensitive_variables("secret")
def create_endpoint(
    *,
    actor: User,
    organisation: Organisation,
    url: str,
    event_types: Sequence[str],
    description: str = "",
) -> Issued:
    """An endpoint that hears of what happens from now on.

    `event_types` are names of `webhooks.types`, or `*` for all. Raises NotFound for a stranger,
    Forbidden for a member who does not manage, Invalid naming the field, LimitReached, and
    NotConfigured where secrets cannot be sealed.
    """
    require_manager(actor, organisation)
    url, chosen, description = check_endpoint(
        url=url, event_types=event_types, description=description
    )
    secret = new_secret()
    sealed = vault.seal(secret)
    with transaction.atomic():
        most = settings.AGENTSITE_WEBHOOK_ENDPOINTS
        # The lock keeps two at once from being one too many.
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        if WebhookEndpoint.objects.filter(organisation=organisation).count() >= most:
            raise LimitReached(
                _("An organisation may have %(most)d webhook endpoints.") % {"most": most},
                hint=_("Remove one, or ask the operator to raise AGENTSITE_WEBHOOK_ENDPOINTS."),
            )
        endpoint = WebhookEndpoint.objects.create(
            organisation=organisation,
            url=url,
            event_types=chosen,
            description=description,
            created_by=actor,
        )
        WebhookSecret.objects.create(endpoint=endpoint, sealed=sealed)
        _record(audit.Action.WEBHOOK_MADE, endpoint, actor, events=chosen)
    return Issued(endpoint, secret)


def change_endpoint(
    *,
    actor: User,
    endpoint: WebhookEndpoint,
    url: str,
    event_types: Sequence[str],
    description: str = "",
) -> WebhookEndpoint:
    """Send to this address, and of these types, from the next attempt on. Raises as `create_endpoint`."""
    url, chosen, description = check_endpoint(
        url=url, event_types=event_types, description=description
    )
    with transaction.atomic():
        current = _lock_managed(actor, endpoint)
        values = {"url": url, "event_types": chosen, "description": description}
        changed = [name for name, value in values.items() if getattr(current, name) != value]
        before = _site(current)
        current.url, current.event_types, current.description = url, chosen, description
        current.save(update_fields=[*values, "updated_at"])
        if changed:
            moved = {} if before == _site(current) else {"before": before}
            _record(
                audit.Action.WEBHOOK_CHANGED,
                current,
                actor,
                events=chosen,
                changed=changed,
                **moved,
            )
    return current


def disable_endpoint(*, actor: User, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """Send it nothing and tell it of nothing that happens; what waits for it is kept."""
    with transaction.atomic():
        current = _lock(actor, endpoint)
        if current.is_enabled:
            current.disabled_at = timezone.now()
            current.disabled_reason = WebhookEndpoint.Reason.PERSON
            current.save(update_fields=["disabled_at", "disabled_reason", "updated_at"])
            _record(audit.Action.WEBHOOK_CHANGED, current, actor, enabled=False)
    return current


def enable_endpoint(*, actor: User, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """Tell it of what happens from now on, and send what waited. Its failures are forgotten.

    Raises Invalid when its address may no longer be sent to.
    """
    if WebhookEndpoint.objects.manageable_by(actor).filter(pk=endpoint.pk).exists():
        check_url(endpoint.url)  # may look a name up, which no transaction should wait for
    with transaction.atomic():
        current = _lock(actor, endpoint)
        if not current.is_enabled:
            current.disabled_at = None
            current.disabled_reason = ""
            current.failing_since = None
            current.save(
                update_fields=["disabled_at", "disabled_reason", "failing_since", "updated_at"]
            )
            _record(audit.Action.WEBHOOK_CHANGED, current, actor, enabled=True)
            waiting = current.deliveries.unsettled().order_by("pk")
            _send_again(list(waiting[:AT_ONCE]), attempts=False)
    return current


def remove_endpoint(*, actor: User, endpoint: WebhookEndpoint) -> None:
    """Forget it, its secrets and its deliveries."""
    with transaction.atomic():
        current = _lock_managed(actor, endpoint)
        _record(audit.Action.WEBHOOK_REMOVED, current, actor)
        current.delete()


@sensitive_variables("secret")
def rotate_secret(
    *, actor: User, endpoint: WebhookEndpoint, grace_hours: int | None = None
) -> Issued:
    """A new secret signs from now on. The older ones sign beside it for `grace_hours` more, or not
    at all with 0; None: AGENTSITE_WEBHOOK_SECRET_HOURS.

    Raises Invalid for hours out of range, and Conflict while too many older ones still sign.
    """
    hours = settings.AGENTSITE_WEBHOOK_SECRET_HOURS if grace_hours is None else grace_hours
    if not 0 <= hours <= MOST_SECRET_HOURS:
        raise Invalid(
            _("The old secret may sign for 0 to %(most)d more hours.")
            % {"most": MOST_SECRET_HOURS},
            field="grace_hours",
            hint=_("Choose 0 if it became known to somebody."),
        )
    secret = new_secret()
    sealed = vault.seal(secret)
    with transaction.atomic():
        current = _lock_managed(actor, endpoint)
        now = timezone.now()
        secrets = WebhookSecret.objects.filter(endpoint=current)
        secrets.filter(expires_at__lte=now).delete()
        end = now + timedelta(hours=hours)
        if not hours:
            secrets.delete()
        elif secrets.count() >= MOST_SECRETS:
            raise Conflict(
                _("%(count)d secrets of this endpoint sign already.") % {"count": MOST_SECRETS},
                hint=_("Wait until an old one ends, or end them all by giving 0 hours."),
            )
        secrets.filter(expires_at=None).update(expires_at=end)
        WebhookSecret.objects.create(endpoint=current, sealed=sealed)
        _record(
            audit.Action.WEBHOOK_CHANGED, current, actor, changed=["secret"], old_signs_hours=hours
        )
    return Issued(current, secret)


def send_test(*, actor: User, endpoint: WebhookEndpoint) -> WebhookDelivery:
    """An `x.webhook.test` event on its way to this endpoint. Raises Conflict while it is off."""
    with transaction.atomic():
        current = _lock(actor, endpoint)
        _require_enabled(current)
        return outbox.announce_test(current)


def redeliver(*, actor: User, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send it again from the start, with the same id and body, whatever became of it before.

    Raises NotFound, and Conflict while its endpoint is off.
    """
    with transaction.atomic():
        endpoint = _lock(actor, delivery.endpoint)
        _require_enabled(endpoint)
        current = (
            WebhookDelivery.objects.select_for_update(no_key=True)
            .filter(pk=delivery.pk, endpoint=endpoint)
            .first()
        )
        if current is None:
            raise NotFound(_("There is no such delivery."))
        _send_again([current])
    return current


def redeliver_dead(*, actor: User, endpoint: WebhookEndpoint) -> int:
    """Send again what was given up, the oldest first, at most `AT_ONCE` at a time; how many."""
    with transaction.atomic():
        current = _lock(actor, endpoint)
        _require_enabled(current)
        dead = current.deliveries.filter(state=WebhookDelivery.State.DEAD).order_by("pk")
        rows = list(dead.select_for_update(no_key=True)[:AT_ONCE])
        _send_again(rows)
    return len(rows)


def check_endpoint(
    *, url: str, event_types: Sequence[str], description: str
) -> tuple[str, list[str], str]:
    """The three values tidied up; Invalid, naming the field, if one breaks its rule."""
    description = one_line(description)
    if len(description) > DESCRIPTION_LIMIT:
        raise TooLarge(
            _("The description is longer than %(limit)d characters.")
            % {"limit": DESCRIPTION_LIMIT},
            field="description",
            hint=_("Shorten it."),
        )
    if not event_types:
        raise Invalid(
            _("No type of event is chosen."),
            field="event_types",
            hint=_("Choose at least one, or “*” for all."),
        )
    for name in event_types:
        if name != EVERYTHING and name not in TYPES:
            raise Invalid(
                _("There is no type of event “%(name)s”.") % {"name": name[:60]},
                field="event_types",
                hint=_("Choose from: %(names)s.") % {"names": ", ".join((EVERYTHING, *TYPES))},
            )
    chosen = [EVERYTHING] if EVERYTHING in event_types else [n for n in TYPES if n in event_types]
    return check_url(url), chosen, description


def _site(endpoint: WebhookEndpoint) -> str:
    """Whom it sends to, without the path: with many services that is the secret."""
    parts = split_address(endpoint.url)
    return f"{parts.scheme}://{parts.netloc}"


def _record(action: audit.Action, endpoint: WebhookEndpoint, actor: User, **details: Any) -> None:
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=endpoint.organisation_id,
        webhook=endpoint.uid,
        address=_site(endpoint),
        **details,
    )


def _lock_managed(actor: User, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """As `_lock`, for who manages its organisation: staff send nobody's events elsewhere."""
    current = _lock(actor, endpoint)
    if not may_manage(actor, current.organisation):
        raise NotFound(_("There is no such webhook endpoint."))
    return current


def _lock(actor: User, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """The row as it is now, held until the transaction ends, if the actor may switch it and send again."""
    managed = WebhookEndpoint.objects.manageable_by(actor).filter(pk=endpoint.pk)
    current = (
        WebhookEndpoint.objects.select_for_update(of=("self",))
        .select_related("organisation")
        .filter(pk__in=managed.values("pk"))
        .first()
    )
    if current is None:
        raise NotFound(_("There is no such webhook endpoint."))
    return current


def _require_enabled(endpoint: WebhookEndpoint) -> None:
    if not endpoint.is_enabled:
        raise Conflict(_("This endpoint is switched off."), hint=_("Switch it on first."))


def _send_again(deliveries: list[WebhookDelivery], *, attempts: bool = True) -> None:
    """Due now; with `attempts` it has all its attempts before it again."""
    now = timezone.now()
    for row in deliveries:
        row.state = WebhookDelivery.State.PENDING
        row.next_attempt_at = now
        row.settled_at = None
        if attempts:
            row.attempts = 0
    fields = ["state", "next_attempt_at", "settled_at", "attempts"]
    WebhookDelivery.objects.bulk_update(deliveries, fields)
    outbox.send_soon(deliveries)
