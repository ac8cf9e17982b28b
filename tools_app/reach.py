"""Whether sandboxes of this server may reach every public host, and which of its variables they may be
given: the operator's word, from the settings.

What a policy says of single hosts is `sandbox.policy`'s; which addresses are public, `net`'s.
"""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid
from sandbox.policy import ENVIRONMENT, Policy


def check_reach(policy: Policy) -> None:
    """Raise Invalid, naming the setting, for a policy that opens every public host, or hands a variable of
    the server to commands, where the operator has not allowed that."""
    known = {*ENVIRONMENT, *settings.AGENTSITE_SANDBOX_ENVIRONMENT}
    if unknown := [name for name in policy.process.env_allow if name not in known]:
        raise Invalid(
            _("Commands are not given the server's variable “%(name)s”.") % {"name": unknown[0]},
            field="policy",
            hint=_(
                "There are: %(names)s. Whoever runs the server can list others in "
                "AGENTSITE_SANDBOX_ENVIRONMENT."
            )
            % {"names": ", ".join(sorted(known))},
        )
    if policy.unrestricted and not settings.AGENTSITE_SANDBOX_UNRESTRICTED:
        raise Invalid(
            _("Sandboxes of this server reach listed hosts only, not every public one."),
            field="policy",
            hint=_(
                "List the hosts that are needed. Whoever runs the server can allow unrestricted "
                "networks with AGENTSITE_SANDBOX_UNRESTRICTED."
            ),
        )
