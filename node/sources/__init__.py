"""The owner's own data on this device: calendars, contacts, notes and files. Knows neither tools, labels nor the
network."""
