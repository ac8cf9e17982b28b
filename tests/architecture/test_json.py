"""JSON that others write is read in one place, where it is said how long, how deep and of which signs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .sources import PRODUCT, parsed

PLACE = "reading/foreignjson.py"
MODULES = frozenset({"json", "orjson", "simplejson", "ujson", "pydantic_core"})
OF_MODULES = frozenset({"load", "loads", "JSONDecoder", "from_json"})
OF_VALUES = frozenset({"model_validate_json", "validate_json", "parse_raw", "raw_decode"})
"""Methods that read JSON, of whatever they are one."""
ALONE = (
    *("sandbox/inside/", "skillsets/inside/", "skills_app/shipped/", "skills_app/trialrun/inside/"),
    "tools_app/isolated/",
)
"""Scripts that have nothing of ours beside them where they run."""

OF_OURS = {
    "accounts/views/provider_keys.py": "sealed by this server",
    "agents/models/agent.py": "written a moment before, from a row",
    "conversations/logsql.py": "a row, written by `events.dump_text`",
    "harness/events.py": "written a moment before",
    "providers/anthropic.py": "quick, for what is short and flat; all else goes to `wiretext`",
    "live/redis_wire.py": "from other processes of this server",
    "mcpservers/actions/connections.py": "sealed by this server",
    "mcpservers/secrets.py": "sealed by this server",
    "receipts/verifying.py": "taken along by itself; refuses whatever is not as it was signed",
    "pipelines/withstrands/program.py": "from the process that began it",
    "rendering/markdownprocess.py": "from the process that began it",
    "skillsets/composing.py": "written a moment before, from a row",
    "tools_app/snapshots.py": "files of this server, out of reach of a sandbox",
    "v1/environments.py": "written a moment before",
    "vaults/auth.py": "sealed by this server",
}
"""Modules that read JSON which nobody else wrote, or do so safely by themselves."""


def readers_in(tree: ast.Module) -> Iterator[str]:
    """What of a module reads JSON, by whatever name it has it."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if _first(one.name) in MODULES:
                    modules.add(one.asname or _first(one.name))
        elif isinstance(node, ast.ImportFrom) and _first(node.module or "") in MODULES:
            yield from (one.name for one in node.names if one.name in OF_MODULES)
            modules |= {one.asname or one.name for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of_module = node.attr in OF_MODULES and _first(ast.unparse(node.value)) in modules
            if node.attr in OF_VALUES or of_module:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "json":
            yield ast.unparse(node)  # of an answer of the web


def _first(dotted: str) -> str:
    return dotted.partition(".")[0]


def test_json_of_others_is_read_in_one_place():
    found = {
        path.as_posix()
        for path in PRODUCT
        if not path.as_posix().startswith(ALONE) and any(readers_in(parsed(path)))
    }
    assert found == {PLACE, *OF_OURS}, "use reading.foreignjson"


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads(text)",
        "import json as plain\nplain.load(file)",
        "import orjson\nread = orjson.loads",
        "from json import loads as read",
        "import json\njson.JSONDecoder().decode(text)",
        "from pydantic_core import from_json",
        "Model.model_validate_json(text)",
        "adapter.validate_json(text)",
        "answer = (await client.get(url)).json()",
        "answer = client.get(url).json(parse_float=Decimal)",
        "import json.decoder\njson.decoder.JSONDecoder().decode(text)",
        "from json.decoder import JSONDecoder",
        "from json import decoder as d\nread = d.JSONDecoder",
    ],
)
def test_the_judge_finds_what_reads_json(source):
    assert list(readers_in(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["import json\njson.dumps(value)", "import yaml\nyaml.load(text)", "self.load(x)"]
)
def test_the_judge_lets_all_else_be(source):
    assert not list(readers_in(ast.parse(source)))
