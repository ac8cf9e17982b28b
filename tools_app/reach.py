"""Whether sandboxes of this server may reach every public host: the operator's word, from the settings.

What a policy says of single hosts is `sandbox.policy`'s; which addresses are public, `net`'s.
"""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid
from sandbox.policy import Policy


def check_reach(policy: Policy) -> None:
    """Raise Invalid, naming the setting, for a policy that opens every public host where the operator
    has not allowed that."""
    if policy.unrestricted and not settings.AGENTSITE_SANDBOX_UNRESTRICTED:
        raise Invalid(
            _("Sandboxes of this server reach listed hosts only, not every public one."),
            field="policy",
            hint=_(
                "List the hosts that are needed. Whoever runs the server can allow unrestricted "
                "networks with AGENTSITE_SANDBOX_UNRESTRICTED."
            ),
        )
