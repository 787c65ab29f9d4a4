"""What every request passes before its route: limits on its head, the log, authentication and size."""
