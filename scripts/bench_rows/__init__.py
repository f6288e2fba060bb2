"""The benchmark: one module a group of rows, every row a ratio to the plain way measured in the same minutes."""
