"""Tests of the decisions: given events, when something is asked, then this and nothing else."""
