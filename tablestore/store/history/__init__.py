"""What is kept and what goes: tags, branches, consumers, expiry, orphan files."""
