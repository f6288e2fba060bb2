"""What the source as a whole must be: its layout, its start, and what no file may say."""
