"""Canaries: a password and a row's value are put in, everything that comes out is searched."""
