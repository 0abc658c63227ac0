"""`python -m evidence.accuracy [FILE ...]`: compute reference cases and print the errors."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from evidence.accuracy.report import (
    compute_project_report,
    compute_report,
    format_report,
    report_as_json,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the cases of the files, or the project's own, and print the errors.

    Returns exit status 0, or 2 if a file cannot be read.
    """
    given = _parser().parse_args(arguments)
    try:
        found = compute_report(given.files) if given.files else compute_project_report()
    except (OSError, ValueError, KeyError) as error:
        print(f"the reference cases cannot be read: {error}.", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(report_as_json(found)))
    else:
        print(format_report(found, verbose=given.verbose))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evidence.accuracy",
        description="Answer reference cases and print how near the answers are.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--verbose", action="store_true", help="print each case")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # The reader closed the pipe, e.g. `... | head`.
    sys.exit(main())
