"""Statements that are made once and run by the driver: what every grade asks ten of.

SQLAlchemy puts a statement into SQL once, but makes its parameters, its result and its
rows anew at every run, which takes five times as long as SQLite takes to answer.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import ClauseElement
from sqlmodel import Session

from app.db.values import bad_value

_Key = TypeVar("_Key")
_NOTHING: Mapping[str, Any] = {}


class Prepared:
    """A statement of SQLAlchemy's, as quick to run as its SQL.

    Declare it beside the store that asks it, with `bindparam` where values go, and
    ask it with the session of the request:

        _FIND = Prepared(select(NAMES.c.id).where(NAMES.c.key == bindparam("wanted")))
        row = _FIND.first(db, {"wanted": key})

    An insert or update takes the columns that its values name. Rows are named tuples.
    It runs in the transaction of the session but does not flush it before. With
    PostgreSQL, where the way to the server costs more, with a list of values whose
    length is not known, and while somebody listens to statements, SQLAlchemy runs it.
    """

    __slots__ = ("_forms", "statement")

    def __init__(self, statement: ClauseElement) -> None:
        self.statement: Any = statement
        self._forms: dict[tuple[str, ...], _Form | None] = {}

    def first(self, db: Session, values: Mapping[str, Any] = _NOTHING) -> Any:
        """The first row, or None."""
        connection = db.connection()
        form = self._form(connection, values)
        if form is None:
            return connection.execute(self.statement, values).first()
        row = form.run(connection, values).fetchone()
        return None if row is None else form.row(row)

    def all(self, db: Session, values: Mapping[str, Any] = _NOTHING) -> Sequence[Any]:
        """Every row."""
        connection = db.connection()
        form = self._form(connection, values)
        if form is None:
            return connection.execute(self.statement, values).all()
        return [form.row(row) for row in form.run(connection, values)]

    def run(self, db: Session, values: Mapping[str, Any] = _NOTHING) -> None:
        """Run a statement that answers nothing."""
        connection = db.connection()
        form = self._form(connection, values)
        if form is None:
            connection.execute(self.statement, values)
        else:
            form.run(connection, values)

    def _form(
        self, connection: Connection, values: Mapping[str, Any]
    ) -> "_Form | None":
        engine = connection.engine
        if engine.dialect.name != "sqlite" or engine.dispatch.before_cursor_execute:
            return None
        names = tuple(values)
        try:
            return self._forms[names]
        except KeyError:
            form = _form_of(self.statement, engine.dialect, names)
            return self._forms.setdefault(names, form)


class _Form:
    """A statement in SQL: the order of its parameters, and what its rows look like."""

    __slots__ = ("_binders", "_fixed", "_order", "_readers", "_text", "_tuple")

    def __init__(self, compiled: Any, dialect: Dialect, columns: Sequence[Any]) -> None:
        self._text = str(compiled)
        self._order: tuple[str, ...] = tuple(compiled.positiontup)
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        self._fixed = {
            n: compiled.params[n] for n, b in binds.items() if not b.required
        }
        self._binders = _used(
            (name, bind.type.dialect_impl(dialect).bind_processor(dialect))
            for name, bind in binds.items()
        )
        self._readers = _used(
            (n, column.type.dialect_impl(dialect).result_processor(dialect, None))
            for n, column in enumerate(columns)
        )
        self._tuple = _tuple_of(getattr(c, "key", None) or "" for c in columns)

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The driver's cursor after the statement."""
        given = {**self._fixed, **values}
        for name, process in self._binders:
            given[name] = process(given[name])
        driver: Any = connection.connection.dbapi_connection
        parameters = [given[name] for name in self._order]
        try:
            return driver.execute(self._text, parameters)
        except driver.Error as error:
            base = driver.Error
            raise DBAPIError.instance(
                self._text, parameters, error, base, hide_parameters=True
            ) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise bad_value(error) from error

    def row(self, values: Sequence[Any]) -> Any:
        """A row of the cursor as Python's types."""
        if self._readers:
            values = list(values)
            for index, process in self._readers:
                values[index] = process(values[index])
        return self._tuple._make(values)


def _form_of(statement: Any, dialect: Dialect, names: tuple[str, ...]) -> _Form | None:
    """The form of a statement; None where its SQL changes with its values."""
    compiled = statement.compile(dialect=dialect, column_keys=list(names) or None)
    varies = compiled.post_compile_params or compiled.literal_execute_params
    if varies or (compiled.isinsert and compiled.insert_prefetch):
        return None
    return _Form(compiled, dialect, tuple(statement.exported_columns))


def _tuple_of(names: Iterable[str]) -> Any:
    return collections.namedtuple("Row", names, rename=True)  # noqa: PYI024 - the names come with the statement


def _used(
    processors: Iterable[tuple[_Key, Callable[[Any], Any] | None]],
) -> tuple[tuple[_Key, Callable[[Any], Any]], ...]:
    """The processors of a type that are there; most types need none."""
    return tuple((key, process) for key, process in processors if process is not None)
