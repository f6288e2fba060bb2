"""Real servers on loopback for the tests that need one: started from Debian's packages, ended by process id."""
