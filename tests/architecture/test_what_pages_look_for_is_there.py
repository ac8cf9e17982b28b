"""What style sheets and scripts look for exists: a name that nothing has fails nowhere, and does nothing."""

from __future__ import annotations

import re
from itertools import chain

from tests.architecture.sources import MODULES, ROOT

SHEETS = {path.name: path.read_text() for path in (ROOT / "static/css").glob("*.css")}
SCRIPTS = {path.name: path.read_text() for path in (ROOT / "static/js").rglob("*.js")}
OF_LIBRARIES = {"admin.css", "admin.js", "apidocs.css", "apidocs.js"}
"""They mend the pages of libraries."""
TEMPLATES = "\n".join(path.read_text() for path in sorted((ROOT / "templates").rglob("*.html")))
CODE = "\n".join((ROOT / path).read_text() for path in MODULES)
MADE = "\n".join((TEMPLATES, CODE, *SCRIPTS.values()))

CALL = re.compile(
    r"\b(?:querySelector(?:All)?|closest|matches)\(\s*(\"[^\"]*\"|'[^']*'|`[^`]*`)", re.DOTALL
)
ID = re.compile(r"""(?:getElementById|byId)\(["']([\w-]+)["']\)""")
ID_IN_SELECTOR = re.compile(r"#([a-z][\w-]*)(?![\w{$-])")
ATTRIBUTE = re.compile(r"\[(data-[\w-]+)")


def _selectors(script: str) -> str:
    return " ".join(CALL.findall(script))


def _is_written(attribute: str) -> bool:
    """In a template, or by a script through `dataset`."""
    words = attribute.removeprefix("data-").split("-")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return bool(
        re.search(rf"(?<![\w-]){attribute}(?![\w-])", f"{TEMPLATES}\n{CODE}")
        or re.search(rf"\.dataset\.{camel} = |\"{attribute}\"", "\n".join(SCRIPTS.values()))
    )


def test_every_custom_property_of_the_style_sheets_is_set():
    ours = "\n".join(sheet for name, sheet in SHEETS.items() if name not in OF_LIBRARIES)
    used = set(re.findall(r"var\((--[\w-]+)", ours))
    assert len(used) > 50
    there = set(
        re.findall(r"(--[\w-]+)[\"']?\s*[:,]", re.sub(r"var\(--[\w-]+", "", f"{ours}\n{MADE}"))
    )
    assert sorted(used - there) == []


def test_every_element_that_a_script_looks_for_by_its_id_is_on_a_page():
    wanted = {
        (name, found)
        for name, script in SCRIPTS.items()
        if name not in OF_LIBRARIES
        for found in chain(ID.findall(script), ID_IN_SELECTOR.findall(_selectors(script)))
    }
    assert len(wanted) > 30
    there = set(re.findall(r"""\bid\\?=\\?["']([\w-]+)["']""", MADE))
    there.update(re.findall(r"""\.id = ["']([\w-]+)["']""", MADE))
    assert sorted((name, found) for name, found in wanted if found not in there) == []


def test_every_data_attribute_that_a_script_looks_for_is_written():
    wanted = {
        (name, found)
        for name, script in SCRIPTS.items()
        if name not in OF_LIBRARIES
        for found in ATTRIBUTE.findall(_selectors(script))
    }
    assert len(wanted) > 20
    assert sorted((name, found) for name, found in wanted if not _is_written(found)) == []
