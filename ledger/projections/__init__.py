"""The ledger as tables that anybody may query: operations, slots, timeline. Nothing is ever decided by them.

``tables`` says which tables and columns there are; ``folding`` turns recorded events into rows and knows no database;
``following`` reads the ledger in order and hands the rows on; ``sqlite`` and ``postgres`` keep them, rows and position
in one transaction, and ``target`` opens one by its URL; ``checking`` holds kept rows against rebuilt ones.

An import contract forbids this package to whatever decides: what a table says may be behind the ledger.
"""
