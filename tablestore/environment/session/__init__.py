"""Holds what a session knows: its catalogs and settings, the names in it, and the engine that runs its queries."""
