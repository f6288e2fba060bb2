"""Sources by real files: what is read is exact, what cannot be right is refused with its line or row.

``test_csv_structure`` and ``test_values`` compare the vectorised code to an obvious one; the others read whole files.
"""
