"""Texts of SQL that tables keep, or that others send: what they may say."""
