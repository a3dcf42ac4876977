"""Snapshot history: tags, branches, consumers, holds, rollback, expiry and orphan files."""
