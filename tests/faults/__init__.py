"""Faults injected into real processes, connections and servers, and the promise that each of them must keep."""
