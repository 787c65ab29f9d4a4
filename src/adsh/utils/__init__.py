"""Files, devices, progress, URLs and storage: what every room may use."""
