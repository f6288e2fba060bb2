"""The hands: everything that touches the world, behind the ports that the domain names.

``cli`` is the command line, ``runtime`` the loop and its composition root, ``manifest`` reads what an author wrote,
``sources`` reads rows, ``clickhouse`` holds targets, ``reader`` observes them from a process of its own.
"""
