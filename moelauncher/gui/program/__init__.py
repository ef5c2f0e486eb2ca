"""Settings, doctor, first page, log, status line."""
