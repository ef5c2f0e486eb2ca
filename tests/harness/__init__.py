"""The test harness catches what it promises to catch."""
