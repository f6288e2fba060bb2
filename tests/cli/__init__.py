"""The command line as its users meet it: real processes, real files, the real engine."""
