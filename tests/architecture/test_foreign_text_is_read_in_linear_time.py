"""Whatever runs over texts of strangers is linear by construction, or runs in a process with a deadline."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.expressions import Use, fault_of, fault_of_linear, uses
from tests.architecture.sources import MODULES, ROOT, nodes_of, parsed
from tests.hostile import EXPRESSIONS

IN_A_PROCESS_OF_ITS_OWN = ("tools_app/isolated/", "sandbox/inside/", "skills_app/shipped/")
"""What runs there is ended by a deadline, or is a sandbox's own."""

PUT_TOGETHER = {
    "agentsite/foreignpages.py:_DOORS": "a constant of another module, without repetition",
    "chat/presentation/sentences.py:_pattern": "RE2, and one match of each sentence",
    "conversations/search.py:_pattern": "escaped words with `|` between them",
    "evals/checks/judging.py:_found": "RE2, and a run's checks together have so many steps",
    "evals/checks/spec.py:_expression": "RE2, and no search",
    "providers/demo.py:_RULES": "a table of constants, in a stand-in for a model service",
    "harness/schemas.py:compiled": "RE2, and one search of each text",
    "reading/unseen.py:_unseen": "one set of signs, once and in a row",
    "reading/unseen.py:_unseen_in_names": "one set of signs, once",
}
"""Expressions that are not constants, and why no text makes them run away."""

AT_ONE_PLACE = {
    "rendering/math.py:_WORDS_AFTER_AN_AMOUNT": "in a formula of 2,000 characters",
    "harness/patterns.py:_SCHEME": "at the beginning of an address",
    "net/hostlists.py:_without_port": "on the whole of one entry of an operator's list",
    "mcpservers/packages.py:_SCRIPT": "on the whole of one line of a package that an operator installs",
    "sandbox/egress.py:_HEADER": "on the whole of one header",
    "schedules/mailaddresses.py:_SENDER": "on the whole of an address of 254 characters",
}
"""Expressions that would be quadratic if they were searched for, and where alone they are matched."""

DEAR_LIBRARIES = {
    "difflib": {
        "wire/parameters.py": "a shortened name among a few",
        "harness/faults.py": "a name among a few",
        "reading/matching.py": "counts its steps",
    },
    "pygments": {"tools_app/textfiles.py": "asks for a lexer by a file's name and runs none"},
    "jsonschema": {"harness/schemas.py": "", "harness/schemachecks.py": "pays for every step"},
    "markdown_it": {
        "rendering/markdownpieces.py": "steps are counted; long texts in a process",
        "rendering/effort.py": "",
        "rendering/links.py": "",
        "rendering/math.py": "",
        "rendering/notes.py": "",
    },
    "latex2mathml": {"rendering/math.py": "formulas of bounded length and number"},
    "bs4": {"tools_app/web/pages.py": "its reading of encodings alone"},
    "re2": {"reading/linear.py": ""},
    "yaml": {
        "evals/files.py": "texts of bounded length, few brackets",
        "reading/foreignyaml.py": "who reads bounds the text and its brackets",
        "pipelines/files.py": "texts of bounded length, few brackets",
        "prompts/files.py": "texts of bounded length, few brackets",
        "sandbox/policy.py": "texts of bounded length, few brackets",
        "skills_app/frontmatter.py": "texts of bounded length, few brackets",
        "skills_app/manifest.py": "its errors alone",
    },
    "zipfile": {
        "owndata/archive.py": "it reads none",
        "skills_app/packing.py": "only what it unpacks piece by piece",
    },
    "lzma": {},
    "bz2": {},
    "tarfile": {"sandbox/openshell.py": "plain archives, no compression"},
    "PIL": {},
    "markdownify": {},
    "pypdf": {},
    "docx": {},
    "openpyxl": {},
    "pptx": {},
    "lxml": {},
}
"""Libraries whose time may grow faster than the text, and the modules that use them within bounds."""

DEAR_CALLS = {
    "normalize": {
        "reading/normalizing.py": "past a few marks in a row it is refused",
        "accounts/lockout.py": "320 characters",
        "conversations/search.py": "200 characters",
        "wire/spreadsheets.py": "one character",
    },
    "idna": {
        "reading/hostnames.py": "past 253 characters it is refused",
    },
    "urlsplit": {
        "reading/hostnames.py": "its host is bounded before",
        "agentsite/settings.py": "the operator's",
        "agentsite/cors.py": "the operator's",
        "agentsite/checks.py": "the operator's",
        "tools_app/mountroots.py": "the operator's",
    },
    "urljoin": {"reading/hostnames.py": "its host is bounded before"},
    "slugify": {
        "accounts/actions/organisations.py": "120 characters",
        "chat/views/exports.py": "200 characters",
    },
    "url_has_allowed_host_and_scheme": {
        "chat/views/answers.py": "refuses more than 2,048 characters itself"
    },
}
"""What normalizes the text it is given, which takes the square of its length, and where it is bounded.
Elsewhere `reading.hostnames` and `reading.normalizing` do it."""

_NORMALIZING = {
    "unicodedata": {"normalize": "normalize"},
    "urllib.parse": dict.fromkeys(("urlsplit", "urlparse"), "urlsplit")
    | dict.fromkeys(("urljoin", "urldefrag"), "urljoin"),
    "django.utils.text": {"slugify": "slugify", "Truncator": "Truncator"},
    "django.utils.html": dict.fromkeys(("urlize", "Urlizer", "smart_urlquote"), "urlsplit"),
    "django.utils.http": {"url_has_allowed_host_and_scheme": "url_has_allowed_host_and_scheme"},
    "django.utils.encoding": {"punycode": "idna"},
    "idna": dict.fromkeys(("encode", "decode", "alabel", "ulabel", "uts46_remap"), "idna"),
}

_READING_COOKIES = {
    "django.http": {"parse_cookie", "SimpleCookie"},
    "django.http.cookie": {"parse_cookie", "SimpleCookie"},
    "channels.sessions": {"CookieMiddleware", "SessionMiddlewareStack"},
    "channels.auth": {"AuthMiddlewareStack"},
    "http.cookies": {"SimpleCookie", "BaseCookie"},
}
"""What reads cookies by Python's own reader, which takes the square of an escaped value. `agentsite.cookies`
reads them, and hands no such value on to Django."""

_CODECS = frozenset({"idna", "punycode"})


def ours() -> list[Use]:
    return [use for use in uses() if not use.place.startswith(IN_A_PROCESS_OF_ITS_OWN)]


def test_every_expression_is_a_constant_that_no_text_makes_run_away():
    constants = [use for use in ours() if use.pattern is not None and not use.linear]
    assert len(constants) > 50
    faults = {
        f"{use.place} (line {use.line})": fault
        for use in {(use.pattern, use.flags): use for use in constants}.values()
        if use.pattern is not None
        and use.place not in AT_ONE_PLACE
        and (fault := fault_of(use.pattern, use.flags))
    }
    assert faults == {}, "bound the repetition, or use reading.linear"


def test_no_text_makes_every_find_of_a_linear_expression_look_to_its_end():
    linear = {use.place: use.pattern for use in ours() if use.linear}
    assert len(linear) > 5
    faults = {
        place: fault
        for place, pattern in linear.items()
        if isinstance(pattern, str) and (fault := fault_of_linear(pattern))
    }
    assert faults == {}, "look for what may go on for ever by itself"


def test_every_expression_that_is_put_together_is_known():
    assert {use.place for use in ours() if use.pattern is None} == set(PUT_TOGETHER)


@pytest.mark.parametrize(
    "pattern",
    [
        *(expression for expression, _text in EXPRESSIONS.values()),
        r"^(\w+\s?)*$",
        r"\s+$",
        r"[a-z0-9_\-]*secret\s*[:=]",
        r"(?i)\b([a-z0-9_\-]*(?:api[_\-]?key|secret|token)[\"']?\s*[:=]\s*)([^\s]{6,})",
        "(?:.*/)?" * 3 + "x",
        r"<!--.*?-->",
        r"\[[^\]]*\]\([^)]*\)",
        rb"(a|b|ab)*c",
    ],
)
def test_the_judge_finds_what_runs_away(pattern):
    assert fault_of(pattern)


@pytest.mark.parametrize("pattern", [r"[a-z]{1,64}", r"\A(?:[a-z]+\.)*[a-z]+\Z", r"`{3,}", "a|b"])
def test_the_judge_lets_harmless_expressions_be(pattern):
    assert fault_of(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)\b(?:ags_[a-z0-9]{20,}|AKIA[0-9A-Z]{16}|eyJ[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,})",
        r"(?s)<!--.*?-->|<p>",
        r"\[[^\]]*\]\([^)]*\)|\[",
        r"(?:a*b)?",
    ],
)
def test_the_judge_finds_where_every_find_looks_to_the_end(pattern):
    assert fault_of_linear(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"<!--.*?-->", r"secret\s*[:=]|s", r"\[[^\]]*\]\([^)]*\)"]
)
def test_the_judge_lets_harmless_expressions_for_re2_be(pattern):
    assert fault_of_linear(pattern) == ""


def _imports() -> Iterator[tuple[str, str]]:
    for path in MODULES:
        name = path.as_posix()
        if name.startswith(IN_A_PROCESS_OF_ITS_OWN):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                yield from ((name, one.name.partition(".")[0]) for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield name, node.module.partition(".")[0]


def test_libraries_whose_time_may_run_away_are_used_where_it_is_bounded():
    found = {(library, name) for name, library in _imports() if library in DEAR_LIBRARIES}
    assert found == {
        (library, name) for library, places in DEAR_LIBRARIES.items() for name in places
    }
    assert (ROOT / "tools_app/isolated/webpage.py").exists()


def _normalizing_calls(tree: ast.Module) -> Iterator[str]:
    """By whatever name a module reaches them; codecs wherever their name stands as a text."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            known = _NORMALIZING.get(node.module, {})
            yield from (known[one.name] for one in node.names if one.name in known)
            modules |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Constant) and node.value in _CODECS:
            yield "idna"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            called = _NORMALIZING.get(modules.get(ast.unparse(node.value), ""), {}).get(node.attr)
            if called:
                yield called


def test_what_normalizes_a_text_is_called_where_the_text_is_bounded():
    found = {
        (call, path.as_posix())
        for path in MODULES
        if not path.as_posix().startswith(IN_A_PROCESS_OF_ITS_OWN)
        for call in _normalizing_calls(parsed(path))
    }
    assert found == {(call, name) for call, places in DEAR_CALLS.items() for name in places}


@pytest.mark.parametrize(
    "source",
    [
        "import unicodedata\nunicodedata.normalize('NFC', text)",
        "from unicodedata import normalize as plain",
        "import urllib.parse\nurllib.parse.urlparse(text)",
        "from urllib import parse as p\np.urljoin(a, b)",
        "from urllib.parse import quote, urldefrag",
        "host.encode('idna')",
        "host.encode(encoding='idna')",
        "import idna as names\nnames.encode(host)",
        "from django.utils.text import Truncator",
    ],
)
def test_the_judge_finds_what_normalizes(source):
    assert list(_normalizing_calls(ast.parse(source)))


def test_cookies_are_read_by_one_module():
    """No exceptions: what Django reads by itself went through there before."""
    found = {
        (path.as_posix(), one.name)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.module in _READING_COOKIES
        for one in node.names
        if one.name in _READING_COOKIES[node.module]
    }
    assert found == set()


DECODERS = {
    "reading/charsets.py": "of a list of those that take linear time",
    "reading/wholetext.py": "UTF-8 and UTF-16 of our own",
    "tools_app/textfiles.py": "by the marks of files, one of six",
}
"""Modules that decode by a character set which is no constant, and which those are."""


def _decodes(node: ast.AST) -> bool:
    """By a character set that is no constant: Python takes whatever it is called."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    given = [*node.args, *(each.value for each in node.keywords if each.arg == "encoding")]
    if re.search(
        r"(^|\.)(getincrementaldecoder|getdecoder|getreader|codecs\.(decode|lookup))$", called
    ):
        return not (given and isinstance(given[0], ast.Constant))
    names = " ".join(ast.unparse(each) for each in given if not isinstance(each, ast.Constant))
    if any(
        each.arg == "encoding" and not isinstance(each.value, ast.Constant)
        for each in node.keywords
    ):
        return called.endswith(".decode")
    return called.endswith(".decode") and bool(re.search("charset|encoding|codec", names))


def test_nothing_is_decoded_by_whatever_character_set_a_stranger_names():
    found = {
        path.as_posix()
        for path in MODULES
        if not path.as_posix().startswith(IN_A_PROCESS_OF_ITS_OWN)
        and any(_decodes(node) for node in nodes_of(path))
    }
    assert found == set(DECODERS)


@pytest.mark.parametrize(
    "source",
    [
        "data.decode(charset)",
        "data.decode('utf-8' if odd else given.encoding, 'replace')",
        "data.decode(encoding=found)",
        "codecs.getincrementaldecoder(name)()",
        "codecs.lookup(name)",
    ],
)
def test_the_judge_finds_what_decodes_by_a_name(source):
    assert any(_decodes(node) for node in ast.walk(ast.parse(source)))


def test_templates_cut_a_text_before_it_is_normalized():
    """Django's filter normalizes the whole of it."""
    bounded = {"admin/agents/tool_rules.html": "500 characters"}
    found = {
        path.relative_to(ROOT / "templates").as_posix()
        for path in (ROOT / "templates").rglob("*.*")
        if re.search(
            r"(?<!\|slice:\":240\")\|\s*(?:truncatechars|truncatechars_html|slugify|urlize)",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found == set(bounded)
