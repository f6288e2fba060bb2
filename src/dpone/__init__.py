"""dpone-replay: bounded full refreshes of ClickHouse tables that survive any crash.

Three rooms: :mod:`dpone.domain` decides, :mod:`dpone.ledger` remembers, :mod:`dpone.adapters` acts.
"""

__version__ = "0.1.0"
