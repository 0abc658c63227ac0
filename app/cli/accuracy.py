"""`headroom accuracy`: reference cases answered and compared."""

import argparse
import json

from app.cli.stop import Stop
from evidence.accuracy.report import as_json, as_text, own_report, report


def accuracy(given: argparse.Namespace) -> int:
    """Answer the cases of the files, or the project's own, and print how near."""
    try:
        found = report(given.files) if given.files else own_report()
    except (OSError, ValueError, KeyError) as error:
        raise Stop(f"the reference cases cannot be read: {error}.") from None
    if given.json:
        print(json.dumps(as_json(found)))
    else:
        print(as_text(found, verbose=given.verbose))
    return 0
