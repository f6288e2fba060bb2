"""Projections on real SQLite files and a real PostgreSQL server: nothing skipped, equal to rebuilt ones."""
