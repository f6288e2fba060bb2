"""Tests of the hands: one folder a package."""
