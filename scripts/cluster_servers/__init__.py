"""A real replicated cluster on loopback: two ClickHouse servers and one ZooKeeper, from Debian's packages.

``scripts/cluster`` starts it for a person, ``tests/servers/cluster.py`` for the tests; the configurations and the way
of starting and ending are the same.
"""
