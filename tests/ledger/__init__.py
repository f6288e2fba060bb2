"""The memory room's tests: stores by a shared contract, the chain by its bytes, faults by real files and processes."""
