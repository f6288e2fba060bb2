"""Tests of manifests: strict YAML, grammar, whole manifests, identity, JSON Schemas."""
