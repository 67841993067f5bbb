"""What users tell of themselves: found by rules, kept as `key: value`."""
