"""Two or more ClickHouse servers that replicate one shard, as a target.

``session`` is one connection to one replica; ``platform`` is the target that the protocol drives; what differs between
a server of 2018 and a present one stands in ``dialect``, and nowhere else.
"""
