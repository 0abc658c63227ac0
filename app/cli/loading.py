"""What a command needs, imported in little time."""

import gc
import importlib
import sys
from typing import Any


def load(address: str) -> Any:
    """What `module:name` names.

    What an import makes stays. The collector looks through it again and again, a
    seventh of the time, and once more at the end, unless it is kept from that.
    """
    module, _, name = address.partition(":")
    if module not in sys.modules:
        _import(module)
    return getattr(sys.modules[module], name)


def _import(module: str) -> None:
    running = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(module)
    finally:
        gc.freeze()
        if running:
            gc.enable()
