"""Runs jobs: work that is started once, ends in one of three ways, and tells hooks of it. They know nothing of tables."""
