"""The files that the demo provider writes, shaped by the words of a request."""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_NAMED = re.compile(r"(?<![\w/-])(?:[\w-]+/)*[\w-]+\.(?:py|md|txt|json)\b")
_SUBJECT = re.compile(
    r"\b(?:about|for|on|called|named)\s+(?P<subject>[\w][\w \t-]*)", re.IGNORECASE
)
_FILLER = {"a", "an", "the", "my", "our", "your", "some", "me", "us", "and", "with", "please", "of"}
_DEFAULT_SUBJECT = ("shopping", "list")


@dataclass(frozen=True, slots=True)
class DemoFile:
    """What is written, and the literal change that is made to it afterwards."""

    path: str
    purpose: str
    content: str
    old: str
    new: str
    """`old` stands in `content` exactly once."""

    @property
    def edited(self) -> str:
        return self.content.replace(self.old, self.new)


def files_for(words: str) -> tuple[DemoFile, DemoFile]:
    """Two files for a request: those it names, else a module and its test."""
    subject = _subject(words)
    slug = "_".join(subject)
    named = list(dict.fromkeys(_NAMED.findall(words)))
    first = named[0] if named else f"{slug}.py"
    second = named[1] if len(named) > 1 else _companion(first)
    module = first if first.endswith(".py") else second
    return _file(first, subject, module), _file(second, subject, module)


def _companion(path: str) -> str:
    at = PurePosixPath(path)
    name = f"test_{at.name}" if at.suffix == ".py" else f"{at.stem}_notes.md"
    return str(at.with_name(name))


def _subject(words: str) -> tuple[str, ...]:
    """Up to three plain words that say what the request is about."""
    found = _SUBJECT.search(_NAMED.sub(" ", words))
    candidates = re.findall(r"[a-z]+", found["subject"].lower()) if found else []
    kept = tuple(word for word in candidates if word not in _FILLER)[:3]
    return kept or _DEFAULT_SUBJECT


def _file(path: str, subject: tuple[str, ...], module: str) -> DemoFile:
    at = PurePosixPath(path)
    title = " ".join(subject).capitalize()
    match at.suffix:
        case ".py" if at.name.startswith("test_"):
            return _test(path, subject, PurePosixPath(module).stem)
        case ".py":
            return _module(path, subject, title)
        case ".json":
            return _data(path, title)
        case _:
            return _notes(path, title)


def _class_name(subject: tuple[str, ...]) -> str:
    name = "".join(word.capitalize() for word in subject)
    return f"{name}Entries" if keyword.iskeyword(name) else name


def _module(path: str, subject: tuple[str, ...], title: str) -> DemoFile:
    content = f'''"""{title}: named entries with amounts. Written by the demo agent."""

from dataclasses import dataclass, field


@dataclass
class {_class_name(subject)}:
    entries: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, amount: float = 1) -> None:
        self.entries[name] = self.entries.get(name, 0) + amount

    def total(self) -> float:
        return sum(self.entries.values())
'''
    old = "    def add(self, name: str, amount: float = 1) -> None:\n"
    new = f'''{old}        """Add to an entry, which begins at nothing. Amounts must not be negative."""
        if amount < 0:
            raise ValueError(f"{{amount}} is negative: take entries away instead.")
'''
    return DemoFile(path, "the module", content, old, new)


def _test(path: str, subject: tuple[str, ...], module: str) -> DemoFile:
    name = _class_name(subject)
    if module.isidentifier() and not keyword.iskeyword(module):
        imported = f"from {module} import {name}"
    else:
        imported = f'import importlib\n\n{name} = importlib.import_module("{module}").{name}'
    content = f"""{imported}


def test_amounts_of_one_entry_add_up():
    entries = {name}()
    entries.add("first", 2)
    entries.add("first")
    assert entries.total() == 3
"""
    old = "    assert entries.total() == 3\n"
    new = f'{old}    assert entries.entries == {{"first": 3}}\n'
    return DemoFile(path, "its test", content, old, new)


def _notes(path: str, title: str) -> DemoFile:
    content = f"""# {title}

Written by the demo agent.

- [ ] Collect what is known
- [ ] Decide
- [ ] Do it

Status: draft
"""
    return DemoFile(path, "notes", content, "Status: draft", "Status: ready to be read")


def _data(path: str, title: str) -> DemoFile:
    content = json.dumps({"title": title, "status": "draft", "entries": []}, indent=2) + "\n"
    return DemoFile(path, "data", content, '"status": "draft"', '"status": "ready"')


def summary_of(files: tuple[DemoFile, DemoFile], *, edited: bool) -> str:
    """A closing report in Markdown with a table, some code and a little mathematics."""
    main, second = files
    contents = [main.edited if edited else main.content, second.content]
    lines = [content.count("\n") for content in contents]
    rows = "\n".join(
        f"| `{file.path}` | {file.purpose} | {count} |"
        for file, count in zip(files, lines, strict=True)
    )
    change = f"I then changed `{main.path}` once; the diff is above.\n\n" if edited else ""
    return f"""Both files are written.

| File | What it is | Lines |
|---|---|---:|
{rows}

{change}Together they have $\\sum_{{i=1}}^{{2}} n_i = {lines[0]} + {lines[1]} = {sum(lines)}$ lines.

```{_language(main.path)}
{_excerpt(contents[0])}
```

This was the **demo agent**, which follows a handful of rules. Ask it for `help` to see them all."""


def _language(path: str) -> str:
    return {".py": "python", ".md": "markdown", ".json": "json"}.get(PurePosixPath(path).suffix, "")


def _excerpt(content: str) -> str:
    return "\n".join(content.strip("\n").splitlines()[:14])
