"""What the containers of docker-compose.yml run beside `tablestore serve` (docs/guides/whole-system.md)."""
