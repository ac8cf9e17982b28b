"""Search by content and name, outlines and references."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.content import text_of
from harness.errors import ToolError, ToolTimedOut
from tools_app.builtin import search
from tools_app.builtin.search import GLOBBED, SEARCHED_SIZE


def said(outcome) -> str:
    return text_of(outcome.content)


@pytest.fixture
def project(root: Path) -> Path:
    for path, text in {
        "app.py": "import os\n\ndef alpha():\n    return beta()\n",
        "src/beta.py": "def beta():\n    return 'Alpha'\n",
        "src/notes.md": "alpha and alphabet, $1.00 (a+b)\n",
        "node_modules/x/index.js": "alpha()\n",
        ".git/HEAD": "alpha\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "picture.png").write_bytes(b"\0alpha\0")
    (root / "link.py").symlink_to("../outside/secret.txt")
    return root


# --- grep -----------------------------------------------------------------------------------------


async def test_matches_are_told_with_file_and_line(project, call):
    assert said(await call("grep", pattern=r"al\w+a")).splitlines() == [
        "app.py:3: def alpha():",
        "src/notes.md:1: alpha and alphabet, $1.00 (a+b)",
        "[2 matches, 3 files searched.]",
    ]


async def test_case_literal_path_and_glob_narrow_a_search(project, call):
    insensitive = said(await call("grep", pattern="ALPHA", case_sensitive=False, glob="*.py"))
    assert insensitive.splitlines()[:-1] == [
        "app.py:3: def alpha():",
        "src/beta.py:2:     return 'Alpha'",
    ]
    assert "notes.md:1" in said(await call("grep", pattern="$1.00 (a+b)", literal=True))
    assert "No match" in said(await call("grep", pattern="$1.00 (a+b)"))
    assert "app.py" not in said(await call("grep", pattern="alpha", path="src"))
    one_file = said(await call("grep", pattern="alpha", path="app.py"))
    assert one_file == "app.py:3: def alpha():\n[1 matches, 1 files searched.]"
    relative = said(await call("grep", pattern="beta", path="src", glob="beta.*"))
    assert relative.startswith("src/beta.py:1:")


async def test_surrounding_lines_are_shown_once(root, call):
    (root / "a.txt").write_text("\n".join(["one", "two", "HIT", "four", "HIT", "six", "7", "8",
                                           "9", "HIT"]))  # fmt: skip
    assert said(await call("grep", pattern="HIT", context=1)).splitlines()[:-1] == [
        "a.txt-2- two",
        "a.txt:3: HIT",
        "a.txt-4- four",
        "a.txt:5: HIT",
        "a.txt-6- six",
        "--",
        "a.txt-9- 9",
        "a.txt:10: HIT",
    ]
    adjacent = root / "b.txt"
    adjacent.write_text("x\nHIT 1\nHIT 2\ny\n")
    assert said(await call("grep", pattern="HIT", context=2, path="b.txt")).splitlines()[:-1] == [
        "b.txt-1- x",
        "b.txt:2: HIT 1",
        "b.txt:3: HIT 2",
        "b.txt-4- y",
    ]


async def test_a_search_stops_at_its_most_results_and_says_so(root, call):
    (root / "a.txt").write_text("x\n" * 60)
    exactly = said(await call("grep", pattern="x", max_results=60)).splitlines()
    assert exactly[-1] == "[60 matches, 1 files searched.]"
    default = said(await call("grep", pattern="x")).splitlines()
    assert len(default) == 51
    assert "Only the first 50" in default[-1]
    assert (await call("grep", pattern="x", max_results=201)).is_error
    assert (await call("grep", pattern="x", max_results=0)).is_error


async def test_a_long_line_is_cut_around_its_match(root, call):
    (root / "a.js").write_text("x" * 5_000 + "NEEDLE" + "y" * 5_000)
    line = said(await call("grep", pattern="NEEDLE")).splitlines()[0]
    snippet = line.removeprefix("a.js:1: ")
    assert len(snippet) == 200
    assert "NEEDLE" in snippet


async def test_large_files_are_left_out_and_counted(root, call):
    (root / "fits.txt").write_bytes(b"x" * (SEARCHED_SIZE - 7) + b"\nneedle")
    (root / "large.txt").write_bytes(b"x" * (SEARCHED_SIZE - 6) + b"\nneedle")
    text = said(await call("grep", pattern="needle"))
    assert "fits.txt:2: needle" in text
    assert "large.txt" not in text
    assert "1 left out for their size" in text


async def test_binary_reserved_vendored_and_linked_files_are_passed_over(project, call):
    text = said(await call("grep", pattern="alpha|nobody"))
    for name in ("picture.png", "node_modules", ".git", "link.py"):
        assert name not in text
    assert (await call("grep", pattern="nobody", path="link.py")).is_error
    assert (await call("grep", pattern="alpha", path=".git")).is_error
    assert (await call("grep", pattern="alpha", path="../outside")).is_error
    asked_for = said(await call("grep", pattern="alpha", path="node_modules"))
    assert asked_for.startswith("node_modules/x/index.js:1:")


async def test_an_expression_that_is_none_is_explained(project, call):
    outcome = await call("grep", pattern="(a")
    assert outcome.is_error
    assert "not a valid regular expression" in said(outcome)
    assert "literal" in said(outcome)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(\w*)*\d"])
def test_a_pathological_expression_times_out(root, workspace, pattern):
    """Matched in the server itself, such a search would hold a thread for ever."""
    (root / "a.txt").write_text("a" * 60 + "!\n")
    with pytest.raises(ToolTimedOut, match=r"within 0\.5 seconds.*a\.txt") as late:
        search.search(workspace, pattern, seconds=0.5, whose=lambda entry: f"{entry.name}: a page")
    assert late.value.untrusted_by == "a.txt: a page", "it repeats a name"
    with pytest.raises(ToolTimedOut):
        search.search(workspace, pattern, path="a.txt", seconds=0.5)
    assert len(search.search(workspace, "a!").matches) == 1


def test_an_expression_nested_beyond_measure_is_refused(workspace):
    with pytest.raises(ToolError, match="nested too deeply"):
        search.search(workspace, "(" * 5_000 + ")" * 5_000)


# --- glob -----------------------------------------------------------------------------------------


async def test_files_are_found_by_name_newest_first(project, call):
    os.utime(project / "app.py", (1_000, 1_000))
    os.utime(project / "src/beta.py", (2_000, 2_000))
    assert said(await call("glob", pattern="*.py")).splitlines() == ["src/beta.py", "app.py"]
    assert said(await call("glob", pattern="*.md", path="src")) == "src/notes.md"
    assert said(await call("glob", pattern="*.rs")) == "No file fits the pattern."
    assert (await call("glob", pattern="../*")).is_error
    assert (await call("glob", pattern="*", path="app.py")).is_error


async def test_many_files_are_cut_and_counted(root, call):
    for number in range(GLOBBED + 3):
        (root / f"{number}.txt").touch()
    lines = said(await call("glob", pattern="*.txt")).splitlines()
    assert len(lines) == GLOBBED + 1
    assert lines[-1].startswith("[3 older files")


# --- find_references ------------------------------------------------------------------------------


async def test_only_whole_words_are_references(root, call):
    (root / "a.js").write_text("total\nsubtotal\ntotals\n$total\nTotal\nx.total()\ntotal_1\n")
    assert said(await call("find_references", symbol="total")).splitlines() == [
        "a.js:1: total",
        "a.js:6: x.total()",
        "[2 matches, 1 files searched.]",
    ]
    assert "a.js:4" in said(await call("find_references", symbol="$total"))


# --- outline --------------------------------------------------------------------------------------

SOURCES = {
    "a.py": (
        (
            "import os\n\nclass Shape(Base):\n    async def area(self, unit='m'):\n        pass\n"
            "if True:\n    def hidden(): ...\n'''\ndef not_code():\n'''\n"
        ),
        ["3: class Shape(Base)", "4:   async def area(self, unit='m')", "7: def hidden()"],
    ),
    "broken.py": ("def fine():\n    pass\nclass Broken(:\n", ["1: def fine()", "3: class Broken("]),
    "a.ts": (
        (
            "export default class Shape {\n  private async area(unit: string): number {\n"
            "    if (unit) {\n      return compute(unit);\n    }\n  }\n}\n"
            "export function make<T>(x: T) {\n}\nexport const arrow = async (x) => {\n};\n"
            "export interface Point {\n}\ntype Id = string;\nconst plain = 3;\n// function no() {}\n"
        ),
        [
            "1: export default class Shape",
            "2:   private async area(unit: string): number",
            "8: export function make<T>(x: T)",
            "10: export const arrow = async (x) =>",
            "12: export interface Point",
            "14: type Id = string;",
        ],
    ),
    "a.go": (
        (
            "package main\n\ntype Shape struct {\n\tname string\n}\n\n"
            "func (s *Shape) Area() float64 {\n\treturn 1\n}\nfunc main() {\n}\n"
        ),
        ["3: type Shape struct", "7: func (s *Shape) Area() float64", "10: func main()"],
    ),
    "a.rs": (
        (
            "pub struct Shape;\nimpl Shape {\n    pub async fn area(&self) -> f64 {\n        1.0\n"
            "    }\n}\npub(crate) enum Kind {}\nmacro_rules! twice {\n}\n"
        ),
        [
            "1: pub struct Shape;",
            "2: impl Shape",
            "3:     pub async fn area(&self) -> f64",
            "7: pub(crate) enum Kind {}",
            "8: macro_rules! twice",
        ],
    ),
    "A.java": (
        (
            "package a;\n/* class No {\n */\npublic final class Shape extends Base {\n"
            "    private int side;\n    @Override\n    public List<String> names(int a) {\n"
            "        if (a > 1) {\n            return find(a);\n        }\n    }\n}\n"
        ),
        ["4: public final class Shape extends Base", "7:     public List<String> names(int a)"],
    ),
    "a.c": (
        (
            "#include <a.h>\n#define MAX(a, b) a\nstatic int\nadd(int a);\n"
            "static int sum(int *values, int n)\n{\n    for (;;) {\n    }\n    return 0;\n}\n"
            "struct point {\n    int x;\n};\n"
        ),
        ["2: #define MAX(a, b) a", "5: static int sum(int *values, int n)", "11: struct point"],
    ),
    "a.rb": (
        "module Shapes\n  class Circle < Shape\n    def area?\n    end\n  end\nend\n",
        ["1: module Shapes", "2:   class Circle < Shape", "3:     def area?"],
    ),
    "a.sql": ("CREATE TABLE IF NOT EXISTS people (\n  id int\n);\n", ["1: CREATE TABLE IF NOT"]),
    "a.sh": ("set -e\nbuild() {\n  make\n}\nfunction test {\n}\n", ["2: build()", "5: function"]),
    "a.md": (
        "Title\n=====\n\n# One\n\n```sh\n# not a heading\n```\n\n## Two ##\n#not\n",
        ["1: Title", "4: # One", "10:   ## Two ##"],
    ),
    "a.ex": ("defmodule Shape do\n  def area(x) do\n", ["1: defmodule Shape", "2:   def area(x)"]),
}


@pytest.mark.parametrize("name", SOURCES)
async def test_declarations_are_listed_with_their_lines(root, call, name):
    source, expected = SOURCES[name]
    (root / name).write_text(source)
    lines = said(await call("outline", path=name)).splitlines()[1:]
    assert len(lines) == len(expected), lines
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


async def test_a_file_without_declarations_says_so(root, call):
    (root / "a.py").write_text("x = 1\n")
    assert said(await call("outline", path="a.py")) == "No declarations found in a.py."


@pytest.mark.parametrize(
    "source",
    [
        "(" * 100_000,
        "-" * 200_000 + "1",
        "a" + ".b" * 100_000,
        "x = " + "[" * 90 + "]" * 90 + "\n" + "def ok(): pass\n",
        "".join(" " * n + "if 1:\n" for n in range(300)),
        "\0",
    ],
    ids=["parentheses", "signs", "attributes", "lists", "blocks", "nul"],
)
async def test_a_hostile_source_breaks_nothing(root, call, source):
    """Deep nesting can exhaust the parser's stack and end the interpreter that runs it."""
    (root / "a.py").write_text(source)
    assert said(await call("outline", path="a.py"))
    (root / "b.py").write_text("def fine(): pass\n")
    assert said(await call("outline", path="b.py")).splitlines()[1:] == ["1: def fine()"]
