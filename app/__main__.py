"""`python -m app` is `headroom`."""

import sys

from app.cli import main

sys.exit(main())
