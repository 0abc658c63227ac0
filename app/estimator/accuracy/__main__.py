"""`python -m app.estimator.accuracy FILE...`: answer cases and print the table."""

import json
import pathlib
import sys

from app.estimator.accuracy.report import as_json, as_text, own_cases, report


def main(words: list[str]) -> int:
    """Print the report of the files named; of the project's own without any."""
    flags = {word for word in words if word.startswith("--")}
    files = [pathlib.Path(word) for word in words if not word.startswith("--")]
    found = report(files or own_cases())
    if "--json" in flags:
        text = json.dumps(as_json(found), indent=1)
    else:
        text = as_text(found, verbose="--verbose" in flags)
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
