"""Who may do what: identities, roles, and the record of decisions."""
