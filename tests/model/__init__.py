"""The real loop over an in-memory world, every interleaving chosen by Hypothesis."""
