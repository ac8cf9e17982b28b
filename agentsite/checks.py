"""Numbered checks of the installation's settings.

With AGENTSITE_ENV=production each error refuses the start, whichever server is used. The local
profile lives on loopback and is not held to them; only a misspelt profile is always an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from agentsite.cors import is_origin
from agentsite.environment import LOCAL, PRODUCTION, env_file
from harness.errors import Invalid
from harness.rules import rules_from
from mcpservers.addresses import check_url
from memory.embedding.chosen import EMBEDDERS, NEEDS, SERVICE_NEEDS, is_address
from net.hostlists import faults_of
from reading.hostnames import is_web_address
from schedules.mailaddresses import is_sender
from schedules.mailbox import place_of
from skills_app.installing import fault_of_index
from tools_app.web.search import PROVIDERS

_SECRET_KEY_LENGTH = 50
_SECRET_KEY_VARIETY = 10
"""Fewer different characters than this were typed, not drawn."""


@register(Tags.security)
def check_installation(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    profile = settings.AGENTSITE_ENV
    problems = [*_processes(), *_tool_rules(), *_search(), *_private_hosts(), *_language()]
    problems += [*_embeddings(), *_mails(), *_package_index(), *_registries()]
    problems += [*_files(), *_proxies(), *_cors_origins(profile)]
    if profile == PRODUCTION:
        return [*_production(), *problems]
    if profile != LOCAL:
        return [
            Error(
                f"AGENTSITE_ENV is {profile!r}, which is no profile.",
                hint=f"Set it to {LOCAL!r} or {PRODUCTION!r}.",
                id="agentsite.E001",
            ),
            *problems,
        ]
    return problems


def refuse_unsafe_start() -> None:
    """Raise ImproperlyConfigured with every numbered error. For servers that run no checks."""
    errors = [message for message in check_installation() if message.is_serious()]
    if errors:
        lines = "\n".join(f"  {error.id}: {error.msg} {error.hint}" for error in errors)
        raise ImproperlyConfigured(f"The start is refused because of unsafe settings:\n{lines}")


def _production() -> Iterable[CheckMessage]:
    if settings.DEBUG:
        yield Error(
            "Debug mode is on: every visitor of an error page would read settings and code.",
            hint="Remove AGENTSITE_DEBUG.",
            id="agentsite.E002",
        )
    yield from _secret_key(settings.SECRET_KEY)
    if not settings.ALLOWED_HOSTS or any("*" in host for host in settings.ALLOWED_HOSTS):
        yield Error(
            "AGENTSITE_ALLOWED_HOSTS names no host, or all of them.",
            hint="List the host names under which this site is reached.",
            id="agentsite.E004",
        )
    yield from _base_url(settings.AGENTSITE_BASE_URL)
    yield from _vault_keys(settings.AGENTSITE_VAULT_KEYS)


def _cors_origins(profile: str) -> Iterable[CheckMessage]:
    for origin in settings.AGENTSITE_CORS_ORIGINS:
        if origin == "*" and profile == PRODUCTION:
            yield Error(
                "AGENTSITE_CORS_ORIGINS lets in the pages of all sites.",
                hint="List the sites whose pages shall use this server, by their origins.",
                id="agentsite.E024",
            )
        elif origin != "*" and not is_origin(origin):
            yield Error(
                f"AGENTSITE_CORS_ORIGINS holds {origin!r}, which is no origin.",
                hint="Write scheme, host and port as browsers do: https://app.example.org",
                id="agentsite.E025",
            )


def _tool_rules() -> Iterable[CheckMessage]:
    try:
        rules_from(settings.AGENTSITE_TOOL_RULES)
    except ValueError as problem:
        yield Error(
            f"AGENTSITE_TOOL_RULES, {problem}",
            hint="A JSON list of rules, each with tool, permission, when and options.",
            id="agentsite.E012",
        )


def _files() -> Iterable[CheckMessage]:
    """Whether what must stay private is closed to others on this machine."""
    for path, name, bits in (
        (settings.AGENTSITE_DATA_DIR, "The data directory", 0o026),
        (env_file(), "The file with the settings and secrets", 0o077),
    ):
        if path is not None and path.exists() and path.stat().st_mode & bits:
            yield checks.Warning(
                f"{name}, {path}, is open to other users of this machine.",
                hint=f"chmod {'600' if path.is_file() else 'o-rw,g-w'} {path}",
                id="agentsite.W002",
            )


def _search() -> Iterable[CheckMessage]:
    name = settings.AGENTSITE_SEARCH_PROVIDER
    if name and name not in PROVIDERS:
        yield Error(
            f"AGENTSITE_SEARCH_PROVIDER is {name!r}, which is no search provider.",
            hint=f"Choose from {', '.join(PROVIDERS)}, or leave it empty.",
            id="agentsite.E013",
        )
    if name == "searxng" and not settings.AGENTSITE_SEARXNG_URL.startswith(("http://", "https://")):
        yield Error(
            "AGENTSITE_SEARCH_PROVIDER is searxng, and AGENTSITE_SEARXNG_URL names no server.",
            hint="Set it to the server's address, for example http://searx.internal:8080.",
            id="agentsite.E014",
        )


def _embeddings() -> Iterable[CheckMessage]:
    name = settings.AGENTSITE_EMBEDDINGS
    if not name:
        return
    needs = SERVICE_NEEDS if is_address(name) else NEEDS.get(name, ())
    if is_address(name):
        known = is_web_address(name) and bool(settings.AGENTSITE_EMBEDDING_MODEL)
        hint = "Set it to an address such as https://api.openai.com/v1, and name its model."
    else:
        known = name in EMBEDDERS
        hint = (
            f"Choose from {', '.join(EMBEDDERS)}, set it to a service's address, or leave it empty."
        )
    if not known:
        yield Error(
            f"AGENTSITE_EMBEDDINGS is {name!r}, which makes no vectors.",
            hint=hint,
            id="agentsite.E029",
        )
    if lacking := [each for each in needs if not _is_installed(each)]:
        yield Error(
            f"AGENTSITE_EMBEDDINGS is {name}, which needs {', '.join(lacking)}.",
            hint="Run `make embeddings`, or leave it empty.",
            id="agentsite.E030",
        )


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _language() -> Iterable[CheckMessage]:
    known = [code for code, _name in settings.LANGUAGES]
    if settings.AGENTSITE_LANGUAGE not in known:
        yield Error(
            f"AGENTSITE_LANGUAGE is {settings.AGENTSITE_LANGUAGE!r}, which is no language of this site.",
            hint=f"Set it to one of {', '.join(known)}.",
            id="agentsite.E031",
        )


def _mails() -> Iterable[CheckMessage]:
    """Those that come in. What the mailbox's address says is not repeated: it has a password."""
    place = settings.AGENTSITE_INBOUND_MAIL
    if place and not is_sender(place.lower()):
        yield Error(
            f"AGENTSITE_INBOUND_MAIL is {place!r}, which is neither an address nor a domain.",
            hint="Give agents@example.org, or @in.example.org for a whole domain.",
            id="agentsite.E053",
        )
    try:
        found = place_of(settings.AGENTSITE_IMAP_URL) if settings.AGENTSITE_IMAP_URL else None
    except ValueError as problem:
        yield Error(
            f"AGENTSITE_IMAP_URL is no address of a mailbox: {problem}.",
            hint="Give imaps://user:password@host/folder.",
            id="agentsite.E054",
        )
        return
    if found is not None and not place:
        yield Error(
            "AGENTSITE_IMAP_URL is set and AGENTSITE_INBOUND_MAIL is not, so no mail there is for anybody.",
            hint="Set AGENTSITE_INBOUND_MAIL to the mailbox's address.",
            id="agentsite.E055",
        )


def _private_hosts() -> Iterable[CheckMessage]:
    for name, number, example, networks in (
        ("AGENTSITE_PRIVATE_PROVIDER_HOSTS", "E020", "ollama.internal:11434", False),
        ("AGENTSITE_WEBHOOK_PRIVATE_HOSTS", "E026", "n8n.internal:5678", True),
        ("AGENTSITE_MCP_PRIVATE_HOSTS", "E027", "tools.internal:8080", True),
        ("AGENTSITE_SKILLS_PRIVATE_HOSTS", "E028", "skills.internal:8000", True),
        ("AGENTSITE_PROMPTS_PRIVATE_HOSTS", "E056", "langfuse.internal:3000", True),
        ("AGENTSITE_PUSH_PRIVATE_HOSTS", "E032", "push.internal:8080", True),
    ):
        for problem in faults_of(getattr(settings, name), networks=networks):
            yield Error(
                f"{name}: {problem}",
                hint=f"Give each host with its port, for example {example}.",
                id=f"agentsite.{number}",
            )


def _registries() -> Iterable[CheckMessage]:
    for address in settings.AGENTSITE_MCP_REGISTRIES:
        fault = "it has a query." if "?" in address else ""
        try:
            check_url(address)
        except Invalid as problem:
            fault = problem.message
        if fault:
            yield Error(
                f"AGENTSITE_MCP_REGISTRIES: {address[:100]}: {fault}",
                hint="Give addresses such as https://registry.example.org; what is inside the network is "
                "listed in AGENTSITE_MCP_PRIVATE_HOSTS.",
                id="agentsite.E058",
            )


def _package_index() -> Iterable[CheckMessage]:
    if problem := fault_of_index():
        yield Error(
            f"AGENTSITE_SKILLS_INDEX, or AGENTSITE_SKILLS_INDEX_HOSTS: {problem}.",
            hint="Give the address of an index (https://…/simple/) or a folder with wheels; hosts by name.",
            id="agentsite.E057",
        )


def _processes() -> Iterable[CheckMessage]:
    """Several processes need what they share, whatever the profile."""
    if settings.AGENTSITE_BROKER_URL and not settings.AGENTSITE_REDIS_URL:
        yield Error(
            "AGENTSITE_BROKER_URL is set and AGENTSITE_REDIS_URL is not: no page would see what "
            "workers stream.",
            hint="Set AGENTSITE_REDIS_URL as well; the same server in another database will do.",
            id="agentsite.E010",
        )


def _proxies() -> Iterable[CheckMessage]:
    try:
        for text in settings.AGENTSITE_TRUSTED_PROXIES:
            ip_network(text, strict=False)
    except ValueError as problem:
        yield Error(
            f"AGENTSITE_TRUSTED_PROXIES: {problem}.",
            hint="List addresses or networks, separated by commas.",
            id="agentsite.E022",
        )
    if settings.AGENTSITE_PROXY_COUNT < 1:
        yield Error(
            "AGENTSITE_PROXY_COUNT is less than one.",
            hint="Say how many proxies of yours a request passes.",
            id="agentsite.E023",
        )


def _secret_key(key: str) -> Iterable[CheckMessage]:
    if key.startswith(settings.UNSET_SECRET_KEY):
        problem = "AGENTSITE_SECRET_KEY is not set."
    elif key.startswith(("django-insecure-", "change")):
        problem = "AGENTSITE_SECRET_KEY is an example's."
    elif len(key) < _SECRET_KEY_LENGTH or len(set(key)) < _SECRET_KEY_VARIETY:
        problem = "AGENTSITE_SECRET_KEY is too short or too simple."
    else:
        return
    yield Error(
        problem,
        hint=f"Set {_SECRET_KEY_LENGTH} or more random characters and keep them.",
        id="agentsite.E003",
    )


def _base_url(base_url: str) -> Iterable[CheckMessage]:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Error(
            "AGENTSITE_BASE_URL is not set to the address people use.",
            hint="Set it like https://agents.example.org.",
            id="agentsite.E005",
        )
        return
    if parts.scheme == "http":
        yield checks.Warning(
            "AGENTSITE_BASE_URL is plain http: passwords and sessions travel unencrypted.",
            hint="Put a proxy with TLS in front and use https.",
            id="agentsite.W001",
        )
    elif not (settings.SESSION_COOKIE_SECURE and settings.CSRF_COOKIE_SECURE):
        yield Error(
            "The site is reached by https, but its cookies would also travel over http.",
            hint="Remove AGENTSITE_SECURE_COOKIES or set it to true.",
            id="agentsite.E006",
        )
    origin = f"{parts.scheme}://{parts.netloc}"
    if origin not in settings.CSRF_TRUSTED_ORIGINS:
        yield Error(
            f"AGENTSITE_CSRF_TRUSTED_ORIGINS lacks {origin}: no form could be sent.",
            hint="Add it, or remove the variable.",
            id="agentsite.E007",
        )
    if any("*" in trusted for trusted in settings.CSRF_TRUSTED_ORIGINS):
        yield Error(
            "AGENTSITE_CSRF_TRUSTED_ORIGINS trusts a whole domain.",
            hint="Name each origin.",
            id="agentsite.E008",
        )


def _vault_keys(keys: list[str]) -> Iterable[CheckMessage]:
    if not keys:
        problem = "AGENTSITE_VAULT_KEY is not set: no provider key could be stored."
    elif not all(_is_fernet_key(key) for key in keys):
        problem = "AGENTSITE_VAULT_KEY holds something that is no Fernet key."
    else:
        return
    yield Error(
        problem,
        hint="Set 32 random bytes in URL-safe base64, and keep them apart from database backups.",
        id="agentsite.E009",
    )


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True
