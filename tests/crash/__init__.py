"""The crash matrix: a real process killed before and after every append and every effect, then the same command."""
