"""The PostgreSQL store's tables, functions and guards, and how a new store comes into being: in one transaction.

``stored_events`` keeps the event sourcing library's names and columns. Everything that an append must hold is held by
the database: one function appends, under the table's lock; triggers refuse what no ledger may do, whoever asks.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from psycopg.sql import SQL, Composed, Identifier, Literal

from .postgres_faults import OTHER_IDENTITY, OUT_OF_ORDER, SEALED, TOUCHED, wrong_schema
from .recorder import STORE_FORMAT, LedgerIdentity

EVENTS_COLUMNS: Final = {
    "originator_id": "uuid",
    "originator_version": "bigint",
    "topic": "text",
    "state": "bytea",
    "notification_id": "bigint",
}
IDENTITY_COLUMNS: Final = {"ledger_id": "text", "epoch": "bigint", "format": "integer", "sealed": "boolean"}
_TABLES: Final = (
    "CREATE TABLE {schema}.stored_events (originator_id uuid NOT NULL, originator_version bigint NOT NULL, "
    "topic text NOT NULL, state bytea NOT NULL, notification_id bigserial, "
    "PRIMARY KEY (originator_id, originator_version))",
    "CREATE UNIQUE INDEX stored_events_notification_id_idx ON {schema}.stored_events (notification_id ASC)",
    "CREATE TABLE {schema}.ledger_identity (ledger_id text NOT NULL, epoch bigint NOT NULL CHECK (epoch > 0), "
    "format integer NOT NULL, sealed boolean NOT NULL)",
    "CREATE UNIQUE INDEX ledger_identity_is_one ON {schema}.ledger_identity ((true))",
)
APPEND: Final = "ledger_append(text, bigint, integer, uuid[], bigint[], text[], bytea[])"
FUNCTIONS: Final = {
    # The lock makes the order of positions the order of commits, so that who follows the log skips nothing; it lets
    # readers read. Each statement in here sees what was committed before the lock was given.
    "ledger_append": (
        "(ledger text, at_epoch bigint, in_format integer, ids uuid[], versions bigint[], topics text[], "
        "states bytea[]) RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER "
        "SET search_path = pg_catalog, pg_temp",
        """
BEGIN
  LOCK TABLE {schema}.stored_events IN EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT 1 FROM {schema}.ledger_identity
                 WHERE ledger_id = ledger AND epoch = at_epoch AND format = in_format) THEN
    RAISE EXCEPTION 'another ledger or epoch' USING ERRCODE = {other};
  END IF;
  NOTIFY stored_events;
  RETURN QUERY INSERT INTO {schema}.stored_events (originator_id, originator_version, topic, state, notification_id)
    SELECT id, version, topic, state, 0
    FROM unnest(ids, versions, topics, states) WITH ORDINALITY AS row(id, version, topic, state, place)
    ORDER BY place RETURNING notification_id;
END
""",
    ),
    # Runs for each row, after the rows before it: it numbers them without a gap, whatever the insert said.
    "stored_events_next": (
        "() RETURNS trigger LANGUAGE plpgsql VOLATILE",
        """
BEGIN
  IF EXISTS (SELECT 1 FROM {schema}.ledger_identity WHERE sealed) THEN
    RAISE EXCEPTION 'this ledger is sealed' USING ERRCODE = {sealed};
  END IF;
  IF NEW.originator_version > 1
     AND NOT EXISTS (SELECT 1 FROM {schema}.stored_events
                     WHERE originator_id = NEW.originator_id AND originator_version = NEW.originator_version - 1)
     AND NOT EXISTS (SELECT 1 FROM {schema}.stored_events
                     WHERE originator_id = NEW.originator_id AND originator_version = NEW.originator_version) THEN
    RAISE EXCEPTION 'a stream has no gaps' USING ERRCODE = {order};
  END IF;
  NEW.notification_id := coalesce((SELECT max(notification_id) FROM {schema}.stored_events), 0) + 1;
  RETURN NEW;
END
""",
    ),
    "ledger_refuses": (
        "() RETURNS trigger LANGUAGE plpgsql VOLATILE",
        """
BEGIN
  RAISE EXCEPTION 'events are never changed or removed' USING ERRCODE = {touched};
END
""",
    ),
    "ledger_stays_sealed": (
        "() RETURNS trigger LANGUAGE plpgsql VOLATILE",
        """
BEGIN
  IF OLD.sealed AND NOT NEW.sealed OR NEW.epoch < OLD.epoch THEN
    RAISE EXCEPTION 'a sealed ledger stays sealed, and no epoch falls' USING ERRCODE = {touched};
  END IF;
  RETURN NEW;
END
""",
    ),
}
"""Name → what stands around the body, and the body."""
TRIGGERS: Final = {
    "stored_events_next": "BEFORE INSERT ON {schema}.stored_events FOR EACH ROW EXECUTE FUNCTION "
    "{schema}.stored_events_next()",
    "stored_events_stay": "BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.stored_events FOR EACH STATEMENT EXECUTE "
    "FUNCTION {schema}.ledger_refuses()",
    "ledger_identity_stays_sealed": "BEFORE UPDATE ON {schema}.ledger_identity FOR EACH ROW EXECUTE FUNCTION "
    "{schema}.ledger_stays_sealed()",
    "ledger_identity_stays": "BEFORE DELETE OR TRUNCATE ON {schema}.ledger_identity FOR EACH STATEMENT EXECUTE "
    "FUNCTION {schema}.ledger_refuses()",
}
_CREATING: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_COLUMNS: Final = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_catalog.pg_attribute "
    "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


def columns_of(cursor: Any, schema: str, table: str) -> dict[str, str]:
    """Names and types of a table's columns, in order; empty when there is no such table."""
    rows = cursor.execute(_COLUMNS, (f"{schema}.{table}",)).fetchall()
    return {row["attname"]: row["format_type"] for row in rows}


def create_tables(cursor: Any, schema: str, name: str, identity: LedgerIdentity | None = None) -> bool:
    """Create a new, empty ledger in the transaction of ``cursor``. False when one was there.

    The schema may be there already, made by somebody with the privilege to do so, as long as it holds no such tables.
    """
    cursor.execute(_CREATING, (f"dpone ledger {schema}",))  # of processes that create at once, one does
    if columns_of(cursor, schema, "ledger_identity"):
        return False
    if columns_of(cursor, schema, "stored_events"):
        raise wrong_schema(name, "it has a table of events without an identity record")
    if not cursor.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone():
        cursor.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
    made = identity or LedgerIdentity(str(uuid4()), 1, STORE_FORMAT, False)
    for statement in statements(schema):
        cursor.execute(statement)
    cursor.execute(
        SQL("INSERT INTO {}.ledger_identity VALUES (%s, %s, %s, false)").format(Identifier(schema)),
        (made.ledger_id, made.epoch, made.format),
    )
    return True


def statements(schema: str) -> list[Composed]:
    """Everything that makes a ledger's schema, in order."""
    functions = [
        SQL("CREATE FUNCTION {schema}.{function}").format(schema=Identifier(schema), function=Identifier(name))
        + _filled(head, schema)
        + SQL(" AS {}").format(Literal(body_of(name, schema)))
        for name, (head, _) in FUNCTIONS.items()
    ]
    triggers = [
        SQL("CREATE TRIGGER {} ").format(Identifier(name)) + _filled(on, schema) for name, on in TRIGGERS.items()
    ]
    closed = _filled(f"REVOKE ALL ON FUNCTION {{schema}}.{APPEND} FROM PUBLIC", schema)
    return [*(_filled(text, schema) for text in _TABLES), *functions, *triggers, closed]


def body_of(function: str, schema: str) -> str:
    """A function's body, as the database keeps it."""
    return _filled(FUNCTIONS[function][1], schema).as_string()


def _filled(text: str, schema: str) -> Composed:
    return SQL(text).format(  # every text is one of this module
        schema=Identifier(schema),
        sealed=Literal(SEALED),
        order=Literal(OUT_OF_ORDER),
        other=Literal(OTHER_IDENTITY),
        touched=Literal(TOUCHED),
    )
