"""One definition of counts and hash, held by Python, the embedded engine and an old server alike."""
