"""What tests share that look at the package as an attacker does."""
