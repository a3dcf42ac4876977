"""The statements as frozen values."""
