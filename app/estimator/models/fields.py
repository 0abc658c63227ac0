"""A configuration that remembers which of its fields were asked for."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.estimator import catalogue
from app.estimator.models.families import is_known

Config = Mapping[str, Any]
_WORDS = catalogue.load_toml("config_fields.toml")
_ENDINGS = tuple(_WORDS["endings"])
_EVERYWHERE = frozenset(_WORDS["everywhere"])
_OF_FAMILIES = frozenset(_WORDS["of_families"])


class TrackedConfig(Mapping[str, Any]):
    """The fields of a `config.json`, and which of them anybody read.

    >>> fields = TrackedConfig({"hidden_size": 64, "odd_blocks": 3})
    >>> fields["hidden_size"], fields.unread()
    (64, ('odd_blocks',))
    """

    def __init__(self, given: Config) -> None:
        """Take the fields of `given`; none of them is read yet."""
        self._given = dict(given)
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        """Read one field."""
        self._read.add(key)
        return self._given[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Read one field, which may be missing: far quicker than by an exception."""
        self._read.add(key)
        return self._given.get(key, default)

    def __iter__(self) -> Iterator[str]:
        """Name the fields."""
        return iter(self._given)

    def __len__(self) -> int:
        """Count the fields."""
        return len(self._given)

    def unread(self) -> tuple[str, ...]:
        """Fields that nobody read and that may change what is counted."""
        known = is_known(str(self._given.get("model_type", "llama")))
        return tuple(
            key
            for key, value in self._given.items()
            if value is not None
            and value != _WORDS["neutral"].get(key)
            and key not in self._read
            and not _is_harmless(key, known=known)
        )


def with_defaults(text: Config) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Add what a nested configuration leaves to the defaults of its class.

    The second value names the fields that were added, less what is switched off.
    """
    defaults = catalogue.load_table("defaults.toml", "family")
    row = defaults.get(str(text.get("model_type")), {}).get("config", {})
    added = {key: value for key, value in row.items() if key not in text}
    return {**added, **text}, tuple(key for key, value in added.items() if value)


def _is_harmless(key: str, *, known: bool) -> bool:
    if key.startswith("_") or key.endswith(_ENDINGS) or key in _EVERYWHERE:
        return True
    return known and key in _OF_FAMILIES
