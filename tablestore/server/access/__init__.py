"""Decides who may do what: identities, roles, and the record of decisions."""
