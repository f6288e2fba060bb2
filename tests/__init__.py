"""The tests mirror the rooms: tests/domain, tests/ledger, tests/adapters."""
