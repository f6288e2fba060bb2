"""Connections: what each provider says, and that nothing of it leaks."""
