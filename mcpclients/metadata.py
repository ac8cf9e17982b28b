"""What clients read before they ask: who guards `/mcp` (RFC 9728) and what that server takes (RFC 8414)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from reading.hostnames import split_address

from .assertions import ALGORITHMS, METHOD
from .models import AUDIENCE
from .scopes import OFFERED, USUAL


def issuer_of(request: HttpRequest) -> str:
    """The site as the client calls it, which is also what it compares; its scheme as the operator says.
    Behind a proxy, which may call this server something else, it is as people call it."""
    if settings.AGENTSITE_BEHIND_PROXY and settings.AGENTSITE_BASE_URL:
        return str(settings.AGENTSITE_BASE_URL)
    host = request.get_host()
    known = split_address(settings.AGENTSITE_BASE_URL)
    return f"{known.scheme if known.netloc == host else request.scheme}://{host}"


def resource_of(request: HttpRequest) -> str:
    return f"{issuer_of(request)}/{AUDIENCE}"


def protected_resource(request: HttpRequest) -> dict[str, Any]:
    return {
        "resource": resource_of(request),
        "authorization_servers": [issuer_of(request)],
        "scopes_supported": [scope.value for scope in USUAL],
        "bearer_methods_supported": ["header"],
        "resource_name": "Agentsite",
    }


def authorisation_server(request: HttpRequest) -> dict[str, Any]:
    issuer = issuer_of(request)
    ways = ["none", METHOD]
    said: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}{reverse('mcpclients:authorise')}",
        "token_endpoint": f"{issuer}{reverse('mcpclients:token')}",
        "revocation_endpoint": f"{issuer}{reverse('mcpclients:revoke')}",
        "scopes_supported": [scope.value for scope in OFFERED],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ways,
        "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
        "revocation_endpoint_auth_methods_supported": ways,
        "revocation_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }
    if settings.AGENTSITE_MCP_REGISTRATION:
        said["registration_endpoint"] = f"{issuer}{reverse('mcpclients:register')}"
    return said


def challenge(request: HttpRequest) -> str:
    """What a 401 of `/mcp` adds to its challenge: where a client without a token begins."""
    if not settings.AGENTSITE_MCP_OAUTH:
        return ""
    place = f"{issuer_of(request)}{reverse('mcpclients:resource-of-mcp')}"
    scope = " ".join(scope.value for scope in USUAL)
    return f', resource_metadata="{place}", scope="{scope}"'
