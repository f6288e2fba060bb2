"""The command line: one file a command group, loaded only when its command is typed.

``entry`` is the program; ``output`` prints the one document of every command; ``story`` is what a person reads.
"""
