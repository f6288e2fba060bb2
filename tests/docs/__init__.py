"""The documentation is run, not believed: its commands, its generated parts, its links and its lists."""
