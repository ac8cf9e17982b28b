"""Says whether a picture or a PDF can be opened; a script for `tools_app.isolation`, with libraries.

Each request `{kind, media_type, body, side, pixels, pages}`, the body in base64, is answered
`{pixels, pages}` (how many it has; of more pixels than it may have nothing is decoded) or
`{problem, remedy}`. Of a picture every point is decoded, and of a PDF every page looked up, because that
is what a model service does with it.
"""

from __future__ import annotations

import base64
import json
import logging
import struct
import sys
from io import BytesIO

from PIL import Image
from pypdf import PasswordType, PdfReader
from pypdf.errors import PyPdfError

FORMATS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
_NAMED = {**FORMATS, "MPO": "image/jpeg"}
"""With what the library calls a JPEG behind whose end there is another one, as cameras write them."""
IMAGE_FAULTS = (OSError, SyntaxError, ValueError, KeyError, IndexError, TypeError, EOFError)
PDF_FAULTS = (PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, OSError)
"""What a file that breaks its own format makes a reader raise."""

Verdict = dict[str, str | int]


def picture(body: bytes, media_type: str, side: int, most: int) -> Verdict:
    """One of more than `most` pixels is not decoded."""
    try:
        with Image.open(BytesIO(body), formats=tuple(FORMATS)) as opened:
            found = _NAMED[opened.format or ""]
            wide, high = opened.size
            if max(wide, high) > side:
                return {
                    "problem": f"it is {wide} × {high} pixels, and no side may have more than {side}",
                    "remedy": "Make it smaller.",
                }
            if wide * high > most:
                return {"pixels": wide * high, "pages": 0}
            if found != media_type:
                return {
                    "problem": f"it is {found} and was called {media_type}",
                    "remedy": f"Send it as {found}.",
                }
            opened.verify()
        # What it verified it does not decode any more, and not everything that it verifies decodes.
        with Image.open(BytesIO(body), formats=tuple(FORMATS)) as opened:
            opened.load()
    except MemoryError:
        return {"problem": "it takes too much memory to open", "remedy": "Make it smaller."}
    except (*IMAGE_FAULTS, struct.error):
        return {
            "problem": "it cannot be decoded",
            "remedy": "Open it in a viewer, save it anew as PNG, JPEG, GIF or WebP, and send that.",
        }
    return {"pixels": wide * high, "pages": 0}


def paper(body: bytes, pages: int) -> Verdict:
    try:
        reader = PdfReader(BytesIO(body), strict=False)
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return {
                "problem": "it is locked with a password",
                "remedy": "Save it without a password, and send that.",
            }
        total = len(reader.pages)
        if total > pages:
            return {
                "problem": f"it has {total} pages, and at most {pages} are taken",
                "remedy": "Send the pages that matter.",
            }
        for page in reader.pages:
            page.mediabox  # noqa: B018 - what cannot be looked up raises
    except (*PDF_FAULTS, RecursionError, MemoryError):
        total = 0
    if not total:
        return {
            "problem": "it cannot be read as a PDF",
            "remedy": "Open it in a viewer, save it anew, and send that.",
        }
    return {"pixels": 0, "pages": total}


def main() -> None:
    logging.disable(logging.CRITICAL)
    Image.MAX_IMAGE_PIXELS = None  # the sides are limited before anything is decoded
    for line in sys.stdin:
        asked = json.loads(line)
        body = base64.b64decode(asked["body"])
        if asked["kind"] == "image":
            answer = picture(body, asked["media_type"], asked["side"], asked["pixels"])
        else:
            answer = paper(body, asked["pages"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
