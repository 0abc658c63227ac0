"""`python -m app` is the same as `headroom`."""

import sys

from app.cli import main

sys.exit(main())
