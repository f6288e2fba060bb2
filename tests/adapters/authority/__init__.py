"""The platform commands, on a real cluster with its ledger in the cluster's own Keeper."""
