#!/usr/bin/env python3
"""An Excel workbook (Office Open XML, ECMA-376) of JSON or CSV, without anything to install."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "document-parts" / "scripts"))

from office import OFFICE, relations, save, text_of  # a skill beside this one

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
ROWS, COLUMNS, CHARACTERS, NAME = 1_048_576, 16_384, 32_767, 31
"""The most that Excel opens."""
FORMATS = {
    "general": "General",
    "text": "@",
    "number": "#,##0.00",
    "integer": "#,##0",
    "money": "#,##0.00;[Red]-#,##0.00",
    "percent": "0.0%",
    "date": "yyyy-mm-dd",
    "datetime": "yyyy-mm-dd hh:mm",
}
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
RULED = '<top style="thin"><color auto="1"/></top>'
PLAIN, BOLD, TOTAL = range(3)
"""Looks of a cell; each exists for every format."""


class CannotBeMade(Exception):
    """The message is for whoever described the workbook."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("described", type=Path, help="a .json or .csv file, UTF-8")
    parser.add_argument("workbook", type=Path)
    given = parser.parse_args()
    try:
        found = read(given.described)
        sheets = [Sheet(each, place) for place, each in enumerate(found, 1)]
        check_names(sheets)
        save_book(given.workbook, sheets)
    except (CannotBeMade, OSError, UnicodeDecodeError, csv.Error) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    except (json.JSONDecodeError, RecursionError) as problem:
        sys.stderr.write(f"{given.described} is not JSON: {problem}\n")
        return 2
    made = {sheet.name: len(sheet.rows) for sheet in sheets}
    sys.stdout.write(json.dumps({"made": str(given.workbook), "rows": made}) + "\n")
    return 0


def read(place: Path) -> list[dict[str, Any]]:
    text = place.read_text(encoding="utf-8-sig")
    if place.suffix.lower() == ".csv":
        return [sheet_of_csv(text, place.stem)]
    found = json.loads(text)
    sheets = found.get("sheets") if isinstance(found, dict) else None
    if not isinstance(sheets, list) or not sheets or not all(isinstance(s, dict) for s in sheets):
        raise CannotBeMade(
            'The description is an object with "sheets", a list of at least one object.'
        )
    return sheets


def sheet_of_csv(text: str, name: str) -> dict[str, Any]:
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    lines = [line for line in csv.reader(text.splitlines(keepends=True), dialect) if line]
    if not lines:
        raise CannotBeMade("The CSV file has no rows.")
    name = re.sub(r"[\[\]:*?/\\]", " ", name).strip("' ")[:NAME]
    rows = [[float(c) if NUMBER.fullmatch(c) else c for c in line] for line in lines[1:]]
    width = max(map(len, lines))
    head = lines[0] + [""] * (width - len(lines[0]))
    return {"name": name or "Data", "columns": [{"header": h} for h in head], "rows": rows}


def check_names(sheets: list[Sheet]) -> None:
    seen: set[str] = set()
    for sheet in sheets:
        if sheet.name.lower() in seen:
            raise CannotBeMade(f"Two sheets are called “{sheet.name}”.")
        seen.add(sheet.name.lower())


def letters(column: int) -> str:
    """Of a column counted from 1: 28 is AB."""
    found = ""
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found


class Sheet:
    def __init__(self, given: dict[str, Any], place: int) -> None:
        self.place = place
        name = given.get("name", f"Sheet {place}")
        wrong = not isinstance(name, str) or not name.strip() or len(name) > NAME
        if wrong or set("[]:*?/\\") & set(name) or name[0] == "'" or name[-1] == "'":
            raise CannotBeMade(f"Sheet {place} has the name {name!r}, which Excel does not take.")
        self.name: str = name
        self.columns: list[dict[str, Any]] = self._objects(given.get("columns", []))
        self.rows: list[list[Any]] = self._rows(given.get("rows", []))
        self.total = bool(given.get("total_row", False)) and bool(self.rows)
        self.width = max([len(self.columns), *map(len, self.rows)], default=0)
        if self.width > COLUMNS or len(self.rows) + 1 > ROWS:
            raise CannotBeMade(f"“{self.name}” has more rows or columns than a sheet can have.")
        for column in self.columns:
            if column.get("format", "general") not in FORMATS:
                known = ", ".join(FORMATS)
                raise CannotBeMade(f"There is no format {column['format']!r}; there are {known}.")

    def _objects(self, found: Any) -> list[dict[str, Any]]:
        if not isinstance(found, list):
            raise CannotBeMade(f"The columns of “{self.name}” are a list.")
        return [each if isinstance(each, dict) else {"header": str(each)} for each in found]

    def _rows(self, found: Any) -> list[list[Any]]:
        if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
            raise CannotBeMade(f"The rows of “{self.name}” are a list of lists.")
        return found

    def xml(self) -> str:
        head = bool(self.columns)
        lines = []
        if head:
            cells = (
                self._cell(1, n, str(column.get("header", "")), BOLD, "general")
                for n, column in enumerate(self.columns, 1)
            )
            lines.append(f'<row r="1">{"".join(cells)}</row>')
        for number, row in enumerate(self.rows, 1 + head):
            look = TOTAL if self.total and number == len(self.rows) + head else PLAIN
            cells = (self._cell(number, n, value, look) for n, value in enumerate(row, 1))
            lines.append(f'<row r="{number}">{"".join(cells)}</row>')
        last = f"{letters(max(1, self.width))}{max(1, len(self.rows) + head)}"
        view = (
            '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
            if head
            else ""
        )
        widths = "".join(
            f'<col min="{n}" max="{n}" width="{self._wide(n)}" customWidth="1"/>'
            for n in range(1, self.width + 1)
        )
        filters = f'<autoFilter ref="A1:{self._below(head)}"/>' if head and self.rows else ""
        return (
            f'<worksheet xmlns="{MAIN}"><dimension ref="A1:{last}"/>'
            f'<sheetViews><sheetView workbookViewId="0">{view}</sheetView></sheetViews>'
            f"{f'<cols>{widths}</cols>' if widths else ''}"
            f"<sheetData>{''.join(lines)}</sheetData>{filters}</worksheet>"
        )

    def _below(self, head: bool) -> str:
        """The last cell that filters are about: a row of sums is not."""
        return f"{letters(self.width)}{max(1, len(self.rows) + head - self.total)}"

    def _wide(self, column: int) -> float:
        given = self.columns[column - 1].get("width") if column <= len(self.columns) else None
        if isinstance(given, int | float) and not isinstance(given, bool) and 1 <= given <= 255:
            return given
        said = [self.columns[column - 1].get("header", "")] if column <= len(self.columns) else []
        said += [row[column - 1] for row in self.rows[:200] if len(row) >= column]
        longest = max((len(str(v)) for v in said if not isinstance(v, dict)), default=8)
        return float(min(60, max(9, longest + 3)))

    def _format(self, column: int) -> str:
        found = self.columns[column - 1].get("format") if column <= len(self.columns) else None
        return found or "general"

    def _cell(self, row: int, column: int, value: Any, look: int, form: str = "") -> str:
        form = form or self._format(column)
        where = f"{letters(column)}{row}"
        if isinstance(value, dict):
            form = value.get("format", form)
            if form not in FORMATS or not str(value.get("formula", "")).startswith("="):
                raise CannotBeMade(
                    f'{self.name}!{where}: an object has "formula", which begins with =.'
                )
            style = style_of(form, look)
            return f'<c r="{where}" s="{style}"><f>{text_of(value["formula"][1:])}</f></c>'
        style = style_of(form, look)
        if value is None or value == "":
            return f'<c r="{where}" s="{style}"/>' if look else ""
        if isinstance(value, bool):
            return f'<c r="{where}" s="{style}" t="b"><v>{int(value)}</v></c>'
        if isinstance(value, int | float):
            if not math.isfinite(value) or abs(value) > 1e300:
                raise CannotBeMade(
                    f"{self.name}!{where}: {value} is no number that a cell can hold."
                )
            return f'<c r="{where}" s="{style}"><v>{value!r}</v></c>'
        if not isinstance(value, str):
            raise CannotBeMade(f"{self.name}!{where}: a list is no value of a cell.")
        if form in {"date", "datetime"} and look != BOLD:
            return f'<c r="{where}" s="{style}"><v>{self._day(value, where)!r}</v></c>'
        if len(value) > CHARACTERS:
            raise CannotBeMade(f"{self.name}!{where} has more than {CHARACTERS:,} characters.")
        return (
            f'<c r="{where}" s="{style}" t="inlineStr"><is>'
            f'<t xml:space="preserve">{text_of(value)}</t></is></c>'
        )

    def _day(self, value: str, where: str) -> float:
        """As Excel counts: days since the last one of 1899."""
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            raise CannotBeMade(
                f"{self.name}!{where}: {value!r} is no date like 2026-03-01."
            ) from None
        if at.year < 1901:
            raise CannotBeMade(f"{self.name}!{where}: Excel knows no date before 1901.")
        days = at.date() - date(1899, 12, 30)
        return days.days + (at.hour * 3600 + at.minute * 60 + at.second) / 86_400


def style_of(form: str, look: int) -> int:
    return 1 + list(FORMATS).index(form) * 3 + look


def styles() -> str:
    codes = "".join(
        f'<numFmt numFmtId="{164 + n}" formatCode={quoteattr(code)}/>'
        for n, code in enumerate(FORMATS.values())
    )
    looks = {
        PLAIN: 'fontId="0" fillId="0" borderId="0"',
        BOLD: 'fontId="1" fillId="2" borderId="0" applyFont="1" applyFill="1"',
        TOTAL: 'fontId="1" fillId="0" borderId="1" applyFont="1" applyBorder="1"',
    }
    kinds = "".join(
        f'<xf numFmtId="{164 + n}" xfId="0" applyNumberFormat="1" {looks[look]}/>'
        for n in range(len(FORMATS))
        for look in (PLAIN, BOLD, TOTAL)
    )
    sides = "<left/><right/>{}<bottom/><diagonal/>"
    return (
        f'<styleSheet xmlns="{MAIN}"><numFmts count="{len(FORMATS)}">{codes}</numFmts>'
        '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
        '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="3"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill>'
        '<fill><patternFill patternType="solid"><fgColor rgb="FFE8ECF4"/></patternFill></fill></fills>'
        f'<borders count="2"><border>{sides.format("<top/>")}</border>'
        f"<border>{sides.format(RULED)}</border></borders>"
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{1 + len(FORMATS) * 3}">'
        f'<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>{kinds}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def save_book(place: Path, sheets: list[Sheet]) -> None:
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name={quoteattr(sheet.name)} sheetId="{n}" r:id="rId{n}"/>'
        for n, sheet in zip(numbers, sheets, strict=True)
    )
    links = [("worksheet", f"worksheets/sheet{n}.xml", False) for n in numbers]
    parts: dict[str, str | bytes] = {
        "_rels/.rels": relations([("officeDocument", "xl/workbook.xml", False)]),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets>'
            '<calcPr calcId="191029" fullCalcOnLoad="1"/></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": relations([*links, ("styles", "styles.xml", False)]),
        "xl/styles.xml": styles(),
    }
    kinds = {"xl/workbook.xml": f"{TYPE}.sheet.main+xml", "xl/styles.xml": f"{TYPE}.styles+xml"}
    for number, sheet in zip(numbers, sheets, strict=True):
        parts[f"xl/worksheets/sheet{number}.xml"] = sheet.xml()
        kinds[f"xl/worksheets/sheet{number}.xml"] = f"{TYPE}.worksheet+xml"
    save(place, parts, kinds)


if __name__ == "__main__":
    raise SystemExit(main())
