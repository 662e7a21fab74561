"""The papers' parameter schedules as symbolic claims."""
