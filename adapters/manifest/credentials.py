"""Whatever looks like a credential is refused: a manifest is committed, mailed and printed; connections are not.

The file's text is searched line by line, comments included, for credentials in URLs, passwords in connection strings
and well-known key forms; its keys for names that only a credential has. Names of columns are not keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .yaml import Located, Place, Problem

# Every repetition is bounded: a line may be as long as the file, and must not cost its square.
_IN_TEXT: Final = re.compile(
    r"://[^\s/@:]{0,200}:[^\s/@]{1,200}@"  # scheme://user:password@host
    r"|\b(?:password|passwd|pwd)=[^\s'\"]"  # key=value connection strings
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30}|\bxox[abpr]-[A-Za-z0-9-]{10}"
    r"|\beyJ[A-Za-z0-9_-]{10,200}\.eyJ[A-Za-z0-9_-]{10}"  # a JSON Web Token
)
_KEY: Final = re.compile(
    r"(?:.*[_\-.])?(?:pass|passwd|password|passphrase|pwd|secret|token|credentials?|dsn|"
    r"(?:api|access|secret|private)[_\-.]?key(?:[_\-.]id)?|auth)"
)
_ADVICE: Final = "looks like a credential; name a connection with connection_ref and give the credential to it"


def credentials(text: str, document: Located, file: str) -> tuple[Problem, ...]:
    """Everything in a file that looks like a credential."""
    return (*_in_text(text, file), *_in_keys(document))


def _in_text(text: str, file: str) -> Iterator[Problem]:
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _IN_TEXT.search(line):
            yield Problem(Place(file, number, found.start() + 1), _ADVICE)


def _in_keys(document: Located) -> Iterator[Problem]:
    for path, place in document.places.items():
        if not path or path[-2:-1] == ("columns",) or not isinstance(path[-1], str):
            continue
        if _KEY.fullmatch(path[-1].lower()):
            yield Problem(place, f"this field {_ADVICE}")
